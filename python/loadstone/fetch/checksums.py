"""The checksums that a repository states for a file, the strongest first."""

from __future__ import annotations

import hashlib

from loadstone.fetch.errors import DamagedError

ALGORITHMS = ("sha512", "sha256", "sha1")


def check(jar: str, content: bytes, algorithm: str, stated: str, source: str) -> None:
    """Raise `DamagedError` unless `content` has the checksum `stated` by `source`.

    The text may have the file's name behind the checksum, as `sha512sum` writes it.
    """
    expected = stated.lower().split()[:1]
    if expected != [hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()]:
        raise DamagedError(jar, f"its {algorithm.upper()} checksum is not the one that {source} states")

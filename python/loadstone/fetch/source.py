"""Where a file comes from: the public Maven repository, a mirror of it, a folder or a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.fetch import checksums, download
from loadstone.fetch.errors import MIRROR_VARIABLE, NoLocalJarError, cache_error

if TYPE_CHECKING:
    from loadstone.fetch.artifact import Artifact


def read(artifact: Artifact, mirror: str | None, algorithms: tuple[str, ...] = checksums.ALGORITHMS) -> bytes:
    """Return the file's bytes, verified.

    `mirror` is the base address of a Maven repository, a folder, or the file itself; without one that of the
    environment (`LOADSTONE_MAVEN_MIRROR`), or else the public repository, is asked. `algorithms` are the
    checksums that the repository may state, the strongest first.
    """
    base = (mirror or os.environ.get(MIRROR_VARIABLE) or _public()).rstrip("/")
    if base.startswith(("http://", "https://")):
        return download.download(artifact, base, algorithms)
    return _read_local(artifact, Path(base.removeprefix("file://")))


def _public() -> str:
    """Return the public repository's address, which a client of it knows."""
    from jgo.constants import MAVEN_CENTRAL_URL  # noqa: PLC0415 - slow to import, and needed once

    return MAVEN_CENTRAL_URL


def _read_local(artifact: Artifact, place: Path) -> bytes:
    path = next((path for path in _candidates(artifact, place) if path.is_file()), None)
    if path is None:
        raise NoLocalJarError(artifact.jar, place)
    beside = path.with_name(f"{path.name}.sha512")
    try:
        content = path.read_bytes()
        stated = beside.read_text("utf-8", "replace") if beside.is_file() else None
    except OSError as error:
        raise cache_error(artifact.jar, path, error) from error
    if stated is not None:
        checksums.check(artifact.jar, content, "sha512", stated, str(beside))
    return content


def _candidates(artifact: Artifact, place: Path) -> list[Path]:
    """Return the file itself, a folder's file, and a file where Maven puts it, in this order."""
    # A jar of another version must not pass for this one.
    itself = [place] if place.name == artifact.jar else []
    return [*itself, place / artifact.jar, place / artifact.path]

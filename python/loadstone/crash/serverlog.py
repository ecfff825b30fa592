"""The server's log of a recovery, without a line for each client that came too early."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_REFUSED = re.compile(
    rb"FATAL:  (?:[0-9A-Z]{5}: )?the database system is "
    rb"(?:starting up|shutting down|in recovery mode|not yet accepting connections|not accepting connections)"
)
_MORE = re.compile(rb"DETAIL:  (?:Consistent recovery state|Recovery snapshot|Hot standby mode) (?:has|is) ")


def without_refusals(path: Path, from_byte: int) -> str:
    """Return the log from a byte on, with the number of refused log-ins in place of their lines."""
    with path.open("rb") as file:
        file.seek(from_byte)
        return b"".join(kept(file)).decode(errors="replace")


def kept(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines that are not about refused log-ins, then one with the number of those."""
    refused, last = 0, b""
    for line in lines:
        if _REFUSED.search(line):
            refused += 1
        elif not _MORE.search(line):
            last = line
            yield line
    if refused:
        ended = b"" if not last or last.endswith(b"\n") else b"\n"
        yield ended + f"[{refused:,} lines left out: log-ins refused during the recovery]\n".encode()

"""The driver's messages while it runs, as pgbench writes them to standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.personalities.pgbench.complaint import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_BEFORE = {
    "error": f"{PROGRAM}: error: ",
    "detail": f"{PROGRAM}: detail: ",
    "note": f"{PROGRAM}: ",
    "server": "",
}


def message_writer(err: Callable[[str], object]) -> Callable[[Sequence[Mapping[str, str]]], None]:
    """Return what writes lines (`kind`, `text`) to `err`, those that came together in one go."""

    def write(lines: Sequence[Mapping[str, str]]) -> None:
        if lines:
            err("".join(f"{_BEFORE[line['kind']]}{line['text'].rstrip()}\n" for line in lines))

    return write

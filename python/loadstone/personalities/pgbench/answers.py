"""Answers of a server before a run: poolers and relatives may answer something else than was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.personalities.pgbench.complaint import ComplaintError
from loadstone.personalities.pgbench.values import INT_MAX

if TYPE_CHECKING:
    from loadstone.personalities.pgbench.plain_control import Control, Rows

_MEND = (
    "Check what is at this address: the server, or a pooler or proxy in front of it, does not answer as "
    "PostgreSQL does. Before scripts of your own (-f) with -n, nothing is asked."
)
_SHOWN = 40
"""So much of a value is shown."""


def rows_of(control: Control, sql: str, columns: int) -> Rows:
    """Return the rows of a query. Raises ComplaintError where they have another number of columns."""
    rows = control.ask(sql)
    for row in rows:
        if len(row) != columns:
            raise ComplaintError(
                f"the server answered with another number of columns ({len(row)}) than was asked for "
                f"({columns}): {' '.join(sql.split())}",
                _MEND,
            )
    return rows


def number_of(text: str | None) -> int:
    """Return a count that the server wrote, NULL as 0. Raises ComplaintError where it is no such number."""
    digits = (text or "0").strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _SHOWN and int(digits) <= INT_MAX):
        raise ComplaintError(f'the server answered "{digits[:_SHOWN]}" where a count was asked for', _MEND)
    return int(digits)

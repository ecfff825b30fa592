"""Numbers on pgbench's command line, and its complaints about them."""

from __future__ import annotations

import re

from loadstone.personalities.pgbench.complaint import ComplaintError

INT_MAX = 2**31 - 1
_LONGEST = 100


def integer(name: str, text: str, least: int = 1, most: int = INT_MAX) -> int:
    """Read an option's whole number; raises ComplaintError."""
    if not re.fullmatch(r"\s*[+-]?[0-9]+\s*", text):
        raise ComplaintError(f'invalid value "{text}" for option {name}')
    value = whole(text)
    if not least <= value <= most:
        raise ComplaintError(f"{name} must be in range {least}..{most}")
    return value


def whole(text: str) -> int:
    """Read a whole number; of one that is too long for anything, its first digits will do."""
    return int(text.strip()[:_LONGEST])

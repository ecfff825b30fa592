"""Names and values as SQL writes them."""

from __future__ import annotations

import re
from typing import NewType

Qualified = NewType("Qualified", str)
"""A table's name as SQL writes it, with its schema: no search path decides which table it means."""
_LAST_NAME = re.compile(r'"((?:[^"]|"")*)"$')


def qualified(schema: str | None, name: str) -> Qualified:
    """Write a table's name as SQL does, with its schema; None: an engine without schemas."""
    return Qualified(quoted(name) if schema is None else f"{quoted(schema)}.{quoted(name)}")


def own_name(table: str) -> str:
    """Return the name of a table, without quotes and schema, that `qualified` has written."""
    last = _LAST_NAME.search(table)
    return last[1].replace('""', '"') if last else table


def regclass(table: Qualified) -> str:
    """Write a table as a value that PostgreSQL's functions take."""
    return f"{literal(table)}::regclass"


def quoted(name: str) -> str:
    """Write an identifier as SQL does."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Write a text as SQL does (standard_conforming_strings is on since PostgreSQL 9.1)."""
    return "'" + text.replace("'", "''") + "'"

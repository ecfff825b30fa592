"""What engines have in common that spread the rows of a table over several servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loadstone.engine.dialect.tables import RowTable
    from loadstone.model import PlainTable


_MANY_VALUES = ("timestamp", "int64", "int32", "float64", "float32", "date", "int16", "text")
"""Types, by how many values a column of them may be hoped to have."""


def spreading_column(table: RowTable, options: PlainTable) -> str:
    """Return the column whose hash tells the place of a row: never NULL, of many values as far as is known.

    The primary key must be it; else the column that grows, else the first of a type that has many values.
    """
    if options.primary_key or table["sequence"]:
        return options.primary_key or table["sequence"] or ""
    always = [c for c in table["columns"] if not c.get("nulls") and not c.get("repeats")]
    able = [c["name"] for kind in _MANY_VALUES for c in always if c["type"] == kind]
    return next(iter(able), table["columns"][0]["name"])

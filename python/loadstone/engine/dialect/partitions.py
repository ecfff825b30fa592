"""Partitions of plain tables by rows: ranges of the column that grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.engine.dialect.indexes import cut
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.engine.dialect.tables import RowTable, TableFacts
    from loadstone.model import PlainTable

PARTITIONS_MOST = 10_000
INDEXED_AS_ONE_SINCE = 110000
"""Version 11: since then an index, or a primary key, of a partitioned table is one for all partitions."""


def is_split(options: PlainTable, where: TableFacts) -> bool:
    """Return whether the table is partitioned."""
    return options.partition_rows > 0 and where.rows > 0


def ranges(
    table: RowTable, options: PlainTable, where: TableFacts
) -> Iterator[tuple[str, int | None, int | None]]:
    """Yield name, first value and value behind the last of each partition; None: no bound.

    A partition holds `partition_rows` rows, the last one what is left.
    """
    first, step = table["sequence_first"] or 0, table["sequence_step"] or 1
    starts = [*range(0, where.rows, options.partition_rows), where.rows]
    bounds = [first + step * (where.first + at) for at in starts]
    yield cut(f"{options.name}_before", "before"), None, bounds[0]
    for number in range(len(bounds) - 1):
        yield cut(f"{options.name}_p{number:04}", str(number)), bounds[number], bounds[number + 1]
    yield cut(f"{options.name}_after", "after"), bounds[-1], None


def refuse_partitions(table: RowTable, options: PlainTable, where: TableFacts) -> None:
    """Raise LoadstoneError for partitions that contradict the table; asks no server."""
    growing = table["sequence"]
    if growing is None or not where.rows:
        raise LoadstoneError(
            f"the table '{options.name}' cannot be partitioned by rows: no column is known to grow with them",
            "Remove partition_rows; rows from files, and some data sets, have no such column.",
        )
    if options.partition_column != growing:
        named = options.partition_column or "no column"
        raise LoadstoneError(
            f"the table '{options.name}' cannot be partitioned by {named}: its values do not grow with "
            "the rows",
            f'Set partition_column = "{growing}": it grows with the number of the row.',
        )
    if options.primary_key and options.primary_key != options.partition_column:
        raise LoadstoneError(
            f"the primary key '{options.primary_key}' must contain the column by which the table is "
            f"partitioned, '{options.partition_column}'",
            "Remove the primary key, or partition by its column.",
        )
    if options.primary_key and where.version_number < INDEXED_AS_ONE_SINCE:
        raise LoadstoneError(
            "before version 11 a partitioned table cannot have a primary key", "Remove the primary key."
        )
    count = -(-where.rows // options.partition_rows)
    if count > PARTITIONS_MOST:
        raise LoadstoneError(
            f"{where.rows:,} rows in partitions of {options.partition_rows:,} need {count:,} partitions, "
            f"and at most {PARTITIONS_MOST:,} are allowed",
            "Increase partition_rows.",
        )

"""Rows of plain tables in a phase."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from loadstone.scenario.tables.base import (
    Count,
    CountFromOne,
    Flag,
    Table,
    Template,
    Text,
    Value,
    Values,
    WholeFromOne,
)


class Rows(Table):
    """{ use_case = … } for a time series, { set = …, rows = … } for generated rows, or { files = … }."""

    set: Annotated[
        str | UnsetType, Meta(description='Name of a data set of plain rows, such as "import".')
    ] = UNSET
    rows: Annotated[
        Count | UnsetType,
        Meta(description="Number of rows, or a template; of files: 0 for all their rows."),
    ] = UNSET
    first: Annotated[
        Count | UnsetType, Meta(description="Number of the first row, counted from 0, or a template.")
    ] = UNSET
    seed: Annotated[
        Annotated[int, Meta(ge=0, le=9223372036854775807)] | Template | UnsetType,
        Meta(description="Seed of the values from 0, or a template."),
    ] = UNSET
    options: Annotated[
        dict[str, Value] | UnsetType, Meta(description="Options of the set: NAME = VALUE.")
    ] = UNSET
    files: Annotated[
        str | Annotated[list[str], Meta(min_length=1)] | UnsetType,
        Meta(description="Paths of files with rows: a list, or a text with commas between them."),
    ] = UNSET
    format: Annotated[
        Literal["text", "csv", "binary", "parquet"] | Template | UnsetType,
        Meta(description="How the files are written: text, csv or binary as COPY reads them, or parquet."),
    ] = UNSET
    header: Annotated[
        Flag | UnsetType, Meta(description="true: each CSV file begins with a line of names.")
    ] = UNSET


class PlainTable(Table):
    """How one plain table is made: name, indexes, index_when, partition_rows and others."""

    name: Annotated[Text, Meta(description="Name of the table.")]
    indexes: Annotated[
        str | Template | UnsetType,
        Meta(
            description='How many of the data set\'s usual indexes ("3"), or which: '
            '"a, b:brin, (f,l), l:hash".'
        ),
    ] = UNSET
    index_when: Annotated[
        Literal["before", "after"] | Template | UnsetType,
        Meta(description="Create the indexes before the load or after it, or a template."),
    ] = UNSET
    primary_key: Annotated[str | UnsetType, Meta(description="Column of the primary key; empty: none.")] = (
        UNSET
    )
    partition_column: Annotated[
        str | UnsetType, Meta(description="Column whose ranges are the partitions.")
    ] = UNSET
    partition_rows: Annotated[
        Count | UnsetType,
        Meta(description="About how many rows a partition has; 0: the table is not partitioned."),
    ] = UNSET
    tablespace: Annotated[str | UnsetType, Meta(description="Tablespace of the table.")] = UNSET
    index_tablespace: Annotated[str | UnsetType, Meta(description="Tablespace of the indexes.")] = UNSET
    form: Annotated[
        Literal["default", "columnar"] | Template | UnsetType,
        Meta(description="default, or columnar for the engine's column store."),
    ] = UNSET
    compression: Annotated[
        Literal["default", "none", "pglz", "lz4"] | Template | UnsetType,
        Meta(description="How long values are compressed: default, none, pglz or lz4."),
    ] = UNSET


class LongTransactions(Table):
    """{ rows = …, pipeline = …, mark_rows = … }: single-row INSERTs, many in a transaction."""

    rows: Annotated[CountFromOne, Meta(description="Rows of one transaction, from 1, or a template.")]
    pipeline: Annotated[
        Flag | UnsetType, Meta(description="true: send on without waiting for answers; false: wait for each.")
    ] = UNSET
    mark_rows: Annotated[
        CountFromOne | UnsetType,
        Meta(description="Record the time each time this many rows are inserted, or a template."),
    ] = UNSET


class Curve(Table):
    """Published seconds of each step: name, step_rows, seconds, and `when` for the variant."""

    name: Annotated[Text, Meta(description='The hardware that it was measured on, such as "RAID".')]
    step_rows: Annotated[WholeFromOne, Meta(description="Rows per step.")]
    seconds: Annotated[
        Annotated[list[Annotated[float, Meta(gt=0, le=31536000)]], Meta(min_length=1)],
        Meta(description="Seconds of each step, the first into an empty table."),
    ]
    note: Annotated[str | UnsetType, Meta(description="A note that readers need.")] = UNSET
    when: Values | UnsetType = UNSET

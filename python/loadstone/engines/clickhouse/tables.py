"""How ClickHouse keeps plain tables: MergeTree in the order of the growing column, inserts forced to disk.

Types follow ClickHouse's advice: `Nullable` only where the data may hold NULLs, and `LowCardinality` for
texts that repeat (https://clickhouse.com/docs/best-practices/select-data-types). What the data say of a
column comes with it; where they say nothing, it may be NULL and is a plain `String`.
"""

# ruff: noqa: S608 - identifiers and values are written by `quoted` and `literal`
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loadstone.engine.dialect.tables import USUAL, TableSize
from loadstone.engine.library.tables import LibraryTables
from loadstone.engines.clickhouse.load import ClickLoader
from loadstone.errors import LoadstoneError
from loadstone.sqltext import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.engine.control import Control
    from loadstone.engine.dialect.tables import RowTable, TableFacts
    from loadstone.engine.dialect.timeseries import Column
    from loadstone.model import LoadMethod, PlainTable

DURABLE = {
    "fsync_after_insert": 1,
    "fsync_part_directory": 1,
    "min_rows_to_fsync_after_merge": 1,
    "min_compressed_bytes_to_fsync_after_merge": 1,
}
"""Settings of each table: an insert is answered, a merge takes the place of its parts, once on the disk."""
_SKIPPING = ("minmax", "bloom_filter")
_NULL = r"'\\N'"
_SIZE = """
select sum(bytes_on_disk) as whole, sum(secondary_indices_compressed_bytes + secondary_indices_marks_bytes)
       as indexes from system.parts where active and database = {schema} and table = {table}
"""
_COLUMNS = """
select name, type from system.columns where database = {schema} and table = {table} order by position
"""
_TABLES = """
select name as table_name from system.tables where database = {schema} and name in ({names})
order by name
"""


class ClickTables(LibraryTables):
    """What ClickHouse does in its own way."""

    title = "ClickHouse"
    methods: tuple[LoadMethod, ...] = ("arrow",)
    offered: tuple[str, ...] = (*_SKIPPING, "parallel loads")
    types: Mapping[str, str] = {
        "timestamp": "DateTime64(6, 'UTC')",
        "date": "Date32",
        "int16": "Int16",
        "int32": "Int32",
        "int64": "Int64",
        "float32": "Float32",
        "float64": "Float64",
        "text": "String",
        "json": "String",
        "bool": "Bool",
    }

    def refuse_options(self, table: RowTable, options: PlainTable, where: TableFacts) -> None:
        """Raise LoadstoneError for options that contradict the table, or that ClickHouse cannot fulfil."""
        super().refuse_options(table, replace(options, partition_rows=0), where)
        if options.partition_rows:
            raise LoadstoneError(
                "ClickHouse's partitions are for dropping old data and do not make queries faster, so "
                "Loadstone creates none",
                "Remove partition_rows; the primary key finds ranges.",
            )
        if options.tablespace or options.index_tablespace:
            raise LoadstoneError("ClickHouse has no tablespaces", "Remove them.")
        for index in self.index_list(options.indexes, table):
            if index.method not in ("", *_SKIPPING) or index.operators or len(index.columns) > 1:
                raise LoadstoneError(
                    f"ClickHouse cannot create the index {index}",
                    "Its indexes skip data by one column each: "
                    f"{', '.join(f'c:{name}' for name in _SKIPPING)}.",
                )

    def library(self, document: Mapping[str, Any], connect: Callable[[str], Control]) -> ClickLoader:
        """Return what sends batches to ClickHouse."""
        return ClickLoader(document, connect)

    def create(self, table: RowTable, options: PlainTable, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Return the statement that makes the table."""
        self.refuse_options(table, options, where)
        key = options.primary_key or table["sequence"]
        by = quoted(key) if key else "tuple()"
        columns = ", ".join(f"{quoted(c['name'])} {column_type(c, key)}" for c in table["columns"])
        settings = ", ".join(f"{name} = {value}" for name, value in DURABLE.items())
        made = f"create table {self.qualified(options.name)} ({columns})"
        return (f"{made} engine = MergeTree order by {by} settings {settings}",)

    def indexes(
        self, table: RowTable, options: PlainTable, where: TableFacts = USUAL, *, again: bool = False
    ) -> tuple[str, ...]:
        """Return the statements that make the data-skipping indexes; rows that are there are indexed too."""
        del where
        if_new = "if not exists " if again else ""
        found = []
        for index in self.index_list(options.indexes, table):
            name, method = quoted(index.name(options.name)), index.method or _SKIPPING[0]
            alter = f"alter table {self.qualified(options.name)}"
            found.append(f"{alter} add index {if_new}{name} {index.keys} type {method} granularity 1")
            if options.index_when == "after":
                found.append(f"{alter} materialize index {name} settings mutations_sync = 2")
        return tuple(found)

    def settle(self, options: PlainTable) -> tuple[str, ...]:
        """Return the statement that merges the parts into one: what background merges come to in time."""
        return (f"optimize table {self.qualified(options.name)} final",)

    def notes(self, options: PlainTable, where: TableFacts | None = None) -> tuple[str, ...]:
        """Say which options have no meaning here, and what is there instead."""
        del where
        found = [
            (
                "fsync_after_insert and related settings are on: every insert and merge is on disk "
                "before it counts"
            )
        ]
        if options.indexes.strip() not in ("", "0"):
            found.append("indexes skip ranges of rows (minmax, granularity 1); they cannot find a single row")
        if options.primary_key:
            found.append("the primary key sets the order of the rows; it does not keep them unique")
        if options.compression != "default":
            found.append("ClickHouse always compresses every column (LZ4)")
        return tuple(found)

    def drop(self, name: str) -> str:
        """Return the statement that drops a table and its files at once, if it is there."""
        return f"drop table if exists {self.qualified(name)} sync"

    def existing(self, control: Control, wanted: Sequence[str]) -> list[str]:
        """Return which of these tables (or views) there are already."""
        names = ", ".join(literal(name) for name in wanted)
        asked = _TABLES.format(schema=self.schema_text, names=names)
        return [str(row["table_name"]) for row in control.execute(asked)]

    def existing_columns(self, control: Control, name: str) -> list[Column]:
        """Return the columns of a table that is there; a type of which nothing is known counts as text."""
        back = {sql: kind for kind, sql in self.types.items() if kind != "json"}
        rows = control.execute(_COLUMNS.format(schema=self.schema_text, table=literal(name)))
        return [{"name": row["name"], "type": back.get(_bare(row["type"]), "text")} for row in rows]

    def size(self, control: Control, table: str) -> TableSize:
        """Read what a table's active parts take on disk."""
        asked = _SIZE.format(schema=self.schema_text, table=literal(table))
        row = control.execute(asked).fetchone() or {}
        indexes = int(row["indexes"] or 0)
        return TableSize(int(row["whole"] or 0) - indexes, indexes, 0)

    def microseconds(self, column: str) -> str:
        """Return an expression for a time as whole microseconds since 1970."""
        return f"toUnixTimestamp64Micro({column})"

    def as_text(self, column: Column) -> str:
        """Return a value as the fingerprint's text; a NULL is a backslash and N."""
        name, kind = quoted(column["name"]), column["type"]
        if kind == "bool":
            return f"multiIf(isNull({name}), {_NULL}, {name}, '1', '0')"
        if kind == "timestamp":
            name = self.microseconds(name)
        return f"ifNull(toString({name}), {_NULL})"

    def fingerprint(self, table: RowTable, name: str) -> str:
        """Return a query for the fingerprint of a table's content, as `TableDialect.fingerprint` has it."""
        columns = table["columns"]
        texts = [quoted(c["name"]) for c in columns if c["type"] in ("text", "json")]
        floats = [quoted(c["name"]) for c in columns if c["type"] in ("float32", "float64")]
        parts = [self.as_text(c) for c in columns if c["type"] not in ("float32", "float64")]
        row = f"arrayStringConcat([{', '.join(parts)}], '|')" if parts else "''"
        octets = " + ".join(f"ifNull(length({text}), 0)" for text in texts) or "0"
        terms = " + ".join(f"ifNull(toFloat64({text}), 0) * {n}" for n, text in enumerate(floats, start=1))
        missing = ", ".join(f"isNull({quoted(c['name'])}) as loadstone_n{n}" for n, c in enumerate(columns))
        passed = ", ".join(f"loadstone_n{n}" for n in range(len(columns)))
        nulls = ", ".join(f"countIf(loadstone_n{n})" for n in range(len(columns)))
        value = "toInt128(floor((loadstone_s - floor(loadstone_s / 65521) * 65521) * 1048576))"
        number = "reinterpretAsUInt32(reverse(substring(MD5(loadstone_r), 1, 4)))"
        return (
            "select toString(count()) as rows, toString(ifNull(sum(loadstone_o), 0)) as bytes, "
            "toString(ifNull(sum(toInt128(loadstone_k)), 0)) as content, "
            f"toString(ifNull(sum((1 + loadstone_k % 65521) * {value}), 0)) as numbers, [{nulls}] as nulls "
            f"from (select {number} as loadstone_k, loadstone_o, loadstone_s, {passed} "
            f"from (select {row} as loadstone_r, toInt64({octets}) as loadstone_o, "
            f"{terms or 'toFloat64(0)'} as loadstone_s, {missing} from {self.qualified(name)}))"
        )


def column_type(column: Column, key: str | None = None) -> str:
    """Return a column's type in SQL; the column that rows are ordered by is never NULL."""
    kind = ClickTables.types[column["type"]]
    if column.get("nulls", True) and column["name"] != key:
        kind = f"Nullable({kind})"
    return f"LowCardinality({kind})" if column["type"] == "text" and column.get("repeats") else kind


def _bare(kind: str) -> str:
    for around in ("LowCardinality(", "Nullable("):
        if kind.startswith(around):
            kind = kind.removeprefix(around)[:-1]
    return kind

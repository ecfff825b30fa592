"""How Vertica keeps plain tables: columns in projections, each sorted and encoded as Vertica chooses.

A table made without projections of its own gets one superprojection at its first rows, sorted by its first
columns; Vertica's Database Designer, which would make others for given queries, is not asked. All whole
numbers take 64 bits before they are encoded, all floats are doubles. Source: Vertica's SQL reference.
"""

# ruff: noqa: S608 - identifiers and values are written by `quoted` and `literal`
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.engine.dialect.tables import USUAL, TableFacts, TableSize
from loadstone.engine.library.tables import LibraryTables
from loadstone.engines.vertica.load import VerticaLoader
from loadstone.sqltext import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.engine.control import Control
    from loadstone.engine.dialect.tables import RowTable
    from loadstone.engine.dialect.timeseries import Column
    from loadstone.model import LoadMethod, PlainTable

REPEATING_OCTETS, TEXT_OCTETS = 256, 65_000
"""Longest text of a column whose values repeat, and of any other: queries take memory by that length."""
_TABLES = """
select table_name from v_catalog.tables where table_schema = {schema} and table_name in ({names})
order by 1
"""
_COLUMNS = """
select column_name as name, data_type as type from v_catalog.columns
where table_schema = {schema} and table_name = {table} order by ordinal_position
"""
_SIZE = """
select coalesce(sum(used_bytes), 0) as bytes from v_monitor.projection_storage
where anchor_table_schema = {schema} and anchor_table_name = {table}
"""
_FLOATS = ("float32", "float64")


class VerticaTables(LibraryTables):
    """What Vertica does in its own way."""

    title = "Vertica"
    methods: tuple[LoadMethod, ...] = ("copy_text",)
    offered: tuple[str, ...] = ("parallel loads",)
    index_methods = ()
    compressions = ()
    splits = False
    tablespaces = False
    types: Mapping[str, str] = {
        "timestamp": "timestamp",
        "date": "date",
        "int16": "int",
        "int32": "int",
        "int64": "int",
        "float32": "float",
        "float64": "float",
        "text": f"varchar({TEXT_OCTETS})",
        "json": "long varchar(1000000)",
        "bool": "boolean",
    }

    def library(self, document: Mapping[str, Any], connect: Callable[[str], Control]) -> VerticaLoader:
        """Return what sends batches to Vertica."""
        return VerticaLoader(document, connect)

    def create(self, table: RowTable, options: PlainTable, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Return the statement that makes the table."""
        self.refuse_options(table, options, where)
        columns = ", ".join(f"{quoted(c['name'])} {self._type(c)}" for c in table["columns"])
        return (f"create table {self.qualified(options.name)} ({columns})",)

    def _type(self, column: Column) -> str:
        repeats = column["type"] == "text" and column.get("repeats")
        return f"varchar({REPEATING_OCTETS})" if repeats else self.types[column["type"]]

    def settle(self, options: PlainTable) -> tuple[str, ...]:
        """Return the statements for the optimizer's statistics, and for one file a column."""
        name = literal(f"{self.schema}.{options.name}")
        return (f"select do_tm_task('mergeout', {name})", f"select analyze_statistics({name})")

    def notes(self, options: PlainTable, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Say what is there in place of what scenarios wish."""
        del options, where
        return (
            "one superprojection that Vertica chooses: Database Designer was not used",
            "integers have 64 bits and floats are doubles before they are encoded",
            f"texts that repeat have at most {REPEATING_OCTETS} octets, others {TEXT_OCTETS:,}",
        )

    def existing(self, control: Control, wanted: Sequence[str]) -> list[str]:
        """Return which of these tables there are already."""
        names = ", ".join(literal(name) for name in wanted)
        asked = _TABLES.format(schema=self.schema_text, names=names)
        return [str(row["table_name"]) for row in control.execute(asked)]

    def existing_columns(self, control: Control, name: str) -> list[Column]:
        """Return the columns of a table that is there; a type of which nothing is known counts as text."""
        kinds = {
            "int": "int64",
            "float": "float64",
            "boolean": "bool",
            "date": "date",
            "timestamp": "timestamp",
        }
        rows = control.execute(_COLUMNS.format(schema=self.schema_text, table=literal(name)))
        return [{"name": row["name"], "type": kinds.get(str(row["type"]), "text")} for row in rows]

    def microseconds(self, column: str) -> str:
        """Return an expression for a time as whole microseconds since 1970."""
        return f"timestampdiff('microsecond', timestamp '1970-01-01', {column})"

    def fingerprint(self, table: RowTable, name: str) -> str:
        """Return a query for the fingerprint of a table's content, as `TableDialect.fingerprint` has it."""
        columns = table["columns"]
        texts = [quoted(c["name"]) for c in columns if c["type"] in ("text", "json")]
        floats = [quoted(c["name"]) for c in columns if c["type"] in _FLOATS]
        row = " || '|' || ".join(self.as_text(c) for c in columns if c["type"] not in _FLOATS) or "''"
        octets = " + ".join(f"coalesce(octet_length({text}), 0)" for text in texts) or "0"
        terms = " + ".join(f"coalesce({text}, 0)::float * {n}" for n, text in enumerate(floats, start=1))
        missing = ", ".join(f"{quoted(c['name'])} is null as null_{n}" for n, c in enumerate(columns))
        passed = ", ".join(f"null_{n}" for n in range(len(columns)))
        nulls = ", ".join(f"sum(case when null_{n} then 1 else 0 end)" for n in range(len(columns)))
        value = "floor((s - floor(s / 65521) * 65521) * 1048576)::numeric(38, 0)"
        return (
            "select count(*)::varchar as rows, coalesce(sum(octets), 0)::varchar as bytes, "
            "coalesce(sum(k), 0)::varchar as content, "
            f"coalesce(sum((1 + k % 65521) * {value}), 0)::numeric(38, 0)::varchar as numbers, "
            f"array[{nulls}] as nulls "
            f"from (select hex_to_integer(substr(md5(r), 1, 8)) as k, octets, s, {passed} "
            f"from (select {row} as r, {octets} as octets, {terms or '0::float'} as s, {missing} "
            f"from {self.qualified(name)}) as texts) as numbered"
        )

    def as_text(self, column: Column) -> str:
        """Return a value as the fingerprint's text; a NULL is a backslash and N."""
        name, kind = quoted(column["name"]), column["type"]
        if kind == "text":
            return f"coalesce({name}, {self.null_text})"  # a cast without a length may cut it off
        if kind == "json":
            return f"coalesce({name}::varchar({TEXT_OCTETS}), {self.null_text})"
        return super().as_text(column).replace("::text", "::varchar")

    def size(self, control: Control, table: str) -> TableSize:
        """Read what a table's projections take on all nodes."""
        asked = _SIZE.format(schema=self.schema_text, table=literal(table))
        row = control.execute(asked).fetchone() or {}
        return TableSize(int(row["bytes"]), 0, 0)

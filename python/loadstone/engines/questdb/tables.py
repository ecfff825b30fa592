"""How QuestDB keeps plain tables: columns in the order of the designated timestamp, where the set has one.

Types follow QuestDB's advice: SYMBOL for texts that repeat, VARCHAR for others. SHORT and BOOLEAN know no
NULL: columns that may hold one are INT.
"""

# ruff: noqa: S608 - identifiers and values are written by `quoted` and `literal`
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loadstone.engine.dialect.tables import USUAL, TableSize
from loadstone.engine.library.tables import LibraryTables
from loadstone.engines.questdb.load import QuestLoader
from loadstone.errors import LoadstoneError
from loadstone.sqltext import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.engine.control import Control, Row
    from loadstone.engine.dialect.tables import RowTable, TableFacts
    from loadstone.engine.dialect.timeseries import Column
    from loadstone.model import LoadMethod, PlainTable

OURS = "loadstone_tables"
"""A table that lists those that Loadstone made: QuestDB has no schemas."""
_DAY_US = 86_400_000_000
_DAYS, _MONTHS = 40 * _DAY_US, 1461 * _DAY_US
"""Spans up to which partitions are days, and months."""
_WITHOUT_NULL = {"int16": "int", "bool": "int"}
_NULL = r"'\N'"
_DIGITS = 8
_HALF = 1 << 26
"""Where sums are parted: a term has 52 bits, and QuestDB adds in 64."""


class QuestTables(LibraryTables):
    """What QuestDB does in its own way."""

    title = "QuestDB"
    schema = None
    methods: tuple[LoadMethod, ...] = ("arrow", "insert")
    types: Mapping[str, str] = {
        "timestamp": "timestamp",
        "date": "date",
        "int16": "short",
        "int32": "int",
        "int64": "long",
        "float32": "float",
        "float64": "double",
        "text": "varchar",
        "json": "varchar",
        "bool": "boolean",
    }

    def refuse(self, control: Control, table: RowTable, options: PlainTable) -> None:
        """Raise LoadstoneError when a table of this name is there that Loadstone did not make."""
        del table
        if self.existing(control, [options.name]) and options.name not in made(control):
            raise LoadstoneError(
                f"QuestDB already has a table '{options.name}' that Loadstone did not create",
                "QuestDB has no schemas: rename that table, or use another server.",
            )

    def refuse_options(self, table: RowTable, options: PlainTable, where: TableFacts) -> None:
        """Raise LoadstoneError for options that contradict the table, or that QuestDB cannot fulfil."""
        super().refuse_options(table, replace(options, partition_rows=0), where)
        if options.partition_rows:
            raise LoadstoneError(
                "QuestDB's partitions are hours, days, months or years, not rows", "Remove partition_rows."
            )
        if options.tablespace or options.index_tablespace:
            raise LoadstoneError("QuestDB has no tablespaces", "Remove them.")
        for index in self.index_list(options.indexes, table):
            if index.method:
                raise LoadstoneError(f"QuestDB cannot create the index {index}", "List columns only.")

    def library(self, document: Mapping[str, Any], connect: Callable[[str], Control]) -> QuestLoader:
        """Return what sends batches to QuestDB."""
        return QuestLoader(document, connect)

    def create(self, table: RowTable, options: PlainTable, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Return the statements that make the table, and book it as ours."""
        self.refuse_options(table, options, where)
        columns = ", ".join(f"{quoted(c['name'])} {column_type(c)}" for c in table["columns"])
        kinds = {column["name"]: column["type"] for column in table["columns"]}
        growing, end = table["sequence"], ""
        if growing is not None and kinds[growing] == "timestamp":
            part = _partition(where.rows * (table["sequence_step"] or 1))
            end = f" timestamp({quoted(growing)}) partition by {part} wal"
        return (
            f"create table {self.qualified(options.name)} ({columns}){end}",
            # unqualified: QuestDB has no schemas
            f"insert into {OURS} values ({literal(options.name)})",
        )

    def indexes(
        self, table: RowTable, options: PlainTable, where: TableFacts = USUAL, *, again: bool = False
    ) -> tuple[str, ...]:
        """Return nothing: only symbols can be indexed, and which columns are is decided by the data."""
        del table, options, where, again
        return ()

    def notes(self, options: PlainTable, where: TableFacts | None = None) -> tuple[str, ...]:
        """Say which options have no meaning here, and what is there instead."""
        del where
        how = "a private server reads rows from Parquet files, other servers get INSERTs"
        found = [
            (f"{how}; a batch counts when it is in the log, and the load ends when queries see all rows")
        ]
        if options.indexes.strip() not in ("", "0"):
            found.append("no index is created: QuestDB finds rows by their time, and can index only symbols")
        if options.primary_key:
            found.append("no primary key is created: QuestDB has none")
        if options.compression != "default":
            found.append("QuestDB does not compress values, and stores long values in columns of their own")
        return tuple(found)

    def drop(self, name: str) -> str:
        """Return the statement that drops a table, if it is there."""
        return f"drop table if exists {self.qualified(name)}"

    def existing(self, control: Control, wanted: Sequence[str]) -> list[str]:
        """Return which of these tables there are already."""
        names = ", ".join(literal(name) for name in wanted)
        text = f"select table_name as name from tables() where table_name in ({names}) order by 1"
        return [str(row["name"]) for row in control.execute(text)]

    def existing_columns(self, control: Control, name: str) -> list[Column]:
        """Return the columns of a table that is there; a type of which nothing is known counts as text."""
        back = {sql: kind for kind, sql in self.types.items() if kind != "json"}
        rows = control.execute(f"show columns from {self.qualified(name)}")
        return [{"name": row["column"], "type": back.get(str(row["type"]).lower(), "text")} for row in rows]

    def size(self, control: Control, table: str) -> TableSize:
        """Read what the files of a table's partitions take; those of its log are not counted."""
        text = f"select sum(diskSize) as size from table_partitions({literal(table)})"
        row = control.execute(text).fetchone() or {"size": 0}
        return TableSize(int(row["size"] or 0), 0, 0)

    def microseconds(self, column: str) -> str:
        """Return an expression for a time as whole microseconds since 1970."""
        return f"cast({column} as long)"

    def as_text(self, column: Column) -> str:
        """Return a value as the fingerprint's text; a NULL is a backslash and N."""
        name, kind = quoted(column["name"]), column["type"]
        if kind == "bool" and not column.get("nulls", True):
            return f"case when {name} then '1' else '0' end"
        if kind == "timestamp":
            name = self.microseconds(name)
        if kind == "date":
            name = f"to_str({name}, 'yyyy-MM-dd')"
        return f"coalesce(cast({name} as varchar), {_NULL})"

    def fingerprint(self, table: RowTable, name: str) -> str:
        """Return a query for the parts of a fingerprint: sums in two halves, for QuestDB's are of 64 bits."""
        columns = table["columns"]
        texts = [quoted(c["name"]) for c in columns if c["type"] in ("text", "json")]
        floats = [quoted(c["name"]) for c in columns if c["type"] in ("float32", "float64")]
        parts = [self.as_text(c) for c in columns if c["type"] not in ("float32", "float64")]
        row = f"concat({', '.join(_joined(parts))})" if parts else "''"
        # The length of a NULL is -1.
        lengths = [
            f"case when {text} is null then 0 else length_bytes(cast({text} as varchar)) end"
            for text in texts
        ]
        doubles = [f"coalesce(cast({text} as double), 0.0)" for text in floats]
        terms = " + ".join(f"{text} * {n}" for n, text in enumerate(doubles, start=1))
        missing = ", ".join(_missing(column, n) for n, column in enumerate(columns))
        passed = ", ".join(f"n{n}" for n in range(len(columns)))
        nulls = ", ".join(f"sum(n{n}) n{n}" for n in range(len(columns)))
        digits = " + ".join(
            f"(strpos('0123456789abcdef', substring(h, {at}, 1)) - 1) * {16 ** (_DIGITS - at)}L"
            for at in range(1, _DIGITS + 1)
        )
        value = "cast(floor((s - floor(s / 65521.0) * 65521.0) * 1048576.0) as long)"
        return (
            f"select count() loaded, sum(o) bytes, sum(k) content, sum(v / {_HALF}) high, "
            f"sum(v % {_HALF}) low, {nulls} from (select k, o, (1 + k % 65521) * {value} v, {passed} "
            f"from (select {digits} k, o, s, {passed} "
            f"from (select md5({row}) h, {' + '.join(lengths) or '0'} o, "
            f"{terms or '0.0'} s, {missing} from {self.qualified(name)})))"
        )

    def read_fingerprint(self, control: Control, table: RowTable, name: str) -> Row:
        """Read a table's fingerprint, as `TableDialect.fingerprint` has its columns."""
        row = control.execute(self.fingerprint(table, name)).fetchone() or {}
        return {
            "rows": str(row["loaded"]),
            "bytes": str(row["bytes"] or 0),
            "content": str(row["content"] or 0),
            "numbers": str((row["high"] or 0) * _HALF + (row["low"] or 0)),
            "nulls": [int(row[f"n{number}"] or 0) for number in range(len(table["columns"]))],
        }


def column_type(column: Column) -> str:
    """Return a column's type in SQL."""
    if column["type"] == "text" and column.get("repeats"):
        return "symbol"
    if column.get("nulls", True) and column["type"] in _WITHOUT_NULL:
        return _WITHOUT_NULL[column["type"]]
    return QuestTables.types[column["type"]]


def made(control: Control) -> set[str]:
    """Return the names of the tables that are booked as ours.

    Raises LoadstoneError when somebody else's table has the name of that list.
    """
    answers = QuestTables()
    if not answers.existing(control, [OURS]):
        return set()
    if answers.existing_columns(control, OURS) != [{"name": "name", "type": "text"}]:
        raise LoadstoneError(
            f"QuestDB already has a table '{OURS}' that Loadstone did not create",
            "QuestDB has no schemas: rename that table, or use another server.",
        )
    return {str(row["name"]) for row in control.execute(f"select name from {OURS}")}


def _partition(span_us: int) -> str:
    if span_us <= _DAYS:
        return "day"
    return "month" if span_us <= _MONTHS else "year"


def _joined(parts: Sequence[str]) -> list[str]:
    return [part for number, text in enumerate(parts) for part in (["'|'"] if number else []) + [text]]


def _missing(column: Column, number: int) -> str:
    if column["type"] in ("bool", "int16") and not column.get("nulls", True):
        return f"0 n{number}"
    return f"case when {quoted(column['name'])} is null then 1 else 0 end n{number}"

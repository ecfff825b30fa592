"""How MariaDB keeps plain tables: InnoDB's, whose rows lie in the tree of the primary key."""

# ruff: noqa: S608 - identifiers and values are written by `quoted` and `literal`
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.engine.dialect.partitions import is_split, ranges
from loadstone.engine.dialect.tables import USUAL, TableDialect, TableSize
from loadstone.engines.mariadb import facts
from loadstone.engines.mariadb.control import mariadbs
from loadstone.engines.mariadb.loads import KEEPING, MariaLoads
from loadstone.errors import LoadstoneError
from loadstone.sqltext import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loadstone.engine.control import Control
    from loadstone.engine.dialect.tables import RowTable, TableFacts
    from loadstone.engine.dialect.timeseries import Column
    from loadstone.model import PlainTable

_LONG = ("text", "json")
_FLOATS = ("float32", "float64")
_BACK = {
    "datetime": "timestamp", "date": "date", "smallint": "int16", "tinyint": "bool", "int": "int32",
    "bigint": "int64", "float": "float32", "double": "float64", "longtext": "text", "varchar": "text",
}  # fmt: skip


class MariaTables(MariaLoads, TableDialect):
    """What MariaDB does in its own way."""

    takes_files = False
    index_methods: tuple[str, ...] | None = ("btree",)
    compressions = ()
    tablespaces = False
    keeping = KEEPING
    types: Mapping[str, str] = {
        "timestamp": "datetime(6)",
        "date": "date",
        "int16": "smallint",
        "int32": "int",
        "int64": "bigint",
        "float32": "float",
        "float64": "double",
        "text": "longtext",
        "json": "longtext",
        "bool": "boolean",
    }
    null_text = r"'\N'"

    def offers(self, control: Control) -> frozenset[str]:
        """Return what scenarios may require of plain tables."""
        del control
        offered = {"indexes", "primary keys", "parallel loads", "partitioning"}
        return frozenset(offered | {f"form:{form}" for form in self.forms})

    def refuse(self, control: Control, table: RowTable, options: PlainTable) -> None:
        """Refuse a server that cannot hash the rows after the load."""
        del table, options
        if not facts.has_md5(control):
            raise LoadstoneError(
                "the server has no function md5(), by which loaded rows are compared",
                "Since MySQL 9.6 it is in a component: install component 'file://component_classic_hashing'.",
            )

    def columns(self, table: RowTable, options: PlainTable, where: TableFacts) -> str:
        """Return the definitions of a table's columns and its primary key."""
        del where
        keyed = _keyed(self, table, options)
        listed = [
            f"{quoted(column['name'])} {self.column_type(column, keyed=column['name'] in keyed)}"
            for column in table["columns"]
        ]
        if options.primary_key:
            listed.append(f"primary key ({quoted(options.primary_key)})")
        return ", ".join(listed)

    def column_type(self, column: Column, *, keyed: bool) -> str:
        """Return a column's type; long texts can be in no key, and those in one are up to 255 characters."""
        if column["type"] == "text" and keyed:
            return "varchar(255)"
        return self.types[column["type"]]

    def create(self, table: RowTable, options: PlainTable, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Return the statement that makes the table with its partitions; indexes come extra."""
        self.refuse_options(table, options, where)
        end = ""
        if is_split(options, where):
            parts = ", ".join(text for _, text in self.partitions(table, options, where))
            end = f" partition by range columns ({quoted(options.partition_column)}) ({parts})"
        columns = self.columns(table, options, where)
        return (f"create table {self.qualified(options.name)} ({columns}){KEEPING}{end}",)

    def indexes(
        self, table: RowTable, options: PlainTable, where: TableFacts = USUAL, *, again: bool = False
    ) -> tuple[str, ...]:
        """Return the statements that make the indexes, one each."""
        del where
        if_new = "if not exists " if again else ""
        name = self.qualified(options.name)
        return tuple(
            f"create index {if_new}{quoted(index.name(options.name))} on {name} {index.keys}"
            for index in self.index_list(options.indexes, table)
        )

    def partitions(
        self, table: RowTable, options: PlainTable, where: TableFacts = USUAL
    ) -> Iterator[tuple[str, str]]:
        """Yield name and definition of each partition; the last takes what lies behind the data."""
        if not is_split(options, where):
            return
        for name, _, high in sorted(
            ranges(table, options, where), key=lambda part: (part[2] is None, part[2] or 0)
        ):
            end = "maxvalue" if high is None else self.value(table, high)
            yield name, f"partition {quoted(name)} values less than ({end})"

    def settle(self, options: PlainTable) -> tuple[str, ...]:
        """Return what the manual advises once a table is loaded and before it is queried."""
        return (f"analyze table {self.qualified(options.name)}",)

    def notes(self, options: PlainTable, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Say what is done in another way than PostgreSQL's."""
        found = ["LOAD DATA LOCAL turns wrong values into warnings: the rows are compared after the load"]
        if not options.primary_key:
            found.append("without a primary key, InnoDB adds a hidden one of its own")
        if is_split(options, where):
            found.append("two more partitions contain rows outside the range of the data")
        return tuple(found)

    def as_text(self, column: Column) -> str:
        """Return a value as the fingerprint's text; a NULL is a backslash and N."""
        name, kind = quoted(column["name"]), column["type"]
        if kind == "bool":
            return f"case when {name} then '1' when not {name} then '0' else {self.null_text} end"
        if kind == "timestamp":
            name = self.microseconds(name)
        return f"coalesce(cast({name} as char character set utf8mb4), {self.null_text})"

    def fingerprint(self, table: RowTable, name: str) -> str:
        """Return a query for the parts of a fingerprint; nulls are a column for each column of the table."""
        columns = table["columns"]
        texts = [quoted(c["name"]) for c in columns if c["type"] in _LONG]
        floats = [quoted(c["name"]) for c in columns if c["type"] in _FLOATS]
        parts = [self.as_text(c) for c in columns if c["type"] not in _FLOATS]
        row = f"concat({', '.join(_joined(parts))})" if parts else "''"
        octets = " + ".join(f"coalesce(octet_length({text}), 0)" for text in texts) or "0"
        terms = " + ".join(
            f"coalesce(cast({text} as double), 0e0) * {n}" for n, text in enumerate(floats, start=1)
        )
        missing = ", ".join(f"{quoted(c['name'])} is null as null_{n}" for n, c in enumerate(columns))
        passed = ", ".join(f"null_{n}" for n in range(len(columns)))
        nulls = ", ".join(f"coalesce(sum(null_{n}), 0) as null_{n}" for n in range(len(columns)))
        value = "cast(floor((s - floor(s / 65521) * 65521) * 1048576) as signed)"
        return (
            "select count(*) as loaded, coalesce(sum(octets), 0) as bytes, coalesce(sum(k), 0) as content, "
            f"coalesce(sum(cast((1 + k % 65521) * {value} as decimal(30))), 0) as numbers, {nulls} "
            f"from (select cast(conv(left(md5(r), 8), 16, 10) as unsigned) as k, octets, s, {passed} "
            f"from (select {row} as r, {octets} as octets, {terms or '0e0'} as s, {missing} "
            f"from {self.qualified(name)}) as texts) as numbered"
        )

    def read_fingerprint(self, control: Control, table: RowTable, name: str) -> Mapping[str, Any]:
        """Read a table's fingerprint, as `TableDialect.fingerprint` has its columns."""
        (row,) = mariadbs(control).texts(self.fingerprint(table, name))
        floats = any(column["type"] in _FLOATS for column in table["columns"])
        loaded, octets, content, numbers, *nulls = (str(value) for value in row)
        return {
            "rows": loaded,
            "bytes": octets,
            "content": content,
            "numbers": numbers if floats else "0",
            "nulls": [int(value) for value in nulls],
        }

    def existing_columns(self, control: Control, name: str) -> list[Column]:
        """Return the columns of a table that is there; a type of which nothing is known counts as text."""
        rows = control.execute(
            "select column_name as name, data_type as kind from information_schema.columns "
            f"where table_schema = {self.schema_text} and table_name = {literal(name)} "
            "order by ordinal_position"
        )
        return [{"name": str(row["name"]), "type": _BACK.get(str(row["kind"]), "text")} for row in rows]

    def size(self, control: Control, table: str) -> TableSize:
        """Read what a table takes, as InnoDB's statistics have it once they are made anew."""
        return TableSize(*facts.table_bytes(mariadbs(control), self.schema or "", table), 0)


def _joined(parts: list[str]) -> list[str]:
    return [piece for number, part in enumerate(parts) for piece in (["'|'"] if number else []) + [part]]


def _keyed(dialect: MariaTables, table: RowTable, options: PlainTable) -> set[str]:
    """Return the columns that are in a key or decide about the partition."""
    indexed = {column for index in dialect.index_list(options.indexes, table) for column in index.columns}
    return indexed | {options.primary_key, options.partition_column}

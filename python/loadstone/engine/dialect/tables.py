"""How an engine keeps plain tables: columns, indexes, partitions, tablespaces. PostgreSQL's answers."""

# ruff: noqa: S608 - identifiers and values are written by `quoted` and `literal`
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from loadstone.engine.dialect.indexes import Index, index_list
from loadstone.engine.dialect.loads import LoadDialect
from loadstone.engine.dialect.partitions import INDEXED_AS_ONE_SINCE, is_split, ranges, refuse_partitions
from loadstone.engine.dialect.timeseries import stamp
from loadstone.errors import LoadstoneError
from loadstone.model import LOAD_FILES
from loadstone.sqltext import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loadstone.engine.control import Control
    from loadstone.engine.dialect.timeseries import Column
    from loadstone.model import PlainTable, TableForm, ToastCompression

DriveResult = dict[str, Any]
"""drive.json of docs/run-folder.md, or a progress document of the same shape."""

_COMPRESSION_SINCE = 140000
_LONG = ("text", "json")
"""Types whose long values are compressed and kept out of line (TOAST)."""
_FLOATS = ("float32", "float64")


class RowTable(TypedDict):
    """A table of plain rows, as `_core.DataStream.dataset()` describes it."""

    name: str
    metrics: int
    columns: list[Column]
    usual_indexes: list[str]
    sequence: str | None
    """The column that grows: in row *i* it is `sequence_first` + i x `sequence_step`."""
    sequence_first: int | None
    """Of a time: microseconds since 1970 UTC."""
    sequence_step: int | None
    row_bytes: float | None
    """Average logical bytes of a row; None where only reading tells."""
    text_row_bytes: NotRequired[float | None]
    """Average bytes of a row as COPY's text; None where it is not known."""


@dataclass(frozen=True, slots=True)
class TableSize:
    """What a table takes on disk, with all its partitions or chunks; maps count with what they map."""

    table_bytes: int
    index_bytes: int
    toast_bytes: int
    """Values too long for their row, with the index that finds them."""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What the form of a table depends on beside the options."""

    version_number: int = 180000
    """The server's, as in `Identity`."""
    first: int = 0
    """Number of the first row."""
    rows: int = 0
    """How many there will be; 0: not known."""


USUAL = TableFacts()


class TableDialect(LoadDialect):
    """What PostgreSQL answers; an engine overrides what differs. Statements come without semicolon."""

    takes_files = True
    """Whether files can be sent as they are."""
    forms: tuple[TableForm, ...] = ("default",)
    """In which forms a table can be kept."""
    index_methods: tuple[str, ...] | None = None
    """Access methods that its indexes can have, the usual one first; None: those of the server, (): none."""
    compressions: tuple[ToastCompression, ...] = ("none", "pglz", "lz4")
    """How long values can be compressed as wished, where the server knows of it."""
    parallel = True
    """Whether several connections can load a table at once."""
    splits = True
    """Whether a table can be partitioned by rows."""
    tablespaces = True
    """Whether tables and indexes can be put into tablespaces."""
    types: Mapping[str, str] = {
        "timestamp": "timestamp",
        "date": "date",
        "int16": "smallint",
        "int32": "integer",
        "int64": "bigint",
        "float32": "real",
        "float64": "double precision",
        "text": "text",
        "json": "json",
        "bool": "boolean",
    }
    null_text = r"E'\\N'"
    """How SQL writes a text of a backslash and N."""

    @property
    def lacks(self) -> frozenset[str]:
        """What scenarios may require and no server of the engine offers, as is known without asking one."""
        return frozenset() if self.takes_files else frozenset({LOAD_FILES})

    def offers(self, control: Control) -> frozenset[str]:
        """Return what scenarios may require of plain tables, beside the index methods."""
        row = control.execute(_HAS_LZ4).fetchone()
        known = {"none", "pglz", "lz4"} if row and row["found"] else {"none", "pglz"}
        words = {f"form:{form}" for form in self.forms}
        words |= {f"compression:{name}" for name in self.compressions if name in known}
        offered = {
            LOAD_FILES: self.takes_files,
            "indexes": self.index_methods != (),
            "primary keys": self.index_methods != (),
            "parallel loads": self.parallel,
            "partitioning": self.splits,
            "tablespace": self.tablespaces,
        }
        return frozenset(words | {word for word, there in offered.items() if there})

    def refuse(self, control: Control, table: RowTable, options: PlainTable) -> None:
        """Raise LoadstoneError when the server cannot make the table as wished; touches nothing."""
        for index in self.index_list(options.indexes, table):
            self._refuse_index(control, index, table)
        for name in {options.tablespace, options.index_tablespace} - {""}:
            self.refuse_tablespace(control, name)
        if options.compression == "lz4" and "compression:lz4" not in self.offers(control):
            raise LoadstoneError(
                "the server cannot compress with lz4", "It needs version 14 or later, built with lz4."
            )

    def index_list(self, text: str, table: RowTable) -> tuple[Index, ...]:
        """Read which indexes are wished. Raises LoadstoneError for what cannot be."""
        return index_list(text, [column["name"] for column in table["columns"]], table["usual_indexes"])

    def create(self, table: RowTable, options: PlainTable, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Return the statements that make the table and its partitions, in order; indexes come extra.

        Raises LoadstoneError when it cannot be made as wished.
        """
        self.refuse_options(table, options, where)
        name, split = self.qualified(options.name), is_split(options, where)
        place = f" tablespace {quoted(options.tablespace)}" if options.tablespace else ""
        by = f" partition by range ({quoted(options.partition_column)})" if split else ""
        kept = self.keeping + place
        columns = self.columns(table, options, where)
        found = [f"create {self.relation} {name} ({columns}){by}{'' if split else kept}"]
        if options.compression == "none":
            # Also without compression long values leave the row.
            found += [
                f"alter table {name} alter column {quoted(column['name'])} set storage external"
                for column in table["columns"]
                if column["type"] in _LONG
            ]
        found += [made + kept for _, made in self.partitions(table, options, where)]
        return tuple(found)

    def indexes(
        self, table: RowTable, options: PlainTable, where: TableFacts = USUAL, *, again: bool = False
    ) -> tuple[str, ...]:
        """Return the statements that make the indexes, one each (before version 11: one a partition).

        With `again`, those that are there already stay.
        """
        if_new = "if not exists " if again else ""
        space = f" tablespace {quoted(options.index_tablespace)}" if options.index_tablespace else ""
        whole = not is_split(options, where) or where.version_number >= INDEXED_AS_ONE_SINCE
        leaves = [options.name] if whole else [name for name, _ in self.partitions(table, options, where)]
        return tuple(
            f"create index {if_new}{quoted(index.name(leaf))} on {self.qualified(leaf)} "
            f"{self.using(index)}{index.keys}{space}"
            for index in self.index_list(options.indexes, table)
            for leaf in leaves
        )

    def using(self, index: Index) -> str:
        """Return what CREATE INDEX says of the access method."""
        return f"using {index.method} " if index.method else ""

    def partitions(
        self, table: RowTable, options: PlainTable, where: TableFacts = USUAL
    ) -> Iterator[tuple[str, str]]:
        """Yield name and statement of each partition; two more take what is outside."""
        if not is_split(options, where):
            return
        parent = self.qualified(options.name)
        for name, low, high in ranges(table, options, where):
            first = self.value(table, low) if low is not None else "minvalue"
            last = self.value(table, high) if high is not None else "maxvalue"
            bounds = f"for values from ({first}) to ({last})"
            yield name, f"create {self.relation} {self.qualified(name)} partition of {parent} {bounds}"

    def after_load(self, table: RowTable, options: PlainTable) -> tuple[str, ...]:
        """Return what is to be done once the rows and their indexes are in."""
        del table, options
        return ()

    def settle(self, options: PlainTable) -> tuple[str, ...]:
        """Return what the manual advises once a table is loaded and before it is queried; may be nothing."""
        return (f"vacuum analyze {self.qualified(options.name)}",)

    def notes(self, options: PlainTable, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Say which options have no meaning here, and what is done instead."""
        found = []
        if is_split(options, where):
            found.append(
                "two more partitions, _before and _after, contain rows outside the range of the data"
            )
            if options.indexes.strip() not in ("", "0") and where.version_number < INDEXED_AS_ONE_SINCE:
                found.append(
                    f"{self.title} before 11: the indexes of each partition were created by separate "
                    "statements"
                )
        if options.compression == "pglz" and where.version_number < _COMPRESSION_SINCE:
            found.append(f"{self.title} before 14 compresses with pglz only")
        return tuple(found)

    def notes_of_files(self, table: RowTable) -> tuple[str, ...]:
        """Say what the engine keeps in another way than a user's own files have it."""
        del table
        return ()

    def fingerprint(self, table: RowTable, name: str) -> str:
        """Return a query for the fingerprint of a table's content (crates/gen/src/rows/fingerprint.rs).

        Columns: rows, bytes, content, numbers as text; nulls as an array, one entry for each column.
        """
        columns = table["columns"]
        texts = [quoted(c["name"]) for c in columns if c["type"] in _LONG]
        floats = [quoted(c["name"]) for c in columns if c["type"] in _FLOATS]
        row = " || '|' || ".join(self.as_text(c) for c in columns if c["type"] not in _FLOATS) or "''"
        octets = " + ".join(f"coalesce({self.octets(text)}, 0)" for text in texts) or "0"
        terms = " + ".join(f"coalesce({text}, 0)::float8 * {n}" for n, text in enumerate(floats, start=1))
        # No column of the table is visible to the outer parts: it may have any name.
        missing = [f"{quoted(c['name'])} is null as null_{n}" for n, c in enumerate(columns)]
        passed = ", ".join(f"null_{n}" for n in range(len(columns)))
        nulls = ", ".join(f"count(*) filter (where null_{n})" for n in range(len(columns)))
        value = "floor((s - floor(s / 65521) * 65521) * 1048576)::bigint"
        numbers = f"coalesce(sum((1 + k % 65521) * {value}), 0)::text" if floats else "'0'"
        return (
            "select count(*)::text as rows, coalesce(sum(octets), 0)::text as bytes, "
            f"coalesce(sum(k), 0)::text as content, {numbers} as numbers, {self.array(nulls)} as nulls "
            f"from (select {self.number('r')} as k, octets, s, {passed} "
            f"from (select {row} as r, ({octets})::bigint as octets, {terms or '0'} as s, "
            f"{', '.join(missing)} from {self.qualified(name)}) as texts) as numbered"
        )

    def sums(self, table: RowTable, name: str) -> str | None:
        """Return a query for counts and sums in place of a fingerprint (bulk/sums.py); None: it can hash."""
        del table, name
        return None

    def read_fingerprint(self, control: Control, table: RowTable, name: str) -> Mapping[str, Any]:
        """Ask for the fingerprint, and return its columns."""
        return control.execute(self.fingerprint(table, name)).fetchone() or {}

    def as_text(self, column: Column) -> str:
        """Return a value as the fingerprint's text; a NULL is a backslash and N."""
        name, kind = quoted(column["name"]), column["type"]
        if kind == "bool":
            return f"case when {name} then '1' when not {name} then '0' else {self.null_text} end"
        if kind == "timestamp":
            name = self.microseconds(name)
        if kind == "date":
            name = self.iso_date(name)
        return f"coalesce({name}::text, {self.null_text})"

    def iso_date(self, name: str) -> str:
        """Return an expression for a date as ISO 8601 writes it, whatever the session's DateStyle is."""
        usual = f"{name} between '0001-01-01' and '9999-12-31'"
        return f"(case when {usual} then to_char({name}::timestamp, 'YYYY-MM-DD') else {name}::text end)"

    def octets(self, text: str) -> str:
        """Return an expression for the length of a text in bytes."""
        return f"octet_length({text}::text)"

    def number(self, text: str) -> str:
        """Return an expression for the number that the first 8 digits of a text's MD5 are."""
        return f"('x' || substr(md5({text}), 1, 8))::bit(32)::bigint"

    def array(self, counts: str) -> str:
        """Return an expression for an array of counts."""
        return f"array[{counts}]::bigint[]"

    def existing_columns(self, control: Control, name: str) -> list[Column]:
        """Return the columns of a table that is there; a type of which nothing is known counts as text."""
        rows = control.execute(
            "select column_name as name, data_type as type from information_schema.columns "
            f"where table_schema = {self.schema_text} and table_name = {literal(name)} "
            "order by ordinal_position"
        )
        kinds = self.types_back
        return [{"name": row["name"], "type": kinds.get(str(row["type"]).lower(), "text")} for row in rows]

    @property
    def types_back(self) -> Mapping[str, str]:
        """The data set's type of each SQL type, as `information_schema` spells it."""
        spelled = {"timestamp": "timestamp without time zone"}
        return {spelled.get(sql, sql): kind for kind, sql in self.types.items()}

    def size(self, control: Control, table: str) -> TableSize:
        """Read what a table takes on disk, with its partitions."""
        row = control.execute(_SIZE.format(table=literal(self.qualified(table)))).fetchone() or {}
        return TableSize(*(int(row[name]) for name in ("table_bytes", "index_bytes", "toast_bytes")))

    def columns(self, table: RowTable, options: PlainTable, where: TableFacts) -> str:
        """Return the definitions of a table's columns and its primary key."""
        chosen = options.compression in ("pglz", "lz4") and where.version_number >= _COMPRESSION_SINCE
        listed = []
        for column in table["columns"]:
            end = f" compression {options.compression}" if chosen and column["type"] in _LONG else ""
            listed.append(f"{quoted(column['name'])} {self.types[column['type']]}{end}")
        if options.primary_key:
            space = (
                f" using index tablespace {quoted(options.index_tablespace)}"
                if options.index_tablespace
                else ""
            )
            listed.append(f"primary key ({quoted(options.primary_key)}){space}")
        return ", ".join(listed)

    def value(self, table: RowTable, number: int) -> str:
        """Write a value of the column that grows, as a bound of partitions."""
        kinds = {column["name"]: column["type"] for column in table["columns"]}
        if kinds.get(table["sequence"] or "") == "timestamp":
            return literal(f"{stamp(number):%Y-%m-%d %H:%M:%S.%f}")
        return str(number)

    def refuse_options(self, table: RowTable, options: PlainTable, where: TableFacts) -> None:
        """Raise LoadstoneError for options that contradict the table or each other; asks no server."""
        columns = [column["name"] for column in table["columns"]]
        if options.form not in self.forms:
            raise LoadstoneError(
                f"{self.title} does not support tables of the form '{options.form}'",
                f"It supports {', '.join(self.forms)}.",
            )
        self._refuse_lacking(table, options)
        for feature, column in (
            ("primary key", options.primary_key),
            ("partitions", options.partition_column),
        ):
            if column and column not in columns:
                raise LoadstoneError(
                    f"the {feature} of the table '{options.name}' needs a column '{column}', which the "
                    "table does not have",
                    f"Its columns are {', '.join(columns)}.",
                )
        self.index_list(options.indexes, table)
        if options.partition_rows:
            refuse_partitions(table, options, where)

    def _refuse_lacking(self, table: RowTable, options: PlainTable) -> None:
        """Raise LoadstoneError for a wish that PostgreSQL could fulfil and this engine cannot."""
        unsupported = {
            "partitions": options.partition_rows > 0 and not self.splits,
            "tablespaces": bool(options.tablespace or options.index_tablespace) and not self.tablespaces,
            "primary keys": bool(options.primary_key) and self.index_methods == (),
            f"compression with {options.compression}": options.compression
            not in ("default", *self.compressions),
        }
        for feature, is_missing in unsupported.items():
            if is_missing:
                raise LoadstoneError(
                    f"{self.title} does not support {feature}", f"Remove it from the table '{options.name}'."
                )
        for index in self.index_list(options.indexes, table) if self.index_methods is not None else ():
            if not self.index_methods:
                raise LoadstoneError(
                    f"{self.title} does not support indexes", f"Remove them from the table '{options.name}'."
                )
            if index.method and index.method not in self.index_methods:
                raise LoadstoneError(
                    f"{self.title} cannot create the index {index}",
                    f"Its index methods are {', '.join(self.index_methods)}.",
                )

    def _refuse_index(self, control: Control, index: Index, table: RowTable) -> None:
        method = index.method or "btree"
        found = control.execute(_METHOD.format(method=literal(method))).fetchone()
        if found is None:
            known = [row["name"] for row in control.execute(_METHODS).fetchall()]
            raise LoadstoneError(
                f"the index {index} needs the access method '{method}', which the server does not have",
                f"It has {', '.join(known)}.",
            )
        if len(index.columns) > 1 and not found["many"]:
            raise LoadstoneError(
                f"an index with method '{method}' can have only one column: {index}",
                "Create one index per column.",
            )
        if index.operators:
            self._refuse_operators(control, index, method)
            return
        kinds = {column["name"]: column["type"] for column in table["columns"]}
        for column in index.columns:
            kind = self.types[kinds[column]]
            asked = {"method": literal(method), "type": literal(kind)}
            if control.execute(_DEFAULT_OPERATORS.format(**asked)).fetchone() is None:
                raise LoadstoneError(
                    f"the index {index} needs an operator class: {kind} has no default operator class "
                    f"for {method}",
                    f"Name the operator class in parentheses, as in {column}:gin(gin_trgm_ops) after "
                    "`create extension pg_trgm`, or choose another method.",
                )

    def _refuse_operators(self, control: Control, index: Index, method: str) -> None:
        schema, _, name = index.operators.rpartition(".")
        asked = {"method": literal(method), "name": literal(name)}
        found = control.execute(_OPERATORS.format(**asked)).fetchall()
        if any(row["schema"] == schema or (row["visible"] and not schema) for row in found):
            return
        if found:
            place = found[0]["schema"]
            raise LoadstoneError(
                f"the operator class of the index {index} is in the schema '{place}'",
                f"Write {place}.{name}: Loadstone searches only its own schema.",
            )
        raise LoadstoneError(
            f"the index {index} needs an operator class for {method} that the server does not have",
            "Create the extension that provides it in the phase's setup (gin_trgm_ops: `create "
            "extension if not exists pg_trgm`).",
        )

    def refuse_tablespace(self, control: Control, name: str) -> None:
        """Raise LoadstoneError when the server has no such tablespace."""
        rows = control.execute("select spcname as name from pg_tablespace order by 1").fetchall()
        known = [row["name"] for row in rows]
        if name not in known:
            raise LoadstoneError(
                f"the server does not have a tablespace '{name}'",
                f"It has {', '.join(known)}. A superuser can create one: create tablespace {name} "
                "location '…'.",
            )


_SIZE = """
with recursive family(oid) as (
  select {table}::regclass::oid union all
  select i.inhrelid from pg_inherits i join family f on i.inhparent = f.oid),
sized(whole, indexes, toast) as (
  select pg_table_size(c.oid), pg_indexes_size(c.oid),
         case when c.reltoastrelid = 0 then 0 else pg_total_relation_size(c.reltoastrelid) end
  from family f join pg_class c on c.oid = f.oid)
select coalesce(sum(whole - toast), 0)::bigint as table_bytes,
       coalesce(sum(indexes), 0)::bigint as index_bytes,
       coalesce(sum(toast), 0)::bigint as toast_bytes
from sized
"""
_HAS_LZ4 = """
select true as found from pg_settings where name = 'default_toast_compression' and 'lz4' = any(enumvals)
"""
_METHODS = "select amname as name from pg_am where amtype = 'i' order by amname"
_METHOD = """
select pg_indexam_has_property(oid, 'can_multi_col') as many
from pg_am where amtype = 'i' and amname = {method}
"""
_OPERATORS = """
select n.nspname as schema, pg_opclass_is_visible(c.oid) as visible
from pg_opclass c join pg_am m on m.oid = c.opcmethod join pg_namespace n on n.oid = c.opcnamespace
where m.amname = {method} and c.opcname = {name} order by 1
"""
_DEFAULT_OPERATORS = """
select 1 as found from pg_opclass c join pg_am m on m.oid = c.opcmethod
where m.amname = {method} and c.opcdefault and c.opcintype = {type}::regtype
"""


def partition_ddl(
    answers: TableDialect, table: RowTable, options: PlainTable, where: TableFacts = USUAL
) -> str:
    """Return ready DDL: the table as wished, with its partitions and indexes, a statement a line."""
    shown = answers.unqualified()
    statements = [*shown.create(table, options, where), *shown.indexes(table, options, where)]
    return "\n".join(f"{statement};" for statement in statements)

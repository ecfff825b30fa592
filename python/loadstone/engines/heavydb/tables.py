"""How HeavyDB keeps plain tables: columns in fragments, texts as numbers of a dictionary.

Types, encodings and sizes: HEAVY.AI's documentation, "Datatypes", "Tables" and "System Tables". A text gets a
dictionary with 32-bit numbers: one of 16 bits holds 65,535 values and refuses more, and how many there will
be is not known before the rows are.
"""

# ruff: noqa: S608 - identifiers and values are written by `quoted` and `literal`
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from loadstone.engine.dialect.tables import USUAL, TableFacts, TableSize
from loadstone.engine.library.tables import LibraryTables
from loadstone.engines.heavydb.control import HeavyError, heavy
from loadstone.engines.heavydb.load import HeavyLoader
from loadstone.sqltext import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.engine.control import Control, Row
    from loadstone.engine.dialect.tables import RowTable
    from loadstone.engine.dialect.timeseries import Column
    from loadstone.model import LoadMethod, PlainTable

FRAGMENT_ROWS = 32_000_000
"""HeavyDB's own default, written down: the rows that one GPU or one CPU thread takes at a time."""
_DICTIONARIES = """
select table_name, sum(total_dictionary_data_file_size) as bytes from storage_details
where database_name = '{database}' group by table_name
"""
_CATALOG = "information_schema"


class HeavyTables(LibraryTables):
    """What HeavyDB does in its own way."""

    title = "HeavyDB"
    schema = None
    """A database of ours is what its sessions are in: SQL names no other."""
    methods: tuple[LoadMethod, ...] = ("arrow",)
    offered: tuple[str, ...] = ("parallel loads",)
    index_methods = ()
    compressions = ()
    splits = False
    tablespaces = False
    types: Mapping[str, str] = {
        "timestamp": "timestamp(6)",
        "date": "date encoding days(32)",
        "int16": "smallint",
        "int32": "integer",
        "int64": "bigint",
        "float32": "float",
        "float64": "double",
        "text": "text encoding dict(32)",
        "json": "text encoding none",
        "bool": "boolean",
    }

    def library(self, document: Mapping[str, Any], connect: Callable[[str], Control]) -> HeavyLoader:
        """Return what sends batches to HeavyDB."""
        return HeavyLoader(document, connect)

    def create(self, table: RowTable, options: PlainTable, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Return the statement that makes the table."""
        self.refuse_options(table, options, where)
        columns = ", ".join(f"{quoted(c['name'])} {self.types[c['type']]}" for c in table["columns"])
        return (
            f"create table {self.qualified(options.name)} ({columns}) with (fragment_size = {FRAGMENT_ROWS})",
        )

    def notes(self, options: PlainTable, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Say what is there in place of what scenarios wish."""
        del options, where
        return (
            (
                "texts are stored as numbers of a dictionary (32 bits), rows in fragments of "
                f"{FRAGMENT_ROWS:,}"
            ),
            "HeavyDB's SQL cannot hash: the content is compared by counts and sums only",
            "sessions that load the same table wait for each other: an import locks it",
        )

    def notes_of_files(self, table: RowTable) -> tuple[str, ...]:
        """Say which columns lose the empty texts that a user's files may have."""
        texts = [column["name"] for column in table["columns"] if column["type"] in ("text", "json")]
        if not texts:
            return ()
        note = (
            f"HeavyDB stores an empty text as NULL: empty texts of the files in {', '.join(texts)} are "
            "NULL in the table, so queries on them return other answers than those of other engines"
        )
        return (note,)

    def drop(self, name: str) -> str:
        """Return the statement that drops a table, if it is there."""
        return f"drop table if exists {self.qualified(name)}"

    def existing(self, control: Control, wanted: Sequence[str]) -> list[str]:
        """Return which of these tables there are already."""
        there = {row["table_name"] for row in control.execute("show tables")}
        return sorted(there.intersection(wanted))

    def existing_columns(self, control: Control, name: str) -> list[Column]:
        """Return the columns of a table that is there, by the types of an answer without rows."""
        nothing = f"select * from {self.qualified(name)} limit 0"
        schema = heavy(control).call(lambda link: link.table(nothing)).schema
        return [{"name": field.name, "type": _kind(field.type)} for field in schema]

    def microseconds(self, column: str) -> str:
        """Return an expression for a time as whole microseconds since 1970."""
        return f"extract(epoch from {column}) * 1000000"

    def fingerprint(self, table: RowTable, name: str) -> str:
        """Return the nearest that there is to one."""
        return self.sums(table, name)

    def sums(self, table: RowTable, name: str) -> str:
        """Return a query for counts and sums of a table's content, as bulk/sums.py has them."""
        listed = ["count(*) as row_count"]
        for number, column in enumerate(table["columns"]):
            listed += [f"{text} as c{number}_{what}" for what, text in _sums_of(column)]
        return f"select {', '.join(listed)} from {self.qualified(name)}"

    def size(self, control: Control, table: str) -> TableSize:
        """Read what a table takes: pages in use of its files, and its dictionaries where they are told."""
        found = {row["table_name"]: row for row in details(control)}
        row = found.get(table)
        whole = used_bytes(row) if row else 0
        return TableSize(whole + (dictionaries(control) or {}).get(table, 0), 0, 0)


def _kind(arrow: Any) -> str:
    """Return the data set's type of an answer's column; one of which nothing is known counts as text."""
    if pa.types.is_timestamp(arrow):
        return "timestamp"
    if pa.types.is_date(arrow):
        return "date"
    return {"bool": "bool", "float": "float32", "double": "float64"}.get(
        str(arrow), str(arrow) if str(arrow) in ("int16", "int32", "int64") else "text"
    )


def _sums_of(column: Column) -> list[tuple[str, str]]:
    name, kind = quoted(column["name"]), column["type"]
    found = [("count", f"count({name})")]
    if kind in ("int16", "int32"):
        found.append(("sum", f"sum(cast({name} as bigint))"))
    elif kind == "int64":
        found.append(("sum", f"sum(mod({name}, 65521))"))
    elif kind == "bool":
        found.append(("sum", f"sum(case when {name} then 1 else 0 end)"))
    elif kind in ("float32", "float64"):
        found.append(("total", f"sum(cast({name} as double))"))
    elif kind in ("timestamp", "date"):
        found.append(("sum", f"sum(mod(extract(epoch from {name}), 65521))"))
    elif kind == "text":
        found.append(("distinct", f"count(distinct {name})"))
    return found


def details(control: Control) -> list[Row]:
    """Return what the server says of each table's files."""
    return control.execute("show table details").fetchall()


def used_bytes(row: Row) -> int:
    """Return the bytes of the pages in use: files are made at full length before they are filled."""
    total = 0
    for kind in ("data", "metadata"):
        size, pages = row[f"total_{kind}_file_size"], row[f"total_{kind}_page_count"]
        free = row[f"total_free_{kind}_page_count"] or 0
        total += size * (pages - free) // pages if pages else 0
    return total


def file_bytes(row: Row) -> int:
    """Return the length of a table's files, pages that hold nothing yet included."""
    return int(row["total_data_file_size"] + row["total_metadata_file_size"])


def dictionaries(control: Control) -> dict[str, int] | None:
    """Return the bytes of the files of each table's dictionaries; None where the user may not see them."""
    database = heavy(control).database
    try:
        link = database.elsewhere(_CATALOG)
    except HeavyError:
        return None
    try:
        rows = link.ask(_DICTIONARIES.format(database=database.workspace))
    except HeavyError:
        return None
    finally:
        link.close()
    return {str(row["table_name"]): int(row["bytes"] or 0) for row in rows}

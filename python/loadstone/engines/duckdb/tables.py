"""How DuckDB keeps plain tables: columns in one file, ART indexes, no partitions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loadstone.engine.dialect.tables import USUAL, TableDialect, TableSize
from loadstone.engines.duckdb.timeseries import DuckSeries, NativeLoads
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.engine.control import Control
    from loadstone.engine.dialect.indexes import Index
    from loadstone.engine.dialect.tables import RowTable, TableFacts
    from loadstone.model import PlainTable, TableForm


class DuckTables(NativeLoads, TableDialect):
    """What DuckDB does in its own way."""

    takes_files = False
    forms: tuple[TableForm, ...] = ("default", "columnar")
    types: Mapping[str, str] = {**TableDialect.types, "float64": "double"}
    null_text = r"'\N'"

    def offers(self, control: Control) -> frozenset[str]:
        """Return what scenarios may require of plain tables: its column store is the only form."""
        del control
        return frozenset(
            {"form:default", "form:columnar", "art", "indexes", "primary keys", "parallel loads"}
        )

    def refuse(self, control: Control, table: RowTable, options: PlainTable) -> None:
        """Refuse nothing more: what DuckDB does not have is known without asking."""

    def refuse_options(self, table: RowTable, options: PlainTable, where: TableFacts) -> None:
        """Raise LoadstoneError for options that contradict the table, or that DuckDB cannot fulfil."""
        super().refuse_options(table, replace(options, partition_rows=0), where)
        if options.partition_rows:
            raise LoadstoneError("DuckDB has no partitions", "Remove partition_rows.")
        if options.tablespace or options.index_tablespace:
            raise LoadstoneError("DuckDB has no tablespaces: all tables are in one file", "Remove them.")
        for index in self.index_list(options.indexes, table):
            if index.method not in ("", "art") or index.operators:
                raise LoadstoneError(
                    f"DuckDB cannot create the index {index}", "Its indexes are ART: list columns only."
                )

    def create(self, table: RowTable, options: PlainTable, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Return the statement that makes the table."""
        self.refuse_options(table, options, where)
        return super().create(table, replace(options, compression="default"), where)

    def using(self, index: Index) -> str:
        """Say nothing: there is one kind of index."""
        del index
        return ""

    def notes(self, options: PlainTable, where: TableFacts | None = None) -> tuple[str, ...]:
        """Say which options have no meaning here, and what is there instead."""
        del where
        found = []
        if options.indexes.strip() not in ("", "0"):
            found.append("indexes are ART: they help only look-ups of a few rows")
        if options.compression != "default":
            found.append("DuckDB chooses how each column is compressed when it writes it")
        return tuple(found)

    def iso_date(self, name: str) -> str:
        """Return the date: its text is ISO 8601 in every session."""
        return name

    def octets(self, text: str) -> str:
        """Return an expression for the length of a text in bytes."""
        return f"strlen({text}::varchar)"

    def number(self, text: str) -> str:
        """Return an expression for the number that the first 8 digits of a text's MD5 are."""
        return f"('0x' || substr(md5({text}), 1, 8))::bigint"

    def array(self, counts: str) -> str:
        """Return an expression for an array of counts."""
        return f"[{counts}]"

    def size(self, control: Control, table: str) -> TableSize:
        """Read how many blocks of the file the table's columns take."""
        series = DuckSeries() if self.schema is None else DuckSeries().within(self.schema)
        found = series.size(control, table)
        return TableSize(found.table_bytes, found.index_bytes, 0)

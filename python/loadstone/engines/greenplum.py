"""Greenplum: append-optimised tables of compressed columns, spread over segments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loadstone.engine.dialect.tables import USUAL, TableDialect
from loadstone.engine.dialect.timeseries import USUAL as USUAL_SERIES
from loadstone.engine.dialect.timeseries import TimeSeriesDialect, device_column
from loadstone.engine.observe.storage import DataFiles
from loadstone.engine.postgres.extension import postgres_number
from loadstone.engine.postgres.family import PostgresFamily
from loadstone.errors import LoadstoneError
from loadstone.sqltext import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from loadstone.engine import Identity
    from loadstone.engine.control import Control
    from loadstone.engine.dialect import timeseries
    from loadstone.engine.dialect.tables import RowTable, TableFacts
    from loadstone.engine.dialect.timeseries import Dataset, Table
    from loadstone.model import PlainTable, SeriesTables, TableForm, ToastCompression

_SIGNS = ("Greenplum", "Cloudberry")
_VERSION = re.compile(r"\((?:Greenplum Database|Apache Cloudberry|Cloudberry Database) (\d[\w.]*)")
_OLDEST = 120000
"""Greenplum 7 is on PostgreSQL 12; 6 on 9.4, whose WAL functions and statistics bear other names."""

_KEEPING = " with (appendoptimized=true, orientation=column, compresstype=zstd, compresslevel=1)"
_OPTIONS = (
    "tables are append-optimised and column-oriented, compressed with zstd at level 1",
    ("rows are sent to the coordinator, which sends them to the segments; only the coordinator is observed"),
)


class GreenplumSeries(TimeSeriesDialect):
    """Columns, spread by the device; the table of devices is on every segment."""

    title = "Greenplum"
    keeping = _KEEPING

    def tags_table(self, tags: Table, options: SeriesTables) -> Iterator[str]:
        """Yield the statements that make the table of devices, a copy on every segment."""
        first, *rest = super().tags_table(tags, options)
        yield f"{first} distributed replicated"
        yield from rest

    def series_table(
        self, table: Table, dataset: Dataset, options: SeriesTables, where: timeseries.TableFacts
    ) -> Iterator[str]:
        """Yield the statements that make one table of rows with its partitions and indexes."""
        first, *rest = super().series_table(table, dataset, options, where)
        yield f"{first} distributed by ({quoted(device_column(dataset, options))})"
        yield from rest

    def notes(self, options: SeriesTables, where: timeseries.TableFacts = USUAL_SERIES) -> tuple[str, ...]:
        """Say how tables are kept, in place of what PostgreSQL says of compression."""
        found = (note for note in super().notes(options, where) if "nothing is compressed" not in note)
        return (*found, *_OPTIONS)


class GreenplumTables(TableDialect):
    """Each table as columns, its rows spread by the primary key, else evenly."""

    title = "Greenplum"
    keeping = _KEEPING
    forms: tuple[TableForm, ...] = ("default", "columnar")
    index_methods: tuple[str, ...] | None = ("btree", "bitmap", "brin", "gin", "gist")
    compressions: tuple[ToastCompression, ...] = ()

    def create(self, table: RowTable, options: PlainTable, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Return the statements that make the table and its partitions, in order."""
        first, *rest = super().create(table, options, where)
        spread = f"by ({quoted(options.primary_key)})" if options.primary_key else "randomly"
        return (f"{first} distributed {spread}", *rest)

    def notes(self, options: PlainTable, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Say how tables are kept."""
        return (*super().notes(options, where), *_OPTIONS)


class Greenplum(PostgresFamily):
    """Greenplum 7 and later, and Cloudberry, which goes on from it."""

    name = "greenplum"
    title = "Greenplum"
    schemes = ("greenplum", "cloudberry")
    embedded_prefix = None
    relatives: Mapping[str, str] = {
        sign: name for sign, name in PostgresFamily.relatives.items() if sign not in _SIGNS
    }
    needs = (
        "Greenplum 7 (greenplum-db/gpdb-archive) or Cloudberry (apache/cloudberry); the URL is that of "
        "its coordinator"
    )
    series = GreenplumSeries()
    tables = GreenplumTables()

    def identify(self, connection: Control) -> Identity:
        """Ask the server what it is, and refuse what is not Greenplum, or is too old."""
        # What 6 does not understand must not be asked before it is known.
        row = connection.execute("select version() as text").fetchone() or {}
        text = str(row.get("text"))
        own = _VERSION.search(text)
        if not any(sign in text for sign in _SIGNS):
            raise LoadstoneError(
                f"the server is not Greenplum: {text}",
                "Put the right engine into the URL's scheme; `loadstone engines` lists them.",
            )
        found = self.version(connection)
        if found["version_number"] < _OLDEST:
            raise LoadstoneError(
                f"the server is {self.title} {own[1] if own else text}, on PostgreSQL {found['version']}",
                "Loadstone needs Greenplum 7 or later.",
            )
        if found["standby"]:
            raise LoadstoneError(
                "the server is a standby and accepts no writes", "Use the coordinator as the target."
            )
        return {**found, "version": f"{own[1] if own else 'unknown'} on PostgreSQL {found['version']}"}

    def postgres_version(self, identity: Identity) -> str | None:
        """Return the version of the PostgreSQL that it is built on."""
        return postgres_number(identity)

    def data_files(self, connection: Control, ours: Path | None = None) -> DataFiles:
        """Say that the files are with the segments, wherever those are."""
        del connection, ours
        return DataFiles(None, "the rows are on the segments, not on the coordinator")


ENGINE = Greenplum()

"""Tables of the access method `columnar`: Citus's, and Hydra's, which stems from it.

Sources: README of src/backend/columnar in Citus's and in Hydra's repository.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.engine import SCHEMA
from loadstone.engine.dialect.tables import USUAL, TableDialect
from loadstone.engine.dialect.timeseries import USUAL as USUAL_SERIES
from loadstone.engine.dialect.timeseries import TimeSeriesDialect
from loadstone.engine.postgres.extension import ExtensionFamily

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.engine.control import Control
    from loadstone.engine.dialect import timeseries
    from loadstone.engine.dialect.tables import TableFacts
    from loadstone.engine.observe.storage import Storage
    from loadstone.model import PlainTable, SeriesTables, TableForm, ToastCompression

_STRIPE_ROWS = 150_000
_STRIPES = (
    f"rows are stored in stripes of at most {_STRIPE_ROWS:,}, and each batch begins a new stripe: small "
    "batches need more space and are slower to read"
)
_CATALOG = "the catalog's data about stripes and chunks are not part of the table's size"


class ColumnarTables(TableDialect):
    """Every table is kept as columns, those of the ledger aside."""

    keeping = " using columnar"
    forms: tuple[TableForm, ...] = ("default", "columnar")
    index_methods: tuple[str, ...] | None = ("btree", "hash")
    compressions: tuple[ToastCompression, ...] = ()

    def notes(self, options: PlainTable, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Say what small batches mean, and what is not counted."""
        return (*super().notes(options, where), _STRIPES, _CATALOG)


class ColumnarSeries(TimeSeriesDialect):
    """The tables of rows are kept as columns; that of the devices is as PostgreSQL keeps it."""

    keeping = " using columnar"

    def notes(self, options: SeriesTables, where: timeseries.TableFacts = USUAL_SERIES) -> tuple[str, ...]:
        """Say what small batches mean, in place of what PostgreSQL says of compression."""
        found = (note for note in super().notes(options, where) if "nothing is compressed" not in note)
        return (*found, _STRIPES, _CATALOG)


class ColumnarFamily(ExtensionFamily):
    """An extension that brings the access method."""

    def storage(
        self,
        connection: Control,
        tables: Sequence[str],
        data_directory: Path | None = None,
        schema: str = SCHEMA,
    ) -> Storage:
        """Account for every byte of tables in the schema; columns have no map of free space."""
        looked = super().storage(connection, tables, data_directory, schema)
        for table in looked.tables:
            table["free_bytes"] = None
        looked.notes.append("free space is unknown: columnar tables have no free space map")
        return looked

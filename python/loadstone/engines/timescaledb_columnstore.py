"""TimescaleDB's columnstore: each table a hypertable, all of it turned into columns as part of its load."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loadstone.engine.dialect.timeseries import USUAL
from loadstone.engines.timescaledb import TimescaleDB, TimescaleSeries, TimescaleTables

if TYPE_CHECKING:
    from loadstone.engine.dialect.timeseries import Dataset, TableFacts
    from loadstone.model import PlainTable, SeriesTables


class ColumnstoreSeries(TimescaleSeries):
    """Hypertables that are turned into columns when all rows are in, whether that is wished or not."""

    def after_load(self, dataset: Dataset, options: SeriesTables) -> tuple[str, ...]:
        """Move all chunks into the columnstore."""
        return super().after_load(dataset, replace(options, compress=True))

    def notes(self, options: SeriesTables, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Say what is done otherwise than asked."""
        return super().notes(replace(options, compress=True), where)


class ColumnstoreTables(TimescaleTables):
    """Both forms are the columnstore."""

    title = "TimescaleDB columnstore"

    def is_columnar(self, options: PlainTable) -> bool:
        """Say yes: that is what this engine is."""
        del options
        return True


class TimescaleColumnstore(TimescaleDB):
    """The same server as TimescaleDB's; what is loaded becomes columns."""

    name = "timescaledb_columnstore"
    title = "TimescaleDB columnstore"
    schemes = ("timescaledb-columnstore",)
    status = "verified against TimescaleDB 2.28.3 on PostgreSQL 15, on Linux"
    series = ColumnstoreSeries()
    tables = ColumnstoreTables()


ENGINE = TimescaleColumnstore()

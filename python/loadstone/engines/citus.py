"""Citus: row tables on a coordinator, where nothing is distributed."""

from __future__ import annotations

from loadstone.engine.dialect.tables import TableDialect
from loadstone.engine.dialect.timeseries import TimeSeriesDialect
from loadstone.engine.postgres.extension import ExtensionFamily


class CitusSeries(TimeSeriesDialect):
    """As PostgreSQL's."""

    title = "Citus"


class CitusTables(TableDialect):
    """As PostgreSQL's."""

    title = "Citus"


class Citus(ExtensionFamily):
    """Citus 11 and later: local tables, what the extension costs them included."""

    name = "citus"
    title = "Citus"
    schemes = ("citus",)
    extension = "citus"
    oldest = (11, 0)
    servers = (13, 99)
    status = "verified against Citus 13.2.2 on PostgreSQL 15.20, on Linux"
    needs = (
        "PostgreSQL with the extension citus (citusdata/citus), first in shared_preload_libraries and "
        "created in the database"
    )
    series = CitusSeries()
    tables = CitusTables()


ENGINE = Citus()

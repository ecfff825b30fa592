"""Citus's columnar tables, on one server."""

from __future__ import annotations

from loadstone.engine.postgres.columnar import ColumnarFamily, ColumnarSeries, ColumnarTables


class CitusColumnarSeries(ColumnarSeries):
    """Tables of rows as columns."""

    title = "Citus columnar"


class CitusColumnarTables(ColumnarTables):
    """Each table as columns."""

    title = "Citus columnar"


class CitusColumnar(ColumnarFamily):
    """The access method columnar, which has been an extension of its own since Citus 11.1."""

    name = "citus_columnar"
    title = "Citus columnar"
    schemes = ("citus-columnar",)
    extension = "citus_columnar"
    oldest = (11, 1)
    servers = (13, 99)
    status = "verified against Citus columnar 13.2 on PostgreSQL 15.20, on Linux"
    needs = "PostgreSQL with the extension citus_columnar (citusdata/citus), created in the database"
    series = CitusColumnarSeries()
    tables = CitusColumnarTables()


ENGINE = CitusColumnar()

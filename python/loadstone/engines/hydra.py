"""Hydra: columnar tables that can be updated, read in parallel and by vectors; no Citus beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.engine.postgres.columnar import ColumnarFamily, ColumnarSeries, ColumnarTables
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from loadstone.engine.control import Control

_CITUS = "select extversion as version from pg_extension where extname = 'citus_columnar'"


class HydraSeries(ColumnarSeries):
    """Tables of rows as columns."""

    title = "Hydra"


class HydraTables(ColumnarTables):
    """Each table as columns."""

    title = "Hydra"


class Hydra(ColumnarFamily):
    """Hydra's extension, whose name is columnar as its access method's."""

    name = "hydra"
    title = "Hydra"
    schemes = ("hydra",)
    extension = "columnar"
    oldest = (11, 1)
    servers = (13, 17)
    status = "verified against Hydra's columnar 11.1-12 on PostgreSQL 15.20, on Linux"
    needs = (
        "PostgreSQL with Hydra's extension columnar (hydradatabase/columnar), created in the database; Citus "
        "columnar cannot be installed together with it"
    )
    series = HydraSeries()
    tables = HydraTables()

    def installed(self, connection: Control) -> str:
        """Return the version of the extension; columnar tables of Citus are refused."""
        row = connection.execute(_CITUS).fetchone()
        if row is not None:
            raise LoadstoneError(
                f"the database's columnar tables are Citus's, of version {row['version']}",
                "Use citus-columnar://…, or a server with Hydra.",
            )
        return super().installed(connection)


ENGINE = Hydra()

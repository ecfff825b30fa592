"""PG-Strom over columns of cstore_fdw, as once published: an older PG-Strom, for cstore_fdw ends at 13."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.engine import SCHEMA
from loadstone.engine.postgres.connections import option
from loadstone.engines.cstore_fdw import CstoreFdw, CstoreSeries, CstoreTables
from loadstone.engines.pgstrom import plan_uses_gpu
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from loadstone.engine.control import Control

_STROM = "select extversion as version from pg_extension where extname = 'pg_strom'"


class StromCstoreSeries(CstoreSeries):
    """As cstore_fdw's."""

    title = "PG-Strom on cstore_fdw"


class StromCstoreTables(CstoreTables):
    """As cstore_fdw's."""

    title = "PG-Strom on cstore_fdw"


class PgStromCstore(CstoreFdw):
    """cstore_fdw's tables on a server whose queries PG-Strom plans."""

    name = "pgstrom_cstore"
    title = "PG-Strom on cstore_fdw"
    schemes = ("pgstrom-cstore",)
    status = "not yet run"
    needs = (
        "an NVIDIA GPU, and PG-Strom 2 or 3 (later ones need PostgreSQL 15) together with cstore_fdw, "
        "both in shared_preload_libraries and created in the database. For cstore_fdw: "
        f"{CstoreFdw.needs}"
    )
    series = StromCstoreSeries()
    tables = StromCstoreTables()

    def installed(self, connection: Control) -> str:
        """Return both versions; a database without PG-Strom is refused."""
        version = super().installed(connection)
        row = connection.execute(_STROM).fetchone()
        if row is None:
            raise LoadstoneError(
                "the database does not have the extension pg_strom",
                "Create it, or use cstore-fdw://….",
            )
        return f"{row['version']}, cstore_fdw {version}"

    def connection_parameters(self, schema: str = SCHEMA) -> dict[str, str]:
        """Switch the extension on for each connection, beside the schema."""
        given = super().connection_parameters(schema)
        return {**given, "options": f"{given['options']} {option('pg_strom.enabled', 'on')}"}

    def used_gpu(self, plan: str | None) -> bool | None:
        """Return whether the GPU runs it, by the plan's nodes."""
        return plan_uses_gpu(plan)


ENGINE = PgStromCstore()

"""PG-Strom: PostgreSQL's row tables, scanned, joined and grouped on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.engine import SCHEMA
from loadstone.engine.dialect.tables import TableDialect
from loadstone.engine.dialect.timeseries import TimeSeriesDialect
from loadstone.engine.postgres.connections import option
from loadstone.engine.postgres.extension import ExtensionFamily

if TYPE_CHECKING:
    from typing import Literal

_ON_GPU = ("GpuScan", "GpuJoin", "GpuPreAgg", "GpuSort")
"""What plans call the nodes that run on the GPU."""


def plan_uses_gpu(plan: str | None) -> bool | None:
    """Return whether a plan has nodes that run on the GPU; None for no plan."""
    return None if plan is None else any(sign in plan for sign in _ON_GPU)


class StromSeries(TimeSeriesDialect):
    """As PostgreSQL's."""

    title = "PG-Strom"


class StromTables(TableDialect):
    """As PostgreSQL's."""

    title = "PG-Strom"


class PgStrom(ExtensionFamily):
    """PG-Strom 5 and later; the planner decides for each query whether the GPU is worth it."""

    name = "pgstrom"
    title = "PG-Strom"
    schemes: tuple[str, ...] = ("pgstrom",)
    extension = "pg_strom"
    oldest = (5, 0)
    servers = (15, 99)
    needs = (
        "PostgreSQL 15 or later on a machine with an NVIDIA GPU and CUDA, with the extension pg_strom "
        "(heterodb/pg-strom) in shared_preload_libraries and created in the database"
    )
    enabled: Literal["on", "off"] = "on"
    """What every connection sets pg_strom.enabled to."""
    series = StromSeries()
    tables = StromTables()

    def connection_parameters(self, schema: str = SCHEMA) -> dict[str, str]:
        """Switch the extension on or off for each connection, beside the schema."""
        given = super().connection_parameters(schema)
        return {**given, "options": f"{given['options']} {option('pg_strom.enabled', self.enabled)}"}

    def used_gpu(self, plan: str | None) -> bool | None:
        """Return whether the GPU runs it, by the plan's nodes."""
        return plan_uses_gpu(plan)


ENGINE = PgStrom()

"""What a planned phase does, by its type. A phase that does something else fails the test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.plan.model import (
    PlainQueriesWorkload,
    ScriptWorkload,
    TableLoadWorkload,
    TimeSeriesLoadWorkload,
    TimeSeriesQueriesWorkload,
)

if TYPE_CHECKING:
    from loadstone.model import BulkLoad, Drive, Load, PlainQueries, QueryMix
    from loadstone.plan.model import PlannedPhase


def drive_of(phase: PlannedPhase) -> Drive:
    """Return the drive of a phase with scripts."""
    assert isinstance(phase.workload, ScriptWorkload)
    return phase.workload.drive


def is_table_load(phase: PlannedPhase) -> bool:
    """Return whether a phase loads a plain table."""
    return isinstance(phase.workload, TableLoadWorkload)


def table_load(phase: PlannedPhase) -> BulkLoad:
    """Return the load of a plain table."""
    assert isinstance(phase.workload, TableLoadWorkload)
    return phase.workload.load


def time_series_load(phase: PlannedPhase) -> Load:
    """Return the load of time series."""
    assert isinstance(phase.workload, TimeSeriesLoadWorkload)
    return phase.workload.load


def plain_queries(phase: PlannedPhase) -> PlainQueries:
    """Return the queries of a phase in plain SQL."""
    assert isinstance(phase.workload, PlainQueriesWorkload)
    return phase.workload.queries


def mixed_queries(phase: PlannedPhase) -> PlainQueries | None:
    """Return the queries in plain SQL during the load of a table."""
    return phase.workload.mixed if isinstance(phase.workload, TableLoadWorkload) else None


def query_mix(phase: PlannedPhase) -> QueryMix:
    """Return TSBS's queries of a phase."""
    assert isinstance(phase.workload, TimeSeriesQueriesWorkload)
    return phase.workload.queries

"""Tables from the summary: phases, queries one by one, steps of loads, resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from loadstone.report.formats import unit
from loadstone.results.documents.summary import ResourcePoint, StepFigures
from loadstone.summary.comparisons import headline_rate
from loadstone.tables.columns import PHASE, REAL, TEXT, WHOLE, Columns, as_json, columns_of, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from loadstone.results.documents.summary import DriveFigures, PhaseFigures, Rate, Summary

PERCENTILES = (50, 90, 95, 99, 99.9, 99.99)
_IDENTITY: Columns = {
    "scenario": TEXT,
    "id": TEXT,
    "kind": TEXT,
    "title": TEXT,
    "variant": TEXT,
    "round": WHOLE,
    "repeat": WHOLE,
}
"""`variant` is a JSON object: the values of the swept parameters."""
_COUNTS = ("scheduled", "done", "failed", "skipped", "dropped")
_PHASES: Columns = {
    **PHASE,
    **_IDENTITY,
    "state": TEXT,
    "reason": TEXT,
    "start_s": REAL,
    "end_s": REAL,
    "clients": WHOLE,
    "pace": TEXT,
    "measured_s": REAL,
    "rate": REAL,
    "rate_low": REAL,
    "rate_high": REAL,
    "rate_unit": TEXT,
    "tps": REAL,
    "rows_per_s": REAL,
    "metrics_per_s": REAL,
    **dict.fromkeys(_COUNTS, WHOLE),
    "response_mean_ns": REAL,
    "response_stddev_ns": REAL,
    "response_min_ns": REAL,
    "response_max_ns": REAL,
    **{f"response_p{p:g}_ns".replace(".", "_"): REAL for p in PERCENTILES},
    "cpu_server": REAL,
    "cpu_client": REAL,
    "wal_bytes": REAL,
    "checkpoints": WHOLE,
    "table_bytes": REAL,
    "index_bytes": REAL,
    "toast_bytes": REAL,
}
_QUERIES: Columns = {
    "target": TEXT,
    "scenario": TEXT,
    "id": TEXT,
    "variant": TEXT,
    "query": TEXT,
    "repeat": WHOLE,
    "round": WHOLE,
    "kind": TEXT,
    "number": WHOLE,
    "seconds": REAL,
    "state": TEXT,
    "reason": TEXT,
}


def phase_table(summary: Summary) -> pa.Table:
    """Return a row for each phase on each target that was begun."""
    return table(_PHASES, (_phase(phase) for phase in summary.phases))


def _phase(phase: PhaseFigures) -> dict[str, Any]:
    usage, sizes = phase.usage, phase.sizes
    return {
        "target": phase.target,
        "phase": phase.folder,
        **{name: getattr(phase, name) for name in _IDENTITY if name != "variant"},
        "variant": as_json(phase.variant),
        "state": phase.state,
        "reason": phase.reason,
        "start_s": phase.start_s,
        "end_s": phase.end_s,
        **(_drive(phase, phase.drive) if phase.drive else {}),
        "cpu_server": usage and usage.cpu_server,
        "cpu_client": usage and usage.cpu_client,
        "wal_bytes": usage and usage.wal_bytes,
        "checkpoints": usage and usage.checkpoints,
        "table_bytes": sizes and sizes.kinds.table.after,
        "index_bytes": sizes and sizes.kinds.index.after,
        "toast_bytes": sizes and sizes.kinds.toast.after,
    }


def _drive(phase: PhaseFigures, drive: DriveFigures) -> dict[str, Any]:
    rate = headline_rate(drive, phase.headline)
    response = drive.response
    return {
        "clients": drive.clients,
        "pace": drive.pace.kind if drive.pace else None,
        "measured_s": drive.measured_s,
        "rate": rate and rate.value,
        "rate_low": rate and rate.low,
        "rate_high": rate and rate.high,
        "rate_unit": unit(phase.kind, phase.headline),
        "tps": drive.tps.value,
        "rows_per_s": _value(drive.rows_per_s),
        "metrics_per_s": _value(drive.metrics_per_s),
        **{name: getattr(drive.counts, name) for name in _COUNTS},
        **{
            f"response_{name}_ns": getattr(response, f"{name}_ns")
            for name in ("mean", "stddev", "min", "max")
        },
        **{
            f"response_p{entry.percentile:g}_ns".replace(".", "_"): entry.value_ns
            for entry in response.percentiles
        },
    }


def _value(rate: Rate | None) -> float | None:
    return None if rate is None else rate.value


def query_table(summary: Summary) -> pa.Table:
    """Return a row for each run of a query."""
    return table(_QUERIES, _queries(summary))


def _queries(summary: Summary) -> Iterator[dict[str, Any]]:
    for entry in summary.plain_queries:
        for target in entry.targets:
            for query in target.queries:
                for run in query.runs:
                    yield {
                        "target": target.target,
                        "scenario": entry.scenario,
                        "id": entry.id,
                        "variant": as_json(entry.variant),
                        "query": query.name,
                        **msgspec.structs.asdict(run),
                    }


def step_table(summary: Summary) -> pa.Table:
    """Return a row for each step of a load."""
    rows = (
        {"target": phase.target, "phase": phase.folder, **msgspec.structs.asdict(step)}
        for phase in summary.phases
        if phase.steps
        for step in phase.steps.points
    )
    return table({**PHASE, **columns_of(StepFigures)}, rows)


def resource_table(summary: Summary) -> pa.Table:
    """Return a row for each point of each target; `waits` is a JSON object."""
    columns = {"target": TEXT, **columns_of(ResourcePoint, ("waits",)), "waits": TEXT}
    rows = (
        {"target": target.id, **msgspec.structs.asdict(point), "waits": as_json(point.waits)}
        for target in summary.targets
        for point in target.resources.points
    )
    return table(columns, rows)

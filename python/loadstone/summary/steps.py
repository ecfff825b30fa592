"""A load in steps: what each took and cost, the published curves beside it, and the knee of each."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from loadstone.results.documents.drive import StepSizes
from loadstone.results.documents.summary import (
    KneeFigures,
    PerUnit,
    PublishedCurve,
    StepFigures,
    StepsFigures,
)
from loadstone.summary.intervals import NS_PER_S
from loadstone.summary.knee.knee import find_knee

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.results.documents import Step
    from loadstone.results.documents.phase import Curve
    from loadstone.summary.run_files import PhaseFiles

COMPARABLE = 0.5
"""Least share of a whole step's rows that a short one must have to be compared with the others."""


def summarise_steps(files: PhaseFiles, origin_ns: int) -> StepsFigures | None:
    """Return the steps of a load with their knee; None for a phase that had no steps."""
    if not files.steps:
        return None
    points = [_point(line, origin_ns) for line in files.steps]
    step_rows = max((point.rows or 0 for point in points), default=0)
    return StepsFigures(
        step_rows=step_rows,
        points=points,
        curves=[_curve(curve) for curve in files.phase.curves or []],
        knee=knee_of(points, step_rows) if files.phase.knee else None,
        advice=None,
        memory_limit_bytes=None,
    )


def rate_over_steps(lines: Sequence[Step]) -> tuple[float, list[float]] | None:
    """Return rows per second over all complete steps, and of each: between steps a load is held."""
    done = [(line.rows, line.seconds) for line in lines if line.state == "complete"]
    taken = [(rows, seconds) for rows, seconds in done if rows and seconds]
    if not taken:
        return None
    rates = [rows / seconds for rows, seconds in taken]
    return sum(rows for rows, _ in taken) / sum(seconds for _, seconds in taken), rates


def costs_per_row(steps: StepsFigures, found: PerUnit) -> PerUnit:
    """Return what a row came to, by the steps: the database may have held an older table before.

    No byte at all means that the rows are not in the engine's files yet, only in its log.
    """
    done = [point for point in steps.points if point.state == "complete"]
    known = [point for point in done if point.table_bytes]
    costs = msgspec.structs.replace(found)
    if known and (rows := known[-1].rows_before + known[-1].rows):
        costs.table_bytes_per_row = _over(known[-1].table_bytes, rows)
        if known[-1].index_bytes is not None:
            costs.index_bytes_per_row = known[-1].index_bytes / rows
    logged = [(point.wal_bytes, point.rows) for point in done if point.wal_bytes is not None]
    if rows := sum(rows for _, rows in logged):
        costs.wal_bytes_per_row = sum(wal for wal, _ in logged) / rows
    return costs


def comparable(points: Sequence[StepFigures], step_rows: int) -> list[StepFigures]:
    """Return the steps whose seconds mean the same: complete ones, not much shorter than the others."""
    return [
        point
        for point in points
        if point.state == "complete"
        and (point.seconds or 0) > 0
        and (point.rows or 0) >= max(1, COMPARABLE * step_rows)
    ]


def knee_of(points: Sequence[StepFigures], step_rows: int) -> KneeFigures:
    """Look for the knee in the comparable steps; a short step counts as if it had been a whole one."""
    taken = comparable(points, step_rows)
    seconds = tuple((point.seconds or 0) * step_rows / point.rows for point in taken)
    return _knee(tuple(point.rows_before for point in taken), seconds)


@lru_cache(maxsize=256)
def _knee(rows_before: tuple[float, ...], seconds: tuple[float, ...]) -> KneeFigures:
    # A published curve stands beside every variant and target that it belongs to.
    return find_knee(rows_before, seconds).document()


def _point(line: Step, origin_ns: int) -> StepFigures:
    counters, sizes = line.counters or {}, line.sizes or StepSizes()
    rows, seconds = line.rows, line.seconds or 0
    wal = counters.get("wal_bytes")  # no document: counters by name
    begun = [counters.get(name) for name in ("checkpoints_timed", "checkpoints_requested")]
    known = [count for count in begun if count is not None]
    return StepFigures(
        step=line.step,
        rows_before=line.rows_before,
        rows=rows,
        seconds=line.seconds,
        state=line.state,
        reason=line.reason,
        start_s=_since(origin_ns, line.start_ns),
        end_s=_since(origin_ns, line.end_ns),
        rows_per_s=rows / seconds if seconds > 0 else None,
        table_bytes=sizes.table_bytes,
        index_bytes=sizes.index_bytes,
        toast_bytes=sizes.toast_bytes,
        wal_bytes=wal,
        wal_bytes_per_row=_over(wal, rows),
        hit_ratio=_hit_ratio(counters),
        checkpoints=sum(known) if known else None,
        server_cpu_s=line.server_cpu_s,
        client_cpu_s=line.client_cpu_s,
        server_write_bytes=line.server_write_bytes,
    )


def _over(value: float | None, rows: float) -> float | None:
    return value / rows if value is not None and rows else None


def _hit_ratio(counters: Mapping[str, float | None]) -> float | None:
    hit, read = counters.get("blks_hit"), counters.get("blks_read")  # no document: counters by name
    return hit / (hit + read) if hit is not None and read is not None and hit + read else None


def _curve(curve: Curve) -> PublishedCurve:
    """Return a published curve with the knee that this method reads out of it."""
    step, seconds = curve.step_rows or 0, curve.seconds or []
    usable = step > 0 and all(value > 0 for value in seconds)
    knee = _knee(tuple(step * at for at in range(len(seconds))), tuple(seconds)) if usable else None
    return PublishedCurve(
        name=curve.name,
        step_rows=step,
        seconds=seconds,
        note=curve.note or "",
        knee=knee,
    )


def _since(origin_ns: int, at_ns: int | None) -> float | None:
    return None if at_ns is None else (at_ns - origin_ns) / NS_PER_S

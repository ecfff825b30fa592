"""What is compared of a phase: one value a repeat for each metric, from summary.json alone."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Literal

import numpy as np

from loadstone.model import ROUND
from loadstone.report.formats import unit
from loadstone.summary.comparisons import headline_rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.results.documents.summary import (
        PhaseFigures,
        PlainQueriesTarget,
        QueryRun,
        Rate,
        Summary,
        Variant,
    )

PERCENTILES = (50.0, 95.0, 99.0)
RATE = "rate"
WARM = "warm"
DISK = "disk"
FASTER = (RATE, WARM, "p99", "p95", "p50", "mean")
"""Metrics that say how fast a phase is, and so count in the mean over all phases."""

Turn = tuple[int, int]
"""Repeat, and round of it."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What is measured, in which unit, and which way is better."""

    name: str
    unit: str
    better: Literal["higher", "lower"] = "lower"


@dataclass(slots=True)
class Series:
    """The values of one metric by repeat and round; `within` are the rates of one run with their errors."""

    metric: Metric
    values: dict[Turn, float] = field(default_factory=dict)
    within: dict[Turn, Rate] = field(default_factory=dict)

    def by_repeat(self) -> dict[int, float]:
        """Return one value a repeat: the geometric mean of its rounds."""
        found: dict[int, list[float]] = {}
        for (repeat, _), value in self.values.items():
            found.setdefault(repeat, []).append(value)
        return {repeat: float(np.exp(np.mean(np.log(values)))) for repeat, values in sorted(found.items())}


@dataclass(slots=True)
class PhaseValues:
    """A phase and variant on one target, over its repeats."""

    scenario: str | None
    id: str | None
    title: str
    variant: Variant
    series: dict[str, Series] = field(default_factory=dict)
    primary: str | None = None
    missing: str | None = None
    """Why it has no values, or not of all repeats."""

    def add(self, metric: Metric, turn: Turn, value: float | None, rate: Rate | None = None) -> None:
        """Keep one value; those that are not above 0 have no logarithm and are left out."""
        if value is None or not value > 0:
            return
        series = self.series.setdefault(metric.name, Series(metric))
        series.values[turn] = float(value)
        if rate is not None and rate.relative_se is not None:
            series.within[turn] = rate


def values_of(summary: Summary, target: str) -> dict[str, PhaseValues]:
    """Return the phases of a target by an identity that is the same in every run of a scenario."""
    found: dict[str, PhaseValues] = {}
    cores = summary.cores
    for phase in summary.phases:
        if phase.target == target and phase.kind not in ("sql", "check"):
            _add_phase(_entry(found, phase.scenario, phase.id, phase.title, phase.variant), phase, cores)
    for queries in summary.plain_queries:
        for one in queries.targets:
            if one.target == target:
                _add_queries(_entry(found, queries.scenario, queries.id, queries.title, queries.variant), one)
    return found


def why_missing(summary: Summary, target: str, title: str, variant: Variant) -> str:
    """Say why a target has no values of a phase that another one has."""
    reasons = (
        skipped.reason
        for skipped in summary.skipped
        if skipped.target == target
        and str(skipped.title) == title
        and {k: v for k, v in skipped.variant.items() if k != ROUND} == variant
    )
    return next(reasons, "this run has no such phase")


def identity(scenario: str | None, id_: str | None, variant: Variant) -> str:
    """Return what names a phase and variant in every run."""
    return json.dumps([scenario, id_, variant], sort_keys=True)


def _entry(
    found: dict[str, PhaseValues],
    scenario: str | None,
    id_: str | None,
    title: object,
    variant: Variant,
) -> PhaseValues:
    key = identity(scenario, id_, variant)
    return found.setdefault(key, PhaseValues(scenario, id_, str(title or id_), variant))


def _add_phase(entry: PhaseValues, phase: PhaseFigures, cores: int | None) -> None:
    turn = (phase.repeat, phase.round or 0)
    if phase.state != "complete" or (phase.drive and phase.drive.reconstructed):
        why = phase.reason or ("the run was killed" if phase.state == "running" else "")
        entry.missing = (
            f"{'incomplete' if phase.state == 'running' else phase.state}{f': {why}' if why else ''}"
        )
        return
    if phase.drive:
        _add_drive(entry, phase, turn)
        _add_costs(entry, phase, turn, cores)
    if phase.kind in ("load", "size"):
        entry.add(Metric(DISK, "B"), turn, _on_disk(phase))
        if phase.kind == "size":
            entry.primary = DISK
    if phase.mixed:
        tps = phase.mixed.drive.tps
        entry.add(Metric("queries meanwhile", "queries/s", "higher"), turn, tps.value, tps)


def _add_drive(entry: PhaseValues, phase: PhaseFigures, turn: Turn) -> None:
    drive = phase.drive
    if drive is None:
        return
    rate = headline_rate(drive, phase.headline)
    if rate is not None:
        metric = Metric(RATE, unit(phase.kind, phase.headline), "higher")
        entry.add(metric, turn, rate.value, rate)
    for percentile in drive.response.percentiles:
        if percentile.percentile in PERCENTILES:
            entry.add(Metric(f"p{percentile.percentile:g}", "ms"), turn, _ms(percentile.value_ns))
    entry.add(Metric("mean", "ms"), turn, _ms(drive.response.mean_ns))
    free = phase.kind == "load" or (drive.pace.kind if drive.pace else "closed") == "closed"
    entry.primary = RATE if free else _highest(entry)


def _highest(entry: PhaseValues) -> str:
    """Return the metric of a phase at a rate: its rate is set, so it is the highest latency supported."""
    return next((name for name in ("p99", "p95", "p50") if name in entry.series), "mean")


def _ms(value_ns: float | None) -> float | None:
    return None if value_ns is None else value_ns / 1e6


def _add_costs(entry: PhaseValues, phase: PhaseFigures, turn: Turn, cores: int | None) -> None:
    """Add what a transaction, or a row of a load, costs the server."""
    drive, usage = phase.drive, phase.usage
    if drive is None:
        return
    done = phase.load.rows if phase.load else drive.counts.done
    word = "row" if phase.load else "query" if phase.kind == "queries" else "transaction"
    if usage and usage.cpu_server and cores and done:
        us = usage.cpu_server * cores * drive.measured_s * 1e6 / done
        entry.add(Metric("CPU", f"µs/{word}"), turn, us)
    per_unit = phase.sizes.per_unit if phase.sizes else None
    if per_unit:
        wal = per_unit.wal_bytes_per_row if phase.load else per_unit.wal_bytes_per_transaction
        entry.add(Metric("WAL", f"B/{word}"), turn, wal)
    written = phase.storage.written.device_bytes if phase.storage else None
    written = written or (usage.server_write_bytes if usage else None)
    if written and done:
        entry.add(Metric("written", f"B/{word}"), turn, written / done)


def _on_disk(phase: PhaseFigures) -> float | None:
    """Return the bytes of the phase's tables and indexes: allocated, else as the server says."""
    if phase.storage and phase.storage.looks:
        last = phase.storage.looks[-1].sum
        return last.allocated_bytes or last.total_bytes
    if not phase.sizes:
        return None
    kinds = phase.sizes.kinds
    return kinds.table.after + kinds.index.after + kinds.toast.after


def _add_queries(entry: PhaseValues, target: PlainQueriesTarget) -> None:
    """Add the medians of each query, and of all warm ones together: the geometric mean over queries."""
    entry.primary = WARM
    if target.incomplete:
        entry.missing = target.incomplete[0]
    wrong = next((query for query in target.queries if query.wrong), None)
    if wrong is not None:
        entry.missing = f"{wrong.name}: the answer is wrong: {wrong.wrong}"
        return
    _add_together(entry, target)
    for kind in (WARM, *(("cold",) if target.is_cold else ())):
        for query in target.queries:
            for turn, ms in _medians(query.runs, kind):
                entry.add(Metric(f"{kind} {query.name}", "ms"), turn, ms)


def _add_together(entry: PhaseValues, target: PlainQueriesTarget) -> None:
    together: dict[Turn, list[float]] = {}
    for query in target.queries:
        for turn, ms in _medians(query.runs, WARM):
            together.setdefault(turn, []).append(ms)
    for turn, values in together.items():
        if len(values) == len(target.queries):
            entry.add(Metric(WARM, "ms"), turn, float(np.exp(np.mean(np.log(values)))))


def _medians(runs: Sequence[QueryRun], kind: str) -> Iterator[tuple[Turn, float]]:
    found: dict[Turn, list[float]] = {}
    for run in runs:
        if run.kind == kind and run.state == "done" and run.seconds:
            found.setdefault((run.repeat, run.round), []).append(run.seconds * 1e3)
    for turn, values in found.items():
        yield turn, float(median(values))

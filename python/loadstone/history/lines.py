"""The lines of a run: one for each target, from its summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from loadstone.compare.comparable import fact, settings_of
from loadstone.compare.decisions import CONFIDENCE
from loadstone.compare.metrics import values_of
from loadstone.compare.plans import phase_digests
from loadstone.errors import LoadstoneError
from loadstone.history.documents import (
    FORMAT,
    LARGEST,
    HistoryLine,
    Machine,
    MetricLine,
    PhaseLine,
    TargetLine,
)
from loadstone.results.document_reader import typed
from loadstone.summary.ratios import FEWEST, LogRatio
from loadstone.summary.stored import read_summary
from loadstone.visible import visible_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from loadstone.compare.metrics import PhaseValues, Series
    from loadstone.results.documents.summary import Summary, TargetFigures

Basis = Literal["repeats", "within"] | None

_MACHINE = {
    "host": ("system", "hostname"),
    "cpu": ("cpu", "model"),
    "cores": ("cpu", "cores_usable"),
    "memory_bytes": ("memory", "total_bytes"),
    "kernel": ("system", "kernel"),
}


def lines_of(folder: Path, commit: str | None) -> list[HistoryLine]:
    """Return a line for each target of a run folder that measured anything.

    Raises LoadstoneError when the folder cannot be read, and where its figures must not be used: the run did
    not complete, or its report has a warning of the level error.
    """
    summary = read_summary(folder)
    _refuse(folder, summary)
    found = [
        line_of(folder, summary, target, commit, values_of(summary, target.id)) for target in summary.targets
    ]
    if not any(line.phases for line in found):
        raise LoadstoneError(f"{folder} has no measured phase", "Add runs that measured something.")
    return [line for line in found if line.phases]


def _refuse(folder: Path, summary: Summary) -> None:
    state = summary.run.state
    if state != "complete":
        raise LoadstoneError(
            f"the run in {folder} is {state or 'not complete'}: its figures do not belong in a history",
            "Add complete runs only; `loadstone run --resume` completes one.",
        )
    wrong = next((one for one in summary.warnings if one.level == "error"), None)
    if wrong is not None:
        raise LoadstoneError(f"do not use the figures of {folder}: {wrong.message}", wrong.hint)
    if not summary.run.id or not summary.run.started_at:
        raise LoadstoneError(f"{folder}: run.json has no id or no start", "Use an untouched copy of the run.")


def machine_of(environment: Mapping[str, object]) -> Machine:
    """Return what lines say of a machine, from its environment.json."""
    return Machine(**{name: fact(environment, path) for name, path in _MACHINE.items()})


def line_of(
    folder: Path,
    summary: Summary,
    target: TargetFigures,
    commit: str | None,
    values: Mapping[str, PhaseValues],
) -> HistoryLine:
    """Return the line of a target; `values` are its phases by `metrics.identity`."""
    run = summary.run
    digests = phase_digests(folder, target.id)
    line = {
        "format": FORMAT,
        "loadstone": run.loadstone,
        "run": run.id,
        "time": run.started_at,
        "commit": commit,
        "size": summary.plan.size,
        "seed": summary.plan.seed,
        "machine": machine_of(summary.environment),
        "target": TargetLine(
            id=target.id,
            label=target.label or target.short_label,
            engine=target.engine,
            version=target.version,
            build=target.build,
            settings=settings_of(target),
        ),
        "phases": list(_phases(values, digests)),
    }
    # A summary is no more trusted than the folder that it is in: the line is checked as one that is read.
    return typed(visible_tree(_plain(line)), str(folder), HistoryLine)


def _plain(line: Mapping[str, object]) -> dict[str, object]:
    import msgspec  # noqa: PLC0415 - only here

    plain: dict[str, object] = msgspec.to_builtins(line)
    return plain


def _phases(found: Mapping[str, PhaseValues], digests: Mapping[str, str]) -> Iterator[PhaseLine]:
    for key, phase in found.items():
        if phase.series:
            yield PhaseLine(
                scenario=phase.scenario,
                id=phase.id,
                title=phase.title,
                variant=phase.variant,
                plan=digests.get(key),
                missing=phase.missing,
                metrics=[
                    _metric(series, primary=name == phase.primary) for name, series in phase.series.items()
                ],
            )


def _metric(series: Series, *, primary: bool) -> MetricLine:
    values = list(series.by_repeat().values())
    low, high, n, basis = _interval(series, values)
    return MetricLine(
        name=series.metric.name,
        unit=series.metric.unit,
        better=series.metric.better,
        primary=primary,
        value=float(np.exp(np.mean(np.log(values)))),
        n=n,
        low=low,
        high=high,
        basis=basis,
        values=values,
    )


def _interval(series: Series, values: list[float]) -> tuple[float | None, float | None, int, Basis]:
    """Return the 95 % interval of the mean, how many values it is from, and of which kind they are."""
    if len(values) >= FEWEST:
        logs = np.log(values)
        se = logs.std(ddof=1) / np.sqrt(len(values))
        mean = LogRatio(logs.mean(), se, np.array(len(values) - 1.0), len(values), paired=True)
        with np.errstate(over="ignore"):
            low, high = (float(end) for end in mean.interval(CONFIDENCE))
        if high > LARGEST:  # two values that have nothing in common: the interval says nothing
            return None, None, len(values), None
        return low, high, len(values), "repeats"
    rates = list(series.within.values())
    if len(series.values) == len(rates) == 1 and rates[0].low is not None and rates[0].high is not None:
        return float(rates[0].low), float(rates[0].high), rates[0].n, "within"
    return None, None, len(values), None

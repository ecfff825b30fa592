"""What a run has measured of loading rows: one entry for each way, with nothing assumed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.report import formats
from loadstone.summary.document import loads_of, summarise
from loadstone.summary.steps import comparable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from loadstone.results.documents.summary import (
        Group,
        KneeFigures,
        PerUnit,
        PhaseFigures,
        Rate,
        StepsFigures,
        Summary,
    )
    from loadstone.summary.advice import Loaded


@dataclass(frozen=True, slots=True)
class MeasuredLoad:
    """One way of loading rows, as it was measured; None where it was not."""

    name: str
    target: str
    phases: Sequence[str]
    rate: Rate
    rate_note: str
    seconds: float
    """How long rows were loaded, in the longest phase."""
    rows: float
    """Rows of the largest table of it."""
    per_row: PerUnit | None
    knee: KneeFigures | None
    partition_rows: int | None
    index_bytes_at_knee: float | None
    memory_limit_bytes: float | None
    checkpoints: float | None
    driven: bool
    """Whether clients ran scripts: transactions with latencies of their own."""
    ddl: str
    """Of partitions by another column than a time."""
    loaded: Loaded | None
    conditions: Sequence[str]


def measured_loads(
    folder: Path, wanted: Mapping[str, str], target: str | None, phase: str | None
) -> tuple[str | None, list[MeasuredLoad]]:
    """Return the run's id and its loads of rows; the arguments choose among variants, targets, phases.

    Raises LoadstoneError where none was measured to its end, or a check failed: its figures must not be used.
    """
    summary = summarise(folder)
    loaded = loads_of(folder)
    found = [
        load
        for load, variant, id_ in _all(summary, loaded)
        if (target is None or load.target == target)
        and (phase is None or id_ == phase)
        and all(str(variant.get(name)) == value for name, value in wanted.items())
    ]
    if found:
        return summary.run.id, found
    there = "; ".join(load.name for load, _, _ in _all(summary, loaded))
    if there:
        raise LoadstoneError("no load has that variant, target and phase", f"Choose one of these: {there}.")
    raise LoadstoneError(
        f"'{folder}' has no complete phase that loads rows, so there is nothing to compute from",
        "Run one: loadstone run index-import, or a scenario whose phase has rows_per_transaction.",
    )


def _all(
    summary: Summary, loaded: Mapping[tuple[str, str], Loaded]
) -> Iterator[tuple[MeasuredLoad, Mapping[str, object], str | None]]:
    phases = {(phase.target, phase.folder): phase for phase in summary.phases}
    for group in summary.groups:
        mine = [phases[group.target, folder] for folder in group.phases]
        if group.incomplete or any(phase.state != "complete" for phase in mine):
            continue
        _refuse_wrong(mine)
        rate = _rate(group, mine)
        if rate is not None and rate.value:
            yield _load(group, mine, rate, summary, loaded), group.variant, group.id


def _refuse_wrong(phases: Sequence[PhaseFigures]) -> None:
    for phase in phases:
        for check in phase.checks:
            if check.passed is False:
                raise LoadstoneError(
                    f"the check '{check.name}' of {phase.folder} failed: its figures must not be used",
                    "Find out why rows are missing or wrong, and run again.",
                )


def _rate(group: Group, phases: Sequence[PhaseFigures]) -> Rate | None:
    """Return rows per second; of loads in steps, before the knee, where partitions are advised."""
    steps = phases[0].steps
    if len(phases) == 1 and steps and steps.advice and steps.advice.partition_rows:
        return steps.advice.rows_per_s
    return group.rows_per_s


def _load(
    group: Group,
    phases: Sequence[PhaseFigures],
    rate: Rate,
    summary: Summary,
    loaded: Mapping[tuple[str, str], Loaded],
) -> MeasuredLoad:
    last, steps = phases[-1], phases[-1].steps
    advice = steps.advice if steps else None
    per_row = last.sizes.per_unit if last.sizes else None
    knee = steps.knee if steps else None
    several = len(summary.targets) > 1
    return MeasuredLoad(
        name=_name(group, several=several),
        target=group.target,
        phases=group.phases,
        rate=rate,
        rate_note=_note(rate, steps, phases),
        seconds=max(_seconds(phase) for phase in phases),
        rows=max(_rows(phase) for phase in phases),
        per_row=per_row,
        knee=knee,
        partition_rows=advice.partition_rows if advice else None,
        index_bytes_at_knee=_index_bytes(steps, knee),
        memory_limit_bytes=steps.memory_limit_bytes if steps else _limit(last),
        checkpoints=last.usage.checkpoints if last.usage else None,
        driven=steps is None and last.load is None,
        ddl=advice.ddl if advice and advice.by == "id" else "",
        loaded=loaded.get((last.target, last.folder)),
        conditions=list(_conditions(summary, group)),
    )


def _name(group: Group, *, several: bool) -> str:
    values = formats.variant(group.variant)
    parts = [str(group.title or group.id), *([values] if values else [])]
    return ", ".join([*parts, *([f"on {group.target}"] if several else [])])


def _note(rate: Rate, steps: StepsFigures | None, phases: Sequence[PhaseFigures]) -> str:
    if steps and steps.advice and steps.advice.partition_rows:
        return f"{rate.n} steps into a table that is smaller than one advised partition"
    if steps:
        return f"all {rate.n} steps"
    return f"{len(phases)} repeats" if len(phases) > 1 else f"{rate.n} intervals"


def _seconds(phase: PhaseFigures) -> float:
    if phase.steps:
        return sum(point.seconds or 0 for point in phase.steps.points)
    if phase.load:
        return phase.load.seconds or 0
    return (phase.drive.measured_s or 0) if phase.drive else 0


def _rows(phase: PhaseFigures) -> float:
    if phase.steps:
        return max(
            (p.rows_before + p.rows for p in comparable(phase.steps.points, phase.steps.step_rows)), default=0
        )
    if phase.load:
        return phase.load.rows
    return (phase.drive.counts.done if phase.drive else 0) * (phase.rows_per_transaction or 0)


def _index_bytes(steps: StepsFigures | None, knee: KneeFigures | None) -> float | None:
    """Return the size of the indexes at the step that is nearest to the knee."""
    if steps is None or knee is None or not knee.found or not knee.rows:
        return None
    at = knee.rows
    known = [(abs(p.rows_before + p.rows - at), p.index_bytes) for p in steps.points if p.index_bytes]
    return min(known)[1] if known else None


def _limit(phase: PhaseFigures) -> float | None:
    return phase.usage.memory_limit_bytes if phase.usage else None


def _conditions(summary: Summary, group: Group) -> Iterator[str]:
    """Yield what must be known of the measurement: settings that trade durability, warnings."""
    for target in summary.targets:
        if target.id == group.target:
            for setting in target.durability or []:
                if setting.durable is False:
                    yield f"{setting.setting} was {setting.value}: data may be lost in a crash"
    for warning in summary.warnings:
        if warning.level == "error" and (warning.phase in group.phases or warning.phase is None):
            yield f"the report warns: {warning.message}"

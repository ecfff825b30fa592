"""The sections of single phases: their charts, latencies and counts, errors, statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import UNSET

from loadstone.report import steps
from loadstone.report.charts import choice
from loadstone.report.chunks import Labelled, repeats_of, series_label
from loadstone.report.names import phase_label

if TYPE_CHECKING:
    from loadstone.report.charts import Chart
    from loadstone.report.chunks import Chunk, Driven, Member
    from loadstone.results.documents.drive import Failure, Operations
    from loadstone.results.documents.summary import (
        Compared,
        DriveFigures,
        PhaseFigures,
        Summary,
        TimedOutage,
    )


@dataclass(frozen=True, slots=True)
class SectionRow:
    """A variant on a target."""

    label: str
    phase: PhaseFigures
    drive: DriveFigures


@dataclass(frozen=True, slots=True)
class RepeatRow:
    """A repeat, or a round, of a variant."""

    label: str
    repeat: int
    drive: DriveFigures


@dataclass(frozen=True, slots=True)
class PhaseSection:
    """What the page says of a phase, or of a part of its variants."""

    id: str
    title: str
    why: str | None
    charts: list[Chart]
    too_short: bool
    """For a course over time."""
    repeats: int
    rows: list[SectionRow]
    published: list[Labelled[Compared]]
    errors: list[Labelled[Failure]]
    operations: list[Labelled[Operations]]
    ignored: list[Labelled[Failure]]
    outages: list[Labelled[TimedOutage]]
    repeat_rows: list[RepeatRow]


def section(chunk: Chunk, summary: Summary) -> PhaseSection:
    """Return the section of a part of the phases."""
    series = [_series(member) for member in chunk.members]
    over_time = choice.throughput(chunk.id, series)
    charts = [over_time, choice.distribution(chunk.id, series), *choice.latencies(chunk.id, series)]
    every = [one for group in chunk.groups for one in repeats_of(group, summary)]
    counted = [(one, one.drive.operations) for one in every if one.drive.operations is not UNSET]
    return PhaseSection(
        id=chunk.id,
        title=chunk.title,
        why=chunk.groups[0].why,
        charts=[chart for chart in charts if chart],
        too_short=over_time is None,
        repeats=max(group.repeats for group in chunk.groups),
        rows=[SectionRow(one.label or "all", one.phase, one.drive) for one in chunk.members],
        published=[
            Labelled(member.label, figure)
            for member, group in zip(chunk.members, chunk.groups, strict=True)
            for figure in group.published
        ],
        errors=[Labelled(_label(one, chunk, summary), error) for one in every for error in one.drive.errors],
        operations=[Labelled(_label(one, chunk, summary), operations) for one, operations in counted],
        ignored=[
            Labelled(_label(one, chunk, summary), error)
            for one, operations in counted
            for error in operations.ignored or ()
        ],
        outages=[
            Labelled(phase_label(one.phase, summary), outage) for one in every for outage in one.drive.outages
        ],
        repeat_rows=[
            RepeatRow(_label(one, chunk, summary), one.phase.round or one.phase.repeat, one.drive)
            for group in chunk.groups
            if group.repeats > 1
            for one in repeats_of(group, summary)
        ],
    )


def _label(one: Driven, chunk: Chunk, summary: Summary) -> str:
    return series_label(one.phase, chunk.groups, summary)


def _series(member: Member) -> choice.Series:
    phase, drive = member.phase, member.drive
    return choice.Series(
        label=member.label or "all",
        throughput=steps.rates(phase, drive) if steps.in_steps(phase) else drive.series,
        latency=drive.latency_series,
        curve=drive.curve,
        warmup_s=drive.warmup_s,
        headline=phase.headline,
        kind=phase.kind,
        rows_per_transaction=phase.rows_per_transaction,
    )

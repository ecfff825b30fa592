"""Loads in steps: the knee, what it advises, what a row costs, and whether the advice held."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import mean, median
from typing import TYPE_CHECKING

from loadstone.report import formats
from loadstone.report.charts.curves import colour
from loadstone.report.chunks import Labelled
from loadstone.report.steps_charts import (
    BROKEN,
    FIRST_STEPS,
    StepsMember,
    charts_of,
    complete,
    knee_span,
    knee_words,
    over,
    verification_chart,
)
from loadstone.results.documents.summary import RatePoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.report.charts import Chart
    from loadstone.report.chunks import Chunk
    from loadstone.report.steps_charts import CompleteStep
    from loadstone.results.documents.summary import (
        Advice,
        Built,
        DriveFigures,
        KneeFigures,
        PhaseFigures,
        PublishedCurve,
        StepFigures,
        StepsFigures,
        Summary,
        VerifiedPhase,
    )

SENTENCES = 2
"""Of an advice, in the terminal; the report has them all."""


@dataclass(frozen=True, slots=True)
class StepsRow:
    """What the table says of one load in steps. Shares are of the blocks that were requested."""

    knee: str
    interval: str
    rows: int
    rows_per_s: float | None
    slowdown: float | None
    table_bytes_per_row: float | None
    index_bytes_per_row: float | None
    wal_bytes_per_row: float | None
    hit_first: float | None
    hit_last: float | None


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A published curve, and the knee that our method reads out of it, in words."""

    label: str
    curve: PublishedCurve
    words: str


@dataclass(frozen=True, slots=True)
class AdviceRow:
    """What a load advises."""

    label: str
    sentences: list[str]
    ddl: str


@dataclass(frozen=True, slots=True)
class VerificationBlock:
    """The run of the partitioned tables beside the one that advised them."""

    chart: Chart
    phases: list[Labelled[VerifiedPhase]]
    run: str | None
    state: str


@dataclass(frozen=True, slots=True)
class StepsBlock:
    """What the page says of a group of phases that loaded in steps."""

    id: str
    title: str
    charts: list[Chart]
    sentences: list[str]
    method: str
    rows: list[Labelled[StepsRow]]
    looked: bool
    """Whether knees were looked for."""
    failed: list[Labelled[StepFigures]]
    resumed: list[Labelled[StepFigures]]
    published: list[PublishedRow]
    limits: list[str]
    durability: list[str]
    advice: list[AdviceRow]
    verification: VerificationBlock | None


def blocks(chunks: Sequence[Chunk], summary: Summary) -> list[StepsBlock]:
    """Return a block for each group of phases that loaded in steps."""
    return [_block(chunk, members, summary) for chunk in chunks if (members := members_of(chunk))]


def members_of(chunk: Chunk) -> list[StepsMember]:
    """Return the phases of a group that loaded in steps, each in its colour."""
    return [
        StepsMember(member.label, colour(at), member.phase, member.phase.steps)
        for at, member in enumerate(chunk.members)
        if member.phase.steps and in_steps(member.phase)
    ]


def in_steps(phase: PhaseFigures) -> bool:
    """Whether a phase loaded in more than one step: a single one has no course."""
    return phase.steps is not None and len(phase.steps.points) > 1


def rates(phase: PhaseFigures, drive: DriveFigures) -> list[RatePoint]:
    """Return rows per second of each step at its middle: a step of few batches has no course of its own."""
    steps = complete(phase.steps) if phase.steps else []
    return [
        RatePoint(
            t_s=(point.start_s + point.end_s) / 2 - drive.start_s,
            tps=0,
            failed_per_s=0,
            warmup=False,
            rows_per_s=point.rows_per_s,
        )
        for point in (step.figures for step in steps)
        if point.start_s is not None and point.end_s is not None
    ]


def conclusions(members: Sequence[StepsMember], summary: Summary) -> list[str]:
    """Say in lines what the loads advise, and whether the partitioned table kept what was advised."""
    lines = [
        f"{entry.label + ': ' if entry.label else ''}{' '.join(entry.sentences[:SENTENCES])}"
        for entry in _advised(members)
        if entry.sentences
    ]
    lines += _built(members)
    lines += _limits(members)
    for member, phase in _verified(members, summary):
        whose = f"{member.label}, " if member.label else ""
        lines.append(f"{whose}in partitions: {phase.sentence}")
    if any(entry.ddl for entry in _advised(members)):
        lines.append("`loadstone advise` prints the partitions as DDL.")
    return lines


def figures(steps: StepsFigures) -> StepsRow:
    """Return what the table says of one load in steps."""
    found = complete(steps)
    flat = _flat_s_per_row(steps)
    rows = sum(step.figures.rows for step in found)
    last = found[-1] if found else None
    there = last.rows_after if last else 0
    ends = [step.seconds_per_row for step in found[-FIRST_STEPS:]]
    return StepsRow(
        knee=_knee_cell(steps.knee),
        interval=knee_span(steps.knee) if steps.knee and steps.knee.found else "",
        rows=there,
        rows_per_s=1 / flat if flat else None,
        slowdown=median(ends) / flat if flat and ends else None,
        table_bytes_per_row=over(
            _added(last.figures.table_bytes, last.figures.toast_bytes) if last else None, there
        ),
        index_bytes_per_row=over(last.figures.index_bytes if last else None, there),
        wal_bytes_per_row=over(_wal_bytes(found), rows),
        hit_first=_hit_ratio(found[:FIRST_STEPS]),
        hit_last=_hit_ratio(found[-FIRST_STEPS:]),
    )


def _block(chunk: Chunk, members: Sequence[StepsMember], summary: Summary) -> StepsBlock:
    identity = f"steps-{chunk.id}"
    knees = [knee for member in members if (knee := member.steps.knee)]
    points = [Labelled(member.label, point) for member in members for point in member.steps.points]
    return StepsBlock(
        id=identity,
        title=chunk.title,
        charts=charts_of(identity, members),
        sentences=[
            *(text for member in members if (text := knee_words(member.label, member.steps))),
            *_built(members),
        ],
        method=next((knee.method for knee in knees if knee.method), ""),
        rows=[Labelled(member.label or "all", _row(member)) for member in members],
        looked=bool(knees),
        failed=[point for point in points if point.figures.state in BROKEN],
        resumed=[point for point in points if point.figures.state == "resumed"],
        published=[
            PublishedRow(member.label, curve, _published_words(curve))
            for member in members
            for curve in member.steps.curves
        ],
        limits=_limits(members),
        durability=_durability(members, summary),
        advice=_advised(members),
        verification=_verification(identity, members, summary),
    )


def _row(member: StepsMember) -> StepsRow:
    """Return a load's row with the size of indexes made after the last step, which knew of none."""
    row = figures(member.steps)
    looks = member.phase.storage.looks if member.phase.storage else []
    if not looks or not _built_of(member.phase):
        return row
    return replace(row, index_bytes_per_row=looks[-1].sum.per_row.index)


def _built_of(phase: PhaseFigures) -> Built | None:
    return phase.load.built if phase.load else None


def _built(members: Sequence[StepsMember]) -> list[str]:
    """Say what the indexes that were made after the rows took, and what rows and indexes came to."""
    found = [(member, _built_of(member.phase)) for member in members]
    return [
        f"{(member.label + ': ' if member.label else '')}{built.indexes} "
        f"index{('' if built.indexes == 1 else 'es')} built after the rows: rows "
        f"{formats.duration(built.rows_s)}, indexes {formats.duration(built.indexes_s)}, "
        f"{formats.duration(built.whole_s)} in total, {formats.rate(built.rows_per_s)} rows per second."
        for member, built in found
        if built
    ]


def _limits(members: Sequence[StepsMember]) -> list[str]:
    """Say beside the knee what it is the knee of, where memory was held down."""
    found = {
        (member.phase.usage and member.phase.usage.memory_limit_bytes) or member.steps.memory_limit_bytes
        for member in members
    }
    return [
        "A control group limited the memory of the server and of its files' page cache to "
        f"{formats.size(limit)}: with another limit, import slows down at another number of rows."
        for limit in sorted(limit for limit in found if limit)
    ]


def _durability(members: Sequence[StepsMember], summary: Summary) -> list[str]:
    """Return the settings that decide durability, to stand beside figures that they touch."""
    targets = {member.phase.target for member in members}
    words = []
    for target in summary.targets:
        settings = target.durability or []
        if target.id not in targets or not settings:
            continue
        unsafe = [setting for setting in settings if setting.durable is False]
        listed = ", ".join(f"{setting.setting} = {setting.value}" for setting in unsafe or settings)
        name = f"{target.short_label}: " if len(targets) > 1 else ""
        words.append(f"{name}{'not durable, ' if unsafe else 'durable, '}{listed}.")
    return words


def _advised(members: Sequence[StepsMember]) -> list[AdviceRow]:
    return [
        _advice(member.label, advice, member.steps.knee)
        for member in members
        if (advice := member.steps.advice)
    ]


def _advice(label: str, advice: Advice, knee: KneeFigures | None) -> AdviceRow:
    """Return an advice without the sentence that the knee says already."""
    said = knee.sentence if knee else None
    return AdviceRow(label, [text for text in advice.sentences if text != said], advice.ddl)


def _verification(
    identity: str, members: Sequence[StepsMember], summary: Summary
) -> VerificationBlock | None:
    """Return the run of the partitioned table, laid over the one that advised it."""
    verified, found = _verified(members, summary), summary.verification
    if not verified or not found:
        return None
    return VerificationBlock(
        chart=verification_chart(identity, verified),
        phases=[Labelled(member.label, phase) for member, phase in verified],
        run=found.id,
        state=found.state,
    )


def _verified(members: Sequence[StepsMember], summary: Summary) -> list[tuple[StepsMember, VerifiedPhase]]:
    """Return each load with the one that verified it: the same variant into partitions."""
    if not summary.verification:
        return []
    return [
        (member, phase)
        for member in members
        for phase in summary.verification.phases
        if phase.steps.points and _same(member.phase, phase)
    ]


def _same(phase: PhaseFigures, verifying: VerifiedPhase) -> bool:
    variant = {name: verifying.variant.get(name) for name in phase.variant}
    same = (verifying.scenario, verifying.id, verifying.target)
    return variant == phase.variant and same == (phase.scenario, phase.id, phase.target)


def _published_words(curve: PublishedCurve) -> str:
    knee = curve.knee
    if not knee:
        return formats.NONE
    if not knee.found:
        return knee.sentence
    return f"{formats.about_rows(knee.rows)} rows ({knee_span(knee)})"


def _flat_s_per_row(steps: StepsFigures) -> float | None:
    """Return the time of a row before the knee; without one, that of the first steps."""
    flat = steps.knee and steps.knee.flat_seconds
    if flat and steps.step_rows:
        return float(flat) / float(steps.step_rows)
    first = [step.seconds_per_row for step in complete(steps)[:FIRST_STEPS]]
    return median(first) if first else None


def _knee_cell(knee: KneeFigures | None) -> str:
    if knee is None:
        return "not searched for"
    if knee.found:
        return f"{formats.about_rows(knee.rows)} rows"
    words = {"steady": "grows from the start", "unclear": "unclear", "too_few": "too few steps"}
    return words.get(knee.outcome) or f"none up to {formats.rows(knee.up_to_rows)}"


def _added(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _wal_bytes(found: Sequence[CompleteStep]) -> float | None:
    """Return what the steps wrote, where it is known of each."""
    known = [step.figures.wal_bytes for step in found if step.figures.wal_bytes is not None]
    return sum(known) if known and len(known) == len(found) else None


def _hit_ratio(found: Sequence[CompleteStep]) -> float | None:
    known = [step.figures.hit_ratio for step in found if step.figures.hit_ratio is not None]
    return mean(known) if known else None

"""The report's content, ordered for reading: from a summary to what the template prints."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from loadstone.report import (
    formats,
    grid,
    overlay,
    plain_queries,
    sections,
    steps,
    storage,
    transactions,
    watched,
)
from loadstone.report.charts import choice, machine
from loadstone.report.chunks import Labelled, chunks
from loadstone.report.findings import findings
from loadstone.report.headline import columns, headline
from loadstone.report.names import phase_label, phase_title, target_label, target_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.report.charts import Chart
    from loadstone.report.findings import Finding
    from loadstone.report.grid import GridBlock
    from loadstone.report.headline import HeadlineBlock, HeadlineColumns
    from loadstone.report.overlay import Overlay
    from loadstone.report.plain_queries import QueryBlock
    from loadstone.report.sections import PhaseSection
    from loadstone.report.steps import StepsBlock
    from loadstone.report.storage import StorageBlock
    from loadstone.report.transactions import TransactionsBlock
    from loadstone.report.watched import WatchedBlock
    from loadstone.results.documents.phase import Check
    from loadstone.results.documents.run import PlannedSource
    from loadstone.results.documents.summary import (
        Level,
        PhaseFigures,
        RelationGrowth,
        ScenarioFigures,
        SizeFigures,
        Skipped,
        Summary,
        SummaryRun,
        Sweep,
        TargetFigures,
        Verdict,
        Warning,
    )

LEVELS = ("error", "warning", "info")
RELATIONS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class TargetSection:
    """A target under its heading: all that is known of where it is, or what alone tells it from another."""

    heading: str
    figures: TargetFigures


@dataclass(frozen=True, slots=True)
class SweepSection:
    """The table of a swept phase, and which columns have anything in them."""

    id: str
    title: str
    table: Sweep
    unit: str
    fixed: str
    target: str
    spread: bool
    sure: bool
    """Whether a ratio has an interval."""
    p99: bool
    charts: list[Chart]


@dataclass(frozen=True, slots=True)
class ResourcesSection:
    """What the machine of a target did, and the phases whose numbers are in the charts."""

    target: TargetSection
    charts: list[Chart]
    phases: list[tuple[int | None, str]]


@dataclass(frozen=True, slots=True)
class SizesRow:
    """Sizes before and after a phase, and its largest relations."""

    label: str
    sizes: SizeFigures
    relations: list[RelationGrowth]
    more: int
    """Relations that are not shown."""


@dataclass(frozen=True, slots=True)
class WarningCase:
    """A warning, and where it applies."""

    message: str
    where: str


@dataclass(frozen=True, slots=True)
class WarningKind:
    """Warnings of one kind and advice."""

    level: Level
    kind: str
    hint: str
    cases: list[WarningCase] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """A phase in the table of all phases, and how long it took."""

    label: str
    seconds: float | None
    figures: PhaseFigures


@dataclass(frozen=True, slots=True)
class Content:
    """Everything the template needs, by the names that it uses; no markup."""

    title: str
    sentence: str
    run: SummaryRun
    scenarios: list[ScenarioFigures]
    verdict: list[Verdict]
    several_targets: bool
    has_repeats: bool
    findings: list[Finding]
    headline: list[HeadlineBlock]
    shown: HeadlineColumns
    hardware: list[PlannedSource]
    cores: int | None
    sweeps: list[SweepSection]
    sections: list[PhaseSection]
    plain_queries: list[QueryBlock]
    steps_blocks: list[StepsBlock]
    storage: list[StorageBlock]
    transactions: list[TransactionsBlock]
    grids: list[GridBlock]
    overlays: list[Overlay]
    resources: list[ResourcesSection]
    watched: list[WatchedBlock]
    watched_columns: Sequence[str]
    sizes: list[SizesRow]
    warnings: list[WarningKind]
    skipped: list[Skipped]
    checks: list[Labelled[Check]]
    targets: list[TargetSection]
    environment: list[tuple[str, str]]
    command: str
    phases: list[PhaseRow]


def view(summary: Summary) -> Content:
    """Return the content of the page of a summary."""
    names = target_names(summary)
    several = len(summary.targets) > 1
    parts = chunks(summary)
    figures = headline(summary)
    targets = _targets(summary)
    return Content(
        title=", ".join(str(scenario.title) for scenario in summary.scenarios) or str(summary.run.id),
        sentence=sentence(summary),
        run=summary.run,
        scenarios=[_given(scenario) for scenario in summary.scenarios],
        verdict=summary.verdict,
        several_targets=several,
        has_repeats=any(group.repeats > 1 for group in summary.groups),
        findings=findings(summary),
        headline=figures,
        shown=columns(figures),
        hardware=[scenario.source for scenario in summary.scenarios if scenario.source],
        cores=summary.cores,
        sweeps=_sweeps(summary),
        sections=[sections.section(chunk, summary) for chunk in parts],
        plain_queries=plain_queries.blocks(summary, names),
        steps_blocks=steps.blocks(parts, summary),
        storage=storage.blocks(parts),
        transactions=transactions.blocks(parts),
        grids=grid.blocks(summary, names if several else {}),
        overlays=overlay.blocks(summary, names),
        resources=[_resources(target, summary) for target in targets],
        watched=watched.blocks(targets, summary),
        watched_columns=watched.COLUMNS,
        sizes=[_sizes(phase, phase.sizes, summary) for phase in summary.phases if phase.sizes],
        warnings=warnings(summary),
        skipped=[_skipped(entry, names) for entry in summary.skipped],
        checks=[
            Labelled(phase_label(phase, summary), check) for phase in summary.phases for check in phase.checks
        ],
        targets=targets,
        environment=flat({k: v for k, v in summary.environment.items() if k != "warnings"}),
        command=shlex.join(str(word) for word in summary.run.command or []),
        phases=[_phase_row(phase, summary) for phase in summary.phases],
    )


def sentence(summary: Summary) -> str:
    """Say what was run, in one sentence."""
    driven = [phase.drive for phase in summary.phases if phase.drive]
    turns = sum(len(target.phases) for entry in summary.plain_queries for target in entry.targets)
    targets = formats.listed(_target_labels(summary)) or "no target"
    clients = sorted({drive.clients for drive in driven if drive.clients})
    word = "client" if clients == [1] else "clients"
    width = f" with {formats.listed([str(c) for c in clients])} {word}" if clients else ""
    took = f" in {formats.duration(summary.run.duration_s)}" if summary.run.duration_s else ""
    count = len(driven) + turns
    return f"{count} measured phase{'' if count == 1 else 's'} on {targets}{width}{took}."


def warnings(summary: Summary) -> list[WarningKind]:
    """Warnings of one kind and advice together, errors first."""
    merged: dict[tuple[str, str], WarningKind] = {}
    for warning in summary.warnings:
        new = WarningKind(warning.level, warning.kind, warning.hint)
        entry = merged.setdefault((warning.kind, warning.hint), new)
        entry.cases.append(WarningCase(warning.message, _where(warning, summary)))
    return sorted(merged.values(), key=lambda entry: LEVELS.index(entry.level))


def flat(document: Mapping[str, Any] | list[Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return a nested document as (dotted name, value) rows; a list of plain values stays one row."""
    rows: list[tuple[str, str]] = []
    pairs = enumerate(document, start=1) if isinstance(document, list) else document.items()
    for name, value in pairs:
        path = f"{prefix}{name}"
        if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(v, dict) for v in value)):
            rows += flat(value, f"{path}.")
        elif isinstance(value, list):
            rows.append((path, ", ".join(str(item) for item in value)))
        else:
            rows.append((path, _plain(str(name), value)))
    return rows


def _targets(summary: Summary) -> list[TargetSection]:
    known = Counter(target.label for target in summary.targets)
    return [
        TargetSection(target.label if known[target.label] == 1 else target.short_label, target)
        for target in summary.targets
    ]


def _target_labels(summary: Summary) -> list[str]:
    """Return the targets' names: of one all that is known, of several what tells them apart."""
    if len(summary.targets) == 1:
        return [summary.targets[0].label]
    return [target.short_label for target in summary.targets]


def _sweeps(summary: Summary) -> list[SweepSection]:
    """Return the tables of swept phases; grids and plain queries by clients have sections of their own."""
    elsewhere = {(entry.scenario, entry.id, entry.target) for entry in summary.grids}
    elsewhere |= {
        (entry.scenario, entry.id, one.target) for entry in summary.concurrency for one in entry.targets
    }
    stored = {(phase.scenario, phase.id, phase.target) for phase in summary.phases if phase.storage}
    shown = [
        (table, identity in stored)
        for table in summary.sweeps
        if (identity := (table.scenario, table.id, table.target)) not in elsewhere
    ]
    return [
        _sweep(number, table, summary, stored=is_stored) for number, (table, is_stored) in enumerate(shown)
    ]


def _sweep(number: int, table: Sweep, summary: Summary, *, stored: bool) -> SweepSection:
    return SweepSection(
        id=f"sweep-{number}",
        title=phase_title(table, summary),
        table=table,
        unit=formats.unit(table.kind, table.headline),
        fixed=formats.variant(table.fixed),
        target=target_label(summary, table.target) if len(summary.targets) > 1 else "",
        spread=any(row.rate and row.rate.low is not None for row in table.rows),
        sure=any(row.ratio and row.ratio.low is not None for row in table.rows),
        p99=any(row.p99_ns is not None for row in table.rows),
        charts=choice.sweep(f"sweep-{number}", table, stored=stored),
    )


def _resources(target: TargetSection, summary: Summary) -> ResourcesSection:
    figures = target.figures
    phases = [phase for phase in summary.phases if phase.target == figures.id]
    moments = [point.t_s for point in figures.resources.points]
    moments += [phase.start_s for phase in phases if phase.start_s is not None]
    domain = (min(moments, default=0.0), max(moments, default=1.0))
    return ResourcesSection(
        target=target,
        charts=machine.resources(f"resources-{figures.id}", figures, phases, domain),
        phases=[(phase.number, phase_label(phase, summary)) for phase in phases],
    )


def _sizes(phase: PhaseFigures, sizes: SizeFigures, summary: Summary) -> SizesRow:
    return SizesRow(
        label=phase_label(phase, summary),
        sizes=sizes,
        relations=sizes.relations[:RELATIONS_SHOWN],
        more=max(0, len(sizes.relations) - RELATIONS_SHOWN) + sizes.relations_left_out,
    )


def _skipped(entry: Skipped, names: Mapping[str, str]) -> Skipped:
    if entry.target is None:
        return entry
    return msgspec.structs.replace(entry, target=names.get(entry.target, entry.target))


def _phase_row(phase: PhaseFigures, summary: Summary) -> PhaseRow:
    end_s = phase.end_s
    if end_s is None:
        end_s = phase.drive.end_s if phase.drive else None
    seconds = None if end_s is None or phase.start_s is None else end_s - phase.start_s
    return PhaseRow(phase_label(phase, summary), seconds, phase)


def _where(warning: Warning, summary: Summary) -> str:
    for phase in summary.phases:
        if (phase.target, phase.folder) == (warning.target, warning.phase):
            return phase_label(phase, summary)
    return target_label(summary, warning.target) if warning.target else ""


def _given(scenario: ScenarioFigures) -> ScenarioFigures:
    """Leave out parameters that are empty: they mean "nothing special"."""
    given = {name: value for name, value in scenario.parameters.items() if value not in ("", None)}
    return msgspec.structs.replace(scenario, parameters=given)


def _plain(name: str, value: object) -> str:
    if value is None:
        return formats.NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float) and name.endswith("_bytes"):
        return formats.size(value)
    return str(value)

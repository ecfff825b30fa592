"""The phases of a page as they are drawn together: all variants and targets of one, typical repeats only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from loadstone.report import formats
from loadstone.report.charts.choice import MAX_SERIES
from loadstone.report.names import phase_title, target_label, variant_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.results.documents.summary import DriveFigures, Group, PhaseFigures, Summary

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Labelled(Generic[T]):
    """Figures with the words that tell them from the others of their table."""

    label: str
    figures: T


@dataclass(frozen=True, slots=True)
class Driven:
    """A phase that a driver measured."""

    phase: PhaseFigures
    drive: DriveFigures


@dataclass(frozen=True, slots=True)
class Member:
    """The repeat of a phase that is drawn."""

    label: str
    target: str
    """Its name for people, where there are several."""
    phase: PhaseFigures
    drive: DriveFigures


@dataclass(frozen=True, slots=True)
class Chunk:
    """A phase with its variants and targets, or as many of them as one picture can hold."""

    id: str
    scenario: str | None
    phase: str | None
    title: str
    groups: Sequence[Group]
    members: list[Member]
    """In the order of their colours."""


def chunks(summary: Summary) -> list[Chunk]:
    """One part per phase with all its variants and targets; split where lines would be too many."""
    phases: dict[tuple[str | None, str | None], list[Group]] = {}
    for group in sorted_groups(summary):
        phases.setdefault((group.scenario, group.id), []).append(group)
    found: list[Chunk] = []
    for every in phases.values():
        size = _chunk_size(every)
        parts = [every[at : at + size] for at in range(0, len(every), size)]
        for at, part in enumerate(parts, 1):
            which = f" ({at} of {len(parts)})" if len(parts) > 1 else ""
            found.append(_chunk(f"phase-{len(found)}", part, summary, which))
    return found


def sorted_groups(summary: Summary) -> list[Group]:
    """Return the groups, equal phases and in them equal variants together, else as they ran."""
    phases: dict[tuple[str | None, str | None], int] = {}
    variants: dict[str, int] = {}
    for group in summary.groups:
        phases.setdefault((group.scenario, group.id), len(phases))
        variants.setdefault(formats.variant(group.variant), len(variants))
    return sorted(
        summary.groups,
        key=lambda group: (phases[group.scenario, group.id], variants[formats.variant(group.variant)]),
    )


def repeats_of(group: Group, summary: Summary) -> list[Driven]:
    """Return the phases that a group was made of."""
    wanted = set(group.phases)
    return [
        Driven(phase, phase.drive)
        for phase in summary.phases
        if phase.target == group.target and phase.folder in wanted and phase.drive
    ]


def typical(group: Group, summary: Summary) -> Driven:
    """Return the repeat whose rate is nearest to the median: the one that is drawn."""
    middle = (group.tps and group.tps.value) or 0
    return min(
        repeats_of(group, summary),
        key=lambda one: (abs((one.drive.tps.value or 0) - middle), one.phase.number or 0),
    )


def series_label(phase: PhaseFigures, groups: Sequence[Group], summary: Summary) -> str:
    """Return what tells a phase from the others of these groups."""
    parts = [variant_words(phase, summary)]
    if len({group.target for group in groups}) > 1:
        parts.append(target_label(summary, phase.target))
    return " · ".join(part for part in parts if part)


def _chunk(identity: str, groups: Sequence[Group], summary: Summary, which: str) -> Chunk:
    first = groups[0]
    return Chunk(
        id=identity,
        scenario=first.scenario,
        phase=first.id,
        title=f"{phase_title(first, summary)}{which}",
        groups=groups,
        members=[_member(typical(group, summary), groups, summary) for group in groups],
    )


def _chunk_size(groups: Sequence[Group]) -> int:
    """Return how many lines to draw together: equal shares, with all targets of a variant in one."""
    shares = -(-len(groups) // MAX_SERIES)
    size = -(-len(groups) // shares)
    targets = len({group.target for group in groups})
    whole = -(-size // targets) * targets
    return whole if whole <= MAX_SERIES else size


def _member(driven: Driven, groups: Sequence[Group], summary: Summary) -> Member:
    several = len({group.target for group in groups}) > 1
    return Member(
        label=series_label(driven.phase, groups, summary),
        target=target_label(summary, driven.phase.target) if several else "",
        phase=driven.phase,
        drive=driven.drive,
    )

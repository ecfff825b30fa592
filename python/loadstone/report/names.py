"""Names for people: of targets, phases and variants, no longer than it takes to tell them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from loadstone.report import formats

if TYPE_CHECKING:
    from loadstone.results.documents.summary import PhaseFigures, Summary, Variant


class Titled(Protocol):
    """A phase, or what was made of its repeats and variants."""

    @property
    def scenario(self) -> str | None:
        """Whose phase it is."""

    @property
    def id(self) -> str | None:
        """The phase's name in the scenario."""

    @property
    def title(self) -> str | None:
        """The same for people."""


class Varied(Titled, Protocol):
    """A phase in one of its variants."""

    @property
    def variant(self) -> Variant:
        """Values of the parameters that it is swept over."""


def target_names(summary: Summary) -> dict[str, str]:
    """Return the targets' names by their ids."""
    return {target.id: target.short_label for target in summary.targets}


def target_label(summary: Summary, target_id: str) -> str:
    """Return a target's name for people, no longer than it must be to tell the targets apart."""
    return next((target.short_label for target in summary.targets if target.id == target_id), target_id)


def phase_title(entry: Titled, summary: Summary) -> str:
    """Return the title that all variants of a phase share; "…" stands for the words in which they differ."""
    same = (entry.scenario, entry.id)
    titles = {str(group.title) for group in summary.groups if (group.scenario, group.id) == same}
    words = [title.split() for title in sorted(titles)]
    if len(words) < 2 or len({len(each) for each in words}) > 1:  # noqa: PLR2004 - nothing to compare
        return str(entry.title)
    shared = [each[0] if len(set(each)) == 1 else "…" for each in zip(*words, strict=True)]
    return " ".join(shared) if shared[0] != "…" else str(entry.id).replace("-", " ").capitalize()


def variant_words(entry: Varied, summary: Summary) -> str:
    """Return a variant in words, without the parameters that are the same in all variants of its phase."""
    every = [
        group.variant for group in summary.groups if (group.scenario, group.id) == (entry.scenario, entry.id)
    ]
    varied = {
        name: value
        for name, value in entry.variant.items()
        if any(variant.get(name) != value for variant in every)
    }
    return formats.variant(varied or entry.variant)


def phase_label(phase: PhaseFigures, summary: Summary) -> str:
    """Return a phase's name with whatever tells it from its neighbours."""
    parts = [str(phase.title), variant_words(phase, summary)]
    if phase.round:
        parts.append(f"round {phase.round}")
    if phase.repeat > 1:
        parts.append(f"repeat {phase.repeat}")
    if len(summary.targets) > 1:
        parts.append(target_label(summary, phase.target))
    return " · ".join(part for part in parts if part)

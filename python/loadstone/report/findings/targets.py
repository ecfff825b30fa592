"""How the targets of a run differ from the first, in rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.report import formats
from loadstone.report.findings.words import is_asked, kept_its_rate, of_ratio, placed
from loadstone.report.names import phase_title, target_label, variant_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.report.findings.words import Sentence
    from loadstone.results.documents.run import PlannedFinding
    from loadstone.results.documents.summary import Group, Summary


def rates(summary: Summary, scenario: str | None, asked: PlannedFinding) -> Iterator[Sentence]:
    """Compare each phase and variant of a later target with the first target's.

    At a given rate that every target kept there is nothing to compare: latencies differ, rates do not.
    """
    if len(summary.targets) < 2:  # noqa: PLR2004 - nothing to compare
        return
    first = target_label(summary, summary.targets[0].id)
    for group in summary.groups:
        if is_asked(group, scenario, asked) and group.ratio_to_first and not _kept(summary, group):
            target = target_label(summary, group.target)
            place = placed(phase_title(group, summary), variant_words(group, summary), target)
            yield of_ratio(place, formats.unit(group.kind, group.headline), first, group.ratio_to_first)


def _kept(summary: Summary, group: Group) -> bool:
    """Whether a group and the first target's of the same phase and variant both kept a given rate."""
    first = (group.scenario, group.id, group.variant, summary.targets[0].id)
    same = [one for one in summary.groups if (one.scenario, one.id, one.variant, one.target) == first]
    return all(kept_its_rate(summary, one) for one in (group, *same))

"""How phases of one target differ from the first of those that are asked for, in rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.report import formats
from loadstone.report.findings.words import is_asked, of_ratio, placed
from loadstone.report.names import phase_title, target_label, variant_words
from loadstone.summary.comparisons import headline_of, rate_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.report.findings.words import Sentence
    from loadstone.results.documents.run import PlannedFinding
    from loadstone.results.documents.summary import Group, Summary


def rates(summary: Summary, scenario: str | None, asked: PlannedFinding) -> Iterator[Sentence]:
    """Compare each phase with the first one, on the same target and in the same variant."""
    groups = [group for group in summary.groups if is_asked(group, scenario, asked)]
    for base in (group for group in groups if group.id == asked.phases[0]):
        for group in groups:
            ratio = rate_ratio(headline_of(group), headline_of(base)) if _is_comparable(group, base) else None
            if ratio:
                target = target_label(summary, group.target) if len(summary.targets) > 1 else ""
                place = placed(phase_title(group, summary), variant_words(group, summary), target)
                what = formats.unit(group.kind, group.headline)
                yield of_ratio(place, what, f'"{phase_title(base, summary)}"', ratio)


def _is_comparable(group: Group, base: Group) -> bool:
    same = (group.target, group.variant, group.headline) == (base.target, base.variant, base.headline)
    return same and group.id != base.id

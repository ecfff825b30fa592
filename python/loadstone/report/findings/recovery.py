"""What the load of a run says about a recovery that the run itself does not time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.report import formats
from loadstone.report.findings.words import Sentence, is_asked, placed
from loadstone.report.names import phase_title, target_label, variant_words
from loadstone.summary.comparisons import headline_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.results.documents.run import PlannedFinding
    from loadstone.results.documents.summary import Group, Summary
    from loadstone.results.documents.summary.run import ScenarioFigures


def to_time(_: Summary, scenario: ScenarioFigures, __: PlannedFinding) -> str:
    """Say what would decide it."""
    return f"To time recoveries: loadstone crash {scenario.id or ''}".rstrip() + "."


def loads(summary: Summary, scenario: str | None, asked: PlannedFinding) -> Iterator[Sentence]:
    """Say how fast each load is and how much WAL it writes: that is what a server has to replay."""
    for group in summary.groups:
        rate = headline_of(group)
        if not is_asked(group, scenario, asked) or rate is None or rate.value is None:
            continue
        target = target_label(summary, group.target) if len(summary.targets) > 1 else ""
        place = placed(phase_title(group, summary), variant_words(group, summary), target)
        unit = formats.unit(group.kind, group.headline)
        text = (
            f"{place}: {formats.rate(rate.value)} {unit}{_wal(summary, group)}; loadstone run crashes no "
            "server, so how long a recovery takes was not measured."
        )
        yield Sentence(text, decided=False)


def _wal(summary: Summary, group: Group) -> str:
    """Say how much WAL a transaction writes; empty where that is not known."""
    for phase in summary.phases:
        per_unit = phase.sizes.per_unit if phase.sizes and phase.folder in group.phases else None
        if per_unit is not None and per_unit.wal_bytes_per_transaction and phase.target == group.target:
            return f", {formats.size(per_unit.wal_bytes_per_transaction)} of WAL for each transaction"
    return ""

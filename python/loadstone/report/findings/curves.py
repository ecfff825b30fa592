"""What curves say: the knee of loads in steps, and the law of scaling over clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.report import formats
from loadstone.report.findings.words import Sentence, is_asked, placed
from loadstone.report.names import target_label
from loadstone.summary.scaling.law import is_level

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loadstone.results.documents.run import PlannedFinding
    from loadstone.results.documents.summary import Summary


def knees(summary: Summary, scenario: str | None, asked: PlannedFinding) -> Iterator[Sentence]:
    """Say of each load in steps where it became slower, and how many rows a partition may have."""
    for phase in summary.phases:
        if not is_asked(phase, scenario, asked) or not phase.steps or not phase.steps.knee:
            continue
        knee, advice = phase.steps.knee, phase.steps.advice
        words = [_place(summary, phase.target, phase.variant), knee.sentence.rstrip(".")]
        if advice and advice.partition_rows:
            words.append(f"a partition may have {formats.rows(advice.partition_rows)}")
        text = "; ".join(word for word in words if word)
        yield Sentence(f"{text}.", decided=knee.outcome in _DECIDED, weight=float(knee.found))


_DECIDED = ("knee", "none", "steady")


def laws(summary: Summary, scenario: str | None, asked: PlannedFinding) -> Iterator[Sentence]:
    """Say of each curve over clients what its law says."""
    for law in summary.scaling:
        if is_asked(law, scenario, asked):
            place = _place(summary, law.target, law.fixed)
            text = ": ".join(part for part in (place, law.sentence.rstrip(".")) if part)
            top = max((point.n for point in law.points), default=0.0)
            decided = law.fit is not None and not is_level(law.fit, top)
            yield Sentence(f"{text}.", decided=decided, weight=float(law.fit is not None))


def _place(summary: Summary, target: str, variant: Mapping[str, object]) -> str:
    return placed(target_label(summary, target) if len(summary.targets) > 1 else "", formats.variant(variant))

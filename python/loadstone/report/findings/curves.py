"""What curves say: the knee of loads in steps, and the law of scaling over clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.report import formats
from loadstone.report.findings.words import Sentence, is_asked, placed
from loadstone.report.names import target_label, variant_words
from loadstone.summary.scaling.law import is_level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.results.documents.run import PlannedFinding
    from loadstone.results.documents.summary import Summary


def knees(summary: Summary, scenario: str | None, asked: PlannedFinding) -> Iterator[Sentence]:
    """Say of each load in steps where it became slower, and how many rows a partition may have."""
    for phase in summary.phases:
        if not is_asked(phase, scenario, asked) or not phase.steps or not phase.steps.knee:
            continue
        knee, advice = phase.steps.knee, phase.steps.advice
        place = placed(_target(summary, phase.target), variant_words(phase, summary))
        words = [": ".join(part for part in (place, knee.sentence.rstrip(".")) if part)]
        if advice and advice.partition_rows:
            words.append(f"a partition may have {formats.rows(advice.partition_rows)} rows")
        text = "; ".join(words)
        yield Sentence(f"{text}.", decided=knee.outcome in _DECIDED, weight=float(knee.found))


_DECIDED = ("knee", "none", "steady")


def laws(summary: Summary, scenario: str | None, asked: PlannedFinding) -> Iterator[Sentence]:
    """Say of each curve over clients what its law says."""
    for law in summary.scaling:
        if is_asked(law, scenario, asked):
            place = placed(_target(summary, law.target), formats.variant(law.fixed))
            text = ": ".join(part for part in (place, law.sentence.rstrip(".")) if part)
            top = max((point.n for point in law.points), default=0.0)
            decided = law.fit is not None and not is_level(law.fit, top)
            yield Sentence(f"{text}.", decided=decided, weight=float(law.fit is not None))


def _target(summary: Summary, target: str) -> str:
    return target_label(summary, target) if len(summary.targets) > 1 else ""

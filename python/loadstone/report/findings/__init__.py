"""What a run found, as sentences: each sentence is made from a comparison, most with an interval.

The scenario names the questions (`[[finding]]`) and never the words of an answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone.report.findings import curves, next_steps, phases, queries, recovery, swept, targets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.report.findings.words import Sentence
    from loadstone.results.documents.run import PlannedFinding
    from loadstone.results.documents.summary import Summary
    from loadstone.results.documents.summary.run import ScenarioFigures

MOST = 7
"""Sentences of one run: what a reader takes in before looking at figures."""
_REPEATED = ("rates", "phases", "targets")
"""Comparisons whose unit is the repeat."""

_ANSWERS: dict[str, Callable[[Summary, str | None, PlannedFinding], Iterator[Sentence]]] = {
    "rates": swept.rates,
    "sizes": swept.sizes,
    "phases": phases.rates,
    "targets": targets.rates,
    "queries": queries.times,
    "knee": curves.knees,
    "scaling": curves.laws,
    "recovery": recovery.loads,
}

_NEXT_STEPS: dict[str, Callable[[Summary, ScenarioFigures, PlannedFinding], str]] = {
    "queries": next_steps.of_queries,
    "knee": next_steps.of_knees,
    "scaling": next_steps.of_laws,
    "recovery": recovery.to_time,
}
"""What decides the rest where the unit is something else."""


@dataclass(slots=True)
class Finding:
    """A question with its answer in sentences, and what would decide what was not decided."""

    question: str
    sentences: list[Sentence] = field(default_factory=list)
    next_step: str = ""


def findings(summary: Summary) -> list[Finding]:
    """Return the answers to the scenarios' questions: at most seven sentences, the clearest first."""
    asked = [(scenario, finding) for scenario in summary.scenarios for finding in scenario.findings]
    found = [_answered(summary, scenario, finding) for scenario, finding in asked]
    answered = [finding for finding in found if finding.sentences]
    kept = _clearest(answered)
    for finding in answered:
        left = [sentence for sentence in finding.sentences if id(sentence) in kept]
        if len(left) < len(finding.sentences):
            count = len(finding.sentences) - len(left)
            more = f"{count} more comparison{'' if count == 1 else 's'} of this kind: see the tables."
            finding.next_step = f"{more} {finding.next_step}".strip()
        finding.sentences = left
    return [finding for finding in answered if finding.sentences]


def _clearest(found: list[Finding]) -> set[int]:
    """Choose the sentences that stay: one of each question in turn, large and decided differences first."""
    queues = [sorted(finding.sentences, key=lambda one: -one.weight) for finding in found]
    turns = [queue[turn] for turn in range(MOST) for queue in queues if turn < len(queue)]
    return {id(sentence) for sentence in turns[:MOST]}


def _answered(summary: Summary, scenario: ScenarioFigures, asked: PlannedFinding) -> Finding:
    answer = _ANSWERS.get(asked.compare)
    found = Finding(asked.question, list(answer(summary, scenario.id, asked)) if answer else [])
    if not found.sentences:
        return found
    if asked.compare in _REPEATED:
        paired = asked.compare == "targets"
        found.next_step = next_steps.of_repeats(summary, found.sentences, paired=paired)
    elif next_step := _NEXT_STEPS.get(asked.compare):
        found.next_step = next_step(summary, scenario, asked)
    return found

"""Which target answers queries faster, and whether the answers were equal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from loadstone.report import formats
from loadstone.report.findings.words import Sentence, is_asked
from loadstone.report.names import target_label

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.results.documents.run import PlannedFinding
    from loadstone.results.documents.summary import PlainQueriesFigures, Summary
    from loadstone.results.documents.summary.queries import PlainQueriesTarget, PlainQueryFigures


def times(summary: Summary, scenario: str | None, asked: PlannedFinding) -> Iterator[Sentence]:
    """Say of each later target how many warm queries are faster and slower than on the first, and by what."""
    for entry in summary.plain_queries:
        if is_asked(entry, scenario, asked):
            yield from _sentences(summary, entry)


def _sentences(summary: Summary, entry: PlainQueriesFigures) -> Iterator[Sentence]:
    first = target_label(summary, entry.first)
    for target in entry.targets:
        compared = [
            query for query in target.queries if query.ratio_to_first and target.target != entry.first
        ]
        if compared:
            yield _sentence(target_label(summary, target.target), first, compared, target)


def _sentence(
    name: str, first: str, compared: Sequence[PlainQueryFigures], target: PlainQueriesTarget
) -> Sentence:
    """One sentence about one target; the ratio is a time over a time, so below 1 is faster."""
    ratios = [query.ratio_to_first for query in compared if query.ratio_to_first]
    known = [(ratio.low, ratio.high) for ratio in ratios if ratio.low is not None and ratio.high is not None]
    faster = sum(high < 1 for _, high in known)
    slower = sum(low > 1 for low, _ in known)
    undecided = len(ratios) - faster - slower
    centre = math.exp(math.fsum(math.log(ratio.value) for ratio in ratios) / len(ratios))
    speed = (
        f"{formats.digits(1 / centre)} times as fast in the geometric mean"
        if centre <= 1
        else f"{formats.digits(centre)} times as slow in the geometric mean"
    )
    undecided_words = f", {undecided} not decided" if undecided else ""
    text = (
        f"{name}: {faster} of {len(ratios)} queries faster than on {first}, {slower} slower"
        f"{undecided_words}; {speed}; {_answers(target)}."
    )
    return Sentence(text, decided=not undecided, weight=abs(math.log(centre)))


def _answers(target: PlainQueriesTarget) -> str:
    wrong = [query.name for query in target.queries if query.wrong]
    failed = [query.name for query in target.queries if query.failed]
    parts = [f"{formats.listed(wrong)} answered differently"] if wrong else []
    parts += [f"{formats.listed(failed)} failed"] if failed else []
    return " and ".join(parts) or "no answer differed"

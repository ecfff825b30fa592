"""Long transactions in figures: how fast rows went in inside each of them, and what its commit took."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from loadstone.results.documents.summary import (
    Mark,
    MarkPoint,
    Spread,
    TransactionFigures,
    TransactionsFigures,
)
from loadstone.summary.histograms import SUPPORT
from loadstone.summary.intervals import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.results.documents import Drive, Progress
    from loadstone.results.documents.drive import LongTransaction

MARKS_SHOWN = 100
"""Points of one transaction's course: more cannot be distinguished on a screen."""
BINS = 40
"""Stretches of a transaction over which the time of a mark is followed."""
MEDIAN = 50.0


def summarise_transactions(
    drive: Drive | None, progress: Sequence[Progress], begun_ns: int
) -> TransactionsFigures | None:
    """Return the course of each long transaction; None for a phase without any.

    `progress` are the lines of progress.jsonl; `begun_ns` is when the drive began. A transaction that the
    account does not know (the run was killed) begins where the one before it ended.
    """
    lines: dict[int, list[Progress]] = {}
    for line in progress:
        lines.setdefault(int(line.transaction), []).append(line)
    told = {int(t.transaction): t for t in (drive and drive.load and drive.load.transactions) or []}
    if not lines and not told:
        return None
    found: list[TransactionFigures] = []
    steps: list[tuple[int, int, float]] = []
    last_ns = begun_ns
    for number in sorted({*lines, *told}):
        marks = lines.get(number, [])
        known = told.get(number)
        start_ns = (known and known.start_ns) or last_ns
        transaction, inside = _transaction(number, known, marks, (start_ns, begun_ns))
        found.append(transaction)
        steps += inside
        last_ns = marks[-1].t_ns if marks else last_ns
    usual = _usual(steps)
    whole = [(at, seconds) for at, rows, seconds in steps if rows == usual]
    return TransactionsFigures(
        transactions=found,
        committed=sum(1 for t in found if t.state == "committed"),
        rows_committed=sum(t.rows for t in found if t.state == "committed"),
        commit_s=_spread([t.commit_s for t in found if t.commit_s is not None]),
        mark_rows=usual,
        per_mark=_spread([seconds for _, seconds in whole]),
        course=_course(whole),
    )


def _transaction(
    number: int, told: LongTransaction | None, lines: Sequence[Progress], at: tuple[int, int]
) -> tuple[TransactionFigures, list[tuple[int, int, float]]]:
    start_ns, begun_ns = at
    marks = [(int(m.rows), (m.t_ns - start_ns) / NS_PER_S) for m in lines if m.state == "open"]
    end = next((line for line in lines if line.state != "open"), None)
    state = str((told and told.state) or (end and end.state) or "lost")
    end_ns = (told and told.end_ns) or (end.t_ns if end else None)
    seconds = None if end_ns is None else (end_ns - start_ns) / NS_PER_S
    whole = int((told and told.rows) or (end and end.rows) or 0)
    rows = whole or (marks[-1][0] if marks else 0)
    sent_whole = bool(marks) and marks[-1][0] == rows and state == "committed" and seconds is not None
    figures = TransactionFigures(
        transaction=number,
        state=state,
        rows=rows,
        start_s=(start_ns - begun_ns) / NS_PER_S,
        seconds=seconds,
        rows_per_s=rows / seconds if seconds and state == "committed" else None,
        commit_s=(seconds or 0.0) - marks[-1][1] if sent_whole else None,
        marks=[Mark(rows=r, t_s=t) for r, t in _thinned([(0, 0.0), *marks])],
    )
    steps = [(after[0], after[0] - before[0], after[1] - before[1]) for before, after in _pairs(marks)]
    return figures, steps


def _pairs(marks: Sequence[tuple[int, float]]) -> Iterable[tuple[tuple[int, float], tuple[int, float]]]:
    return pairwise([(0, 0.0), *marks])


def _thinned(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Keep evenly spaced points, the last one always."""
    step = -(-len(points) // MARKS_SHOWN)
    kept = list(points[::step])
    return kept if kept[-1] == points[-1] else [*kept, points[-1]]


def _usual(steps: Sequence[tuple[int, int, float]]) -> int | None:
    """Return the rows of most marks."""
    return Counter(rows for _, rows, _ in steps).most_common(1)[0][0] if steps else None


def _course(marks: Sequence[tuple[int, float]]) -> list[MarkPoint]:
    """Return median and 95th percentile of the time of a mark, by the rows that went in before."""
    places = sorted({at for at, _ in marks})
    width = -(-len(places) // BINS)
    bins = [places[at : at + width] for at in range(0, len(places), width)]
    number = {at: index for index, inside in enumerate(bins) for at in inside}
    held: list[list[float]] = [[] for _ in bins]
    for at, seconds in marks:
        held[number[at]].append(seconds)
    return [
        MarkPoint(rows=inside[-1], p50_s=_quantile(values, 50.0), p95_s=_quantile(values, 95.0))
        for inside, values in zip(bins, held, strict=True)
    ]


def _spread(values: Sequence[float]) -> Spread | None:
    """Return count, median, further percentiles as far as the values support them, and the greatest."""
    if not values:
        return None
    return Spread(
        count=len(values),
        median_s=median(values),
        p95_s=_quantile(values, 95.0),
        p99_s=_quantile(values, 99.0),
        max_s=max(values),
    )


def _quantile(values: Sequence[float], percentile: float) -> float | None:
    """Return a percentile that occurs among the values; None when too few are beyond it."""
    if percentile > MEDIAN and len(values) * (1 - percentile / 100) < SUPPORT:
        return None
    return float(np.quantile(np.asarray(values), percentile / 100, method="inverted_cdf"))

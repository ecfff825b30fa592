"""Long transactions in figures: how fast rows went in inside each of them, and what its commit took."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from loadstone.summary.histograms import SUPPORT
from loadstone.summary.series import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.summary.reading import Json

MARKS_SHOWN = 100
"""Points of one transaction's course: more cannot be told apart on a screen."""
BINS = 40
"""Stretches of a transaction over which the time of a mark is followed."""
PERCENTILES = (50.0, 95.0, 99.0)


def summarise_transactions(drive: Json | None, progress: Sequence[Json], begun_ns: int) -> Json | None:
    """Return the course of each long transaction; None for a phase without any.

    `progress` are the lines of progress.jsonl; `begun_ns` is when the drive began. A transaction that the
    account does not know (the run was killed) begins where the one before it ended.
    """
    lines: dict[int, list[Json]] = {}
    for line in progress:
        lines.setdefault(int(line["transaction"]), []).append(line)
    told = {int(t["transaction"]): t for t in ((drive or {}).get("load") or {}).get("transactions") or []}
    if not lines and not told:
        return None
    found: list[Json] = []
    last_ns = begun_ns
    for number in sorted({*lines, *told}):
        marks = lines.get(number, [])
        start_ns = int((told.get(number) or {}).get("start_ns") or last_ns)
        found.append(_transaction(number, told.get(number), marks, (start_ns, begun_ns)))
        last_ns = marks[-1]["t_ns"] if marks else last_ns
    steps = [step for transaction in found for step in transaction.pop("steps")]
    return {
        "transactions": found,
        "committed": sum(1 for t in found if t["state"] == "committed"),
        "rows_committed": sum(t["rows"] for t in found if t["state"] == "committed"),
        "commit_s": _spread([t["commit_s"] for t in found if t["commit_s"] is not None]),
        **_per_mark(steps),
    }


def _transaction(number: int, told: Json | None, lines: Sequence[Json], at: tuple[int, int]) -> Json:
    start_ns, begun_ns = at
    marks = [(int(m["rows"]), (m["t_ns"] - start_ns) / NS_PER_S) for m in lines if m["state"] == "open"]
    end = next((line for line in lines if line["state"] != "open"), None)
    state = str((told or {}).get("state") or (end or {}).get("state") or "lost")
    end_ns = (told or {}).get("end_ns") or (end["t_ns"] if end else None)
    seconds = None if end_ns is None else (end_ns - start_ns) / NS_PER_S
    whole = int((told or {}).get("rows") or (end or {}).get("rows") or 0)
    rows = whole or (marks[-1][0] if marks else 0)
    sent_whole = bool(marks) and marks[-1][0] == rows and state == "committed" and seconds is not None
    return {
        "transaction": number,
        "state": state,
        "rows": rows,
        "start_s": (start_ns - begun_ns) / NS_PER_S,
        "seconds": seconds,
        "rows_per_s": rows / seconds if seconds and state == "committed" else None,
        "commit_s": (seconds or 0.0) - marks[-1][1] if sent_whole else None,
        "marks": [{"rows": r, "t_s": t} for r, t in _thinned([(0, 0.0), *marks])],
        "steps": [(after[0], after[0] - before[0], after[1] - before[1]) for before, after in _pairs(marks)],
    }


def _pairs(marks: Sequence[tuple[int, float]]) -> Iterable[tuple[tuple[int, float], tuple[int, float]]]:
    return pairwise([(0, 0.0), *marks])


def _thinned(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Keep evenly spaced points, the last one always."""
    step = -(-len(points) // MARKS_SHOWN)
    kept = list(points[::step])
    return kept if kept[-1] == points[-1] else [*kept, points[-1]]


def _per_mark(steps: Sequence[tuple[int, int, float]]) -> Json:
    """Return how long one mark's rows took: over all marks, and along the transaction."""
    if not steps:
        return {"mark_rows": None, "per_mark": None, "course": []}
    usual = Counter(rows for _, rows, _ in steps).most_common(1)[0][0]
    whole = [(at, seconds) for at, rows, seconds in steps if rows == usual]
    return {
        "mark_rows": usual,
        "per_mark": _spread([seconds for _, seconds in whole]),
        "course": _course(whole),
    }


def _course(marks: Sequence[tuple[int, float]]) -> list[Json]:
    """Return median and 95th percentile of the time of a mark, by the rows that went in before."""
    places = sorted({at for at, _ in marks})
    width = -(-len(places) // BINS)
    bins = [places[at : at + width] for at in range(0, len(places), width)]
    number = {at: index for index, inside in enumerate(bins) for at in inside}
    held: list[list[float]] = [[] for _ in bins]
    for at, seconds in marks:
        held[number[at]].append(seconds)
    return [
        {"rows": inside[-1], "p50_s": _quantile(values, 50.0), "p95_s": _quantile(values, 95.0)}
        for inside, values in zip(bins, held, strict=True)
    ]


def _spread(values: Sequence[float]) -> Json | None:
    """Return count, median, further percentiles as far as the values support them, and the greatest."""
    if not values:
        return None
    spread: Json = {"count": len(values), "median_s": median(values), "max_s": max(values)}
    return spread | {f"p{p:g}_s": _quantile(values, p) for p in PERCENTILES[1:]}


def _quantile(values: Sequence[float], percentile: float) -> float | None:
    """Return a percentile that occurs among the values; None when too few lie beyond it."""
    if percentile > PERCENTILES[0] and len(values) * (1 - percentile / 100) < SUPPORT:
        return None
    return float(np.quantile(np.asarray(values), percentile / 100, method="inverted_cdf"))

"""Whether a query ran on a GPU, and what that drew, from the lines of the monitor."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from loadstone.summary.intervals import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.results.documents import Sample

AFTER_NS = NS_PER_S
"""A line so soon after a run still tells of it: the driver's utilisation is of the time before a reading."""
SHORTEST_S = 2.0
"""Runs that are shorter hold too few readings for their energy."""
LONGEST_STEP_NS = 5 * NS_PER_S

Mark = Literal["GPU", "CPU"]
Span = tuple[int, int]
"""Begin and end on the monotonic clock, in nanoseconds."""


def mark(monitor: Sequence[Sample], runs: Iterable[Span], *, plan_says: bool | None) -> Mark | None:
    """Return where a query ran; None where its plan does not tell of GPUs.

    "GPU" takes both: the plan says so, and a GPU was seen at work while the query ran.
    """
    if plan_says is None:
        return None
    return "GPU" if plan_says and _busy(monitor, runs) else "CPU"


def energy_j(monitor: Sequence[Sample], span: Span) -> float | None:
    """Return the joules that all GPUs drew between two moments; None where that cannot be told."""
    start_ns, end_ns = span
    if end_ns - start_ns < SHORTEST_S * NS_PER_S:
        return None
    near = [line for line in monitor if start_ns - NS_PER_S <= line.t_ns <= end_ns + AFTER_NS]
    total, known_ns = 0.0, 0.0
    for before, after in pairwise(near):
        length = after.t_ns - before.t_ns
        inside = min(end_ns, after.t_ns) - max(start_ns, before.t_ns)
        drawn = _drawn(before, after, length / NS_PER_S)
        if drawn is not None and inside > 0 and length <= LONGEST_STEP_NS:
            total += drawn * inside / length
            known_ns += inside
    # What is outside the readings drew as much as the rest.
    whole = known_ns / (end_ns - start_ns)
    return total / whole if whole > 0.5 else None  # noqa: PLR2004 - most of the time was seen


def _busy(monitor: Sequence[Sample], runs: Iterable[Span]) -> bool:
    spans = list(runs)
    return any(
        start_ns <= line.t_ns <= end_ns + AFTER_NS
        for line in monitor
        if any((card.utilisation or 0) > 0 for card in line.gpu or [])
        for start_ns, end_ns in spans
    )


def _drawn(before: Sample, after: Sample, seconds: float) -> float | None:
    """Return the joules between two readings: of the cards' counters, else of their power."""
    old, new = (line.gpu or [] for line in (before, after))
    counters = [_sum([card.energy_j for card in cards]) for cards in (old, new)]
    if counters[0] is not None and counters[1] is not None and counters[1] >= counters[0]:
        return counters[1] - counters[0]
    power = [_sum([card.power_w for card in cards]) for cards in (old, new)]
    return None if power[0] is None or power[1] is None else (power[0] + power[1]) / 2 * seconds


def _sum(known: Sequence[float | None]) -> float | None:
    return None if None in known or not known else float(sum(value or 0 for value in known))

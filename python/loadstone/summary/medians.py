"""How sure a median is, of few runs whose spread follows no law: order statistics, and ratios by bootstrap.

The interval of a median is that between two of the sorted values: between the k-th from below and the k-th
from above it lies with probability 1 − 2·P(B < k), B binomial with n draws of one half, whatever the
distribution (H. A. David, H. N. Nagaraja, Order Statistics, section 7.1). Of fewer than six values even the
whole range covers less than 95 %; it is given then, with what it does cover.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from loadstone.results.documents.summary import QueryTimes, Ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95
FEWEST_SURE = 6
"""Values from which the range of all holds the median with 95 %."""
RESAMPLES = 1999
SEED = 20_081_231


@dataclass(frozen=True, slots=True)
class Middle:
    """A median with its interval, and the probability with which that holds the true one."""

    n: int
    median: float
    low: float | None
    """None for a single value, which says nothing of its spread."""
    high: float | None
    coverage: float

    def document(self, runs: Sequence[float]) -> QueryTimes:
        """Return it as it is in summary.json, in seconds; `runs` are the values that it is of."""
        return QueryTimes(
            n=self.n,
            median_s=self.median,
            low_s=self.low,
            high_s=self.high,
            coverage=self.coverage,
            whole_range=self.coverage < CONFIDENCE,
            runs=list(runs),
        )


def middle(values: Sequence[float]) -> Middle | None:
    """Return the median of some values with its 95 % interval; None of no values."""
    if not values:
        return None
    ordered = sorted(values)
    n = len(ordered)
    if n == 1:
        return Middle(1, ordered[0], None, None, 0.0)
    k = 1
    while k < n // 2 and covered(n, k + 1) >= CONFIDENCE:
        k += 1
    return Middle(n, float(median(ordered)), ordered[k - 1], ordered[n - k], covered(n, k))


def covered(n: int, k: int) -> float:
    """Return how surely the median is between the k-th value from below and the k-th from above."""
    return 1 - 2 * sum(math.comb(n, i) for i in range(k)) / (1 << n)


def ratio_of_medians(ours: Sequence[float], base: Sequence[float]) -> Ratio | None:
    """Return ours over the base with its interval: percentile bootstrap of both medians.

    With fewer than six values on a side the interval is that of the ranges: least over largest, largest over
    least. With one there is none.
    """
    if not ours or not base or median(base) <= 0:
        return None
    value = float(median(ours)) / float(median(base))
    fewest = min(len(ours), len(base))
    if fewest == 1 or min(base) <= 0:
        return Ratio(value=value, low=None, high=None, method="one side has a single run: no interval")
    if fewest < FEWEST_SURE:
        words = f"from the ranges of {len(ours)} and {len(base)} runs"
        return Ratio(value=value, low=min(ours) / max(base), high=max(ours) / min(base), method=words)
    rng = np.random.default_rng(SEED)
    drawn = [
        np.median(rng.choice(np.asarray(side, dtype=float), (RESAMPLES, len(side))), axis=1)
        for side in (ours, base)
    ]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(drawn[0] / drawn[1], [tail, 1 - tail])
    method = f"percentile bootstrap of both medians, {RESAMPLES} resamples"
    return Ratio(value=value, low=float(low), high=float(high), method=method)

"""How sure a rate is: batch means over the intervals of a run.

Throughput of neighbouring seconds is correlated (checkpoints, caches, vacuum), so the plain standard error is
too small. Intervals are joined into ever longer batches until neighbouring batch means are no longer
correlated; Student's t over those means gives the interval. Method: A. M. Law, Simulation Modeling and
Analysis, chapter 9 (batch means).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

CONFIDENCE = 0.95
FEWEST_BATCHES = 8
SMALL_CORRELATION = 0.2
STEADY = 1e-6
"""Relative spread below which rates count as one and the same: that of a schedule that was kept."""
SIGMA_OF_MEDIAN_DEVIATION = 1.4826
"""Standard deviation of normal values over their median absolute deviation: 1/Φ⁻¹(3/4)."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95 % confidence interval; `relative_se` is the standard error over the mean."""

    value: float
    low: float
    high: float
    n: int
    batch: int
    degrees_of_freedom: float
    relative_se: float
    method: str


def batch_means(rates: Sequence[float], centre: float) -> Interval | str:
    """Return the 95 % interval around `centre` from the rates of equal intervals, or why there is none."""
    values = np.asarray(rates, dtype=float)
    if len(values) < 3:  # noqa: PLR2004 - two points give a t quantile of 12.7: no information
        return f"only {len(values)} full interval{'' if len(values) == 1 else 's'}; at least 3 are needed"
    batch, means = _uncorrelated_batches(values)
    widen = _widening(means)
    k = len(means)
    se = float(means.std(ddof=1)) / math.sqrt(k) * widen
    half = _quantile(k - 1) * se
    method = f"batch means: {k} batches of {batch} intervals, Student's t, {CONFIDENCE:.0%}"
    if widen > 1:
        method += f", widened by {widen:.2f} for remaining correlation"
    relative = se / centre if centre else 0.0
    return Interval(
        centre, max(0.0, centre - half), centre + half, len(values), batch, k - 1, relative, method
    )


def _quantile(freedom: float) -> float:
    """Return Student's t for the interval's half width."""
    from scipy import special  # noqa: PLC0415 - loading it takes longer than most commands

    return float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2))


def ratio_interval(ours: Interval, base: Interval) -> tuple[float, float, float]:
    """Return (ratio, low, high) of two independent rates: delta method on the logarithm, Welch's freedom."""
    ratio = ours.value / base.value
    a, b = ours.relative_se**2, base.relative_se**2
    if a + b == 0:
        return ratio, ratio, ratio
    freedom = (a + b) ** 2 / (a**2 / ours.degrees_of_freedom + b**2 / base.degrees_of_freedom)
    half = _quantile(freedom) * math.sqrt(a + b)
    return ratio, ratio * math.exp(-half), ratio * math.exp(half)


def drift(rates: Sequence[float]) -> tuple[float, float] | None:
    """Return (relative change from first to last third, p value); None under 9 intervals."""
    values = np.asarray(rates, dtype=float)
    third = len(values) // 3
    if third < 3 or values[:third].mean() <= 0:  # noqa: PLR2004 - three values a side, or a variance means nothing
        return None
    first, last = values[:third], values[-third:]
    change = float(last.mean() / first.mean() - 1)
    from scipy import stats  # noqa: PLC0415 - loading it takes longer than most commands

    if max(first.std(), last.std()) <= STEADY * values.mean():
        return change, 0.0 if abs(change) > STEADY else 1.0
    # From means and spreads: given the values, SciPy warns of a third that is constant.
    old, new = first.mean(), last.mean()
    old_spread, new_spread = first.std(ddof=1), last.std(ddof=1)
    found = stats.ttest_ind_from_stats(old, old_spread, third, new, new_spread, third, equal_var=False)
    return change, float(found.pvalue)


def autocorrelation(values: NDArray[np.float64]) -> float:
    """Lag-one autocorrelation; 0 for a constant series."""
    centred = values - values.mean()
    power = float((centred**2).sum())
    return float((centred[1:] * centred[:-1]).sum()) / power if power else 0.0


def _uncorrelated_batches(values: NDArray[np.float64]) -> tuple[int, NDArray[np.float64]]:
    batch, means = 1, values
    while autocorrelation(means) > SMALL_CORRELATION and len(values) // (batch * 2) >= FEWEST_BATCHES:
        batch *= 2
        # The oldest values are left out, not the newest: warm-up effects are at the beginning.
        kept = values[len(values) % batch :]
        means = kept.reshape(-1, batch).mean(axis=1)
    return batch, means


def _widening(means: NDArray[np.float64]) -> float:
    """How much the standard error grows when the batches still follow an AR(1) process."""
    rho = autocorrelation(means)
    if rho <= SMALL_CORRELATION:
        return 1.0
    rho = min(rho, 0.9)
    return math.sqrt((1 + rho) / (1 - rho))

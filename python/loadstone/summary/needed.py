"""How much more has to be measured until a question is decided, worked out from the spread that was seen.

Every number is for a difference as large as the one seen, found four times in five by a test at 5 % (growth
over steps: nine times in ten at 1 %, the level of the search for a knee). Where less than what matters was
seen, it is for what matters. A spread from few values is uncertain, and so is what is worked out from it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from loadstone.model import MATTERS
from loadstone.summary.medians import FEWEST_SURE
from loadstone.summary.ratios import ALPHA, MOST_REPEATS, LogRatio
from loadstone.summary.statistics import SIGMA_OF_MEDIAN_DEVIATION, autocorrelation

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_STEPS = 10_000
MOST_RUNS = 10_000
_Z_POWER = 0.84
_Z_FOUND = 1.96 + _Z_POWER
"""Standard errors between no difference and one that is found: normal quantiles of 97.5 % and 80 %."""
_Z_GROWTH = 2.58 + 1.28
_OF_MEDIANS = math.pi / 2
"""Variance of a median over that of a mean, of normal values."""
_MOST_CORRELATED = 0.8
_LEAST_SPREAD = 1e-4


def repeats_for(value: float, low: float, high: float, *, repeats: int, paired: bool) -> int | None:
    """Return how many repeats show a ratio like `value`, whose 95 % interval over `repeats` is low to high.

    None for more than a thousand. `paired`: the repeats of both sides were compared in pairs.
    """
    from scipy import special  # noqa: PLC0415 - loading it takes longer than most commands

    freedom = np.array(float((repeats - 1) * (1 if paired else 2)))
    se = (math.log(high) - math.log(low)) / 2 / float(special.stdtrit(freedom, 1 - ALPHA / 2))
    ratio = LogRatio(np.array(math.log(value)), np.array(se), freedom, repeats, paired)
    return ratio.repeats_for(_effect(value))


def runs_for(ours: Sequence[float], base: Sequence[float]) -> int | None:
    """Return how many runs a side show that two medians differ, from at least two runs a side.

    None for more than ten thousand.
    """
    effect = math.log1p(_effect(float(np.median(ours) / np.median(base))))
    variance = _OF_MEDIANS * (_spread(ours) ** 2 + _spread(base) ** 2)
    runs = max(FEWEST_SURE, math.ceil(_Z_FOUND**2 * variance / effect**2))
    return runs if runs <= MOST_RUNS else None


def steps_for(seconds: Sequence[float]) -> int | None:
    """Return how many steps like these show that they grow, if they go on as they do; None if they do not.

    The error of a slope over n steps is s·√(12/n³), with s the scatter of one step, widened for what
    neighbours have in common.
    """
    y, x = np.log(np.asarray(seconds, dtype=float)), np.arange(len(seconds), dtype=float)
    slope, begin = np.polyfit(x, y, 1)
    left = y - slope * x - begin
    if slope <= 0:
        return None
    together = float(np.clip(autocorrelation(left), 0, _MOST_CORRELATED))
    variance = float((left**2).sum()) / (len(y) - 2) * (1 + together) / (1 - together)
    steps = max(len(y) + 1, math.ceil((12 * variance * (_Z_GROWTH / slope) ** 2) ** (1 / 3)))
    return steps if steps <= MOST_STEPS else None


def repeats_for_kappa(value: float, high: float, repeats: int) -> int | None:
    """Return how many repeats show that kappa is above 0, from the upper end of its 95 % interval.

    None for more than a thousand, and where kappa itself was 0.
    """
    if value <= 0:
        return None
    # Half the interval is about 2.5 standard errors: the spread of five to eight points is uncertain.
    wanted = (1 + _Z_POWER / 2.5) * (high - value) / value
    found = max(repeats + 1, math.ceil(repeats * wanted**2))
    return found if found <= MOST_REPEATS else None


def repeats_below(error: float, limit: float, repeats: int) -> int:
    """Return how many repeats bring a scatter of `error` down to a limit, if all of it is chance."""
    return max(repeats + 1, math.ceil(repeats * (error / limit) ** 2))


def _effect(ratio: float) -> float:
    """Return the difference to be found, as a share upwards: the one seen, or what matters."""
    return max(math.exp(abs(math.log(ratio))) - 1, MATTERS)


def _spread(values: Sequence[float]) -> float:
    """Return the standard deviation of the logarithms; of many values without their outliers."""
    logs = np.log(np.asarray(values, dtype=float))
    if len(logs) < FEWEST_SURE:
        return max(float(logs.std(ddof=1)), _LEAST_SPREAD)
    few = len(logs) / (len(logs) - 0.8)  # of few values the median deviation is too small
    return max(
        few * SIGMA_OF_MEDIAN_DEVIATION * float(np.median(np.abs(logs - np.median(logs)))), _LEAST_SPREAD
    )

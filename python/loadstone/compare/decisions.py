"""From ratios to verdicts, on arrays: many comparisons at once, as the simulations of the tests need it.

Primary metrics are adjusted by Holm (S. Holm 1979), so that the chance of any false alarm among the phases of
a comparison is 5 %; the others by Benjamini and Hochberg (1995). "Same" is decided by two one-sided tests at
5 % each, which is the 90 % interval inside the limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from loadstone.summary.ratios import ALPHA

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from loadstone.summary.ratios import LogRatio

ENOUGH_REPEATS = 3
"""Repeats a side, or pairs, from which a verdict is more than indicative."""
CONFIDENCE = 0.95
SAME_CONFIDENCE = 1 - 2 * ALPHA


@dataclass(frozen=True, slots=True)
class Levels:
    """How sure a verdict is: p below which sides differ, confidence of the intervals for small and same."""

    different: float = ALPHA
    small: float = CONFIDENCE
    same: float = SAME_CONFIDENCE


USUAL = Levels()


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return p values adjusted for their number, along the last axis."""
    p = np.asarray(p_values, dtype=float)
    count = p.shape[-1]
    order = np.argsort(p, axis=-1)
    steps = np.take_along_axis(p, order, -1) * (count - np.arange(count))
    return _back(np.minimum(np.maximum.accumulate(steps, axis=-1), 1.0), order)


def benjamini_hochberg(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return q values, along the last axis."""
    p = np.asarray(p_values, dtype=float)
    count = p.shape[-1]
    order = np.argsort(p, axis=-1)
    steps = np.take_along_axis(p, order, -1) * (count / (1.0 + np.arange(count)))
    least = np.minimum.accumulate(steps[..., ::-1], axis=-1)[..., ::-1]
    return _back(np.minimum(least, 1.0), order)


def _back(values: NDArray[np.float64], order: NDArray[np.intp]) -> NDArray[np.float64]:
    found = np.empty_like(values)
    np.put_along_axis(found, order, values, -1)
    return found


def decide(
    ratio: LogRatio,
    adjusted: ArrayLike,
    matters: float,
    *,
    higher_is_better: bool | NDArray[np.bool_],
    levels: Levels = USUAL,
) -> NDArray[np.str_]:
    """Return worse, better, small, same or undecided for each ratio B/A.

    `adjusted` are the p values after adjustment; differences inside ± `matters` do not matter.
    """
    different = np.asarray(adjusted) < levels.different
    limit = np.log1p(matters)
    inside = _inside(ratio, levels.small, limit)
    same = _inside(ratio, levels.same, limit)
    good = (ratio.centre > 0) == np.asarray(higher_is_better)
    return np.select(
        [different & inside, different & good, different, same],
        ["small", "better", "worse", "same"],
        "undecided",
    )


def _inside(ratio: LogRatio, confidence: float, limit: float) -> NDArray[np.bool_]:
    low, high = ratio.ends(confidence)
    return np.asarray((low >= -limit) & (high <= limit))

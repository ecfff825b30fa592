"""When trials in blocks are decided: ln(B/A) a block, looks by Haybittle and Peto, and checks of the set-up.

All functions work on arrays, many experiments at once, so that what they promise can be simulated. Sources:
J. L. Haybittle, Repeated assessment of results in clinical trials of cancer treatment, Br. J. Radiol. 44
(1971); R. Peto and others, Br. J. Cancer 34 (1976); J. L. Hodges and E. L. Lehmann, Estimates of location
based on rank tests (1963); R. A. Fisher's sign-flip permutation, The Design of Experiments (1935).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from loadstone.compare.decisions import Levels, decide, holm
from loadstone.summary.ratios import ALPHA, POWER, of_differences, unpaired

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

LOOKS = (6, 8, 10, 12, 16, 20, 24, 30)
"""Blocks after which it is decided whether more are needed."""
BETWEEN = Levels(different=0.001, small=0.99, same=0.99)
AT_END = Levels(different=0.047, small=0.95, same=0.90)
"""With 0.049, the looks before would bring false alarms to 5.1 %; with this, to 4.9 %."""
INVALID = 0.01
"""A p value of the checks of the set-up (A/A, controls) below which it cannot compare."""
INVALID_BETWEEN = 0.001
"""The same at a look after which more blocks follow."""
FEWEST_TO_DECIDE = 3
_MOST_FLIPPED = 40
"""Blocks up to which all signs are flipped: two lists of 2^20 sums."""
UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Decided:
    """Verdicts, and after how many blocks each was reached (0: not)."""

    verdict: NDArray[np.str_]
    at: NDArray[np.int64]


def sequential(
    differences: Floats, looks: Sequence[int], matters: float, higher: ArrayLike, *, final: bool
) -> Decided:
    """Return the verdicts of phases over all looks so far; `differences` are ln(B/A): (..., phases, blocks).

    `higher`: more is better, for each phase. `final`: no blocks follow, for a reason that has nothing to do
    with the figures; the last look then uses the levels of the end. A verdict stays as it was first reached.
    """
    blocks = differences.shape[-1]
    verdict = np.full(differences.shape[:-1], UNDECIDED, dtype="<U9")
    at = np.zeros(differences.shape[:-1], dtype=np.int64)
    ended = final or blocks >= looks[-1]
    for look in sorted({*(one for one in looks if one <= blocks), *([blocks] if ended else [])}):
        if look < FEWEST_TO_DECIDE and look not in looks:
            continue
        ratio = of_differences(differences[..., :look])
        levels = AT_END if ended and look == blocks else BETWEEN
        adjusted = holm(ratio.p_value())
        found = decide(ratio, adjusted, matters, higher_is_better=np.asarray(higher), levels=levels)
        fresh = (verdict == UNDECIDED) & (found != UNDECIDED)
        verdict, at = np.where(fresh, found, verdict), np.where(fresh, look, at)
    return Decided(verdict, at)


def moved(differences: Floats, *, final: bool) -> NDArray[np.bool_]:
    """Return which figures differ that must not: (..., figures, blocks) → (..., figures).

    The p values are adjusted for the number of figures by Holm.
    """
    p_value = of_differences(differences).p_value()
    return np.asarray(holm(p_value) < (INVALID if final else INVALID_BETWEEN))


@dataclass(frozen=True, slots=True)
class Explained:
    """Which ln(B/A) of a time the machine alone can explain, from `low` to `high`; both 0: none."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]


def explained(controls: Floats, moved_ones: NDArray[np.bool_]) -> Explained:
    """Return what the controls that moved explain; both of shape (..., controls[, blocks]).

    Each piece of work takes longer by a factor between 1 and the one of the control, and so does their sum:
    the far end of the 95 % interval of the control is the most that it explains.
    """
    low, high = of_differences(controls).ends(1 - ALPHA)
    at_least = np.where(moved_ones, np.minimum(low, 0.0), 0.0)
    at_most = np.where(moved_ones, np.maximum(high, 0.0), 0.0)
    return Explained(at_least.min(axis=-1), at_most.max(axis=-1))


def withstands(
    differences: Floats, verdict: NDArray[np.str_], machine: Explained, matters: float, higher: ArrayLike,
    *, final: bool,
) -> NDArray[np.bool_]:  # fmt: skip
    """Return which verdicts of phases stay, whatever share of its move the machine has in them.

    A verdict stays if it is reached as well after taking the most, and the least, that the machine explains
    from each ln(B/A). Undecided stays if the machine explains less than what matters, or less than was seen.
    """
    up = np.asarray(higher)
    low, high = machine.low[..., None], machine.high[..., None]
    ratio, levels = of_differences(differences), AT_END if final else BETWEEN
    stays = np.full(differences.shape[:-1], fill_value=True)
    for share in (np.where(up, -high, low), np.where(up, -low, high)):
        rest = replace(ratio, centre=ratio.centre - share)
        again = decide(rest, holm(rest.p_value()), matters, higher_is_better=up, levels=levels)
        stays &= again == verdict
    most = np.maximum(high, -low)
    open_ = most <= np.maximum(np.log1p(matters), np.abs(ratio.centre))
    return np.where(verdict == UNDECIDED, open_, stays | (most == 0))


def smallest_effect(spread: ArrayLike, blocks: int) -> Floats:
    """Return the difference, as a share, that blocks of this spread of ln(B/A) show four times in five."""
    from scipy import special  # noqa: PLC0415 - loading it takes longer than most commands

    freedom = float(blocks - 1)
    sum_of_t = special.stdtrit(freedom, 1 - ALPHA / 2) + special.stdtrit(freedom, POWER)
    return np.asarray(np.expm1(np.asarray(spread, dtype=float) * float(sum_of_t) / np.sqrt(blocks)))


def blocks_for(effect: float, spread: float, most: int = 1000) -> int | None:
    """Return how many blocks show a difference of this share; None: more than `most`."""
    enough = (n for n in range(2, most + 1) if float(smallest_effect(spread, n)) <= effect)
    return next(enough, None)


def sign_flip_p(differences: Floats) -> float | None:
    """Return the exact two-sided p of the sign-flip permutation test; None: too many blocks.

    It is the share of all 2^n choices of signs whose sum is at least as far from 0 as the one seen. The sums
    of two halves are counted against each other, so that 2^30 need not be listed.
    """
    n = len(differences)
    if not 1 <= n <= _MOST_FLIPPED:
        return None
    size = np.abs(differences)
    least = abs(float(differences.sum())) * (1 - 1e-12) - 1e-300
    half = n // 2
    first, second = _signed_sums(size[:half]), np.sort(_signed_sums(size[half:]))
    above = len(second) - np.searchsorted(second, least - first, side="left")
    below = np.searchsorted(second, -least - first, side="right")
    hits = int(above.sum()) + int(below.sum()) if least > 0 else 2**n
    return min(float(hits) / 2.0**n, 1.0)


def _signed_sums(sizes: Floats) -> Floats:
    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate([sums - size, sums + size])
    return sums


def hodges_lehmann(differences: Floats) -> Floats:
    """Return the median of the means of all pairs of blocks (each with itself too), along the last axis."""
    one, other = np.triu_indices(differences.shape[-1])
    return np.asarray(np.median((differences[..., one] + differences[..., other]) / 2, axis=-1))


def slot_effect(differences: Floats, a_first: NDArray[np.bool_]) -> tuple[float, float] | None:
    """Return how much larger a figure is for whatever runs later in a block, as ln, and the p of that.

    None where blocks have one order only, or one of another order.
    """
    first, second = differences[a_first], differences[~a_first]
    if min(len(first), len(second)) < 2:  # noqa: PLR2004 - a spread needs two
        return None
    found = unpaired(np.exp(second), np.exp(first))
    return float(found.centre) / 2, float(found.p_value())


def is_one_sided(a_first: NDArray[np.bool_]) -> bool:
    """Return whether A ran always before B, or always after it, in several blocks."""
    return len(a_first) > 1 and bool(a_first.all() or not a_first.any())

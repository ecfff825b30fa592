"""B over A from repeats: Student's t on logarithms, by pairs where repeats are paired, else Welch's.

A repeat is one value, however long it ran: seconds inside one run are no sample of runs. All functions work
on arrays, one comparison a row, so that what they promise can be simulated. Sources: B. L. Welch, The
generalization of Student's problem, Biometrika 34 (1947); D. J. Schuirmann, two one-sided tests (1987).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

FEWEST = 2
"""Values a side, or pairs, without which there is no spread."""
ALPHA = 0.05
POWER = 0.80
MOST_REPEATS = 1000
"""As many as `--repeat` takes."""


@dataclass(frozen=True, slots=True)
class LogRatio:
    """ln(B/A) of one comparison or of an array of them: estimate, standard error, degrees of freedom.

    `n` is the number of pairs, or of values on the smaller side.
    """

    centre: NDArray[np.float64]
    se: NDArray[np.float64]
    freedom: NDArray[np.float64]
    n: int
    paired: bool

    def interval(self, confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of the interval of B/A."""
        low, high = self.ends(confidence)
        return np.exp(low), np.exp(high)

    def ends(self, confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of the interval of ln(B/A)."""
        half = _quantile(self.freedom, (1 + confidence) / 2) * self.se
        return self.centre - half, self.centre + half

    def p_value(self) -> NDArray[np.float64]:
        """Return how probable so large a difference is where there is none, two-sided."""
        from scipy import special  # noqa: PLC0415 - loading it takes longer than most commands

        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.abs(self.centre) / self.se
        found = 2 * special.stdtr(self.freedom, -t)
        return np.where(self.se > 0, found, np.where(self.centre == 0, 1.0, 0.0))

    def smallest_effect(self) -> NDArray[np.float64]:
        """Return the difference, as a share, that would have been found four times in five."""
        return np.expm1(self.se * _to_find(self.freedom))

    def repeats_for(self, effect: float) -> int | None:
        """Return how many repeats would find a difference of this share; None for more than 1000."""
        several = np.arange(self.n, MOST_REPEATS + 1)
        se = self.se * np.sqrt(self.n / several)
        freedom = self.freedom * (several - 1) / (self.n - 1)
        enough = np.flatnonzero(np.expm1(se * _to_find(freedom)) <= effect)
        return int(several[enough[0]]) if len(enough) else None


def paired(a: ArrayLike, b: ArrayLike) -> LogRatio:
    """Compare values above 0 in pairs; both of shape (..., pairs), at least two pairs."""
    return of_differences(np.log(np.asarray(b, dtype=float)) - np.log(np.asarray(a, dtype=float)))


def of_differences(differences: NDArray[np.float64]) -> LogRatio:
    """Return the ratio of the ln(B/A) of pairs, of shape (..., pairs), at least two pairs."""
    n = differences.shape[-1]
    se = _spread(differences) / np.sqrt(n)
    centre = differences.mean(axis=-1)
    return LogRatio(centre, se, np.full_like(centre, n - 1.0), n, paired=True)


def unpaired(a: ArrayLike, b: ArrayLike) -> LogRatio:
    """Compare values above 0 of two sides by Welch's test; of shape (..., values), at least two a side."""
    logs = [np.log(np.asarray(side, dtype=float)) for side in (a, b)]
    sizes = [side.shape[-1] for side in logs]
    parts = [_spread(side) ** 2 / size for side, size in zip(logs, sizes, strict=True)]
    whole = parts[0] + parts[1]
    weights = sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.where(whole > 0, whole**2 / weights, sum(sizes) - 2.0)
    centre = logs[1].mean(axis=-1) - logs[0].mean(axis=-1)
    return LogRatio(centre, np.sqrt(whole), freedom, min(sizes), paired=False)


def _spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard deviation; 0 where values differ by less than a sum of them is exact."""
    found = values.std(axis=-1, ddof=1)
    return np.where(found > 1e-12 * (1 + np.abs(values).max(axis=-1)), found, 0.0)


def _to_find(freedom: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the difference, in standard errors, that a two-sided test at 5 % finds four times in five."""
    from scipy import special  # noqa: PLC0415 - loading it takes longer than most commands

    limit = _quantile(freedom, 1 - ALPHA / 2)
    return np.asarray(special.nctdtrinc(freedom, 1 - POWER, limit), dtype=np.float64)


def _quantile(freedom: NDArray[np.float64], probability: float) -> NDArray[np.float64]:
    from scipy import special  # noqa: PLC0415 - loading it takes longer than most commands

    return np.asarray(special.stdtrit(freedom, probability), dtype=np.float64)

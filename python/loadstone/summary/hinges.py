"""Curves that bend: the families that a search for a knee fits, as orthogonal projections.

A curve of the family is  log seconds = a + b·x + c·shape(x − k)  with c ≥ 0, where x runs from 0 to 1 over
the measured rows, k is the bend and `shape` is 0 before it. b is 0 (flat before the bend) or free (a gentle
slope). The shapes stand for what imports do beyond the bend: `exp` grows exponentially, `log` like a power of
the rows, fast at first where its scale is small (random reads of an index that no longer fits into memory),
`quad` sets in softly and grows faster than linearly.

Given k and shape the curve is linear in a, b and c. So all candidates can be tried, for hundreds of resampled
series at once, as one product of matrices (profile least squares; Lerman, Fitting segmented regression models
by grid search, 1980), and no search can end in a local minimum, of which a change point has many.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Kind = Literal["exp", "log", "quad"]
FLOOR = 1e-3
"""Spread of log seconds below which differences mean nothing: a tenth of a percent."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a curve does beyond its bend; `scale` is in units of the measured range."""

    kind: Kind
    scale: float = 1.0

    def __call__(self, beyond: Floats) -> Floats:
        """Return the shape's value so far beyond the bend; 0 before it."""
        t: Floats = np.clip(beyond, 0.0, None) / self.scale
        if self.kind == "exp":
            return t
        return np.log1p(t if self.kind == "log" else t**2)


KNEES = (
    Shape("exp"),
    *(Shape("log", scale) for scale in (0.03, 0.1, 0.3, 1.0)),
    *(Shape("quad", scale) for scale in (0.05, 0.1, 0.2)),
)
STEADY = (Shape("exp"), *(Shape("log", scale) for scale in (0.03, 0.1, 0.3, 1.0)))
"""Growth from the first row on, exponential or like a power. Not `quad`: from nothing it is flat for long."""


@dataclass(frozen=True, slots=True)
class Bend:
    """One curve of a family: where it bends, its shape, and whether it rises before."""

    at: float
    shape: Shape
    sloped: bool

    def design(self, x: Floats) -> Floats:
        """Return the columns 1, x (with a slope), shape: shape (len(x), 2 or 3)."""
        before = [np.ones_like(x), x] if self.sloped else [np.ones_like(x)]
        return np.column_stack([*before, self.shape(x - self.at)])


@dataclass(frozen=True, slots=True)
class Family:
    """All bends × shapes × slopes over the places `x`, ready to be fitted to many series at once.

    Series are columns of Y, shape (len(x), series). Criteria are n·log(residual sum of squares) plus
    log(n) for each free coefficient (BIC up to constants).
    """

    x: Floats
    bends: Floats
    shapes: Sequence[Shape]
    slopes: Sequence[bool]
    _parts: list[tuple[Floats, Floats]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        """Orthogonalise each last column against those before it, once."""
        for sloped in self.slopes:
            base = np.column_stack([np.ones_like(self.x), self.x] if sloped else [np.ones_like(self.x)])
            before, _ = np.linalg.qr(base)
            last = np.stack([shape(self.x - bend) for bend in self.bends for shape in self.shapes])
            last -= (last @ before) @ before.T
            last /= np.maximum(np.linalg.norm(last, axis=1, keepdims=True), 1e-9)
            self._parts.append((before, last))

    def profile(self, series: Floats) -> Floats:
        """Return the best criterion of each bend for each series, shape (bends, series)."""
        found = [
            self._criterion(left, gains.max(axis=1), before.shape[1])
            for before, left, gains in self._gains(series)
        ]
        least: Floats = np.minimum.reduce(found)
        return least

    def best(self, one: Floats) -> tuple[Bend, float]:
        """Return the curve with the least criterion for one series, and that criterion."""
        found = []
        for sloped, (before, left, gains) in zip(self.slopes, self._gains(one[:, None]), strict=True):
            criteria = self._criterion(left, gains[:, :, 0], before.shape[1])
            bend, shape = np.unravel_index(int(criteria.argmin()), criteria.shape)
            curve = Bend(float(self.bends[bend]), self.shapes[int(shape)], sloped)
            found.append((curve, float(criteria[bend, shape])))
        return min(found, key=lambda pair: pair[1])

    def _gains(self, series: Floats) -> list[tuple[Floats, Floats, Floats]]:
        """Per slope: base, squares left by it, and what each (bend, shape, series) takes away, as a root."""
        found = []
        for before, last in self._parts:
            rest = series - before @ (before.T @ series)
            gains = np.maximum(last @ rest, 0.0).reshape(len(self.bends), len(self.shapes), -1)
            found.append((before, (rest**2).sum(axis=0), gains))
        return found

    def _criterion(self, left: Floats, gain: Floats, coefficients: int) -> Floats:
        return criterion(left - gain**2, len(self.x), coefficients + 1)


def criterion(squares: Floats, n: int, coefficients: int) -> Floats:
    """Return n·log(squares) + coefficients·log(n); squares below what `FLOOR` allows count as that."""
    found: Floats = n * np.log(np.maximum(squares, n * FLOOR**2)) + coefficients * np.log(n)
    return found

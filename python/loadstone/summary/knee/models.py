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
_TINY = 1e-12
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

    @property
    def bounds(self) -> tuple[float, float]:
        """Within which c may be chosen: `quad` grows with the square of the rows, as its scale says."""
        return (0.7, 1.4) if self.kind == "quad" else (0.0, np.inf)


KNEES = (
    Shape("exp"),
    *(Shape("log", scale) for scale in (0.03, 0.1, 0.3, 1.0)),
    *(Shape("quad", scale) for scale in (0.03, 0.06, 0.11, 0.2, 0.35)),
)
STEADY = KNEES[:5]
"""Growth from the first row on, exponential or like a power. Not `quad`: from nothing it is flat for long."""


@dataclass(frozen=True, slots=True)
class SegmentedCurve:
    """One curve of a family: where it bends, its shape, and whether it rises before."""

    at: float
    shape: Shape
    sloped: bool

    @property
    def free(self) -> int:
        """How many coefficients are chosen, the bend's place among them."""
        return 4 if self.sloped else 3

    def fit(self, x: Floats, y: Floats) -> Floats:
        """Return a, b (when it rises before) and c by least squares."""
        before, grown = self._before(x), self.shape(x - self.at)
        alone = grown - before @ _least(before, grown)
        c = np.clip(alone @ y / max(float(alone @ alone), _TINY), *self.shape.bounds)
        return np.append(_least(before, y - c * grown), c)

    def curve(self, x: Floats, coefficients: Floats) -> Floats:
        """Return log seconds at the places `x`."""
        level: Floats = self._before(x) @ coefficients[:-1] + coefficients[-1] * self.shape(x - self.at)
        return level

    def _before(self, x: Floats) -> Floats:
        return np.column_stack([np.ones_like(x), x] if self.sloped else [np.ones_like(x)])


def _least(columns: Floats, y: Floats) -> Floats:
    return np.asarray(np.linalg.lstsq(columns, y, rcond=None)[0], dtype=float)


@dataclass(frozen=True, slots=True)
class _Part:
    """The curves of one slope: what is before the bend, and the shapes without their share of that."""

    before: Floats
    shapes: Floats
    """One a row, over bends and then shapes."""
    squares: Floats
    """Sums of squares, shape (bends, shapes, 1)."""


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
    _parts: list[_Part] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        """Orthogonalise each shape against what is before it, once."""
        shapes = np.stack([shape(self.x - bend) for bend in self.bends for shape in self.shapes])
        for sloped in self.slopes:
            base = np.column_stack([np.ones_like(self.x), self.x] if sloped else [np.ones_like(self.x)])
            before, _ = np.linalg.qr(base)
            left = shapes - (shapes @ before) @ before.T
            squares = (left**2).sum(axis=1).reshape(len(self.bends), len(self.shapes), 1)
            self._parts.append(_Part(before, left, np.maximum(squares, _TINY)))

    def profile(self, series: Floats) -> Floats:
        """Return the best criterion of each bend for each series, shape (bends, series)."""
        found = []
        for part in self._parts:
            left, gains = self._gains(part, series)
            found.append(self._criterion(left - gains.max(axis=1), part))
        least: Floats = np.minimum.reduce(found)
        return least

    def best(self, one: Floats) -> tuple[SegmentedCurve, float]:
        """Return the curve with the least criterion for one series, and that criterion."""
        found = []
        for sloped, part in zip(self.slopes, self._parts, strict=True):
            left, gains = self._gains(part, one[:, None])
            criteria = self._criterion(left - gains[:, :, 0], part)
            bend, shape = np.unravel_index(int(criteria.argmin()), criteria.shape)
            curve = SegmentedCurve(float(self.bends[bend]), self.shapes[int(shape)], sloped)
            found.append((curve, float(criteria[bend, shape])))
        return min(found, key=lambda pair: pair[1])

    def _gains(self, part: _Part, series: Floats) -> tuple[Floats, Floats]:
        """Return the squares that are left before the bend, and by how much each shape lessens them."""
        rest = series - part.before @ (part.before.T @ series)
        shared = (part.shapes @ rest).reshape(len(self.bends), len(self.shapes), -1)
        low, high = (np.array([shape.bounds[end] for shape in self.shapes])[:, None] for end in (0, 1))
        c = np.clip(shared / part.squares, low, high)
        return (rest**2).sum(axis=0), c * (2 * shared - c * part.squares)

    def _criterion(self, squares: Floats, part: _Part) -> Floats:
        return criterion(squares, len(self.x), part.before.shape[1] + 2)


def criterion(squares: Floats, n: int, coefficients: int) -> Floats:
    """Return n·log(squares) + coefficients·log(n); squares below what `FLOOR` allows count as that."""
    found: Floats = n * np.log(np.maximum(squares, n * FLOOR**2)) + coefficients * np.log(n)
    return found

"""The knee: the number of rows from which steps of an import take longer.

Method. Seconds are taken as logarithms, and single slow steps (checkpoints, autovacuum) are drawn in to two
robust standard deviations of their running median (a Hampel filter). Then curves that bend are fitted
(`models.py`) beside a constant and beside growth from the first row on; the bend's place is that of the least
criterion, and soft-L1 regression on the untouched logarithms (scipy.optimize.least_squares) settles it within
one step of the grid, together with the curve.

Everything said about chance comes from the bootstrap. Residuals of the fitted knee, slow steps included, are
drawn in circular blocks of about n^(1/3) and put onto the null's curve, and the whole estimation is repeated,
filter included. Residuals and not pairs, for the places of the steps are no sample: drawing pairs would leave
holes where the knee is. Blocks, for a checkpoint or a vacuum slows neighbours together.

A knee is said to be found when it explains the steps better than a constant and better than steady growth do,
each at level 1 %, and the last step takes at least a quarter longer than one at the knee. The 95 % interval
spans the percentiles of the resampled knees and all knees whose criterion is within the 95 % quantile that
the bootstrap gives to its excess at the true place. It never ends within a step of the knee, for a step's
seconds are a mean over its rows. Simulations check all of this: tests/summary/test_knee.py.

Growth that accelerates from nothing, such as with the square of the rows, has no place at which it begins; it
is reported as a knee with a wide interval, or as steady growth.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from loadstone.model import FEWEST_STEPS
from loadstone.results.documents.summary import KneeFigures, KneePoint
from loadstone.summary.knee.models import FLOOR, KNEES, STEADY, Family, criterion
from loadstone.summary.statistics import SIGMA_OF_MEDIAN_DEVIATION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

CONFIDENCE = 0.95
LEVEL = 0.01
LEAST_GROWTH = 1.25
"""Growth up to the last step below which nobody would divide a table."""
RESAMPLES = 499
SEED = 20_181_018
BENDS = 60
"""Most places that are tried for a knee."""
ENDS = 3
"""Steps before the first and from the last place that is tried on: two could be a chance."""
WINDOW = 5
DRAWN_IN = 2.0
METHOD = (
    "piecewise curve with a change point on the logarithm of the seconds of each step, single slow "
    f"steps limited to {DRAWN_IN:g} standard deviations; interval and tests by block bootstrap of the "
    f"residuals ({RESAMPLES} resamples), tests at level {100 * LEVEL:g} %"
)

__all__ = ["FEWEST_STEPS", "METHOD", "Knee", "NoKnee", "find_knee", "rows_text"]


@dataclass(frozen=True, slots=True)
class Knee:
    """Steps take longer from `rows` on, with its 95 % interval; `curve` is what was fitted, at each step."""

    rows: float
    low: float
    high: float
    flat_seconds: float
    """Seconds of a step at the knee."""
    end_seconds: float
    """Fitted seconds of the last step."""
    slope_seconds_per_million: float
    """Seconds that a step takes longer for each million rows beyond the knee, on average."""
    p_constant: float
    p_steady: float
    steps: int
    curve: tuple[tuple[float, float], ...]

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        return (
            f"Import starts to slow down at {rows_text(self.rows)} rows ({100 * CONFIDENCE:g} % interval "
            f"{rows_text(self.low)} to {rows_text(self.high)})."
        )

    @property
    def evidence(self) -> str:
        """Why chance does not explain it."""
        return (
            f"Over {self.steps} steps a knee explains the seconds better than a constant "
            f"(p = {self.p_constant:.3f}) and than steady growth (p = {self.p_steady:.3f}); the last step "
            f"takes {self.end_seconds / self.flat_seconds:.3g} times as long as one at the knee."
        )

    def document(self) -> KneeFigures:
        """Return the knee as it is in summary.json."""
        told = {**asdict(self), "curve": [KneePoint(rows=r, seconds=s) for r, s in self.curve]}
        return KneeFigures(
            found=True,
            outcome="knee",
            confidence=CONFIDENCE,
            sentence=self.sentence,
            evidence=self.evidence,
            method=METHOD,
            **told,
        )


@dataclass(frozen=True, slots=True)
class NoKnee:
    """No knee was found, and why."""

    outcome: Literal["none", "steady", "unclear", "too_few"]
    reason: str
    """What was found instead, in words."""
    up_to_rows: float
    """Rows before the last step that was looked at."""
    flat_seconds: float | None
    """Median seconds of a step; None where they grow, or there are none."""
    steps: int
    evidence: str = ""

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        return self.reason

    def document(self) -> KneeFigures:
        """Return the finding as it is in summary.json."""
        return KneeFigures(found=False, method=METHOD, sentence=self.sentence, **asdict(self))


def find_knee(rows_before: Sequence[float], seconds: Sequence[float]) -> Knee | NoKnee:
    """Look for the number of rows from which steps take longer.

    `rows_before` are the rows in the table before each step, ascending; `seconds` what equally large steps
    took. Deterministic. Raises ValueError for places that do not ascend and for seconds that are not above 0.
    """
    rows, taken = np.asarray(rows_before, dtype=float), np.asarray(seconds, dtype=float)
    _check(rows, taken)
    if len(rows) < FEWEST_STEPS:
        reason = f"A knee cannot be searched for: that needs {FEWEST_STEPS} steps, and there are {len(rows)}."
        return NoKnee("too_few", reason, float(rows[-1]) if len(rows) else 0.0, None, len(rows))
    return _Search(rows, np.log(taken)).outcome()


def rows_text(rows: float) -> str:
    """Return a number of rows as the report writes it: `50 M`, `120,000`, `1.25 billion`."""
    for size, unit in ((1e9, "billion"), (1e6, "M")):
        if abs(rows) >= size:
            return f"{float(f'{rows / size:.3g}'):g} {unit}"
    return f"{float(f'{rows:.3g}'):,.0f}"


def _check(rows: Floats, seconds: Floats) -> None:
    if len(rows) != len(seconds) or not np.isfinite(rows).all() or not (np.diff(rows) > 0).all():
        message = "each step needs its rows before, ascending"
        raise ValueError(message)
    if not (np.isfinite(seconds) & (seconds > 0)).all():
        message = "the seconds of a step must be above 0"
        raise ValueError(message)


def _drawn_in(series: Floats) -> Floats:
    """Draw slow steps in, towards the running median along the first axis."""
    off = series - _running_median(series)
    # The median of five holds a share of the value itself: 1.3 makes up for it.
    spread = np.maximum(1.3 * SIGMA_OF_MEDIAN_DEVIATION * np.median(np.abs(off), axis=0), FLOOR * WINDOW)
    return series - off + np.clip(off, -DRAWN_IN * spread, DRAWN_IN * spread)


def _running_median(series: Floats) -> Floats:
    """Return the median of each value's window; at the ends, that of the outermost window along its slope."""
    from scipy import ndimage  # noqa: PLC0415 - loading it takes longer than most commands

    middle: Floats = ndimage.median_filter(series, size=(WINDOW, 1), mode="nearest")
    middle[: WINDOW // 2] = _along_slope(series[:WINDOW])[: WINDOW // 2]
    middle[-(WINDOW // 2) :] = _along_slope(series[-WINDOW:])[-(WINDOW // 2) :]
    return middle


def _along_slope(window: Floats) -> Floats:
    """Return a robust line through each window (Theil and Sen): growth at an end is no outlier."""
    first, second = np.triu_indices(len(window), 1)
    slopes = np.median((window[second] - window[first]) / (second - first)[:, None], axis=0)
    places = np.arange(len(window))[:, None]
    line: Floats = np.median(window - slopes * places, axis=0) + slopes * places
    return line


class _Search:
    """One series looked at: its fits, and what resampling says of them."""

    def __init__(self, rows: Floats, y: Floats) -> None:
        self.rows, self.y, self.n = rows, y, len(y)
        self.x = (rows - rows[0]) / (rows[-1] - rows[0])
        self.bends = np.linspace(self.x[ENDS - 1], self.x[-ENDS], min(BENDS, 2 * self.n))
        self.knees = Family(self.x, self.bends, KNEES, (False, True))
        self.steady = Family(self.x, np.zeros(1), STEADY, (False,))
        self.seen = _drawn_in(y[:, None])[:, 0]
        self.bend, self.with_knee = self.knees.best(self.seen)
        self.fitted = self.bend.curve(self.x, self.bend.fit(self.x, self.seen))
        self.noise = self._noise()

    def outcome(self) -> Knee | NoKnee:
        """Decide between a knee, steady growth and neither."""
        growth, without = self.steady.best(self.seen)
        grown = growth.curve(self.x, growth.fit(self.x, self.seen))
        flat = np.full(self.n, np.median(self.seen))
        constant = float(self._constant(self.seen[:, None])[0])
        shaken = _drawn_in(flat[:, None] + self.noise)
        level = self._constant(shaken)
        p_constant = _share(level - self.knees.profile(shaken).min(axis=0), constant - self.with_knee)
        p_grows = _share(level - self.steady.profile(shaken)[0], constant - without)
        shaken = _drawn_in(grown[:, None] + self.noise)
        excess = self.steady.profile(shaken)[0] - self.knees.profile(shaken).min(axis=0)
        p_steady = _share(excess, without - self.with_knee)
        ratio = float(np.exp(grown[-1] - grown[0]))
        if max(p_constant, p_steady) <= LEVEL:
            found = self._knee(p_constant, p_steady)
            if found.end_seconds >= LEAST_GROWTH * found.flat_seconds:
                return found
        if p_grows <= LEVEL and ratio >= LEAST_GROWTH:
            return self._grows(ratio, p_grows, p_steady)
        return self._unclear(ratio, p_grows) if ratio >= LEAST_GROWTH else self._none(p_constant, ratio)

    def _constant(self, series: Floats) -> Floats:
        return criterion(((series - series.mean(axis=0)) ** 2).sum(axis=0), self.n, 1)

    def _noise(self) -> Floats:
        """Residuals of the knee in circular blocks, shape (n, RESAMPLES), widened for what was fitted."""
        left = self.y - self.fitted
        left = (left - np.median(left)) * np.sqrt(self.n / (self.n - self.bend.free))
        length = max(1, round(self.n ** (1 / 3)))
        rng = np.random.default_rng(SEED)
        starts = rng.integers(0, self.n, (RESAMPLES, -(-self.n // length)))
        at = (starts[:, :, None] + np.arange(length)).reshape(RESAMPLES, -1)[:, : self.n] % self.n
        drawn: Floats = left[at].T
        return drawn

    def _knee(self, p_constant: float, p_steady: float) -> Knee:
        low, high = self._interval()
        bend, curve = self._settled()
        at_knee = float(np.exp(np.interp(bend, self.x, curve)))
        end = float(np.exp(curve[-1]))
        million = (1 - bend) * (self.rows[-1] - self.rows[0]) / 1e6
        points = tuple(zip(self.rows.tolist(), np.exp(curve).tolist(), strict=True))
        return Knee(
            rows=self._rows_at(bend),
            low=self._rows_at(min(low, bend)),
            high=self._rows_at(max(high, bend)),
            flat_seconds=at_knee,
            end_seconds=end,
            slope_seconds_per_million=(end - at_knee) / million,
            p_constant=p_constant,
            p_steady=p_steady,
            steps=self.n,
            curve=points,
        )

    def _interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the bend, in units of x."""
        profiles = self.knees.profile(_drawn_in(self.fitted[:, None] + self.noise))
        tail = (1 - CONFIDENCE) / 2
        low, high = np.quantile(self.bends[profiles.argmin(axis=0)], [tail, 1 - tail])
        true = int(np.abs(self.bends - self.bend.at).argmin())
        allowed = np.quantile(profiles[true] - profiles.min(axis=0), CONFIDENCE)
        own = self.knees.profile(self.seen[:, None])[:, 0]
        near = self.bends[own - own.min() <= allowed]
        step = float(np.median(np.diff(self.x)))
        return min(low, near[0], self.bend.at - step), max(high, near[-1], self.bend.at + step)

    def _settled(self) -> tuple[float, Floats]:
        """Return the bend between its neighbours on the grid, and the curve, by robust regression."""
        from scipy import optimize  # noqa: PLC0415 - loading it takes longer than most commands

        bend, width = self.bend, float(self.bends[1] - self.bends[0])
        spread = max(SIGMA_OF_MEDIAN_DEVIATION * float(np.median(np.abs(self.seen - self.fitted))), FLOOR)

        def left(free: Floats) -> Floats:
            return replace(bend, at=float(free[-1])).curve(self.x, free[:-1]) - self.y

        start = np.append(bend.fit(self.x, self.seen), bend.at)
        lowest, highest = np.full(len(start), -np.inf), np.full(len(start), np.inf)
        lowest[-2:], highest[-2:] = (
            (bend.shape.bounds[0] - 1e-9, bend.at - width),
            (bend.shape.bounds[1] + 1e-9, bend.at + width),
        )
        found = optimize.least_squares(left, start, bounds=(lowest, highest), loss="soft_l1", f_scale=spread)
        return float(found.x[-1]), left(found.x) + self.y

    def _rows_at(self, x: float) -> float:
        return float(self.rows[0] + x * (self.rows[-1] - self.rows[0]))

    def _grows(self, ratio: float, p_grows: float, p_steady: float) -> NoKnee:
        reason = (
            f"Import slows down steadily from the first row on: in the fit, the last of {self.n} steps "
            f"takes {ratio:.3g} times as long as the first, and a knee fits no better than chance "
            f"(p = {p_steady:.2g})."
        )
        evidence = f"Against a constant: p = {p_grows:.3f}."
        return NoKnee("steady", reason, float(self.rows[-1]), None, self.n, evidence)

    def _unclear(self, ratio: float, p_grows: float) -> NoKnee:
        reason = (
            f"No knee was found up to {rows_text(float(self.rows[-1]))} rows, but the steps scatter too "
            f"much to rule one out: in the fit, the last step takes {ratio:.3g} times as long as the "
            f"first (p = {p_grows:.2g})."
        )
        return NoKnee("unclear", reason, float(self.rows[-1]), None, self.n)

    def _none(self, p_constant: float, ratio: float) -> NoKnee:
        reason = f"No knee up to {rows_text(float(self.rows[-1]))} rows."
        evidence = (
            f"Over {self.n} steps a knee explains the seconds no better than chance (p = "
            f"{p_constant:.2g}), or changes them by less than {100 * (LEAST_GROWTH - 1):g} %; in the "
            f"fit, the last step takes {ratio:.3g} times as long as the first."
        )
        middle = float(np.exp(np.median(self.y)))
        return NoKnee("none", reason, float(self.rows[-1]), middle, self.n, evidence)


def _share(resampled: Floats, observed: float) -> float:
    """Return the p value: how often chance gives at least as much."""
    return float((1 + np.count_nonzero(resampled >= observed)) / (1 + len(resampled)))

"""The universal scalability law: throughput over the number of clients, its peak, and how sure both are.

X(N) = lambda·N / (1 + sigma·(N − 1) + kappa·N·(N − 1)), where lambda is what one client gets, sigma the share
that waits for its turn (contention, 0 to 1) and kappa what agreeing with each other costs (coherency, at
least 0). Its peak is at N* = sqrt((1 − sigma) / kappa). N. J. Gunther, Guerrilla Capacity Planning, chapters
4 to 6.

The law is fitted to relative errors by scipy.optimize.curve_fit. Intervals come from a parametric bootstrap:
relative errors are drawn with the spread of the residuals, which is itself drawn as n − 3 degrees of freedom
allow, and the law is fitted again; N / X(N) is linear in 1, N and N·(N − 1), so non-negative least squares
(scipy.optimize.nnls) does that without starting points, and keeps sigma and kappa within their bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from loadstone.results.documents.summary import FittedLaw, FittedRange, ScalingCurvePoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

CONFIDENCE = 0.95
FEWEST_SIZES = 5
"""Different numbers of clients below which three coefficients and their errors cannot be told."""
POOR = 0.1
"""Root mean square of the relative residuals from which the law does not describe the measurements."""
NEAR = 1.5
"""How far beyond the largest number of clients that was measured a peak may lie to be stated."""
RESAMPLES = 499
SEED = 20_070_417
POINTS = 48
METHOD = (
    "universal scalability law, least squares of relative errors (scipy.optimize.curve_fit); "
    f"{100 * CONFIDENCE:g} % intervals by parametric bootstrap ({RESAMPLES} resamples)"
)


@dataclass(frozen=True, slots=True)
class Range:
    """A figure with its 95 % interval; None where the interval has no end."""

    value: float
    low: float
    high: float | None


@dataclass(frozen=True, slots=True)
class Law:
    """The coefficients, the peak where there is one within sight, and how well the law fits."""

    lambda_: Range
    """Throughput of one client, per second."""
    sigma: Range
    kappa: Range
    peak_n: Range | None
    peak_tps: Range | None
    r2: float
    relative_error: float
    """Root mean square of the relative residuals."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """What came of a fit: the law, or the reason why there is none; `curve` is (n, tps, low, high)."""

    law: Law | None
    reason: str | None
    """Why no law, or no peak, is stated."""
    sentence: str
    curve: tuple[tuple[float, float, float, float], ...] = ()

    def curve_points(self) -> list[ScalingCurvePoint]:
        """Return the curve as it is in summary.json."""
        return [ScalingCurvePoint(n=n, tps=tps, low=low, high=high) for n, tps, low, high in self.curve]

    def fitted(self) -> FittedLaw | None:
        """Return the law as it is in summary.json."""
        if self.law is None:
            return None
        return FittedLaw(
            lambda_=_range_of(self.law.lambda_),
            sigma=_range_of(self.law.sigma),
            kappa=_range_of(self.law.kappa),
            peak_n=None if self.law.peak_n is None else _range_of(self.law.peak_n),
            peak_tps=None if self.law.peak_tps is None else _range_of(self.law.peak_tps),
            r2=self.law.r2,
            relative_error=self.law.relative_error,
        )


def _range_of(found: Range) -> FittedRange:
    return FittedRange(value=found.value, low=found.low, high=found.high)


def fit_usl(n: Sequence[float], tps: Sequence[float]) -> Scaling:
    """Fit the law to throughputs (per second) at numbers of clients (from 1); equal numbers may repeat.

    Deterministic. Raises ValueError for numbers below 1 and throughputs that are not above 0.
    """
    clients, rates = np.asarray(n, dtype=float), np.asarray(tps, dtype=float)
    if len(clients) != len(rates) or (clients < 1).any() or not (rates > 0).all():
        message = "the law needs numbers of clients from 1 and throughputs above 0"
        raise ValueError(message)
    different = len(set(clients.tolist()))
    if different < FEWEST_SIZES:
        return _without(
            f"The scalability law needs {FEWEST_SIZES} different numbers of clients, and there are "
            f"{different}."
        )
    found = _fitted(clients, rates)
    error = _error(clients, rates, found)
    if error > POOR:
        return _without(
            f"The scalability law does not describe these measurements: it is off by {100 * error:.3g} "
            f"% on average, and the limit is {100 * POOR:g} %."
        )
    return _result(clients, rates, found, error)


def relative_error(n: Sequence[float], tps: Sequence[float]) -> float:
    """Return how far rates are off the law that fits them best: root mean square of relative errors."""
    clients, rates = np.asarray(n, dtype=float), np.asarray(tps, dtype=float)
    return _error(clients, rates, _fitted(clients, rates))


def is_level(fit: FittedLaw, top: float) -> bool:
    """Return whether a peak within reach of `top` clients may be chance: the interval of kappa contains 0."""
    at_peak = peak(fit.sigma.value, fit.kappa.value)
    return fit.peak_n is None and 1 <= at_peak <= NEAR * top


def _error(clients: Floats, rates: Floats, found: Floats) -> float:
    return float(np.sqrt(np.mean((rates / law(clients, *found) - 1) ** 2)))


def law(n: Floats, lambda_: float, sigma: float, kappa: float) -> Floats:
    """Return X(N), per second."""
    return lambda_ * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def peak(sigma: float, kappa: float) -> float:
    """Return N*; infinite without coherency cost."""
    return float(np.sqrt((1 - sigma) / kappa)) if kappa > 0 else float("inf")


def _without(reason: str) -> Scaling:
    return Scaling(None, reason, reason)


def _fitted(clients: Floats, rates: Floats) -> Floats:
    from scipy import optimize  # noqa: PLC0415 - loading it takes longer than most commands

    start = np.clip(_linear(clients, rates), [1e-9, 0, 0], [np.inf, 1, np.inf])
    found, _ = optimize.curve_fit(
        law,
        clients,
        rates,
        p0=start,
        sigma=rates,
        bounds=([0, 0, 0], [np.inf, 1, np.inf]),
        x_scale=np.maximum(start, [1e-9, 1e-3, 1e-6]),
    )
    return np.asarray(found, dtype=np.float64)


def _linear(clients: Floats, rates: Floats) -> Floats:
    """Return lambda, sigma and kappa by non-negative least squares of N / X over 1, N and N·(N − 1)."""
    from scipy import optimize  # noqa: PLC0415 - loading it takes longer than most commands

    columns = np.column_stack([np.ones_like(clients), clients, clients * (clients - 1)])
    # Weighted by X / N: a relative error counts alike everywhere.
    weighted = columns * (rates / clients)[:, None]
    scale = np.linalg.norm(weighted, axis=0)
    (alone, waiting, agreeing), _ = optimize.nnls(weighted / scale, np.ones_like(rates))
    alone, waiting, agreeing = np.array([alone, waiting, agreeing]) / scale
    whole = max(alone + waiting, 1e-12)
    return np.array([1 / whole, waiting / whole, agreeing / whole])


def _resampled(clients: Floats, rates: Floats, found: Floats) -> Floats:
    """Return refitted coefficients, shape (RESAMPLES, 3)."""
    fitted = law(clients, *found)
    freedom = len(rates) - 3
    spread = float(np.sqrt(np.sum(np.log(rates / fitted) ** 2) / freedom))
    rng = np.random.default_rng(SEED)
    spreads = spread * np.sqrt(freedom / rng.chisquare(freedom, RESAMPLES))
    errors = np.exp(rng.normal(size=(RESAMPLES, len(rates))) * spreads[:, None])
    return np.stack([_linear(clients, fitted * error) for error in errors])


def _result(clients: Floats, rates: Floats, found: Floats, error: float) -> Scaling:
    again = _resampled(clients, rates, found)
    lambda_, sigma, kappa = (_range(value, again[:, at]) for at, value in enumerate(found))
    places = np.array([peak(s, k) for _, s, k in again])
    at_peak = peak(found[1], found[2])
    top = float(clients.max())
    # Where kappa may be 0, nothing shows that throughput ever falls.
    seen = 1 <= at_peak <= NEAR * top and kappa.low > 0
    peak_n = peak_tps = None
    if seen:
        heights = [
            law(np.array([max(1.0, min(p, 1e9))]), *one)[0] for p, one in zip(places, again, strict=True)
        ]
        peak_n = _range(at_peak, places)
        peak_tps = _range(float(law(np.array([at_peak]), *found)[0]), np.array(heights))
    total = float(np.sum((rates - rates.mean()) ** 2))
    r2 = 1 - float(np.sum((rates - law(clients, *found)) ** 2)) / total if total else 1.0
    told = Law(lambda_, sigma, kappa, peak_n, peak_tps, r2, error)
    reason = None if seen else _no_peak(at_peak, top, float(found[1]))
    sentence = _peak_sentence(told) if seen else str(reason)
    return Scaling(told, reason, sentence, _band(clients, found, again, at_peak if seen else top))


def _range(value: float, again: Floats) -> Range:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(again, [tail, 1 - tail], method="nearest")
    return Range(float(value), float(min(low, value)), float(max(high, value)) if np.isfinite(high) else None)


def _no_peak(at_peak: float, top: float, sigma: float) -> str:
    if at_peak < 1 or sigma >= 1 - 1e-6:
        return "More clients bring nothing: all of the work is serialised (sigma = 1)."
    if at_peak <= NEAR * top:
        return f"Level at {top:g}: the interval of kappa contains 0, so no peak is shown."
    return f"Still rising at {top:g}: no peak within {NEAR:g} times the measured clients."


def _peak_sentence(told: Law) -> str:
    if told.peak_n is None or told.peak_tps is None:
        return ""
    ends = [
        f"{end:.3g}" if end is not None else "no upper limit" for end in (told.peak_n.low, told.peak_n.high)
    ]
    return (
        f"The peak is at {told.peak_n.value:.3g} clients ({100 * CONFIDENCE:g} % interval {ends[0]} to "
        f"{ends[1]}), with {told.peak_tps.value:,.4g} a second."
    )


def _band(
    clients: Floats, found: Floats, again: Floats, far: float
) -> tuple[tuple[float, float, float, float], ...]:
    places = np.geomspace(clients.min(), max(clients.max(), far), POINTS)
    tail = (1 - CONFIDENCE) / 2
    curves = np.stack([law(places, *one) for one in again])
    low, high = np.quantile(curves, [tail, 1 - tail], axis=0)
    middle = law(places, *found)
    low, high = np.minimum(low, middle), np.maximum(high, middle)
    return tuple(zip(places.tolist(), middle.tolist(), low.tolist(), high.tolist(), strict=True))

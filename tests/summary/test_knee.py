"""The knee: known ones are found, flat and steady series have none, published curves are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support.summaries import plain

from loadstone.summary.knee.knee import FEWEST_STEPS, LEAST_GROWTH, Knee, NoKnee, find_knee, rows_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

STEP = 1_000_000
SIMULATIONS = 200
WITHOUT = 100
"""Simulations of series that have no knee."""
SHAPES = ("exponential", "linear", "power", "square", "saturating")
PUBLISHED = {
    name: [float(value) for value in text.split()]
    for name, text in {
        "none, RAID": "22 22 22 23 22 23 25 22 25 22 23 22 22 22 22 22 23 23 23 23 22 22 22 22 22 22 23 22 "
        "22 22 23 23 23 22 23 22 23",
        "1, RAID": "61 79 71 72 74 124 76 78 156 78 130 129 79 202 80 221 209 113 247 259 271 389 396 509 "
        "567 719 875 1036 974 1016 1435 1584 1973 1860 2079 2118 7809",
        "3, RAID": "153 214 182 275 192 324 192 362 390 419 562 1214 1914 2539 3283 4169 4548 5000 5463 8309",
        "5, RAID": "226 225 327 255 387 430 467 989 2600 2670 2958 2786 3452 4264 6482 11236 19992",
        "3, one disk": "136 176 185 223 177 363 202 321 207 341 309 563 329 504",
        "5, one disk": "185 264 282 335 242 376 419 456 3552 11663",
    }.items()
}
"""Seconds of each 10 M rows, by number of indexes and storage."""


@dataclass(frozen=True, slots=True)
class Course:
    """A simulated import: `at` is the knee as a share of the rows, `times` how much slower its end is."""

    steps: int
    at: float
    shape: str
    times: float
    noise: float
    outliers: float

    @property
    def knee(self) -> float:
        return self.at * (self.steps - 1) * STEP

    def seconds(self, rng: np.random.Generator) -> Floats:
        x = np.arange(self.steps) / (self.steps - 1)
        beyond = np.clip(x - self.at, 0, None) / (1 - self.at)
        more = self.times - 1
        grown = {
            "flat": np.ones_like(x),
            "exponential": self.times**beyond,
            "linear": 1 + more * beyond,
            "power": 1 + more * beyond**1.5,
            "square": 1 + more * beyond**2,
            "saturating": 1
            + more * np.where(beyond > 0, (1 - self.at / np.maximum(x, 1e-9)) / (1 - self.at), 0),
        }[self.shape]
        slow = np.where(rng.random(self.steps) < self.outliers, rng.uniform(1.5, 3, self.steps), 1)
        seconds: Floats = 10 * grown * np.exp(rng.normal(0, self.noise, self.steps)) * slow
        return seconds


def course(rng: np.random.Generator, shapes: Sequence[str], at: tuple[float, float] = (0.2, 0.7)) -> Course:
    return Course(
        steps=int(rng.choice([16, 24, 40, 60])),
        at=float(rng.uniform(*at)),
        shape=str(rng.choice(list(shapes))),
        times=float(rng.choice([3, 6, 15])),
        noise=float(rng.choice([0.03, 0.06, 0.1])),
        outliers=float(rng.choice([0, 0.05, 0.1])),
    )


def found_in(seconds: Sequence[float] | Floats, step: float = STEP) -> Knee | NoKnee:
    return find_knee([step * at for at in range(len(seconds))], [float(value) for value in seconds])


@pytest.mark.slow
def test_the_interval_holds_the_known_knee_as_often_as_it_says() -> None:
    rng = np.random.default_rng(41)
    courses = [course(rng, SHAPES) for _ in range(SIMULATIONS)]
    pairs = [(one, found_in(one.seconds(rng))) for one in courses]
    knees = [(one, found) for one, found in pairs if isinstance(found, Knee)]
    assert len(knees) >= 0.8 * SIMULATIONS, "knees that triple the time and more are seen"
    covered = sum(found.low <= one.knee <= found.high for one, found in knees)
    assert covered >= 0.9 * len(knees)
    widths = [(found.high - found.low) / (one.steps * STEP) for one, found in knees]
    assert np.median(widths) < 0.25, "an interval over everything would hold every knee"


@pytest.mark.slow
def test_flat_series_have_no_knee() -> None:
    rng = np.random.default_rng(42)
    found = [found_in(course(rng, ["flat"]).seconds(rng)) for _ in range(WITHOUT)]
    assert sum(isinstance(one, Knee) for one in found) < 0.05 * WITHOUT
    flat = [one for one in found if isinstance(one, NoKnee) and one.outcome == "none"]
    assert len(flat) >= 0.9 * WITHOUT
    assert all(one.flat_seconds == pytest.approx(10, rel=0.25) for one in flat)


@pytest.mark.slow
def test_steady_growth_is_no_knee() -> None:
    rng = np.random.default_rng(43)
    courses = [course(rng, ["linear", "exponential"], at=(0, 0)) for _ in range(WITHOUT)]
    found = [found_in(one.seconds(rng)) for one in courses]
    assert sum(isinstance(one, Knee) for one in found) < 0.05 * WITHOUT
    steady = [one for one in found if isinstance(one, NoKnee) and one.outcome == "steady"]
    assert len(steady) >= 0.9 * WITHOUT
    assert all("slows down steadily from the first row on" in one.reason for one in steady)


@pytest.mark.parametrize("at", [0.25, 0.5, 0.7])
@pytest.mark.parametrize("shape", ["exponential", "linear", "saturating"])
def test_a_clear_knee_is_found_within_two_steps(shape: str, at: float) -> None:
    one = Course(steps=40, at=at, shape=shape, times=8, noise=0.02, outliers=0.05)
    found = found_in(one.seconds(np.random.default_rng(8)))
    assert isinstance(found, Knee)
    assert abs(found.rows - one.knee) <= 2 * STEP
    assert found.low <= one.knee <= found.high
    assert found.high - found.low >= 2 * STEP, "a step's seconds are a mean over its rows"
    assert found.flat_seconds == pytest.approx(10, rel=0.2)
    assert found.end_seconds == pytest.approx(80, rel=0.25)
    assert found.slope_seconds_per_million > 0


def test_single_slow_steps_are_no_knee_and_hide_none() -> None:
    rng = np.random.default_rng(3)
    flat = 10 * np.exp(rng.normal(0, 0.03, 40))
    flat[[4, 11, 12, 25, 33, 39]] *= 2.8
    assert isinstance(found_in(flat), NoKnee)
    grown = flat * np.where(np.arange(40) > 20, 1.2 ** (np.arange(40) - 20), 1)
    found = found_in(grown)
    assert isinstance(found, Knee)
    assert found.low <= 20 * STEP <= found.high


def test_becoming_faster_is_no_knee() -> None:
    rng = np.random.default_rng(5)
    falling = 10 * np.exp(rng.normal(0, 0.02, 30)) * np.where(np.arange(30) < 10, 3 - 0.2 * np.arange(30), 1)
    assert isinstance(found_in(falling), NoKnee)


def test_growth_that_nobody_would_mind_is_no_knee() -> None:
    seconds = [10.0] * 20 + [10 * (1 + 0.01 * at) for at in range(1, 21)]
    assert max(seconds) / min(seconds) < LEAST_GROWTH
    found = found_in(seconds)
    assert isinstance(found, NoKnee)
    assert found.outcome == "none"


def test_growth_within_the_scatter_is_neither_a_knee_nor_called_flat() -> None:
    seconds = [0.53, 1.1, 0.71, 0.92, 1.29, 1.63, 1.96, 1.6, 1.54, 1.17, 0.97, 0.75, 1.07, 1.12, 1.08, 1.15]
    found = found_in([*seconds, 1.17, 1.21, 1.23, 1.22, 2.35, 2.74, 2.32, 2.78])
    assert isinstance(found, NoKnee)
    assert found.outcome == "unclear"
    assert "scatter too much" in found.reason


def test_constant_seconds_have_no_knee() -> None:
    found = found_in([7.0] * 25)
    assert isinstance(found, NoKnee)
    assert found.outcome == "none"
    assert found.reason == "No knee up to 24 M rows."
    assert found.flat_seconds == pytest.approx(7)


@pytest.mark.parametrize("steps", [0, 1, 2, FEWEST_STEPS - 1])
def test_too_few_steps_are_said_with_the_number_needed(steps: int) -> None:
    found = found_in([1.0 + at for at in range(steps)])
    assert isinstance(found, NoKnee)
    assert found.outcome == "too_few"
    assert f"needs {FEWEST_STEPS} steps, and there are {steps}" in found.reason


@pytest.mark.parametrize(
    ("name", "low", "high"), [("1, RAID", 50, 250), ("3, RAID", 50, 120), ("5, one disk", 40, 90)]
)
def test_a_knee_is_read_out_of_published_curves(name: str, low: float, high: float) -> None:
    found = found_in(PUBLISHED[name], 10_000_000)
    assert isinstance(found, Knee), found
    assert low * 1e6 <= found.low < found.rows < found.high <= high * 1e6


@pytest.mark.parametrize(
    ("name", "outcome"), [("none, RAID", "none"), ("3, one disk", "steady"), ("5, RAID", "steady")]
)
def test_the_reason_is_given_where_a_published_curve_shows_none(name: str, outcome: str) -> None:
    found = found_in(PUBLISHED[name], 10_000_000)
    assert isinstance(found, NoKnee)
    assert found.outcome == outcome
    assert "p = " in found.reason + found.evidence


@pytest.mark.parametrize(("scale", "first", "step"), [(1e-3, 0, 1), (1e4, 10**9, 10**8), (1, 7, 12_345)])
def test_units_and_beginnings_do_not_matter(scale: float, first: int, step: int) -> None:
    seconds = Course(30, 0.5, "exponential", 15, 0.03, 0.05).seconds(np.random.default_rng(1))
    plain = found_in(seconds)
    other = find_knee([first + step * at for at in range(30)], [float(value * scale) for value in seconds])
    assert isinstance(plain, Knee)
    assert isinstance(other, Knee)
    for name in ("rows", "low", "high"):
        ours, theirs = getattr(plain, name) / STEP, (getattr(other, name) - first) / step
        assert theirs == pytest.approx(ours, rel=1e-3)
    assert other.flat_seconds == pytest.approx(plain.flat_seconds * scale, rel=1e-3)


def test_the_same_steps_give_the_same_finding() -> None:
    seconds = Course(30, 0.4, "linear", 5, 0.08, 0.1).seconds(np.random.default_rng(9))
    assert found_in(seconds) == found_in(seconds)


@pytest.mark.parametrize(
    ("rows", "seconds"),
    [([0, 1], [1.0]), ([0, 0], [1.0, 1.0]), ([1, 0], [1.0, 1.0]), ([0, 1], [1.0, 0.0])],
)
def test_what_is_no_series_of_steps_is_refused(rows: list[int], seconds: list[float]) -> None:
    with pytest.raises(ValueError, match="step"):
        find_knee(rows, seconds)


def test_the_document_says_all_in_words_and_figures() -> None:
    seconds = Course(40, 0.5, "linear", 8, 0.03, 0).seconds(np.random.default_rng(2))
    document = plain(found_in(seconds).document())
    assert document["found"]
    assert document["outcome"] == "knee"
    assert document["confidence"] == 0.95
    assert document["sentence"].startswith("Import starts to slow down at ")
    assert "95 % interval" in document["sentence"]
    assert len(document["curve"]) == 40
    assert "bootstrap" in document["method"]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (0, "0"),
        (999, "999"),
        (20_000, "20,000"),
        (1_234_567, "1.23 M"),
        (5e7, "50 M"),
        (2.5e9, "2.5 billion"),
    ],
)
def test_rows_in_words(rows: float, words: str) -> None:
    assert rows_text(rows) == words

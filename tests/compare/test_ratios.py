"""The statistics of comparisons keep what they promise: coverage, false alarms, power, by simulation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from loadstone.compare.decisions import benjamini_hochberg, decide, holm
from loadstone.summary.ratios import ALPHA, LogRatio, paired, unpaired

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

TRIALS = 20_000
MATTERS = 0.03
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def sides(repeats: int, ratio: float = 1.0, spread: float = 0.02) -> tuple[np.ndarray, np.ndarray]:
    """Rates of two targets: what a repeat has in common moves both, then each has noise of its own."""
    rng = np.random.default_rng(7 * repeats + 1)
    common = rng.normal(0, 0.10, (TRIALS, repeats))
    own = rng.normal(0, spread, (2, TRIALS, repeats))
    return np.exp(8 + common + own[0]), ratio * np.exp(8 + common + own[1])


def share(hits: ArrayLike) -> float:
    return float(np.asarray(hits, dtype=float).mean())


@pytest.mark.parametrize("repeats", [2, 3, 6, 20])
def test_intervals_hold_the_truth_as_often_as_they_say(repeats: int) -> None:
    a, b = sides(repeats, 0.97)
    independent = np.random.default_rng(3).permutation(b, axis=0)
    for found, least in ((paired(a, b), 0.945), (unpaired(a, independent), 0.945)):
        low, high = found.interval(0.95)
        # Welch's test with two values a side is on the safe side.
        assert least <= share(np.asarray((low <= 0.97) & (high >= 0.97))) <= (0.955 if repeats > 3 else 0.995)


@pytest.mark.parametrize("repeats", [3, 6, 10])
def test_equal_servers_are_found_different_in_at_most_five_percent(repeats: int) -> None:
    found = paired(*sides(repeats))
    verdicts = decide(found, found.p_value(), MATTERS, higher_is_better=True)
    assert share(np.isin(verdicts, ["worse", "better", "small"])) <= 0.055


def test_among_many_phases_any_false_alarm_is_as_rare() -> None:
    phases = 8
    a, b = (side[: TRIALS // phases * phases].reshape(phases, -1, 6) for side in sides(6))
    found = paired(a, b)
    adjusted = np.moveaxis(holm(np.moveaxis(found.p_value(), 0, -1)), -1, 0)
    verdicts = decide(found, adjusted, MATTERS, higher_is_better=True)
    assert share(np.isin(verdicts, ["worse", "better", "small"]).any(axis=0)) <= 0.06
    unadjusted = decide(found, found.p_value(), MATTERS, higher_is_better=True)
    alarms = np.isin(unadjusted, ["worse", "better", "small"]).any(axis=0)
    assert share(alarms) > 0.2


@pytest.mark.parametrize("repeats", [3, 8, 16])
def test_the_smallest_effect_that_is_printed_would_have_been_found(repeats: int) -> None:
    found = paired(*sides(repeats))
    usual = np.sqrt(np.mean(found.se**2))
    effect = float(
        LogRatio(np.asarray(0.0), usual, np.asarray(repeats - 1.0), repeats, paired=True).smallest_effect()
    )
    slower = paired(*sides(repeats, 1 / (1 + effect)))
    verdicts = decide(slower, slower.p_value(), 1e-9, higher_is_better=True)
    assert 0.78 <= share(verdicts == "worse") <= 0.82
    assert share(verdicts == "better") < 0.001


def test_what_matters_is_seldom_called_the_same() -> None:
    """Two one-sided tests: a real difference of just what matters is called the same in 5 % of runs."""
    found = paired(*sides(10, 1 / (1 + MATTERS), spread=0.005))
    verdicts = decide(found, np.ones(TRIALS), MATTERS, higher_is_better=True)
    assert share(verdicts == "same") <= 0.056
    equal = paired(*sides(10, 1.0, spread=0.005))
    assert share(decide(equal, equal.p_value(), MATTERS, higher_is_better=True) == "same") > 0.9


def test_a_fixed_order_looks_like_a_difference_and_alternating_does_not() -> None:
    """An effect of running second, of 2 %: the reason why repeats alternate."""
    a, b = sides(8, spread=0.005)
    second = math.log1p(0.02)
    fixed = paired(a, b * np.exp(second))
    turns = np.where(np.arange(8) % 2, second, 0.0)
    alternating = paired(a * np.exp(turns), b * np.exp(second - turns))
    alarms = [share(one.p_value() < ALPHA) for one in (fixed, alternating)]
    assert alarms[0] > 0.9
    assert alarms[1] <= 0.05


def test_pairs_leave_out_what_a_repeat_has_in_common() -> None:
    a, b = sides(6)
    assert float(np.median(paired(a, b).se)) < 0.5 * float(np.median(unpaired(a, b).se))


def test_against_scipy() -> None:
    a, b = (side[:50] for side in sides(5, 1.02))
    logs = np.log(a), np.log(b)
    ours, theirs = unpaired(a, b), stats.ttest_ind(logs[1], logs[0], axis=-1, equal_var=False)
    assert ours.p_value() == pytest.approx(theirs.pvalue)
    assert paired(a, b).p_value() == pytest.approx(stats.ttest_rel(logs[1], logs[0], axis=-1).pvalue)


@given(P_VALUES)
def test_adjusted_p_values(p_values: list[float]) -> None:
    found = holm(p_values)
    order = np.argsort(p_values, kind="stable")
    worst = 0.0
    for rank, index in enumerate(order):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[index]))
        assert found[index] == pytest.approx(worst)
    assert benjamini_hochberg(p_values) == pytest.approx(stats.false_discovery_control(p_values))
    assert (found >= benjamini_hochberg(p_values) - 1e-12).all()


@given(st.floats(0.002, 0.05), st.integers(3, 12))
def test_the_repeats_that_are_asked_for_are_enough_and_one_less_is_not(se: float, n: int) -> None:
    found = LogRatio(np.asarray(0.0), np.asarray(se), np.asarray(n - 1.0), n, paired=True)
    needed = found.repeats_for(MATTERS)
    if needed is None:
        return

    def effect(repeats: int) -> float:
        scaled = se * math.sqrt(n / repeats)
        later = LogRatio(found.centre, np.asarray(scaled), np.asarray(repeats - 1.0), repeats, paired=True)
        return float(later.smallest_effect())

    assert effect(needed) <= MATTERS
    assert needed == n or effect(needed - 1) > MATTERS


@given(st.lists(st.floats(1e-3, 1e9), min_size=2, max_size=9))
def test_a_side_against_itself_is_the_same(values: list[float]) -> None:
    found = paired(values, values)
    assert float(found.centre) == 0
    assert float(found.p_value()) == 1
    assert decide(found, found.p_value(), MATTERS, higher_is_better=True).item() == "same"


@given(
    st.lists(st.floats(1, 1e6), min_size=2, max_size=6), st.lists(st.floats(1, 1e6), min_size=2, max_size=6)
)
def test_swapping_the_sides_turns_the_ratio_round(a: list[float], b: list[float]) -> None:
    there, back = unpaired(a, b), unpaired(b, a)
    assert float(there.centre) == pytest.approx(-float(back.centre), abs=1e-12)
    low, high = there.interval(0.95)
    back_low, back_high = back.interval(0.95)
    if math.isfinite(float(high)) and math.isfinite(float(back_high)) and back_low > 0 and low > 0:
        assert (float(low), float(high)) == pytest.approx((1 / float(back_high), 1 / float(back_low)))

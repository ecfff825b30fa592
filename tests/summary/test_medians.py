"""Medians of few runs and their ratios: intervals that hold what they say."""

from __future__ import annotations

import math
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadstone.summary.medians import covered, middle, ratio_of_medians

SECONDS = st.floats(1e-6, 1e6, allow_nan=False)


@given(st.lists(SECONDS, min_size=1, max_size=40))
def test_a_median_lies_in_its_interval_of_values_that_were_there(values: list[float]) -> None:
    found = middle(values)
    assert found
    assert found.median == median(values)
    if len(values) == 1:
        assert found.low is found.high is None
        return
    assert found.low is not None
    assert found.high is not None
    assert min(values) <= found.low <= found.median <= found.high <= max(values)
    assert {found.low, found.high} <= set(values)
    assert (found.coverage >= 0.95) == (len(values) >= 6)


@given(st.integers(6, 200))
def test_the_interval_is_the_narrowest_that_covers(n: int) -> None:
    found = middle([float(value) for value in range(1, n + 1)])
    assert found
    assert found.low is not None
    k = round(found.low)
    assert covered(n, k) >= 0.95 > covered(n, k + 1)
    assert found.high == n + 1 - k


def test_coverage_is_that_of_the_tables() -> None:
    # H. A. David and H. N. Nagaraja, Order Statistics: of 10 values the 2nd and 9th, of 20 the 6th and 15th.
    assert covered(10, 2) == pytest.approx(0.9785, abs=1e-4)
    assert covered(20, 6) == pytest.approx(0.9586, abs=1e-4)
    assert covered(5, 1) == pytest.approx(0.9375)


def test_the_interval_holds_the_true_median_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(1000):
        found = middle(list(rng.lognormal(0, 1, 12)))
        assert found
        held += (found.low or 0) <= 1 <= (found.high or math.inf)
    assert 0.94 <= held / 1000 <= 1, "96.1 % of intervals of 12 values"


@settings(max_examples=50)
@given(
    st.lists(st.floats(0.001, 1000), min_size=1, max_size=20),
    st.lists(st.floats(0.001, 1000), min_size=1, max_size=20),
)
def test_a_ratio_lies_in_its_interval(ours: list[float], base: list[float]) -> None:
    found = ratio_of_medians(ours, base)
    assert found
    assert found.value == pytest.approx(median(ours) / median(base))
    if min(len(ours), len(base)) == 1:
        assert found.low is found.high is None
    else:
        assert found.low is not None
        assert found.high is not None
        slack = 1 + 1e-9
        assert found.low <= found.value * slack
        assert found.high * slack >= found.value
        assert found.low * slack >= min(ours) / max(base)
        assert found.high <= max(ours) / min(base) * slack


def test_ratios_of_nothing_are_none() -> None:
    assert ratio_of_medians([], [1.0]) is None
    assert ratio_of_medians([1.0], []) is None
    assert ratio_of_medians([1.0], [0.0]) is None

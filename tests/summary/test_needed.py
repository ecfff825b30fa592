"""How much more must be measured: what is promised is found as often as it says, in simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from loadstone.model import MATTERS
from loadstone.summary.knee.knee import Knee, find_knee
from loadstone.summary.medians import FEWEST_SURE, ratio_of_medians
from loadstone.summary.needed import (
    repeats_below,
    repeats_for,
    repeats_for_kappa,
    runs_for,
    steps_for,
)
from loadstone.summary.ratios import paired, unpaired
from loadstone.summary.scaling.law import fit_usl, law

TIMES = 200


def spread(n: int, sigma: float) -> list[float]:
    """Values whose spread is that of the distribution, without luck."""
    return [float(value) for value in np.exp(sigma * stats.norm.ppf((np.arange(n) + 0.5) / n))]


@pytest.mark.parametrize(("sigma", "ratio"), [(0.1, 1.15), (0.03, 1.05), (0.3, 1.3)])
def test_so_many_runs_decide_which_median_is_smaller(sigma: float, ratio: float) -> None:
    runs = runs_for([ratio * value for value in spread(9, sigma)], spread(9, sigma))
    assert runs
    rng = np.random.default_rng(7)
    sides = rng.lognormal(0, sigma, (TIMES, 2, runs))
    found = [ratio_of_medians((ratio * ours).tolist(), base.tolist()) for ours, base in sides]
    shown = sum(one is not None and one.low is not None and one.low > 1 for one in found)
    assert 0.65 * TIMES <= shown <= 0.97 * TIMES


def test_fewer_runs_than_an_interval_needs_are_never_recommended() -> None:
    assert runs_for([2.0, 2.0], [1.0, 1.0]) == FEWEST_SURE
    assert (runs_for([1.0, 50.0], [1.0, 70.0]) or 0) > 100
    assert runs_for([1.0, 90.0], [1.0, 90.0]) is None


def test_a_single_outlier_among_many_runs_does_not_count() -> None:
    quiet, base = spread(9, 0.02), spread(9, 0.02)
    assert runs_for([*quiet[:-1], 40.0], base) == pytest.approx(runs_for(quiet, base), rel=0.35)


@pytest.mark.parametrize("in_pairs", [True, False])
@pytest.mark.parametrize("repeats", [3, 6])
def test_so_many_repeats_show_a_ratio_like_the_one_seen(repeats: int, *, in_pairs: bool) -> None:
    true, sigma = 1.1, 0.08
    se = sigma * math.sqrt(2 / repeats)
    half = float(stats.t.ppf(0.975, (repeats - 1) * (1 if in_pairs else 2))) * se
    ends = (true * math.exp(-half), true * math.exp(half))
    needed = repeats_for(true, *ends, repeats=repeats, paired=in_pairs)
    assert needed
    assert needed > repeats
    rng = np.random.default_rng(3)
    a, b = np.exp(rng.normal(0, sigma, (2, 4000, needed)))
    low, _ = (paired if in_pairs else unpaired)(a, true * b).interval(0.95)
    assert 0.77 <= (low > 1).mean() <= 0.88


def test_where_nothing_was_seen_it_is_for_what_matters() -> None:
    ends = (math.exp(-0.05), math.exp(0.05))
    seen = repeats_for(1.0, *ends, repeats=5, paired=True)
    assert seen == repeats_for(1 + MATTERS, *(end * (1 + MATTERS) for end in ends), repeats=5, paired=True)
    assert repeats_for(1.0, 0.01, 100.0, repeats=3, paired=True) is None


@pytest.mark.slow
def test_so_many_steps_show_growth_that_was_unclear() -> None:
    rng = np.random.default_rng(1)
    decided: list[bool] = []
    while len(decided) < 10:
        growth, sigma, steps = math.log(1.5), 0.2, 16
        seconds = np.exp(np.linspace(0, growth, steps) + rng.normal(0, sigma, steps))
        needed = steps_for(seconds.tolist())
        if getattr(find_knee(range(steps), seconds.tolist()), "outcome", "") != "unclear" or not needed:
            continue
        assert needed > steps
        more = np.exp(growth / (steps - 1) * np.arange(needed) + rng.normal(0, sigma, needed))
        found = find_knee(range(needed), more.tolist())
        decided.append(isinstance(found, Knee) or found.outcome == "steady")
    assert sum(decided) >= 6


def test_steps_that_do_not_grow_need_no_number() -> None:
    assert steps_for([1.2, 1.1, 1.0, 1.1, 0.9, 1.0, 0.8, 0.9, 0.8, 0.7]) is None


@pytest.mark.slow
def test_so_many_repeats_show_that_the_rate_falls() -> None:
    rng = np.random.default_rng(5)
    clients = np.array([1.0, 2, 4, 8, 16, 32, 64])
    true = law(clients, 900, 0.05, 0.0005)
    shown: list[bool] = []
    while len(shown) < 12:
        first = fit_usl(clients.tolist(), (true * np.exp(rng.normal(0, 0.06, 7))).tolist()).law
        if first is None or first.kappa.low > 0 or first.peak_n:
            continue
        needed = repeats_for_kappa(first.kappa.value, first.kappa.high or 0, 1)
        if needed is None or needed > 100:
            continue
        again = true * np.exp(np.median(rng.normal(0, 0.06, (needed, 7)), axis=0))
        found = fit_usl(clients.tolist(), again.tolist()).law
        shown.append(found is not None and found.kappa.low > 0)
    assert sum(shown) >= 7


def test_a_law_without_any_coherency_names_no_number_of_repeats() -> None:
    assert repeats_for_kappa(0.0, 0.001, 3) is None
    assert repeats_for_kappa(1e-9, 0.01, 3) is None


def test_repeats_that_bring_chance_below_a_limit() -> None:
    assert repeats_below(0.2, 0.1, 1) == 4
    assert repeats_below(0.101, 0.1, 5) == 6

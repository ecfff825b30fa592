"""The search against servers with a known knee: queues simulated exactly, with stalls, growth and noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.simulated_queues import CAPACITY, P99, TRUTH, Queue, Watched

from loadstone.slo.grid import STEP, grid
from loadstone.slo.limits import Limit, Observed, limit
from loadstone.slo.search import MOST_TRIALS, Answer, Search

REPEATS = 60


def answer(queue: Queue) -> tuple[Answer, Watched]:
    watched = Watched((P99,))

    def keeps(rate: float, *, whole: bool) -> bool:
        seen = queue.observe(rate, max(30.0, P99.seconds_for(rate)) / (1 if whole else 3))
        return not watched.add(rate, seen, whole=whole).misses

    return Search(grid(CAPACITY), keeps).run(), watched


def answers(noise: float = 0.0, growth: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return by how many steps of the grid answers are off the truth, and how many trials they took."""
    made = [answer(Queue(np.random.default_rng(seed), noise, growth)) for seed in range(REPEATS)]
    assert sum(watched.is_changed for _, watched in made) <= 1, "it is always the same server"
    found = [one for one, _ in made]
    steps = [math.log(one.lower / TRUTH) / math.log(STEP) for one in found if one.lower]
    assert len(steps) >= 0.75 * REPEATS
    return np.array(steps), np.array([one.trials for one in found])


def test_a_known_knee_is_found_within_a_step_in_nine_of_ten_searches() -> None:
    steps, trials = answers()
    # The answer is the grid's load below the truth, so it is off by half a step in the mean.
    assert np.mean((steps > -1.5) & (steps < 0.5)) >= 0.9
    assert trials.max() <= MOST_TRIALS


def test_noise_widens_the_answers_and_moves_them_by_less_than_a_step() -> None:
    """Upwards: a trial that keeps the limits counts for lower loads, one that misses for its own alone."""
    steps, trials = answers(noise=0.10)
    assert 0 < np.mean(steps) + 0.5 < 1
    assert np.std(steps) < 1.8
    assert trials.max() <= MOST_TRIALS


def test_growth_between_trials_lowers_the_answer_by_no_more_than_it_takes() -> None:
    steps, _ = answers(growth=0.001)
    assert -1.5 < np.mean(steps) < -0.5


def test_stalls_that_cost_more_than_the_limit_allows_are_seen() -> None:
    """A stall of 0.3 s every ten seconds holds up about 3 % of the transactions: no load keeps p99."""
    found, _ = answer(Queue(np.random.default_rng(1), stall_s=0.3))
    assert found.state in ("none kept", "not decided")
    assert found.lower is None or found.lower < 0.1 * TRUTH


def stepwise(boundary: float) -> tuple[Search, list[tuple[float, bool]]]:
    made: list[tuple[float, bool]] = []

    def keeps(rate: float, *, whole: bool) -> bool:
        made.append((rate, whole))
        return rate <= boundary

    return Search(grid(1000.0), keeps), made


@given(st.floats(5, 2200))
def test_a_sharp_boundary_is_found_exactly(boundary: float) -> None:
    """Also where the closed loop, of 1,000/s, did less than the server can."""
    search, made = stepwise(boundary)
    found = search.run()
    loads = grid(1000.0).loads
    expected = max((load for load in loads if load <= boundary), default=None)
    assert found.lower == expected
    assert found.state == ("all kept" if boundary >= loads[-1] else "found")
    assert found.upper == next((load for load in loads if load > boundary), None)
    assert len(made) == found.trials < MOST_TRIALS, "the closed loop is one, too"
    whole = {rate for rate, is_whole in made if is_whole}
    assert {found.lower, found.upper} - {None} <= whole
    assert all(boundary / 1.3 < rate < boundary * 1.3 for rate in whole if boundary < loads[-1])
    assert made[0][0] < 100, "small loads first"


@given(st.floats(10, 1e6), st.floats(0.1, 10))
def test_a_grid_goes_from_a_256th_to_twice_the_closed_loop_or_to_what_we_can_drive(
    closed: float, share: float
) -> None:
    made = grid(closed, share * closed)
    assert made.loads[-1] <= min(share, 2) * closed * 1.000001
    assert made.loads[-1] * STEP > min(share, 1.97) * closed
    assert made.loads[made.closed] == pytest.approx(min(share, 1) * closed)
    assert np.allclose(np.divide(made.loads[1:], made.loads[:-1]), STEP)


def test_nothing_is_kept() -> None:
    search, _ = stepwise(0.0)
    found = search.run()
    assert (found.state, found.lower) == ("none kept", None)
    assert found.upper == grid(1000.0).loads[0]


def test_loads_at_the_boundary_are_interleaved() -> None:
    search, made = stepwise(700.0)
    search.run()
    whole = [rate for rate, is_whole in made if is_whole]
    assert whole[0] != whole[1]
    assert whole[::2] == [whole[0]] * 3


def test_short_trials_never_bound_the_answer() -> None:
    """Here short trials keep the limits up to 1,100, and whole ones only what is below 900."""
    found = Search(grid(1000.0), lambda rate, *, whole: rate < (900 if whole else 1100)).run()
    assert found.lower is not None
    assert found.lower < 900 <= (found.upper or 0)


def test_too_few_trials_leave_it_undecided() -> None:
    search, _ = stepwise(700.0)
    search.most = 9
    assert search.run().state == "not decided"


def test_an_irregular_load_is_reported() -> None:
    search = Search(grid(1000.0), lambda rate, *, whole: rate > 0 or whole)
    search.votes = {3: [False] * 3, 5: [True] * 3, 6: [False] * 3}
    found = search.answer()
    assert (found.state, found.irregular) == ("found", [search.grid.loads[3]])


def test_a_higher_load_that_was_kept_counts_for_the_lower_ones() -> None:
    search, _ = stepwise(700.0)
    search.votes = {5: [True, True], 6: [True, False, False]}
    assert [search.verdict(place) for place in (4, 5, 6)] == [True, True, None]
    search.votes = {5: [False] * 3, 6: [True] * 3}
    assert [search.verdict(place) for place in (5, 6)] == [None, True], "as many against it as for it"


def test_a_trial_that_says_nothing_moves_nothing() -> None:
    quiet = stepwise(700.0)[0].run()
    search, made = stepwise(700.0)
    keeps = search.keeps

    def disturbed(rate: float, *, whole: bool) -> bool | None:
        kept = keeps(rate, whole=whole)
        return None if len(made) in (2, 3) else kept

    search.keeps = disturbed
    found = search.run()
    assert (found.state, found.lower, found.trials) == (quiet.state, quiet.lower, quiet.trials + 2)


@pytest.mark.parametrize("text", ["p99", "99=20ms", "p99=20", "p0=1ms", "p99=0ms", "p100=1ms", "p99=-1ms"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="p"):
        limit(text)


def test_limits_count_against_all_that_should_have_begun() -> None:
    assert limit("p99.9 = 0.1s") == Limit(0.9990000000000001, 100_000_000, "p99.9 = 0.1s")
    limits = (limit("p99=20ms"), limit("p50=1ms"))
    assert Observed(1000, (990, 500)).keeps(limits, None)
    assert Observed(1000, (989, 400)).misses(limits, None) == ["p50=1ms", "p99=20ms"]
    assert Observed(1000, (900, 499)).misses(limits, None) == ["p99=20ms", "p50=1ms"]
    assert Observed(1000, (989, 500)).misses(limits, None) == ["p99=20ms"]
    assert Observed(1000, (1000, 1000), 2).misses(limits, 0.001) == ["errors"]
    assert not Observed(0, (0, 0)).keeps(limits, None)
    assert limits[0].seconds_for(1000) == pytest.approx(3)

"""The whole search on a machine that other programs use: they disturb trials, and the closed loop.

The trials are those of a queue that is known exactly (M/M/1), simulated once for each half step of the load;
each search draws from them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from support.simulated_queues import Watched

from loadstone.slo.grid import STEP, grid
from loadstone.slo.lateness import Repeats
from loadstone.slo.limits import Limit, Observed
from loadstone.slo.search import MOST_TRIALS, Search

CAPACITY = 1000.0
TRUTH = 800.0
"""Of every limit: response times are exponential with the rate that is left, so the limits follow from it."""
SHARES = (0.5, 0.9, 0.99)
WINDOW_S = {True: 30.0, False: 10.0}
HALF_STEPS = 12
"""So far to both sides of the truth trials are simulated; beyond it, they are sure."""
EACH = 32
SEARCHES = 150
OF = 1_000_000
"""Transactions that shares of trials are written with."""


@cache
def missed(half_steps: int, *, whole: bool) -> np.ndarray:
    """Return the shares of late transactions of `EACH` trials, a column for each limit."""
    rng = np.random.default_rng([half_steps + HALF_STEPS, whole])
    rate = TRUTH * STEP ** (half_steps / 2)
    shape = EACH, int(rate * WINDOW_S[whole])
    arrivals = rng.exponential(1 / rate, shape).cumsum(axis=1)
    service = rng.exponential(1 / CAPACITY, shape)
    worked = service.cumsum(axis=1)
    response = worked + np.maximum.accumulate(arrivals - (worked - service), axis=1) - arrivals
    limits = [math.log(1 / (1 - share)) / (CAPACITY - TRUTH) for share in SHARES]
    return np.stack([(response > one).mean(axis=1) for one in limits], axis=1)


@dataclass
class Machine:
    """A server with a queue, and what else happens where it runs."""

    rng: np.random.Generator
    share: float
    disturbed: float = 0.125
    """Share of the trials in which other programs delay 0.5 to 6 % of the transactions beyond the limit."""
    seen: float = 0.75
    """How often our own event loop shows it."""
    always_late: bool = False
    """The server itself keeps our threads waiting whenever it is overloaded."""

    def search(self) -> tuple[float, int, bool]:
        """Return by how many steps the answer is off (infinitely many without one), and the trials.

        The last is whether it seemed that the server became slower.
        """
        closed = CAPACITY * self.rng.uniform(0.75, 1.0)
        repeats = Repeats()
        watched = Watched((Limit(self.share, 1, ""),))

        def keeps(rate: float, *, whole: bool) -> bool | None:
            delayed, late = self.trial(rate, whole=whole)
            kept = delayed <= 1 - self.share
            if not kept and late and repeats.grant():
                return None
            watched.add(rate, Observed(OF, (round((1 - delayed) * OF),)), whole=whole)
            return kept

        found = Search(grid(closed), keeps).run()
        off = math.inf
        if found.state == "found" and found.lower is not None and found.upper is not None:
            off = math.log(math.sqrt(found.lower * found.upper) / TRUTH) / math.log(STEP)
        return off, found.trials + 1, watched.is_changed

    def trial(self, rate: float, *, whole: bool) -> tuple[float, bool]:
        """Return the share of late transactions, and whether our threads were late."""
        away = round(2 * math.log(rate / TRUTH) / math.log(STEP))
        late = float(away > HALF_STEPS)
        if abs(away) <= HALF_STEPS:
            late = self.rng.choice(missed(away, whole=whole)[:, SHARES.index(self.share)])
        disturbed = self.rng.random() < self.disturbed
        late += self.rng.uniform(0.005, 0.06) if disturbed else 0.0
        return late, self.always_late or (disturbed and self.rng.random() < self.seen)


def within_a_step(share: float, **machine: object) -> float:
    """Return the share of the searches that ended within a step of the truth, all in 25 trials.

    In at most one of a hundred it seems that the server became slower.
    """
    found = [
        Machine(np.random.default_rng(seed), share, **machine).search()  # type: ignore[arg-type]
        for seed in range(SEARCHES)
    ]
    assert max(trials for _, trials, _ in found) <= MOST_TRIALS
    assert np.mean([is_changed for _, _, is_changed in found]) < 0.01
    return float(np.mean([abs(off) <= 1 for off, _, _ in found]))


@pytest.mark.parametrize("share", SHARES)
def test_nine_of_ten_searches_end_within_a_step_on_a_disturbed_machine(share: float) -> None:
    assert within_a_step(share) >= 0.9


@pytest.mark.parametrize("share", SHARES)
def test_a_server_that_makes_us_late_itself_is_still_found(share: float) -> None:
    assert within_a_step(share, always_late=True) >= 0.9


def test_disturbances_that_nobody_sees_cost_few_answers_where_they_matter_less() -> None:
    assert within_a_step(0.9, seen=0.0) >= 0.9
    # A disturbed trial always misses p99: the votes bear one of eight, and not always three of them.
    assert within_a_step(0.99, seen=0.0) >= 0.75

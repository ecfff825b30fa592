"""Servers with a known knee: one worker with a queue, simulated exactly, with stalls, growth and noise."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from loadstone.slo.changed import change_of
from loadstone.slo.documents import Trial
from loadstone.slo.limits import Limit, Observed, limit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadstone.signals import Signals
    from loadstone.slo.counting import TrialPlan
    from loadstone.slo.experiment import MakeTrial

P99 = limit("p99=20ms")
CAPACITY = 1000.0
"""Of an M/M/1 queue, transactions per second."""
TRUTH = CAPACITY - math.log(100) / 0.020
"""Its response times are exponential with the rate that is left: p99 = ln 100 / (capacity - load)."""


@dataclass
class Queue:
    """One worker, exponential service times: the times by Lindley's recursion, as sums and running maxima."""

    rng: np.random.Generator
    noise: float = 0.0
    """Spread of the capacity from trial to trial."""
    growth: float = 0.0
    """What a trial takes from the capacity of all later ones."""
    stall_s: float = 0.0
    """Every ten seconds it stands still for so long."""
    capacity: float = CAPACITY

    def observe(self, rate: float, seconds: float, limits: tuple[Limit, ...] = (P99,)) -> Observed:
        capacity = self.capacity * math.exp(self.rng.normal(0, self.noise))
        count = self.rng.poisson(rate * seconds)
        arrivals = np.sort(self.rng.uniform(0, seconds, count))
        service = self.rng.exponential(1 / capacity, count)
        if self.stall_s:
            ends = np.flatnonzero(np.diff(arrivals // 10) > 0)
            service[ends] += self.stall_s
        worked = np.cumsum(service)
        done = worked + np.maximum.accumulate(arrivals - (worked - service))
        self.capacity *= 1 - self.growth
        response = (done - arrivals) * 1e9
        return Observed(count, tuple(int((response <= one.ns).sum()) for one in limits))


@dataclass
class Watched:
    """The trials of a search, and whether any of them made it seem that the server became slower."""

    limits: tuple[Limit, ...]
    trials: list[Trial] = field(default_factory=list)
    is_changed: bool = False

    def add(self, rate: float | None, seen: Observed, *, whole: bool) -> Trial:
        trial = Trial(
            number=len(self.trials) + 1, kind="whole" if whole else "short", rate=rate, seconds=30.0,
            folder="", should=seen.should, in_time=[*seen.in_time], failed=0, done_per_s=rate or CAPACITY,
            misses=seen.misses(self.limits, None) if rate else [],
        )  # fmt: skip
        self.trials.append(trial)
        self.is_changed |= change_of(self.trials, self.limits) is not None
        return trial


@dataclass
class SimulatedBench:
    """Trials of a queue, which does `factor` of what it did from trial `slower_from` on."""

    queue: Queue
    slower_from: int | None = None
    factor: float = 0.5
    limits: tuple[Limit, ...] = (P99,)
    folder: Path | None = None
    watched: Watched = field(init=False)

    def __post_init__(self) -> None:
        self.watched = Watched(self.limits)

    @contextmanager
    def prepared(self, _: Signals) -> Iterator[MakeTrial]:
        yield self.trial

    def trial(self, plan: TrialPlan) -> Trial:
        if plan.number == self.slower_from:
            self.queue.capacity *= self.factor
        seen = self.queue.observe(plan.rate or CAPACITY, plan.seconds, self.limits)
        return self.watched.add(plan.rate, seen, whole=plan.kind == "whole")

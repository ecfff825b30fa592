"""Queues with several workers and Poisson arrivals: what share is answered within a time, up to what rate.

M/M/c by arithmetic (Erlang's C formula: D. Gross et al., Fundamentals of Queueing Theory, 2.4), M/D/c by
simulation with a fixed seed. Times in seconds, rates per second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

_ARRIVALS = 1_000_000
_SEED = 1
_HALVINGS = 16


@dataclass(frozen=True, slots=True)
class MarkovQueue:
    """Exponential service times of mean `mean_s`, in the order of arrival."""

    workers: int
    mean_s: float

    def beyond(self, rate: float, time_s: float) -> float:
        """Return the share of responses that take longer; the rate must be below the capacity.

        With one worker they are exponential with the rate that is left:

        >>> math.isclose(MarkovQueue(1, 0.01).beyond(60.0, 0.02), math.exp(-40 * 0.02))
        True
        """
        served, left = 1 / self.mean_s, self.workers / self.mean_s - rate
        waits = self._waiting(rate)
        alone = math.exp(-served * time_s)
        both = (left * alone - served * math.exp(-left * time_s)) / (left - served)
        return (1 - waits) * alone + waits * both

    def _waiting(self, rate: float) -> float:
        """Return the share that has to wait for a worker."""
        offered, blocked = rate * self.mean_s, 1.0
        for count in range(1, self.workers + 1):
            blocked = offered * blocked / (count + offered * blocked)
        return blocked / (1 - offered / self.workers * (1 - blocked))

    def highest_rate(self, share: float, time_s: float) -> float:
        """Return the rate at which just `share` of the responses take at most `time_s`."""
        capacity = self.workers / self.mean_s
        return float(
            brentq(lambda rate: self.beyond(rate, time_s) - (1 - share), 0.01 * capacity, 0.9999 * capacity)
        )


@dataclass(frozen=True, slots=True)
class ConstantQueue:
    """Constant service times, in the order of arrival: each worker gets every `workers`-th transaction."""

    workers: int
    mean_s: float

    def beyond(self, rate: float, time_s: float) -> float:
        """Return the share of responses that take longer, of a million that are simulated."""
        gaps = np.random.default_rng(_SEED).standard_exponential(_ARRIVALS // self.workers * self.workers)
        arrivals = (gaps.cumsum() / rate).reshape(-1, self.workers)
        worked = np.arange(1, len(arrivals) + 1)[:, None] * self.mean_s
        done = worked + np.maximum.accumulate(arrivals - (worked - self.mean_s), axis=0)
        return float((done - arrivals > time_s * (1 + 1e-9)).mean())

    def highest_rate(self, share: float, time_s: float) -> float:
        """Return the rate at which just `share` of the responses take at most `time_s`."""
        kept, missed = 0.0, self.workers / self.mean_s
        for _ in range(_HALVINGS):
            middle = (kept + missed) / 2
            kept, missed = (kept, middle) if self.beyond(middle, time_s) > 1 - share else (middle, missed)
        return kept

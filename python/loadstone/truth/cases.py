"""Loads whose percentiles are known: a distribution of service times, a pace, and the arithmetic of both.

What a client measures also holds the way to the server and back: 0.1 ms, and 0.01 ms for each answer that
leaves at the same moment. Service times are so long, and clients so few, that this is below 1 % of each
percentile.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)
_CONSTANT_MS = 100.0
_CONSTANT_RATE = 250.0
"""In a closed loop all answers would leave at the same moment, again and again."""
_MEAN_MS = 50.0
_FAST_MS, _SLOW_MS, _SLOW_SHARE = 50.0, 500.0, 0.1
_LEAST_MS, _SHAPE = 20.0, 2.0
_SCHEDULE_RATE = 500.0
_JUMP = 0.01
"""Values further apart than this are not the same value: the promise is 1 %."""
_STALL_PERCENTILES = (50.0, 95.0, 99.0)
_SCHEDULES = 200
_SEED = 1


@dataclass(frozen=True, slots=True)
class Truth:
    """The true value of a percentile in ms: the values just below and just above it, at a jump far apart."""

    low_ms: float
    high_ms: float

    @property
    def is_jump(self) -> bool:
        """Whether a single sample more or less decides the value, so that there is no true one."""
        return self.high_ms > (1 + _JUMP) * self.low_ms


def exactly(ms: float) -> Truth:
    """Return a value that is the same on both sides of its percentile."""
    return Truth(ms, ms)


@dataclass(frozen=True, slots=True)
class Case:
    """One load on the built-in server; `service` is the server's specification of its times."""

    name: str
    words: str
    service: Mapping[str, Any]
    clients: int
    seconds: float
    truths: Mapping[str, Callable[[float], Truth]]
    """Of `response`, `service` or `lag`: the true value of a percentile."""
    percentiles: tuple[float, ...] = PERCENTILES
    rate_per_s: float | None = None
    by_chance: Mapping[str, Callable[[float], Truth]] = field(default_factory=dict)
    """For tools that draw their starts at random: between which values 95 % of their runs are."""


def _constant(_: float) -> Truth:
    return exactly(_CONSTANT_MS)


def _exponential(percentile: float) -> Truth:
    return exactly(-_MEAN_MS * math.log1p(-percentile / 100))


def _bimodal(percentile: float) -> Truth:
    edge = 100 * (1 - _SLOW_SHARE)
    if math.isclose(percentile, edge):
        return Truth(_FAST_MS, _SLOW_MS)
    return exactly(_FAST_MS if percentile < edge else _SLOW_MS)


def _pareto(percentile: float) -> Truth:
    return exactly(_LEAST_MS * math.pow(1 - percentile / 100, -1 / _SHAPE))


@dataclass(frozen=True, slots=True)
class Stall:
    """Starts at a fixed rate; the server does nothing for `stall_s` of every `every_s` but the first.

    The defaults keep percentiles away from what a trifle moves: the edges of a stall are half an interval
    from the answers of both neighbours, the last stall is worked off before the end, fewer than one in a
    hundred transactions is under way when a stall begins, and few clients share the way of an answer.
    """

    rate_per_s: float = 150.0
    clients: int = 14
    answer_s: float = 0.07
    every_s: float = 10.0
    stall_s: float = 1.0
    seconds: float = 29.0

    def truths(self) -> dict[str, Callable[[float], Truth]]:
        """Return true percentiles by arithmetic."""
        response, service = self.waited(number / self.rate_per_s for number in range(self._starts))
        return {"response": _truth_of(response), "service": _truth_of(service)}

    def waited(self, intended_s: Iterable[float]) -> tuple[list[float], list[float]]:
        """Return response and service time of each start, in seconds.

        Each takes the client that is free first.
        """
        free = [0.0] * self.clients
        response, service = [], []
        for intended in intended_s:
            began = max(intended, heapq.heappop(free))
            ended = self._after_stall(began + self.answer_s)
            heapq.heappush(free, ended)
            response.append(ended - intended)
            service.append(ended - began)
        return response, service

    def by_chance(self) -> dict[str, Callable[[float], Truth]]:
        """Return between which values percentiles of 95 % of Poisson schedules are, by simulation."""
        return {"response": self._range_of_schedules}

    def _range_of_schedules(self, percentile: float) -> Truth:
        found = sorted(_truth_of(response)(percentile).low_ms for response in self._poisson())
        beyond = len(found) // 40
        return Truth(found[beyond], found[-1 - beyond])

    def _poisson(self) -> Iterable[list[float]]:
        """Yield the response times of schedules with exponential gaps."""
        rng = np.random.default_rng(_SEED)
        for _ in range(_SCHEDULES):
            count = rng.poisson(self._starts)
            yield self.waited(np.sort(rng.uniform(0, self.seconds, count)).tolist())[0]

    @property
    def _starts(self) -> int:
        return round(self.rate_per_s * self.seconds)

    def _after_stall(self, leaves_s: float) -> float:
        number, within = divmod(leaves_s, self.every_s)
        return leaves_s + self.stall_s - within if number and within < self.stall_s else leaves_s

    def case(self) -> Case:
        """Return it as a load."""
        words = (
            f"{self.rate_per_s:g} starts/s; {1e3 * self.answer_s:g} ms an answer; "
            f"the server does nothing for {self.stall_s:g} s of every {self.every_s:g} s"
        )
        service = {
            "time": {"kind": "constant", "ms": 1e3 * self.answer_s},
            "stall": {"every_s": self.every_s, "for_s": self.stall_s},
        }
        return Case(
            "stall", words, service, self.clients, self.seconds, self.truths(), _STALL_PERCENTILES,
            self.rate_per_s, self.by_chance(),
        )  # fmt: skip


def _truth_of(seconds: Sequence[float]) -> Callable[[float], Truth]:
    """Return percentiles of samples, each with the values of its neighbours."""
    ordered = sorted(seconds)

    def truth(percentile: float) -> Truth:
        at = math.ceil(len(ordered) * percentile / 100 - 1e-9) - 1
        low, middle, high = (1e3 * ordered[min(max(at + off, 0), len(ordered) - 1)] for off in (-1, 0, 1))
        return Truth(low, high) if Truth(low, high).is_jump else exactly(middle)

    return truth


def cases() -> tuple[Case, ...]:
    """Return all loads, more than a minute in total."""
    return (
        Case(
            "constant", f"every answer takes {_CONSTANT_MS:g} ms, {_CONSTANT_RATE:g} starts/s",
            {"time": {"kind": "constant", "ms": _CONSTANT_MS}}, 60, 6.0,
            {"response": _constant}, (50.0, 90.0, 95.0, 99.0), _CONSTANT_RATE,
        ),
        _closed("exponential", f"exponential, mean {_MEAN_MS:g} ms", 400, 10.0, _exponential,
                {"kind": "exponential", "mean_ms": _MEAN_MS}),
        _closed("bimodal", f"{_FAST_MS:g} ms, and {_SLOW_MS:g} ms for one in ten", 200, 6.0, _bimodal,
                {"kind": "bimodal", "fast_ms": _FAST_MS, "slow_ms": _SLOW_MS, "slow_share": _SLOW_SHARE}),
        _closed("pareto", f"Pareto, at least {_LEAST_MS:g} ms, shape {_SHAPE:g}", 400, 10.0, _pareto,
                {"kind": "pareto", "least_ms": _LEAST_MS, "shape": _SHAPE}),
        Stall().case(),
        Case(
            "schedule",
            f"{_SCHEDULE_RATE:g} starts/s on a server with nothing else to do",
            {"time": {"kind": "constant", "ms": 1.0}}, 8, 4.0,
            {"lag": lambda _: exactly(0.0)}, (50.0,), _SCHEDULE_RATE,
        ),
    )  # fmt: skip


def _closed(
    name: str,
    words: str,
    clients: int,
    seconds: float,
    truth: Callable[[float], Truth],
    time: Mapping[str, Any],
) -> Case:
    return Case(name, words, {"time": time}, clients, seconds, {"response": truth})

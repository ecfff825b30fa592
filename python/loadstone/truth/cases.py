"""Loads whose percentiles are known: a distribution of service times, a pace, and the arithmetic of both."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)
_CONSTANT_MS = 100.0
_MEAN_MS = 50.0
_FAST_MS, _SLOW_MS, _SLOW_SHARE = 20.0, 200.0, 0.1
_LEAST_MS, _SHAPE = 20.0, 2.0
_SCHEDULE_RATE = 500.0


@dataclass(frozen=True, slots=True)
class Case:
    """One load on the built-in server; `service` is the server's specification of its times."""

    name: str
    words: str
    service: Mapping[str, Any]
    clients: int
    seconds: float
    truths: Mapping[str, Callable[[float], float | None]]
    """Of `response`, `service` or `lag`: the true value of a percentile."""
    percentiles: tuple[float, ...] = PERCENTILES
    rate_per_s: float | None = None


def _constant(_: float) -> float:
    return _CONSTANT_MS


def _exponential(percentile: float) -> float:
    return -_MEAN_MS * math.log1p(-percentile / 100)


def _bimodal(percentile: float) -> float | None:
    if math.isclose(percentile, 100 * (1 - _SLOW_SHARE)):
        return None  # the edge between both
    return _FAST_MS if percentile < 100 * (1 - _SLOW_SHARE) else _SLOW_MS


def _pareto(percentile: float) -> float:
    return _LEAST_MS * math.pow(1 - percentile / 100, -1 / _SHAPE)


@dataclass(frozen=True, slots=True)
class Stall:
    """Starts at a fixed rate; the server does nothing for `stall_s` of every `every_s` but the first."""

    rate_per_s: float = 1000.0
    clients: int = 60
    answer_s: float = 0.005
    every_s: float = 10.0
    stall_s: float = 1.0
    seconds: float = 30.0

    def truths(self) -> dict[str, Callable[[float], float | None]]:
        """Return true percentiles, in ms, by arithmetic: each start takes the client that is free first."""
        free = [0.0] * self.clients
        response, service = [], []
        for number in range(round(self.rate_per_s * self.seconds)):
            intended = number / self.rate_per_s
            began = max(intended, heapq.heappop(free))
            ended = self._after_stall(began + self.answer_s)
            heapq.heappush(free, ended)
            response.append(ended - intended)
            service.append(ended - began)
        return {"response": _percentiles_of(response), "service": _percentiles_of(service)}

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
        percentiles = (50.0, 95.0, 99.0, 99.9)
        return Case(
            "stall", words, service, self.clients, self.seconds, self.truths(), percentiles, self.rate_per_s
        )


def _percentiles_of(seconds: list[float]) -> Callable[[float], float | None]:
    seconds.sort()
    return lambda percentile: 1e3 * seconds[math.ceil(len(seconds) * percentile / 100 - 1e-9) - 1]


def cases() -> tuple[Case, ...]:
    """Return all loads, more than a minute in total."""
    return (
        _closed("constant", f"every answer takes {_CONSTANT_MS:g} ms", 50, 5.0, _constant,
                {"kind": "constant", "ms": _CONSTANT_MS}),
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
            {"lag": lambda _: 0.0}, (50.0,), _SCHEDULE_RATE,
        ),
    )  # fmt: skip


def _closed(
    name: str,
    words: str,
    clients: int,
    seconds: float,
    truth: Callable[[float], float | None],
    time: Mapping[str, Any],
) -> Case:
    return Case(name, words, {"time": time}, clients, seconds, {"response": truth})

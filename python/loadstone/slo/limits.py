"""What must be kept: shares of all transactions that should have begun, each within a time."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LIMIT = re.compile(r"p(\d{1,2}(?:\.\d+)?)\s*=\s*(\d+(?:\.\d+)?)\s*(us|µs|ms|s)")
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:/s)?")
_NS = {"us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
EXPECTED_MISSES = 30
"""At the boundary a trial has about so many, so that chance moves their number by a fifth."""


@dataclass(frozen=True, slots=True)
class Limit:
    """At least `share` of the transactions end within `ns`."""

    share: float
    ns: int
    text: str

    def seconds_for(self, rate: float) -> float:
        """Return how long a trial at a rate takes to show enough misses at the boundary."""
        return EXPECTED_MISSES / ((1 - self.share) * rate)


def limit(text: str) -> Limit:
    """Read `p99=20ms`. Raises ValueError for anything else."""
    found = _LIMIT.fullmatch(text.strip())
    if found is None:
        message = f"{text!r} is not a limit such as p99=20ms or p99.9=0.1s"
        raise ValueError(message)
    share, ns = float(found[1]) / 100, round(float(found[2]) * _NS[found[3]])
    if not 0 < share < 1 or ns <= 0:
        message = f"{text!r}: the percentile must be above 0, and the time too"
        raise ValueError(message)
    return Limit(share, ns, text.strip())


def rate(text: str) -> float:
    """Read `20000/s` or `20000`. Raises ValueError for anything else, and for 0."""
    found = _RATE.fullmatch(text.strip())
    if found is None or not float(found[1]):
        message = f"{text!r} is not a rate above 0, such as 20000/s"
        raise ValueError(message)
    return float(found[1])


def share(text: str) -> float:
    """Read `0.1%` or `0.1`, both in percent. Raises ValueError for what is not between 0 and 100."""
    try:
        found = float(text.strip().removesuffix("%")) / 100
    except ValueError:
        found = -1.0
    if not 0 < found < 1:
        message = f"{text!r} is not a percentage above 0 and below 100, such as 0.1%"
        raise ValueError(message)
    return found


@dataclass(frozen=True, slots=True)
class Observed:
    """What became of the transactions that should have begun in a window; counts add up exactly."""

    should: int
    in_time: tuple[int, ...]
    """Those that were done within each limit."""
    failed: int = 0

    def keeps(self, limits: tuple[Limit, ...], errors: float | None) -> bool:
        """Return whether every limit was kept; nothing is kept where nothing should have begun."""
        return self.should > 0 and not self.misses(limits, errors)

    def misses(self, limits: tuple[Limit, ...], errors: float | None) -> list[str]:
        """Return the limits that were not kept, the one that missed most first."""
        if not self.should:
            return [one.text for one in limits]
        found = [
            ((1 - done / self.should) / (1 - one.share), one.text)
            for one, done in zip(limits, self.in_time, strict=True)
            if done < one.share * self.should
        ]
        if errors is not None and self.failed > errors * self.should:
            found.append((self.failed / self.should / max(errors, 1e-9), "errors"))
        return [text for _, text in sorted(found, reverse=True)]

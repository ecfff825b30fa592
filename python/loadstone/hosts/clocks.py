"""What another host's monotonic clock reads: an offset to ours, with its error."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

ROUNDS = 32
"""Round trips; the fastest one was delayed least on either way."""


@dataclass(frozen=True, slots=True)
class Offset:
    """A host's clock minus ours; the truth is at most `error_ns` away."""

    offset_ns: int
    round_trip_ns: int

    @property
    def error_ns(self) -> int:
        """Half of the round trip: the reading was made somewhere within it."""
        return (self.round_trip_ns + 1) // 2

    def there(self, here_ns: int) -> int:
        """Return what the host's clock reads when ours reads `here_ns`."""
        return here_ns + self.offset_ns


def best(readings: Iterable[tuple[int, int, int]]) -> Offset:
    """Choose among (sent, read there, received) in nanoseconds the one with the least round trip."""
    sent, there, received = min(readings, key=lambda reading: reading[2] - reading[0])
    return Offset(there - (sent + received) // 2, received - sent)


async def measure(read: Callable[[], Awaitable[int]], rounds: int = ROUNDS) -> Offset:
    """Read the clock of a host `rounds` times, one after the other."""
    readings = []
    for _ in range(rounds):
        sent = time.monotonic_ns()
        there = await read()
        readings.append((sent, there, time.monotonic_ns()))
    return best(readings)

"""Trials that were disturbed on our side: what our own threads' lateness can have done to the latencies.

A trial that misses a limit while our threads wait for a CPU says nothing about the server, and is repeated.
One that keeps it counts all the same. Only the lateness of our own event loop is asked for: CPU time of
others, steal or pressure are causes that may have had no effect, and a server at its limit makes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.results.documents import Drive
    from loadstone.slo.limits import Limit

_OF_ALLOWED = 0.5
"""From half of the misses that a limit allows on, our lateness may have been decisive."""
_MOST = 4
"""So many trials of a search are made again: a machine that is always so must still give an answer."""


def delayed_share(drive: Drive, limit: Limit) -> float | None:
    """Return at most which share of the transactions our threads delayed by half a limit or more.

    A start or an answer that comes at any time meets a turn of the loop of length L with probability L over
    the window, and waits for t or longer with (L - t) over the window, at most L²/(4 t). A transaction has
    both; t is half the limit. None: the turns were not recorded.
    """
    lag = drive.loop.lag if drive.loop else None
    if lag is None or not lag.count:
        return None
    squares = lag.count * ((lag.mean_ns or 0.0) ** 2 + (lag.stddev_ns or 0.0) ** 2)
    window_ns = max(1, drive.end_ns - drive.measure_ns) * (drive.threads or 1)
    return float(min(1.0, squares / (limit.ns * window_ns)))


def was_late(drive: Drive, limits: Sequence[Limit], misses: Sequence[str]) -> bool:
    """Return whether each limit that was missed may have been kept, had our own threads been on time."""
    named = {one.text: one for one in limits}
    return bool(misses) and all(text in named and _decisive(drive, named[text]) for text in misses)


def _decisive(drive: Drive, limit: Limit) -> bool:
    delayed = delayed_share(drive, limit)
    return delayed is not None and delayed >= _OF_ALLOWED * (1 - limit.share)


@dataclass(slots=True)
class Repeats:
    """Grants that a trial does not count, and is made once more."""

    left: int = _MOST

    def grant(self) -> bool:
        """Return whether a trial may be made again, and take note of it."""
        self.left -= 1
        return self.left >= 0

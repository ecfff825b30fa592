"""The crashes of several values of one parameter joined: medians and ranges, and why a figure is missing."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import TYPE_CHECKING

from loadstone.crash.documents import Crash, CrashesOfValue, Spread
from loadstone.report import formats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from loadstone.crash.documents import Cycle
    from loadstone.results.documents.summary.units import Value

Seen = float | str
"""A figure of one crash, or why there is none."""


def joined(value: Value, folder: str, document: Crash) -> CrashesOfValue:
    """Return what the crashes of one value show together."""
    cycles = document.cycles
    entry = CrashesOfValue(
        value=value, folder=folder, state=document.state, verdict=document.verdict, crashes=len(cycles)
    )
    for cycle in cycles:
        if cycle.found is not None:
            entry.acknowledged += cycle.found.acknowledged
            entry.lost += cycle.found.lost + cycle.found.lost_allowed
    for name, look in FIGURES.items():
        seen = [look(cycle) for cycle in cycles]
        setattr(entry, name, spread(one for one in seen if not isinstance(one, str)))
        reasons = [one for one in seen if isinstance(one, str)]
        if reasons:
            entry.missing[name] = _counted(reasons, len(seen))
    return entry


def spread(values: Iterable[float]) -> Spread | None:
    """Return median, lowest and highest; None without any value."""
    found = sorted(values)
    if not found:
        return None
    return Spread(median=statistics.median(found), low=found[0], high=found[-1], crashes=len(found))


def figure(spread: Spread | None, divisor: float = 1) -> str:
    """Return median and range, or a dash: 1.2 (1.1-1.4)."""
    if spread is None:
        return formats.NONE
    median, low, high = (formats.digits(one / divisor) for one in (spread.median, spread.low, spread.high))
    return median if spread.crashes == 1 else f"{median} ({low}–{high})"


def _counted(reasons: list[str], crashes: int) -> str:
    """Return the reasons, with the number of crashes that each has where it is not all."""
    counts = Counter(reasons)
    if len(counts) == 1 and len(reasons) == crashes:
        return reasons[0]
    return "; ".join(f"in {count} of {crashes}: {reason}" for reason, count in counts.items())


def _wal(cycle: Cycle) -> Seen:
    found = cycle.recovery.wal_bytes
    return _NOT_IN_LOG if found is None else float(found)


def _before_replay(cycle: Cycle) -> Seen:
    found = cycle.recovery.before_replay_s
    if cycle.recovery.wal_bytes == 0:
        return _NO_WAL
    return _not_in_log(cycle) if found is None else found


def _speed(cycle: Cycle) -> Seen:
    wal, seconds = cycle.recovery.wal_bytes, cycle.recovery.replay_s
    if wal == 0:
        return _NO_WAL
    if wal is None or seconds is None:
        return _not_in_log(cycle)
    return wal / seconds if seconds else "the replay was shorter than the log's millisecond"


def _connection(cycle: Cycle) -> Seen:
    found = cycle.recovery.connection_s
    return _NOT_UP if found is None else found


def _commit(cycle: Cycle) -> Seen:
    found = cycle.recovery.commit_s
    return _not_within(cycle) if found is None else found


def _rate(cycle: Cycle) -> Seen:
    if cycle.recovery.rate_s is not None:
        return cycle.recovery.rate_s
    if cycle.recovery.connection_s is not None and cycle.recovery.rate_before is None:
        return "the rate before the crash is unknown"
    return _not_within(cycle)


def _rate_before(cycle: Cycle) -> Seen:
    found = cycle.recovery.rate_before
    return "no client committed before the crash" if found is None else found


def _not_in_log(cycle: Cycle) -> str:
    step_s = cycle.recovery.clock_step_s
    return _NOT_IN_LOG if step_s is None else f"the wall clock was set by {step_s:+.3g} s meanwhile"


def _not_within(cycle: Cycle) -> str:
    seen = cycle.recovery
    if seen.connection_s is None:
        return _NOT_UP
    if seen.watched_s is None:
        return "not while the load was watched"
    return f"not within {formats.digits(seen.watched_s)} s after the log-in"


_NOT_IN_LOG = "the server's log does not have it"
_NO_WAL = "there was no WAL to replay"
_NOT_UP = "the server did not come up"
FIGURES: dict[str, Callable[[Cycle], Seen]] = {
    "wal_bytes": _wal, "before_replay_s": _before_replay, "replay_bytes_per_s": _speed,
    "connection_s": _connection, "commit_s": _commit, "rate_s": _rate, "rate_before": _rate_before,
}  # fmt: skip
"""By their keys in crashes.json."""

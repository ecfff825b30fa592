"""How fast a server came back: from the clients' ledgers, and from its log."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from loadstone.crash.documents import Recovery
    from loadstone.crash.ledger import Array

SHARE = 0.95
_SPAN_S = 0.5
"""Rates are of so much time."""
_WARM_S = 0.3
"""After the load began: connections, plans and caches are new."""
_TIME = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3})")
_FROM = re.compile(r"redo starts at ([0-9A-F]+)/([0-9A-F]+)")
_TO = re.compile(r"redo done at ([0-9A-F]+)/([0-9A-F]+)")
_NONE = "redo is not required"


def first_after(ns: Array, start_ns: int) -> float | None:
    """Return the seconds from a time to the first acknowledgement after it; None where there is none."""
    later = ns[ns > start_ns]
    return float(later.min() - start_ns) / 1e9 if len(later) else None


def log_in_of_clients(seen: Recovery) -> None:
    """Take a client's commit as proof of its log-in where ours came later."""
    if seen.connection_s is not None and seen.commit_s is not None:
        seen.connection_s = min(seen.connection_s, seen.commit_s)


def rate_before(ns: Array, begin_ns: int, killed_ns: int) -> float | None:
    """Return the commits per second of the load before the crash; None where it was too short to say."""
    from_ns = begin_ns + int(_WARM_S * 1e9)
    if killed_ns - from_ns < int(_SPAN_S * 1e9):
        from_ns = begin_ns
    seconds = (killed_ns - from_ns) / 1e9
    count = int(((ns >= from_ns) & (ns < killed_ns)).sum())
    return count / seconds if seconds > 0 and count else None


def back_at_rate(ns: Array, start_ns: int, before: float | None) -> float | None:
    """Return the seconds from a time until a span of time begins in which the rate is back.

    `ns` are the times of acknowledgements, in any order. None: not yet.
    """
    later = np.sort(ns[ns > start_ns])
    if before is None or not len(later):
        return None
    need = max(int(np.ceil(SHARE * before * _SPAN_S)), 1)
    if len(later) < need:
        return None
    within = later[need - 1 :] - later[: len(later) - need + 1] <= int(_SPAN_S * 1e9)
    found = np.flatnonzero(within)
    return float(later[found[0]] - start_ns) / 1e9 if len(found) else None


def take_log(seen: Recovery, log: str, step_s: float | None) -> None:
    """Note what the server's log tells of its recovery; its times are wall-clock times.

    `step_s`: by how much the wall clock was set meanwhile, None where it was not. Then times are left out.
    """
    found = replayed(log)
    if found is not None:
        seen.wal_bytes = found[0]
    if step_s is not None:
        seen.clock_step_s = step_s
        return
    seen.before_replay_s = before_replay(log)
    if found is not None:
        seen.replay_s = found[1]


def replayed(log: str) -> tuple[int, float] | None:
    """Return bytes of WAL replayed and seconds of it, as the server's log tells; None where it does not."""
    if _NONE in log:
        return 0, 0.0
    begin, end = _logged_at(log, _FROM), _logged_at(log, _TO)
    if begin is None or end is None:
        return None
    return max(end[0] - begin[0], 0), max((end[1] - begin[1]).total_seconds(), 0.0)


def before_replay(log: str) -> float | None:
    """Return the seconds from the first line of the log until the replay began; None where it does not tell.

    Most of them are for syncing the data directory, see PostgreSQL's `recovery_init_sync_method`.
    """
    first = next((found for found in map(_TIME.match, log.splitlines()) if found), None)
    begin = _logged_at(log, _FROM)
    if first is None or begin is None:
        return None
    return max((begin[1] - datetime.fromisoformat(first[1])).total_seconds(), 0.0)


def _logged_at(log: str, what: re.Pattern[str]) -> tuple[int, datetime] | None:
    for line in log.splitlines():
        found, time = what.search(line), _TIME.match(line)
        if found and time:
            return (int(found[1], 16) << 32) + int(found[2], 16), datetime.fromisoformat(time[1])
    return None

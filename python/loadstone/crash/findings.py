"""How long servers took to come back, as sentences: of one server, and of one value against another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.crash.joint import figure, joined
from loadstone.report import formats

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.crash.documents import Crash, Spread

ENOUGH = 4
"""Crashes of each of two values: that all of one take longer than all of the other is chance in 2 of 70."""


def came_back(document: Crash) -> Iterator[str]:
    """Say how long a server took to come back, and with how much WAL; nothing where it never did."""
    entry = joined("", "", document)
    if entry.connection_s is None:
        return
    times = [f"a client could log in after {_seconds(entry.connection_s)}"]
    if entry.commit_s is not None:
        times.append(f"the first commit was acknowledged after {_seconds(entry.commit_s)}")
    if entry.rate_s is not None:
        times.append(f"95 % of the rate was back after {_seconds(entry.rate_s, entry.connection_s.crashes)}")
    limit = f" (max_wal_size = {document.max_wal_size})" if document.max_wal_size else ""
    wal = f", with {figure(entry.wal_bytes, 1e6)} MB of WAL to replay{limit}" if entry.wal_bytes else ""
    crashes = entry.connection_s.crashes
    of = "" if crashes == 1 else f", in the median of {crashes:,} crashes (lowest to highest)"
    yield f"Counted from the start of the server{of}: {formats.listed(times)}{wal}."
    if crashes == 1:
        yield "Indicative: one crash does not show how crashes differ. To see it, use --cycles 5."


def _seconds(spread: Spread, crashes: int = 0) -> str:
    """Return median and range, and in how many crashes it was seen where that is not all."""
    of = f" in {spread.crashes:,} of {crashes:,}" if 0 < spread.crashes < crashes else ""
    return f"{figure(spread)} s{of}"


def compared(names: tuple[str, str], first: Spread, last: Spread) -> Iterator[str]:
    """Say how the seconds until the log-in of the last value differ from those of the first."""
    if not first.median:
        return
    change, what = formats.change(last.median / first.median), "seconds until the log-in"
    if first.low <= last.high and last.low <= first.high:
        yield f"{names[1]}: no difference of {what} from {names[0]} was shown ({change}; the ranges overlap)."
        more = 2 * max(first.crashes, last.crashes, ENOUGH)
        yield f"To decide it, crash more often (--cycles {more})."
        return
    ranges = " (the ranges do not overlap)" if max(first.crashes, last.crashes) > 1 else ""
    yield f"{names[1]}: {what} {change} against {names[0]}{ranges}."
    if min(first.crashes, last.crashes) < ENOUGH:
        yield f"Indicative: to decide it takes at least {ENOUGH} crashes of each (--cycles {ENOUGH})."

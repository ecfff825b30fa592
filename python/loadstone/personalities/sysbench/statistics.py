"""Lines and blocks of results, in sysbench's form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BAR = 40
"""Characters of the longest bar of a histogram."""


@dataclass(frozen=True, slots=True)
class SqlCounts:
    """Statements by what they did, of one interval or of a whole run."""

    reads: int = 0
    writes: int = 0
    others: int = 0
    errors: int = 0
    reconnects: int = 0

    def __add__(self, other: SqlCounts) -> SqlCounts:
        """Return both together."""
        return SqlCounts(
            reads=self.reads + other.reads,
            writes=self.writes + other.writes,
            others=self.others + other.others,
            errors=self.errors + other.errors,
            reconnects=self.reconnects + other.reconnects,
        )

    @property
    def queries(self) -> int:
        """All statements."""
        return self.reads + self.writes + self.others


@dataclass(frozen=True, slots=True)
class Interval:
    """What happened in one interval; `sql` is None where the script has used no database."""

    at_s: float
    length_s: float
    threads: int
    events: int
    percentile_ms: float
    sql: SqlCounts | None
    queue: int | None = None
    """Events that were due and had not begun; None without a rate."""
    concurrency: int = 0


@dataclass(frozen=True, slots=True)
class Fairness:
    """Means and standard deviations over the clients."""

    events: float
    events_spread: float
    seconds: float
    seconds_spread: float


@dataclass(frozen=True, slots=True)
class Totals:
    """A whole run, or the part up to a checkpoint."""

    length_s: float
    """Of the part, for figures per second."""
    total_s: float
    """Since the start of the run."""
    events: int
    sql: SqlCounts | None
    min_ms: float
    mean_ms: float
    max_ms: float
    percentile_ms: float
    sum_ms: float
    fairness: Fairness
    unfinished: int | None = None
    """Events that a forced end has cut off; None where there was none."""


def interval_line(interval: Interval, percentile: int) -> str:
    """Return the figures of an interval, without the time before them."""
    latency = f"lat (ms,{percentile}%): {interval.percentile_ms:.2f}"
    rate = interval.events / interval.length_s
    sql = interval.sql
    if sql is None:
        return f"thds: {interval.threads} eps: {rate:.2f} {latency}"
    queries, *parts, errors, reconnects = (
        f"{count / interval.length_s:.2f}"
        for count in (sql.queries, sql.reads, sql.writes, sql.others, sql.errors, sql.reconnects)
    )
    return (
        f"thds: {interval.threads} tps: {rate:.2f} qps: {queries} (r/w/o: {'/'.join(parts)}) "
        f"{latency} err/s: {errors} reconn/s: {reconnects}"
    )


def queue_line(interval: Interval) -> str:
    """Return the second line of an interval under a rate."""
    comma = "," if interval.sql is not None else ""
    return f"queue length: {interval.queue}{comma} concurrency: {interval.concurrency}"


def block(totals: Totals, percentile: int) -> Iterator[str]:
    """Lines of the results."""
    if totals.sql is not None:
        yield from _sql(totals, totals.sql)
    if totals.unfinished is not None:
        yield f"\nNumber of unfinished transactions on forced shutdown: {totals.unfinished}"
    yield ""
    yield "General statistics:"
    yield f"    total time:                          {totals.total_s:.4f}s"
    yield f"    total number of events:              {totals.events}"
    yield ""
    yield from _latency(totals, percentile)
    yield ""
    yield from _fairness(totals.fairness)
    yield ""


def _sql(totals: Totals, sql: SqlCounts) -> Iterator[str]:
    yield "SQL statistics:"
    yield "    queries performed:"
    for name, count in (
        ("read", sql.reads),
        ("write", sql.writes),
        ("other", sql.others),
        ("total", sql.queries),
    ):
        yield f"        {name + ':':<33}{count}"
    for name, count in (
        ("transactions", totals.events),
        ("queries", sql.queries),
        ("ignored errors", sql.errors),
        ("reconnects", sql.reconnects),
    ):
        yield f"    {name + ':':<37}{count:<6} ({_per_s(count, totals.length_s):.2f} per sec.)"


def _per_s(count: int, length_s: float) -> float:
    return count / length_s if length_s else 0.0


def _latency(totals: Totals, percentile: int) -> Iterator[str]:
    yield "Latency (ms):"
    for name, value in (("min", totals.min_ms), ("avg", totals.mean_ms), ("max", totals.max_ms)):
        yield f"         {name}: {value:39.2f}"
    if percentile:
        yield f"        {percentile:3d}th percentile: {totals.percentile_ms:27.2f}"
    else:
        yield "         percentile stats:               disabled"
    yield f"         sum: {totals.sum_ms:39.2f}"


def _fairness(clients: Fairness) -> Iterator[str]:
    yield "Threads fairness:"
    yield f"    events (avg/stddev):           {clients.events:.4f}/{clients.events_spread:.2f}"
    yield f"    execution time (avg/stddev):   {clients.seconds:.4f}/{clients.seconds_spread:.2f}"


def histogram(buckets: Sequence[tuple[float, int]]) -> str:
    """Return the distribution of latencies: of each bucket its value in milliseconds and its count."""
    most = max((count for _, count in buckets), default=0)
    if not most:
        return ""
    text = "       value  ------------- distribution ------------- count\n"
    for value_ms, count in buckets:
        if count:
            stars = "*" * math.floor(count * BAR / most + 0.5)
            text += f"{value_ms:12.3f} |{stars:<{BAR}} {count}\n"
    return text

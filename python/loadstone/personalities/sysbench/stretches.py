"""Consecutive intervals of the driver as one: longer intervals, and what lies between two checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.personalities.sysbench.figures import statements_of
from loadstone.personalities.sysbench.statistics import Fairness, Interval, SqlCounts, Totals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from loadstone.summary.histograms import Histogram

    Row = Mapping[str, Any]

_NS = 1e9
_MS = 1e6


class Stretch:
    """Rows of series.jsonl, one after the other; the distribution is that of the driver's log in a folder."""

    def __init__(self, rows: Sequence[Row], start_ns: int, folder: Path | None) -> None:
        """`start_ns`: the start of the run, from which its log counts."""
        self._rows = rows
        self._start_ns = start_ns
        self._folder = folder

    @property
    def length_s(self) -> float:
        """How long all of it is."""
        first, last = self._rows[0], self._rows[-1]
        return max(int(last["end_ns"]) - int(first["start_ns"]), 1) / _NS

    @property
    def at_s(self) -> float:
        """When it ends, after the start of the run."""
        return (int(self._rows[-1]["end_ns"]) - self._start_ns) / _NS

    def interval(self, threads: int, percentile: float) -> Interval:
        """Return it as one interval of a run with so many clients."""
        last = self._rows[-1]
        return Interval(
            at_s=self.at_s,
            length_s=self.length_s,
            threads=last["connected"] or threads,
            events=self._events,
            percentile_ms=self._percentile_ms(percentile),
            sql=self._sql(),
            queue=last.get("queue"),
            concurrency=last.get("running") or 0,
        )

    def totals(self, threads: int, percentile: float) -> Totals:
        """Return it as the results of a run; clients are not told apart."""
        latencies = [row["response"] for row in self._rows if row["response"]]
        count = sum(latency["count"] for latency in latencies)
        sum_ms = sum(latency["mean_ns"] * latency["count"] for latency in latencies) / _MS
        found = self._responses()
        return Totals(
            length_s=self.length_s,
            total_s=self.at_s,
            events=self._events,
            sql=self._sql(),
            min_ms=(found.stats().min_ns or 0) / _MS,
            mean_ms=sum_ms / count if count else 0.0,
            max_ms=max((latency["max_ns"] for latency in latencies), default=0) / _MS,
            percentile_ms=(found.percentile_ns(percentile) or 0) / _MS if percentile else 0.0,
            sum_ms=sum_ms,
            fairness=_means(threads, self._events, sum_ms),
        )

    @property
    def _events(self) -> int:
        return sum(row["done"] for row in self._rows)

    def _sql(self) -> SqlCounts | None:
        found = [statements_of(row["operations"]) for row in self._rows]
        total = sum(found, SqlCounts())
        is_used = total.queries or any(row["connected"] for row in self._rows)
        return total if is_used else None

    def _percentile_ms(self, percentile: float) -> float:
        if len(self._rows) == 1:
            return (self._rows[0]["operations"]["percentile_ns"] or 0) / _MS
        return (self._responses().percentile_ns(percentile) or 0) / _MS if percentile else 0.0

    def _responses(self) -> Histogram:
        # Numpy, which few runs need.
        from loadstone.personalities.sysbench.distribution import responses  # noqa: PLC0415
        from loadstone.summary.histograms import Histogram  # noqa: PLC0415

        if self._folder is None:
            return Histogram()
        begin_s = (int(self._rows[0]["start_ns"]) - self._start_ns) / _NS
        return responses(self._folder, begin_s, self.at_s)


def _means(threads: int, events: int, sum_ms: float) -> Fairness:
    spread = 0.0 if threads == 1 else float("nan")
    return Fairness(events / threads, spread, sum_ms / 1e3 / threads, spread)

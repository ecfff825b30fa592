"""A phase over time: throughput and latency per interval, at most some hundred points however long it ran."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Literal

from loadstone.results.documents.summary import LatencyPoint, RatePoint
from loadstone.summary.histograms import SUPPORT, Histogram, read_log

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.results.documents import Interval

POINTS = 600
"""The most points of one series in the summary: more cannot be distinguished on a screen."""

FEWEST_POINTS = 20
SHOWN = (50.0, 95.0, 99.0)
NS_PER_S = 1e9


@dataclass(slots=True)
class LatencyLog:
    """What latency.hlog holds of the measured window: totals per tag, and response percentiles over time."""

    totals: dict[str, Histogram] = field(default_factory=dict)
    over_time: list[LatencyPoint] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Bucket:
    """A stretch of time in seconds since the phase's start."""

    start_s: float
    end_s: float

    @property
    def middle_s(self) -> float:
        """Where the bucket's point is drawn."""
        return (self.start_s + self.end_s) / 2


def measured(series: Sequence[Interval]) -> list[Interval]:
    """Return the intervals after the warm-up."""
    return [line for line in series if not line.warmup]


def interval_rates(
    series: Sequence[Interval], name: Literal["done", "rows", "metrics"] = "done"
) -> list[float]:
    """Rate of `name` in each full measured interval; the cut-off last one is left out: it means little."""
    lines = measured(series)
    if not lines:
        return []
    lengths = [line.end_ns - line.start_ns for line in lines]
    usual = median(lengths)
    return [
        (getattr(line, name) or 0) / length * NS_PER_S
        for line, length in zip(lines, lengths, strict=True)
        if length >= 0.9 * usual > 0
    ]


def throughput_over_time(series: Sequence[Interval], start_ns: int) -> list[RatePoint]:
    """Points of {t_s, tps, failed_per_s, warmup}; neighbours are joined when there are too many.

    A load's points have rows_per_s and metrics_per_s as well.
    """
    points = []
    rows, metrics = any(line.rows for line in series), any(line.metrics for line in series)
    for group in _whole_groups(series):
        length_s = sum(line.end_ns - line.start_ns for line in group) / NS_PER_S
        if length_s <= 0:
            continue
        bucket = _bucket(group, start_ns)
        points.append(
            RatePoint(
                t_s=bucket.middle_s,
                tps=sum(line.done for line in group) / length_s,
                failed_per_s=sum(line.failed for line in group) / length_s,
                warmup=bool(group[0].warmup),
                rows_per_s=sum(line.rows or 0 for line in group) / length_s if rows else None,
                metrics_per_s=sum(line.metrics or 0 for line in group) / length_s if metrics else None,
            )
        )
    return points


def read_latencies(path: Path, series: Sequence[Interval], start_ns: int) -> LatencyLog:
    """Read a phase's histogram log once, keeping one total per tag and one open bucket."""
    buckets = _latency_buckets(measured(series), start_ns)
    log = LatencyLog()
    current, at = Histogram(), 0
    for line in read_log(path):
        if line.tag.startswith("warmup-"):
            continue
        log.totals.setdefault(line.tag, Histogram()).add(line.first, line.counts)
        if line.tag != "response" or not buckets:
            continue
        middle_s = line.start_s + line.length_s / 2
        while at < len(buckets) - 1 and middle_s >= buckets[at].end_s:
            _close(log, buckets[at], current)
            current, at = Histogram(), at + 1
        current.add(line.first, line.counts)
    if buckets:
        _close(log, buckets[at], current)
    return log


def _close(log: LatencyLog, bucket: Bucket, histogram: Histogram) -> None:
    if not histogram.count:
        return
    p50, p95, p99 = (
        histogram.percentile_ns(percentile) if histogram.supports(percentile) else None
        for percentile in SHOWN
    )
    log.over_time.append(
        LatencyPoint(
            t_s=bucket.middle_s, mean_ns=histogram.stats().mean_ns, p50_ns=p50, p95_ns=p95, p99_ns=p99
        )
    )


def _latency_buckets(series: Sequence[Interval], start_ns: int) -> list[Bucket]:
    """Buckets long enough for a 99th percentile, where that leaves enough of them to show a course."""
    if not series:
        return []
    joined = math.ceil(len(series) / POINTS)
    usual = median(line.done + line.failed for line in series)
    wanted = math.ceil(SUPPORT * 100 / usual) if usual else 1
    if wanted > joined and len(series) / wanted >= FEWEST_POINTS:
        joined = wanted
    return [_bucket(series[at : at + joined], start_ns) for at in range(0, len(series), joined)]


def _whole_groups(series: Sequence[Interval]) -> list[list[Interval]]:
    """Join neighbours to at most POINTS groups; a cut-off last interval goes to its neighbour.

    Its own rate would be that of a few milliseconds: far above or below all others.
    """
    joined = math.ceil(len(series) / POINTS) if series else 1
    groups = [list(series[at : at + joined]) for at in range(0, len(series), joined)]
    if len(groups) > 1:
        usual_ns = median(line.end_ns - line.start_ns for line in series) * joined
        if groups[-1][-1].end_ns - groups[-1][0].start_ns < usual_ns / 2:
            tail = groups.pop()
            groups[-1] += tail
    return groups


def _bucket(group: Sequence[Interval], start_ns: int) -> Bucket:
    return Bucket((group[0].start_ns - start_ns) / NS_PER_S, (group[-1].end_ns - start_ns) / NS_PER_S)

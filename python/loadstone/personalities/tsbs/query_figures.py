"""Latencies as TSBS reports them: its lines, its file of percentiles, its file of results.

TSBS keeps whole microseconds in a histogram of four digits; the figures here come from the driver's, which
keeps nanoseconds in three, and from its exact sums. What is printed has TSBS's form to the byte.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from loadstone.results.documents.base import Stats
from loadstone.summary.histograms import Histogram, bucket_middle_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

ALL, COLD, WARM = "all queries", "cold queries", "warm queries"

_SUB_BUCKETS = 32_768
_HIGHEST_US = 3_600_000_000
_BUCKETS = 18
_TICKS = 10
_QUANTILES = {"q50": 50.0, "q95": 95.0, "q99": 99.0, "q999": 99.9, "q100": 100.0}


@dataclass(frozen=True, slots=True)
class Group:
    """The queries of one label, milliseconds."""

    count: int
    min: float = 0.0
    median: float = 0.0
    mean: float = 0.0
    max: float = 0.0
    stddev: float = 0.0

    @classmethod
    def of(cls, histogram: Histogram, stats: Mapping[str, Any] | None = None) -> Group:
        """Return the figures of a histogram, the exact ones from `stats` where they are known."""
        found = msgspec.convert(stats, Stats) if stats else histogram.stats()
        if not found.count:
            return cls(0)
        return cls(
            found.count,
            (found.min_ns or 0) / 1e6,
            (histogram.percentile_ns(50.0) or 0) / 1e6,
            (found.mean_ns or 0) / 1e6,
            (found.max_ns or 0) / 1e6,
            (found.stddev_ns or 0.0) / 1e6,
        )

    def line(self) -> str:
        """Return TSBS's line."""
        total_s = self.mean * self.count / 1e3
        return (
            f"min: {self.min:8.2f}ms, med: {self.median:8.2f}ms, mean: {self.mean:8.2f}ms, "
            f"max: {self.max:7.2f}ms, stddev: {self.stddev:8.2f}ms, sum: {total_s:5.1f}sec, "
            f"count: {self.count}\n"
        )


def block(groups: Mapping[str, Group]) -> str:
    """Return TSBS's block: label and figures of each group, sorted by label."""
    # Both sorts are by bytes, and so is the width.
    labels = sorted(groups, key=str.encode)
    width = max((len(label.encode()) for label in labels), default=0)
    padded = {label: label + " " * (width - len(label.encode())) for label in labels}
    return "".join(f"{padded[label]}:\n{groups[label].line()}" for label in labels)


def percentile_lines(histogram: Histogram) -> str:
    """Return the text of TSBS's `--hdr-latencies` file, values in milliseconds."""
    return lines_of(*_microseconds(histogram))


def lines_of(values: Integers, counts: Integers) -> str:
    """Return the same of counted microseconds: the lowest values of TSBS's buckets, ascending."""
    total = int(counts.sum())
    lines = [" Value\tPercentile\tTotalCount\t1/(1-Percentile)\n\n"]
    for value, percentile, up_to in _distribution(values, counts, total):
        share = percentile / 100
        inverse = f"{1 / (1 - share):12.2f}" if share < 1 else f"{'inf':>12}"
        lines.append(f"{_top(value) / 1e3:12.3f} {share:12f} {up_to:12d} {inverse}\n")
    middle = np.array([_middle(int(value)) for value in values], dtype=np.float64)
    mean = float(np.average(middle, weights=counts)) if total else 0.0
    spread = math.sqrt(float(np.average((middle - mean) ** 2, weights=counts))) if total else 0.0
    highest = _top(int(values[-1])) if total else 0
    lines.append(f"#[Mean    = {mean / 1e3:12.3f}, StdDeviation   = {spread / 1e3:12.3f}]\n")
    lines.append(f"#[Max     = {highest / 1e3:12.3f}, Total count    = {total:12d}]\n")
    lines.append(f"#[Buckets = {_BUCKETS:12d}, SubBuckets     = {_SUB_BUCKETS:12d}]\n")
    return "".join(lines)


def quantiles(histogram: Histogram) -> dict[str, float]:
    """Return the quantiles of TSBS's results file, milliseconds; its `q0` is always 0."""
    if not histogram.count:
        return dict.fromkeys(("q0", *_QUANTILES), 0.0)
    return {"q0": 0.0} | {
        name: (histogram.percentile_ns(q) or 0) // 1000 / 1e3 for name, q in _QUANTILES.items()
    }


def plain(label: str) -> str:
    """Return a label as TSBS's results file spells it."""
    return re.sub("[^a-zA-Z0-9]+", "_", label)


def merged(histograms: Iterable[Histogram]) -> Histogram:
    """Return all samples in one histogram."""
    whole = Histogram()
    for histogram in histograms:
        whole.add(0, histogram.counts)
    return whole


def _microseconds(histogram: Histogram) -> tuple[Integers, Integers]:
    """Return the lowest values of TSBS's buckets that hold samples, ascending, and how many each holds."""
    held: dict[int, int] = {}
    for index in np.flatnonzero(histogram.counts):
        value = min(int(bucket_middle_ns(int(index)) // 1000), _HIGHEST_US)
        floor = value - value % _width(value)
        held[floor] = held.get(floor, 0) + int(histogram.counts[index])
    values = np.array(sorted(held), dtype=np.int64)
    return values, np.array([held[int(value)] for value in values], dtype=np.int64)


def _distribution(values: Integers, counts: Integers, total: int) -> Iterator[tuple[int, float, int]]:
    """Yield value, percentile and the count up to it, in steps that halve towards 100 %."""
    wanted, up_to, value = 0.0, 0, 0
    for found, count in zip(values, counts, strict=True):
        up_to, value = up_to + int(count), int(found)
        while wanted <= 100.0 * up_to / total:
            yield value, wanted, up_to
            if up_to == total:
                break  # as TSBS's library does: one step at the last value, then the end
            halvings = math.trunc(math.log2(100.0 / (100.0 - wanted))) + 1
            wanted += 100.0 / (_TICKS * 2.0**halvings)
    yield value, 100.0, up_to


def _width(value_us: int) -> int:
    """Return how many microseconds share a bucket."""
    return 1 << max(0, value_us.bit_length() - _SUB_BUCKETS.bit_length() + 1)


def _top(value_us: int) -> int:
    return value_us + _width(value_us) - 1


def _middle(value_us: int) -> int:
    return value_us + _width(value_us) // 2

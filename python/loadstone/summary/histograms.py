"""HdrHistogram logs, version 1.3, as dense counts that merge by addition.

The `hdrh` package decodes the payloads. Its own log reader is not used: it stumbles over a torn line and
builds an object per line. Bucket layout and names are those of https://hdrhistogram.org, with three
significant digits and a unit of 1 ns.
"""

from __future__ import annotations

import binascii
import math
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from hdrh.codec import (  # type: ignore[import-untyped]
    HdrCookieException,
    HdrHistogramEncoder,
    HdrLengthException,
)

from loadstone.results.document_reader import exists, open_regular
from loadstone.results.documents.base import Stats

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

SUB_BUCKETS = 2048
HALF = SUB_BUCKETS // 2
LENGTH = HALF * 54 + SUB_BUCKETS
"""Counters for values up to 2^63 ns: more than any run can last."""

SUPPORT = 10
"""A percentile is given only when about this many samples are beyond it."""


@dataclass(slots=True)
class Histogram:
    """Counts of latencies in nanoseconds; `counts` grows with the largest value seen."""

    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(SUB_BUCKETS, dtype=np.int64))

    @property
    def count(self) -> int:
        """Number of samples."""
        return int(self.counts.sum())

    def add(self, first: int, counts: NDArray[np.int64]) -> None:
        """Add `counts`, the first of which belongs to bucket `first`."""
        end = first + len(counts)
        if end > len(self.counts):
            self.counts = np.concatenate([self.counts, np.zeros(end - len(self.counts), dtype=np.int64)])
        self.counts[first:end] += counts

    def percentile_ns(self, percentile: float) -> int | None:
        """Return the highest value of the bucket with the sample at `percentile` (0..100), if any."""
        total = self.count
        if not total:
            return None
        rank = max(1, math.ceil(total * percentile / 100 - 1e-9))
        return bucket_top_ns(int(np.searchsorted(np.cumsum(self.counts), rank)))

    def supports(self, percentile: float) -> bool:
        """Whether enough samples are beyond `percentile` for it to mean anything."""
        return self.count * (1 - percentile / 100) >= SUPPORT - 1e-6

    def stats(self) -> Stats:
        """count, mean_ns, stddev_ns, min_ns, max_ns, each within the histogram's three digits."""
        used = np.flatnonzero(self.counts)
        if not len(used):
            return Stats(count=0)
        values = np.array([bucket_middle_ns(int(index)) for index in used])
        weights = self.counts[used]
        mean = float(np.average(values, weights=weights))
        variance = float(np.average((values - mean) ** 2, weights=weights))
        return Stats(
            count=self.count,
            mean_ns=mean,
            stddev_ns=math.sqrt(variance),
            min_ns=bucket_floor_ns(int(used[0])),
            max_ns=bucket_top_ns(int(used[-1])),
        )

    def curve(self, points_per_decade: int = 12) -> list[tuple[float, int]]:
        """Return (share of samples beyond, latency ns) from the median outwards, as far as samples reach."""
        total = self.count
        if total < 2 * SUPPORT:
            return []
        decades = math.log10(total / SUPPORT)
        steps = np.unique(np.append(np.arange(math.log10(2), decades, 1 / points_per_decade), decades))
        sums = np.cumsum(self.counts)
        beyond = 10.0**-steps
        ranks = np.clip(np.ceil(total * (1 - beyond) - 1e-9), 1, total)
        indexes = np.searchsorted(sums, ranks)
        return [(float(b), bucket_top_ns(int(i))) for b, i in zip(beyond, indexes, strict=True)]


@dataclass(frozen=True, slots=True)
class LogLine:
    """One interval of one tag; times in seconds since the phase's start."""

    tag: str
    start_s: float
    length_s: float
    first: int
    counts: NDArray[np.int64]


def bucket_floor_ns(index: int) -> int:
    """Return the lowest value that falls into bucket `index`."""
    if index < SUB_BUCKETS:
        return index
    shift = index // HALF - 1
    return (index % HALF + HALF) << shift


def bucket_top_ns(index: int) -> int:
    """Return the highest value that falls into bucket `index`."""
    shift = max(0, index // HALF - 1) if index >= SUB_BUCKETS else 0
    return bucket_floor_ns(index) + (1 << shift) - 1


def bucket_middle_ns(index: int) -> float:
    """Return the middle of bucket `index`: the value that stands for its samples in a mean."""
    return (bucket_floor_ns(index) + bucket_top_ns(index)) / 2


def read_log(path: Path) -> Iterator[LogLine]:
    """Yield the intervals of a histogram log in file order, without comments, legend and torn lines."""
    if not exists(path):
        return
    with open_regular(path) as lines:
        for line in lines:
            parsed = _parse(line.decode("ascii", "replace"))
            if parsed is not None:
                yield parsed


def read_more(path: Path, offset: int) -> tuple[list[LogLine], int]:
    """Return the intervals that a growing log has gained since `offset` bytes, and where to go on."""
    try:
        with path.open("rb") as log:
            log.seek(offset)
            grown = log.read()
    except OSError:
        return [], offset
    whole = grown[: grown.rfind(b"\n") + 1]
    lines = (_parse(f"{line}\n") for line in whole.decode("ascii", "replace").splitlines())
    return [line for line in lines if line is not None], offset + len(whole)


def _parse(line: str) -> LogLine | None:
    if not line.endswith("\n") or line.startswith(("#", '"')):
        return None
    tag = ""
    if line.startswith("Tag="):
        tag, _, line = line[4:].partition(",")
    fields = line.strip().split(",")
    if len(fields) != 4:  # noqa: PLR2004 - start, length, maximum, payload: the format's four
        return None
    try:
        first, counts = _decode(fields[3])
        start_s, length_s = float(fields[0]), float(fields[1])
        return LogLine(tag, start_s, length_s, first, counts) if math.isfinite(start_s + length_s) else None
    except (ValueError, binascii.Error, zlib.error, HdrCookieException, HdrLengthException):
        return None


def _decode(payload: str) -> tuple[int, NDArray[np.int64]]:
    decoder = HdrHistogramEncoder.decode(payload)
    header = decoder.payload
    if header.significant_figures != 3 or header.lowest_trackable_value != 1:  # noqa: PLR2004 - our format's digits
        raise ValueError("not three significant digits of nanoseconds")
    found = decoder.init_counts(LENGTH)
    if not found["total"]:  # no document: what the codec found
        return 0, np.zeros(0, dtype=np.int64)
    first, last = found["min_nonzero_index"], found["max_nonzero_index"]  # no document: what the codec found
    counts = np.frombuffer(decoder.get_counts(), dtype=np.int64)[first : last + 1].copy()
    return first, counts

"""The distribution of a run's latencies, from the driver's own log of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from loadstone.summary.histograms import Histogram, bucket_middle_ns, read_log

if TYPE_CHECKING:
    from pathlib import Path

CLASSES = 1024
LEAST_MS = 0.001
MOST_MS = 100_000.0
_PER_LOG = (CLASSES - 1) / math.log(MOST_MS / LEAST_MS)


def responses(folder: Path, begin_s: float = 0.0, end_s: float = math.inf) -> Histogram:
    """Return the response times in the folder of a drive, without the warm-up.

    Of a part of it, from `begin_s` to `end_s` after the start, there are the intervals whose middle is in it.
    """
    found = Histogram()
    for line in read_log(folder / "latency.hlog"):
        if line.tag == "response" and begin_s <= line.start_s + line.length_s / 2 < end_s:
            found.add(line.first, line.counts)
    return found


def classes(found: Histogram) -> list[tuple[float, int]]:
    """Return sysbench's classes that have samples: the value of each in milliseconds, and its count."""
    counts: dict[int, int] = {}
    for index in np.flatnonzero(found.counts):
        number = class_of(bucket_middle_ns(int(index)) / 1e6)
        counts[number] = counts.get(number, 0) + int(found.counts[index])
    return [(LEAST_MS * math.exp(number / _PER_LOG), count) for number, count in sorted(counts.items())]


def class_of(value_ms: float) -> int:
    """Return the number of the class with a latency; what is below or above them all is in the outermost."""
    if value_ms <= LEAST_MS:
        return 0
    return min(math.floor(math.log(value_ms / LEAST_MS) * _PER_LOG + 0.5), CLASSES - 1)

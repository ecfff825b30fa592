"""Tables from the lists of each phase: seconds, and histograms of latencies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from loadstone.results.documents import Interval
from loadstone.summary.histograms import Histogram, bucket_floor_ns, bucket_top_ns, read_log
from loadstone.tables.columns import PHASE, REAL, TEXT, WHOLE, Columns, columns_of, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.results.folder import RunFolder
    from loadstone.results.phase_folder import PhaseFolder

QUERIES = "queries"
"""The folder of the queries that ran during a load: its rows have `during` the load's phase."""
_LEFT_OUT = ("start_ns", "end_ns", "response")
_INTERVALS: Columns = {
    **PHASE,
    "start_s": REAL,
    "length_s": REAL,
    **columns_of(Interval, _LEFT_OUT),
    "response_count": WHOLE,
    "response_mean_ns": REAL,
    "response_min_ns": REAL,
    "response_max_ns": REAL,
}
_LATENCIES: Columns = {**PHASE, "tag": TEXT, "floor_ns": WHOLE, "top_ns": WHOLE, "count": WHOLE}
_WARMUP = "warmup-"


def interval_table(run: RunFolder) -> pa.Table:
    """Return a row for each interval; `start_s` counts from the run's origin."""
    origin_ns = run.run.get("origin_ns") or 0
    rows = (
        _interval(target, key, line, origin_ns)
        for target, key, phase in _phases(run)
        for line in phase.read_series()
    )
    return table(_INTERVALS, rows)


def _interval(target: str, key: str, line: Interval, origin_ns: int) -> dict[str, Any]:
    response = line.response
    return {
        "target": target,
        "phase": key,
        **{name: getattr(line, name) for name in Interval.__struct_fields__ if name not in _LEFT_OUT},
        "start_s": (line.start_ns - origin_ns) / 1e9,
        "length_s": (line.end_ns - line.start_ns) / 1e9,
        "response_count": response and response.count,
        "response_mean_ns": response and response.mean_ns,
        "response_min_ns": response and response.min_ns,
        "response_max_ns": response and response.max_ns,
    }


def latency_table(run: RunFolder) -> pa.Table:
    """Return a row for each bucket that has samples, by tag, such as `response` or `statement-0.1`.

    `floor_ns` and `top_ns` are the bucket's least and greatest value; the warm-up is left out.
    """
    parts = [
        _buckets(target, key, tag, histogram)
        for target, key, phase in _phases(run)
        for tag, histogram in _histograms(phase).items()
    ]
    return pa.concat_tables([table(_LATENCIES, ()), *parts])


def _histograms(phase: PhaseFolder) -> dict[str, Histogram]:
    found: dict[str, Histogram] = {}
    for line in read_log(phase.latency_path):
        if not line.tag.startswith(_WARMUP):
            found.setdefault(line.tag, Histogram()).add(line.first, line.counts)
    return found


def _buckets(target: str, key: str, tag: str, histogram: Histogram) -> pa.Table:
    used = [int(index) for index in np.flatnonzero(histogram.counts)]
    rows = (
        {
            "target": target,
            "phase": key,
            "tag": tag,
            "floor_ns": bucket_floor_ns(index),
            "top_ns": bucket_top_ns(index),
            "count": int(histogram.counts[index]),
        }
        for index in used
    )
    return table(_LATENCIES, rows)


def _phases(run: RunFolder) -> Iterator[tuple[str, str, PhaseFolder]]:
    """Yield target, name and folder of each phase; queries during a load are named `PHASE/queries`."""
    for target in run.targets():
        for phase in target.phases():
            yield target.id, phase.key, phase
            queries = phase.subfolder(QUERIES, create=False)
            if queries.path.is_dir():
                yield target.id, f"{phase.key}/{QUERIES}", queries

"""Freshness: the time from handing a row to the server until a query can see it.

The load notes when the first batch that holds a later row time than all before was passed on (sent.jsonl);
a probe beside it asks again and again for the latest time that can be seen (probe.jsonl). A row time counts
as seen when the first answer that is not older has arrived. That errs on the long side, by one round of the
probe at most, which is given beside the figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from loadstone.results.documents.summary import FreshnessFigures, Percentile
from loadstone.summary.histograms import SUPPORT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.results.documents import Probed, Sent

PERCENTILES = (50.0, 95.0, 99.0)


def summarise_freshness(sent: Sequence[Sent], probe: Sequence[Probed]) -> FreshnessFigures | None:
    """Return percentiles of freshness in ns, how many marks were never seen, and the probe's rhythm.

    None when nothing was sent or nothing was asked.
    """
    answers = sorted((line.end_ns, line.value) for line in probe if line.value is not None)
    if not sent or not answers:
        return None
    ends = np.array([end for end, _ in answers], dtype=np.int64)
    seen = np.maximum.accumulate(np.array([value for _, value in answers], dtype=np.int64))
    times = np.array([mark.time_us for mark in sent], dtype=np.int64)
    handed = np.array([mark.sent_ns for mark in sent], dtype=np.int64)
    first = np.searchsorted(seen, times, side="left")
    visible = first < len(ends)
    waits = (ends[first[visible]] - handed[visible]).clip(min=0)
    gaps = np.diff(ends)
    return FreshnessFigures(
        count=len(waits),
        never_seen=int(len(times) - len(waits)),
        mean_ns=float(waits.mean()) if len(waits) else None,
        max_ns=int(waits.max()) if len(waits) else None,
        percentiles=[_percentile(waits, percentile) for percentile in PERCENTILES],
        probe_every_ns=float(np.median(gaps)) if len(gaps) else None,
    )


def _percentile(waits: np.ndarray[tuple[int], np.dtype[np.int64]], percentile: float) -> Percentile:
    needed = round(SUPPORT / (1 - percentile / 100))
    if len(waits) < needed:
        return Percentile(
            percentile=percentile,
            value_ns=None,
            reason=f"needs {needed:,} samples, and there are {len(waits):,}",
        )
    return Percentile(percentile=percentile, value_ns=float(np.percentile(waits, percentile)), reason=None)

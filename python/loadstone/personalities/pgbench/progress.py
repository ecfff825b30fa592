"""Lines of progress, as `-P` shows them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from loadstone.personalities.pgbench.complaint import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loadstone.personalities.pgbench.options import Options


PERCENTILES = (50, 95, 99)
"""Those that the driver takes from the histogram of each interval."""
SUPPORT = 10
"""Samples that a percentile needs beyond it."""
SAY_NS = 3_000_000_000
"""So long after the end of `-T` a wait for answers is told."""


class ProgressLines:
    """Shows each full interval once, in order."""

    def __init__(self, options: Options, err: Callable[[str], object], limit_s: float) -> None:
        """Write to `err`; without `-P` no intervals are shown. One answer may take `limit_s`."""
        self._options = options
        self._err = err
        self._limit_s = limit_s
        self._shown_ns = 0
        self._waits = False

    def show(self, progress: Mapping[str, Any]) -> None:
        """Show the intervals that the driver has ended since the last look."""
        for row in progress.get("recent", []):
            self._row(row, progress["start_ns"])
        deadline_ns = progress["deadline_ns"]
        if deadline_ns and not self._waits and time.monotonic_ns() > deadline_ns + SAY_NS:
            self._waits = True
            self._err(
                f"{PROGRAM}: the time is over; waiting for answers to statements already sent, at most "
                f"{self._limit_s:g} s each; Ctrl-C stops waiting\n"
            )

    def _row(self, row: Mapping[str, Any], start_ns: int) -> None:
        length_s = (row["end_ns"] - row["start_ns"]) / 1e9
        asked_s = self._options.progress_s
        if not asked_s or length_s < asked_s * 0.999 or row["start_ns"] < self._shown_ns:
            return
        self._shown_ns = row["end_ns"]
        self._err(f"progress: {self._figures(row, (row['end_ns'] - start_ns) / 1e9, length_s)}\n")

    def _figures(self, row: Mapping[str, Any], at_s: float, length_s: float) -> str:
        response = row["response"] or {"mean_ns": 0.0, "stddev_ns": 0.0}
        at = f"{self._epoch_s(row):.3f}" if self._options.progress_timestamp else f"{at_s:.1f}"
        figures = (
            f"{at} s, {row['done'] / length_s:.1f} tps, lat {response['mean_ns'] / 1e6:.3f} ms "
            f"stddev {response['stddev_ns'] / 1e6:.3f}, {row['failed']} failed"
        )
        if self._options.rate_per_s:
            figures += f", lag {(row['lag_mean_ns'] or 0.0) / 1e6:.3f} ms"
            if self._options.latency_limit_ms:
                figures += f", {row['skipped']} skipped"
        if self._options.max_tries != 1:
            figures += f", {row['retried']} retried, {row['retries']} retries"
        if self._options.progress_percentiles:
            figures += _percentiles(row["response"])
        return f"{figures}, warm-up" if row["warmup"] else figures

    @staticmethod
    def _epoch_s(row: Mapping[str, Any]) -> float:
        """Seconds since 1970 of the interval's end."""
        lead_ns = time.time_ns() - time.monotonic_ns()  # noqa: TID251 - it is shown, and of this moment
        return float(row["end_ns"] + lead_ns) / 1e9


def _percentiles(response: Mapping[str, Any] | None) -> str:
    """Return the end of a line: `-` for a percentile of too few samples."""
    figures = ""
    for percentile in PERCENTILES:
        supported = response and response["count"] * (100 - percentile) >= 100 * SUPPORT
        value_ns = response[f"p{percentile}_ns"] if response and supported else None
        figures += f", p{percentile} -" if value_ns is None else f", p{percentile} {value_ns / 1e6:.3f} ms"
    return figures

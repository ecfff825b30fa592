"""Lines of figures while a run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.personalities.sysbench.figures import interval_of
from loadstone.personalities.sysbench.statistics import interval_line, queue_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.personalities.sysbench.limits import Limits
    from loadstone.personalities.sysbench.log import Log
    from loadstone.personalities.sysbench.messages import Messages

_FULL = 0.999
"""An interval shorter than this part of what was asked is the rest at the end."""


class Progress:
    """Shows each full interval once, in order."""

    def __init__(self, limits: Limits, log: Log) -> None:
        """Show nothing where no interval was asked for."""
        self._limits = limits
        self._log = log
        self._shown_ns = 0
        self._started = False

    def show(self, progress: Mapping[str, Any], messages: Messages) -> None:
        """Show the intervals that the driver has ended since the last look."""
        start_ns = progress["start_ns"]
        if start_ns is None:
            return
        if not self._started:
            self._started = True
            messages.begin()
            self._log.text("Threads started!\n")
        for row in progress.get("recent", []):
            self._row(row, start_ns)

    def _row(self, row: Mapping[str, Any], start_ns: int) -> None:
        interval = interval_of(row, start_ns, self._limits.threads)
        asked_s = self._limits.report_interval_s
        if not asked_s or interval.length_s < asked_s * _FULL or row["start_ns"] < self._shown_ns:
            return
        self._shown_ns = row["end_ns"]
        self._log.at(interval.at_s, interval_line(interval, self._limits.percentile))
        if interval.queue is not None:
            self._log.at(interval.at_s, queue_line(interval))

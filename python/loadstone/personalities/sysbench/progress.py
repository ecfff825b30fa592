"""What is reported while a run goes on: its intervals, and full statistics at checkpoints."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any

from loadstone.personalities.sysbench.figures import interval_of, totals_of
from loadstone.personalities.sysbench.statistics import block, interval_line, queue_line
from loadstone.personalities.sysbench.stretches import Stretch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from loadstone.personalities.sysbench.hooks import Hooks
    from loadstone.personalities.sysbench.limits import Limits
    from loadstone.personalities.sysbench.log import Log
    from loadstone.personalities.sysbench.messages import Messages
    from loadstone.personalities.sysbench.statistics import Interval, Totals

    Row = Mapping[str, Any]

_FULL = 0.999
"""An interval shorter than this part of what was asked is the rest at the end."""
_NEAR_S = 0.0005
"""So much before a checkpoint, an interval has reached it."""


def driver_interval_s(limits: Limits) -> float:
    """Return the driver's interval: the longest of which reports and checkpoints are multiples."""
    return float(gcd(limits.report_interval_s, *limits.checkpoints_s) or 1)


class Progress:
    """Reports each full interval once, and each checkpoint, in order; `folder` has the driver's files."""

    def __init__(self, limits: Limits, log: Log, hooks: Hooks, folder: Path | None) -> None:
        """Report by the script's `hooks` where it has some, else to the log."""
        self._limits = limits
        self._log = log
        self._hooks = hooks
        self._folder = folder
        self._shown_ns = 0
        self._started = False
        self._start_ns = 0
        self._interval: list[Row] = []
        self._part: list[Row] = []
        self._ahead = list(limits.checkpoints_s)

    def show(self, progress: Mapping[str, Any], messages: Messages) -> None:
        """Report what the driver has ended since the last look."""
        start_ns = progress["start_ns"]
        if start_ns is None:
            return
        if not self._started:
            self._started, self._start_ns = True, start_ns
            messages.started()
            self._log.text("Threads started!\n")
        for row in progress.get("recent", []):
            if row["start_ns"] >= self._shown_ns:
                self._shown_ns = row["end_ns"]
                self._row(row)

    def totals(self, account: Mapping[str, Any]) -> Totals:
        """Return the results: of the part since the last checkpoint, or of all."""
        is_part = len(self._ahead) < len(self._limits.checkpoints_s)
        if is_part and self._part:
            return self._stretch(self._part).totals(self._limits.threads, self._limits.percentile)
        return totals_of(account)

    def _row(self, row: Row) -> None:
        if self._limits.report_interval_s:
            self._interval.append(row)
            self._end_interval()
        if self._limits.checkpoints_s and not row["warmup"]:
            self._part.append(row)
            self._end_part()

    def _end_interval(self) -> None:
        first, last = self._interval[0], self._interval[-1]
        length_s = (last["end_ns"] - first["start_ns"]) / 1e9
        if length_s < self._limits.report_interval_s * _FULL:
            return
        if first is last:
            interval = interval_of(first, self._start_ns, self._limits.threads)
        else:
            interval = self._stretch(self._interval).interval(self._limits.threads, self._limits.percentile)
        self._interval = []
        self._report(interval)

    def _report(self, interval: Interval) -> None:
        if self._hooks.interval(interval):
            return
        self._log.at(interval.at_s, interval_line(interval, self._limits.percentile))
        if interval.queue is not None:
            self._log.at(interval.at_s, queue_line(interval))

    def _end_part(self) -> None:
        part = self._stretch(self._part)
        if not self._ahead or part.at_s < self._ahead[0] - _NEAR_S:
            return
        self._ahead = [second for second in self._ahead if second > part.at_s + _NEAR_S]
        self._part = []
        threads, percentile = self._limits.threads, self._limits.percentile
        totals = part.totals(threads, percentile)
        self._log.at(part.at_s, "Checkpoint report:")
        if not self._hooks.totals(totals, threads):
            for text in block(totals, percentile):
                self._log.text(text)

    def _stretch(self, rows: list[Row]) -> Stretch:
        return Stretch(rows, self._start_ns, self._folder)

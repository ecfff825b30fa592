"""A script's own reports: its hooks get the figures, and what they print takes the place of ours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from loadstone import _core

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.personalities.sysbench.log import Log
    from loadstone.personalities.sysbench.statistics import Interval, SqlCounts, Totals

Hook = Literal["report_intermediate", "report_cumulative"]


class Hooks:
    """The hooks of a script; for each kind the script is loaded once more, as sysbench does."""

    def __init__(self, defined: frozenset[str], document: Mapping[str, Any], log: Log) -> None:
        """Know the hooks that are `defined`, of the script of a document for `_core.lua_script`."""
        self._defined = defined
        self._document = document
        self._log = log
        self._loaded: dict[str, _core.LuaReports] = {}

    def interval(self, interval: Interval) -> bool:
        """Have an interval reported; returns whether there is a hook for it."""
        figures = {"queue_length": interval.queue or 0, "concurrency": interval.concurrency}
        return self._call(
            "report_intermediate",
            figures
            | _common(
                interval.threads, interval.length_s, interval.at_s, interval.percentile_ms, interval.events
            )
            | _statements(interval.sql),
        )

    def totals(self, totals: Totals, threads: int) -> bool:
        """Have a whole run reported, or a part of it with so many clients still at work."""
        latencies = {
            "latency_min": totals.min_ms,
            "latency_max": totals.max_ms,
            "latency_avg": totals.mean_ms,
            "latency_sum": totals.sum_ms,
        }
        return self._call(
            "report_cumulative",
            {name: value / 1e3 for name, value in latencies.items()}
            | _common(threads, totals.length_s, totals.total_s, totals.percentile_ms, totals.events)
            | _statements(totals.sql),
        )

    def end(self, hook: Hook) -> None:
        """End the state of one kind of hook: what it opened it closes."""
        loaded = self._loaded.pop(hook, None)
        if loaded is not None:
            self._log.plain(loaded.end())

    def _call(self, hook: Hook, figures: Mapping[str, float]) -> bool:
        if hook not in self._defined:
            return False
        try:
            if hook not in self._loaded:
                self._loaded[hook] = _core.LuaReports(json.dumps(self._document))
            self._log.plain(self._loaded[hook].call(hook, json.dumps(figures)))
        except _core.ScriptError as error:
            self._log.text(f"`{hook}' function failed: {error.args[0]}", "fatal")
        return True


def _common(
    threads: int, length_s: float, total_s: float, percentile_ms: float, events: int
) -> dict[str, float]:
    """Return what both kinds of hook get: times in seconds."""
    return {
        "threads_running": threads,
        "time_interval": length_s,
        "time_total": total_s,
        "latency_pct": percentile_ms / 1e3,
        "events": events,
    }


def _statements(sql: SqlCounts | None) -> dict[str, float]:
    return {
        "reads": sql.reads if sql else 0,
        "writes": sql.writes if sql else 0,
        "other": sql.others if sql else 0,
        "errors": sql.errors if sql else 0,
        "reconnects": sql.reconnects if sql else 0,
    }

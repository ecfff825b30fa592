"""The progress of several hosts as that of one drive."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.hosts.joint import Share

Row = dict[str, Any]
_SUMS = (
    "done", "failed", "skipped", "dropped", "retries", "connected", "bytes_sent", "bytes_received",
)  # fmt: skip
_GAINS = ("rows", "metrics")
"""Of loads only."""


class JointProgress:
    """Joins the latest rows of all hosts; an interval is shown once every running host has told of it."""

    def __init__(self, shares: Sequence[Share]) -> None:
        """Nothing has come yet."""
        self._shares = shares
        self._rows: dict[int, dict[int, Row]] = {}
        self._reported: dict[int, int] = {}
        """The latest interval that each host has told of."""
        self._shown = -1
        self._latest: Row | None = None

    def take(self) -> Row:
        """Return the progress of all, in the form of one drive's, times on our clock."""
        shares = [share for share in self._shares if share.progress]
        messages = [line for share in self._shares for line in share.messages]
        for share in self._shares:
            share.messages = []
            self._keep(share)
        first = shares[0] if shares else None
        times = {name: self._time(first, name) for name in ("start_ns", "measure_ns", "deadline_ns")}
        rows = self._complete()
        self._latest = rows[-1] if rows else self._latest
        return {
            "done": sum(share.progress["done"] for share in shares),
            "failed": sum(share.progress["failed"] for share in shares),
            **_gains([share.progress for share in shares]),
            **times,
            "latest": self._latest,
            "recent": rows,
            "output_error": next((e for s in shares if (e := s.progress["output_error"])), None),
            "messages": messages,
        }

    @staticmethod
    def _time(share: Share | None, name: str) -> int | None:
        there_ns = share.progress.get(name) if share else None
        return share.here(there_ns) if share and there_ns is not None else None

    def _keep(self, share: Share) -> None:
        progress = share.progress
        begun_ns = progress.get("start_ns")
        latest = [progress["latest"]] if progress.get("latest") else []
        for row in progress.get("recent") or latest:
            # The order in time is the same on all hosts, and starts are multiples of the interval apart.
            since_ms = round((row["start_ns"] - begun_ns) / 1e6)
            self._reported[share.number] = max(since_ms, self._reported.get(share.number, -1))
            if since_ms > self._shown:
                self._rows.setdefault(since_ms, {})[share.number] = row | {
                    "start_ns": share.here(row["start_ns"]),
                    "end_ns": share.here(row["end_ns"]),
                }

    def _complete(self) -> list[Row]:
        running = {share.number for share in self._shares if share.running}
        complete = []
        for since_ms in sorted(self._rows):
            rows = self._rows[since_ms]
            missing = running - rows.keys()
            if any(self._reported.get(number, -1) < since_ms for number in missing):
                break
            if missing:  # who has told of a later interval does not tell of this one any more
                del self._rows[since_ms]
                continue
            complete.append(joined([rows[number] for number in sorted(rows)]))
            self._shown = since_ms
            del self._rows[since_ms]
        return complete


def joined(rows: Sequence[Row]) -> Row:
    """Return the row of one interval on all hosts; percentiles cannot be joined, and are None."""
    first = rows[0]
    responses = [row["response"] for row in rows if row["response"]]
    lags = [(row["done"], row["lag_mean_ns"]) for row in rows if row["lag_mean_ns"] is not None]
    weight = sum(done for done, _ in lags)
    return {
        "start_ns": first["start_ns"],
        "end_ns": max(row["end_ns"] for row in rows),
        "warmup": first["warmup"],
        **{name: sum(row[name] for row in rows) for name in _SUMS},
        **_gains(rows),
        "retried": sum(row.get("retried") or 0 for row in rows),
        "loop_lag_max_ns": max(row["loop_lag_max_ns"] for row in rows),
        "response": _moments(responses) if responses else None,
        "lag_mean_ns": sum(done * lag for done, lag in lags) / weight if weight else None,
        "operations": _operations([row["operations"] for row in rows if row.get("operations")]),
    }


def _operations(found: Sequence[Row]) -> Row | None:
    """Return statements by what they did; the percentile is the highest: that of all is no higher."""
    if not found:
        return None
    percentiles = [one["percentile_ns"] for one in found if one["percentile_ns"] is not None]
    return {
        **{name: sum(one[name] for one in found) for name in ("reads", "writes", "others", "reconnects")},
        "ignored": [error for one in found for error in one["ignored"]],
        "percentile_ns": max(percentiles, default=None),
    }


def _gains(rows: Sequence[Row]) -> dict[str, int]:
    return {name: sum(row[name] for row in rows) for name in _GAINS if rows and name in rows[0]}


def _moments(responses: Sequence[Row]) -> Row:
    count = sum(r["count"] for r in responses)
    mean = sum(r["count"] * r["mean_ns"] for r in responses) / count
    squares = sum(r["count"] * (r["stddev_ns"] ** 2 + r["mean_ns"] ** 2) for r in responses) / count
    return {
        "count": count,
        "mean_ns": mean,
        "stddev_ns": math.sqrt(max(0.0, squares - mean * mean)),
        "p50_ns": None,
        "p95_ns": None,
        "p99_ns": None,
        "max_ns": max(r["max_ns"] for r in responses),
    }

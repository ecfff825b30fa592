"""From the driver's documents to figures as sysbench counts them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from loadstone.personalities.sysbench.statistics import Fairness, Interval, SqlCounts, Totals

if TYPE_CHECKING:
    from collections.abc import Mapping

    Document = Mapping[str, Any]

_NS = 1e9
_MS = 1e6


def interval_of(row: Document, start_ns: int, threads: int) -> Interval:
    """Return the figures of one of the driver's intervals, of a run with so many threads."""
    operations = row["operations"]
    return Interval(
        at_s=(row["end_ns"] - start_ns) / _NS,
        length_s=max(row["end_ns"] - row["start_ns"], 1) / _NS,
        threads=row["connected"] or threads,
        events=row["done"],
        percentile_ms=(operations["percentile_ns"] or 0) / _MS,
        sql=_used(operations, connected=bool(row["connected"])),
        queue=row.get("queue"),
        concurrency=row.get("running") or 0,
    )


def totals_of(account: Document) -> Totals:
    """Return the figures of a whole run, without the warm-up."""
    response, operations = account["response"], account["operations"]
    length_s = max(account["end_ns"] - account["measure_ns"], 1) / _NS
    mean_ms = (response["mean_ns"] or 0.0) / _MS
    return Totals(
        length_s=length_s,
        total_s=length_s,
        events=account["counts"]["done"],
        sql=_used(operations, connected=bool(account["connect"]["latency"]["count"])),
        min_ms=(response["min_ns"] or 0) / _MS,
        mean_ms=mean_ms,
        max_ms=(response["max_ns"] or 0) / _MS,
        percentile_ms=(operations["percentile_ns"] or 0) / _MS,
        sum_ms=mean_ms * response["count"],
        fairness=_fairness(account),
    )


def _fairness(account: Document) -> Fairness:
    """Return means over the clients, and their spreads, in which the warm-up counts."""
    found, clients = account.get("fairness") or {}, account["clients"]
    spread = 0.0 if clients == 1 else math.nan
    busy_ns = (account["response"]["mean_ns"] or 0.0) * account["response"]["count"] / clients
    return Fairness(
        events=account["counts"]["done"] / clients,
        events_spread=found.get("events_stddev", spread),
        seconds=busy_ns / _NS,
        seconds_spread=found.get("busy_stddev_ns", spread) / _NS,
    )


def _used(operations: Document, *, connected: bool) -> SqlCounts | None:
    """Return the statements, None where the script has used no database; a dry run is never connected."""
    found = statements_of(operations)
    return found if connected or found.queries else None


def statements_of(operations: Document) -> SqlCounts:
    """Return the statements by what they did."""
    return SqlCounts(
        reads=operations["reads"],
        writes=operations["writes"],
        others=operations["others"],
        errors=sum(error["count"] for error in operations["ignored"]),
        reconnects=operations["reconnects"],
    )

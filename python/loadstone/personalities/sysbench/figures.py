"""From the driver's documents to figures as sysbench counts them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.personalities.sysbench.statistics import ClientTotal, Interval, SqlCounts, Totals

if TYPE_CHECKING:
    from collections.abc import Mapping

    Document = Mapping[str, Any]

_NS = 1e9
_MS = 1e6


def interval_of(row: Document, start_ns: int) -> Interval:
    """Return the figures of one of the driver's intervals."""
    response = row["response"] or {}
    return Interval(
        at_s=(row["end_ns"] - start_ns) / _NS,
        length_s=max(row["end_ns"] - row["start_ns"], 1) / _NS,
        threads=row["connected"],
        events=row["done"],
        percentile_ms=(response.get("percentile_ns") or 0) / _MS,
        sql=_sql(row),
        queue=row.get("queue"),
        concurrency=row.get("running") or 0,
    )


def totals_of(account: Document) -> Totals:
    """Return the figures of a whole run, without the warm-up."""
    response = account["response"]
    length_s = max(account["end_ns"] - account["measure_ns"], 1) / _NS
    mean_ms = (response["mean_ns"] or 0.0) / _MS
    return Totals(
        length_s=length_s,
        total_s=length_s,
        events=account["counts"]["done"],
        sql=_sql(account),
        min_ms=(response["min_ns"] or 0) / _MS,
        mean_ms=mean_ms,
        max_ms=(response["max_ns"] or 0) / _MS,
        percentile_ms=(account.get("percentile_ns") or 0) / _MS,
        sum_ms=mean_ms * response["count"],
        clients=[ClientTotal(c["events"], c["busy_ns"] / _NS) for c in account.get("fairness") or []],
    )


def _sql(document: Document) -> SqlCounts | None:
    """Return the statements by what they did; None where the script has used no database."""
    counts = document.get("sql")
    if counts is None:
        return None
    return SqlCounts(
        reads=counts["reads"],
        writes=counts["writes"],
        others=counts["others"],
        errors=counts["ignored"],
        reconnects=counts["reconnects"],
    )

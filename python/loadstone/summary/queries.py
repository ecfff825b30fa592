"""Queries in figures: one entry a kind, with the percentiles that its samples support."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.summary.histograms import Histogram

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loadstone.summary.reading import Json


def summarise_queries(
    drive: Json | None,
    totals: Mapping[str, Histogram],
    latency: Callable[[Json, Histogram], Json],
) -> list[Json] | None:
    """Return label, counts and latency of every kind of query; None where no queries were run.

    `totals` are the histograms of latency.hlog by tag; a kind's statement is the first command of its script.
    """
    queries = (drive or {}).get("queries")
    if not queries:
        return None
    return [
        {
            "label": label.get("label"),
            "counts": label.get("counts"),
            "rows": label.get("rows"),
            "response_mean_ns": (label.get("response") or {}).get("mean_ns"),
            "service": latency(
                label.get("service") or {}, totals.get(f"statement-{number}.0") or Histogram()
            ),
        }
        for number, label in enumerate(queries.get("labels") or [])
    ]

"""Queries in figures: one entry a kind, with the percentiles that its samples support."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loadstone.summary.reading import Json


def summarise_queries(drive: Json | None, summary: Json | None) -> list[Json] | None:
    """Return label, counts and latency of every kind of query; None where no queries were run.

    `drive` is drive.json, `summary` what was made of it: a kind is a script with one statement there.
    """
    queries = (drive or {}).get("queries")
    if not queries or summary is None:
        return None
    services = {statement["script"]: statement["service"] for statement in summary["statements"]}
    return [
        {
            "label": label.get("label"),
            "counts": label.get("counts"),
            "rows": label.get("rows"),
            "response_mean_ns": (label.get("response") or {}).get("mean_ns"),
            "service": services[number],
        }
        for number, label in enumerate(queries.get("labels") or [])
    ]

"""Queries in figures: one entry a kind, with the percentiles that its samples support."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.results.documents.summary import OutcomeCounts, QueryFigures

if TYPE_CHECKING:
    from loadstone.results.documents import Drive
    from loadstone.results.documents.base import Counts
    from loadstone.results.documents.summary import DriveFigures


def summarise_queries(drive: Drive | None, summary: DriveFigures | None) -> list[QueryFigures] | None:
    """Return label, counts and latency of every kind of query; None where no queries were run.

    `drive` is drive.json, `summary` what was made of it: a kind is a script with one statement there.
    """
    queries = drive and drive.queries
    if not queries or summary is None:
        return None
    services = {statement.script: statement.service for statement in summary.statements}
    return [
        QueryFigures(
            label=label.label,
            counts=label.counts and _counts(label.counts),
            rows=label.rows,
            response_mean_ns=(label.response and label.response.mean_ns),
            service=services[number],
        )
        for number, label in enumerate(queries.labels or [])
    ]


def _counts(counts: Counts) -> OutcomeCounts:
    return OutcomeCounts(
        scheduled=counts.scheduled,
        carried=counts.carried or 0,
        done=counts.done,
        failed=counts.failed,
        skipped=counts.skipped,
        dropped=counts.dropped,
    )

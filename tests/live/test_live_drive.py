"""A drive that ends in the middle of an interval: what is served counts all of it."""

from __future__ import annotations

import json
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.live_runs import PHASE, begun

from loadstone import model
from loadstone.live import openmetrics, page
from loadstone.workload.calibrate import null_server
from loadstone.workload.drive import drive_document, perform

SCRIPT = model.Script("one", "select 1;\n")


def metrics_of(url: str) -> dict[tuple[str, str], float]:
    """The samples by name and outcome."""
    with urlopen(url, timeout=10) as answer:
        text = answer.read().decode()
    return {
        (sample.name, sample.labels.get("outcome", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.parametrize(("warmup_s", "duration_s"), [(0.0, 0.3), (0.3, 1.1)])
def test_at_the_end_of_a_drive_all_of_it_is_served(warmup_s: float, duration_s: float) -> None:
    drive = model.Drive(
        scripts=(SCRIPT,), mode="simple", clients=3, threads=2, duration_s=duration_s, warmup_s=warmup_s
    )
    figures = begun()
    with (
        null_server(4) as (_, connection),
        openmetrics.serving("0", figures) as metrics,
        page.serving(0, figures) as shown,
        urlopen(f"{shown}events", timeout=60) as events,
    ):
        account = perform(
            drive_document(drive, connection, None),
            None,
            lambda told: figures.progressed("pg18", PHASE, told),
        )
        figures.ended("pg18", {"state": account["state"]})
        found = metrics_of(metrics)
        figures.end("complete (exit code 0)")
        # The server of the page ends with the context, and the events with it: read while there are some.
        told = (json.loads(line[len(b"data: ") :]) for line in events if line.startswith(b"data: "))
        last = next(document for document in told if document["now"]["ended"])
    counts = {
        name: account["counts"][name] + account["warmup_counts"][name]
        for name in ("done", "failed", "skipped", "dropped")
    }
    assert counts["done"] > 0
    assert {name: found["loadstone_transactions_total", name] for name in counts} == counts
    assert {name: last["total"][name] for name in counts} == counts
    if not warmup_s:
        response = account["response"]
        assert found["loadstone_response_seconds_count", ""] == response["count"]
        assert found["loadstone_response_seconds_sum", ""] * 1e9 == pytest.approx(
            response["count"] * response["mean_ns"], rel=1e-3
        )

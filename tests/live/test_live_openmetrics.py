"""Metrics of a run that goes on, and the dashboard that shows them."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from support.live_runs import PHASE, begun, progress

from loadstone.errors import LoadstoneError
from loadstone.live.figures import LiveFigures, LiveTrial
from loadstone.live.openmetrics import parse_address, serving

DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana-dashboard.json"


def served(figures: LiveFigures) -> dict[str, list[tuple[dict[str, str], float]]]:
    with serving("0", figures) as url:
        assert url.startswith("http://127.0.0.1:")
        request = Request(url, headers={"Accept": "application/openmetrics-text; version=1.0.0"})
        with urlopen(request, timeout=10) as response:
            text = response.read().decode()
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def running() -> LiveFigures:
    figures = begun()
    figures.try_out(LiveTrial(7, "whole", "B", 3, 1200.0))
    figures.began("pg18", PHASE)
    figures.progressed("pg18", PHASE, progress(1, rows=1000))
    figures.ended("pg18", {"state": "complete"})
    figures.began("pg18", PHASE)
    figures.progressed("pg18", PHASE, progress(2, rows=3000))
    return figures


def test_rates_latencies_and_errors_are_served() -> None:
    found = served(running())
    place = {"target": "pg18", "scenario": "own", "phase": "insert", "variant": "index=none"}
    assert (place | {"outcome": "failed"}, 2) in found["loadstone_transactions_total"]
    assert found["loadstone_rate"] == [(place, 100)]
    assert found["loadstone_row_rate"] == [(place, 3000)]
    assert found["loadstone_rows_total"] == [(place, 4000)]
    assert (place | {"quantile": "0.99"}, 0.004) in found["loadstone_response_seconds"]
    assert found["loadstone_response_seconds_count"] == [(place, 200)]
    assert found["loadstone_response_seconds_sum"] == [(place, 0.4)]
    assert found["loadstone_phases_total"] == [({"state": "complete"}, 1)]
    assert found["loadstone_phase_running"] == [(place, 1)]
    assert found["loadstone_trial"] == [({"arm": "B", "block": "3", "kind": "whole"}, 7)]
    assert found["loadstone_offered_rate"] == [({}, 1200)]


def test_between_drives_no_rate_is_served() -> None:
    figures = running()
    figures.ended("pg18", {"state": "complete"})
    found = served(figures)
    assert "loadstone_rate" not in found
    assert found["loadstone_response_seconds_count"][0][1] == 200


def test_the_dashboard_names_only_what_is_served() -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    expressions += [
        variable["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "query"
    ]
    names = {name for text in expressions for name in re.findall(r"\bloadstone_\w+", text)}
    found = served(running())
    assert names
    assert names <= set(found)
    labels = {name for text in expressions for name in re.findall(r"[{,]\s*(\w+)=", text)}
    assert labels <= {name for samples in found.values() for sample, _ in samples for name in sample}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9400", ("127.0.0.1", 9400)),
        (":9400", ("127.0.0.1", 9400)),
        ("0.0.0.0:9400", ("0.0.0.0", 9400)),
        ("[::1]:0", ("::1", 0)),
    ],
)
def test_addresses(text: str, expected: tuple[str, int]) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize("text", ["", "x", "99999", "http://h:1", "h:", "a b:1", "::1:9"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(LoadstoneError, match="is not an address"):
        parse_address(text)


def test_a_port_that_is_taken_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = str(taken.getsockname()[1])
        with pytest.raises(LoadstoneError, match="Address already in use"), serving(address, LiveFigures()):
            pytest.fail("served")

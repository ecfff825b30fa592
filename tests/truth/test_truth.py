"""What we measure of a server whose service times are known: the truth."""

from __future__ import annotations

import json
import math
import shutil
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from loadstone.cli.group import loadstone
from loadstone.truth.cases import Case, Stall, cases
from loadstone.truth.measuring import Tool, measure, tools
from loadstone.truth.table import Row, cells, document

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow  # loads are driven

SLOW_MS = 200.0
LATE_MS = 20.0
"""By so much a busy machine may delay answers: they are never early."""


def short(service: dict[str, object], truth: Callable[[float], float | None]) -> Case:
    return Case("short", "", {"time": service}, 100, 3.0, {"response": truth}, (50.0, 75.0, 90.0))


EXPONENTIAL = short({"kind": "exponential", "mean_ms": SLOW_MS}, lambda p: -SLOW_MS * math.log1p(-p / 100))
STALL = Stall(rate_per_s=400.0, clients=20, answer_s=0.005, every_s=1.5, stall_s=0.5, seconds=3.0).case()


def tool(name: str) -> Tool:
    return next(found for found in tools(peers=True) if found.name == name)


def agrees(measured: float | None, truth: float | None, within: float) -> bool:
    """Return whether a percentile is the true one, but for an error and for what a busy machine adds."""
    assert measured is not None
    assert truth is not None
    return (1 - within) * truth < measured < (1 + within) * truth + LATE_MS


def of(name: str) -> Case:
    return next(case for case in cases() if case.name == name)


def test_percentiles_of_a_known_distribution_are_measured() -> None:
    found = measure(EXPONENTIAL, tool("loadstone"))
    for percentile in EXPONENTIAL.percentiles:
        truth = EXPONENTIAL.truths["response"](percentile)
        assert agrees(found["response", percentile], truth, 0.02), (percentile, truth, found)


def test_a_stall_shows_whole_in_response_time_and_hardly_in_service_time() -> None:
    found = measure(STALL, tool("loadstone"))
    # One sixth of all starts came into the stall: the arithmetic says how long each of them waited.
    for percentile in (95.0, 99.0):
        truth = STALL.truths["response"](percentile)
        assert truth is not None
        assert truth > 250.0
        assert agrees(found["response", percentile], truth, 0.05), (percentile, truth, found)
    assert found["service", 95.0] < 0.1 * found["response", 95.0]


@pytest.mark.parametrize("name", ["pgbench", "sysbench"])
def test_peers_are_measured_by_what_they_say_themselves(name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    found = measure(EXPONENTIAL, tool(name))
    for percentile in EXPONENTIAL.percentiles:
        truth = EXPONENTIAL.truths["response"](percentile)
        assert agrees(found["response", percentile], truth, 0.05), (percentile, truth, found)


def test_a_percentile_on_the_edge_between_two_values_has_no_true_value() -> None:
    truth = of("bimodal").truths["response"]
    assert [truth(p) for p in (50.0, 90.0, 95.0)] == [20.0, None, 200.0]


@pytest.mark.parametrize(("name", "p50"), [("constant", 100.0), ("exponential", 34.657), ("pareto", 28.284)])
def test_true_medians(name: str, p50: float) -> None:
    assert of(name).truths["response"](50.0) == pytest.approx(p50, rel=1e-4)


def test_the_arithmetic_of_the_stall() -> None:
    response, service = (of("stall").truths[kind] for kind in ("response", "service"))
    assert response(50.0) == pytest.approx(5.0)
    # Two stalls of a second in thirty; those who come while the queue is worked off wait too: 1/(1 - 1/12).
    delayed = 2 / 30 / (1 - 1000 * 0.005 / 60)
    assert response(99.0) == pytest.approx(1000 * (1 - 0.01 / delayed), rel=0.01)
    assert service(99.0) == pytest.approx(5.0)


def test_the_table_shows_errors_and_what_was_not_measured() -> None:
    rows = [
        Row("constant", "", "response", 99.0, 20.0, {"loadstone": 20.1, "sysbench": None}),
        Row("schedule", "", "lag", 50.0, 0.0, {"loadstone": 0.014, "sysbench": None}),
    ]
    heads, first, second = cells(rows)
    assert heads == ("load", "time", "percentile", "truth", "loadstone", "sysbench")
    assert first == ("constant", "response", "p99", "20.000 ms", "20.100 ms (+0.50%)", "–")
    assert second[-2:] == ("0.014 ms", "–")
    assert json.loads(json.dumps(document(rows)))["rows"][0]["true_ms"] == 20.0


@pytest.mark.parametrize("wrong", [["--peers"], ["--truth", "--clients", "3"]])
def test_options_that_do_not_belong_together_are_refused(wrong: list[str]) -> None:
    ran = CliRunner().invoke(loadstone, ["calibrate", *wrong])
    assert ran.exit_code != 0
    assert "is not allowed with" in ran.output or "only with --truth" in ran.output

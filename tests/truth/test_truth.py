"""What we measure of a server whose service times are known: the truth."""

from __future__ import annotations

import json
import math
import shutil
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from loadstone.cli.group import loadstone
from loadstone.truth.cases import Case, Stall, Truth, cases, exactly
from loadstone.truth.measuring import Tool, measure, tools
from loadstone.truth.table import Row, cells, document, summary

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow  # loads are driven

SLOW_MS = 200.0
LATE_MS = 50.0
"""By so much a busy machine may delay answers: they are never early."""


def short(service: dict[str, object], truth: Callable[[float], Truth]) -> Case:
    return Case("short", "", {"time": service}, 100, 3.0, {"response": truth}, (50.0, 75.0, 90.0))


EXPONENTIAL = short(
    {"kind": "exponential", "mean_ms": SLOW_MS}, lambda p: exactly(-SLOW_MS * math.log1p(-p / 100))
)
STALL = Stall(rate_per_s=400.0, clients=20, answer_s=0.005, every_s=1.5, stall_s=0.5, seconds=3.0).case()


def tool(name: str) -> Tool:
    return next(found for found in tools(peers=True) if found.name == name)


def agrees(measured: float | None, truth: Truth, within: float) -> bool:
    """Return whether a percentile is the true one, but for an error and for what a busy machine adds."""
    assert measured is not None
    return (1 - within) * truth.low_ms < measured < (1 + within) * truth.high_ms + LATE_MS


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
        assert truth.low_ms > 250.0
        # Whatever the machine adds is far below what is found where waiting is hidden, or counted twice.
        assert 0.95 * truth.low_ms < found["response", percentile] < 1.6 * truth.high_ms, (truth, found)
    assert found["service", 95.0] < 0.3 * found["response", 95.0]


@pytest.mark.parametrize("name", ["pgbench", "sysbench"])
def test_peers_are_measured_by_what_they_say_themselves(name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    found = measure(EXPONENTIAL, tool(name))
    for percentile in EXPONENTIAL.percentiles:
        truth = EXPONENTIAL.truths["response"](percentile)
        assert agrees(found["response", percentile], truth, 0.05), (percentile, truth, found)


def test_a_percentile_on_the_edge_between_two_values_is_on_a_jump() -> None:
    truth = of("bimodal").truths["response"]
    assert [truth(p) for p in (50.0, 90.0, 95.0)] == [exactly(50.0), Truth(50.0, 500.0), exactly(500.0)]
    assert truth(90.0).is_jump
    assert not truth(50.0).is_jump


@pytest.mark.parametrize(("name", "p50"), [("constant", 100.0), ("exponential", 34.657), ("pareto", 28.284)])
def test_true_medians(name: str, p50: float) -> None:
    assert of(name).truths["response"](50.0).low_ms == pytest.approx(p50, rel=1e-4)


def test_the_arithmetic_of_the_stall() -> None:
    stall = Stall()
    response, service = (stall.truths()[kind] for kind in ("response", "service"))
    assert response(50.0) == service(50.0) == exactly(pytest.approx(70.0))  # type: ignore[arg-type]
    # While all clients wait for the end of a stall, starts come at 150/s; then 14 clients work off 200/s.
    work = stall.clients / stall.answer_s
    delayed = 2 * stall.rate_per_s * stall.stall_s / (1 - stall.rate_per_s / work) / (150 * 29)
    assert response(95.0).low_ms == pytest.approx(1040 * (1 - 0.05 / delayed), rel=0.02)
    assert response(99.0).low_ms == pytest.approx(1000.0, rel=1e-3)
    assert service(99.0).low_ms == pytest.approx(70.0)


def test_no_percentile_of_the_stall_is_near_a_jump() -> None:
    case = Stall().case()
    for truth in case.truths.values():
        for percentile in case.percentiles:
            # A few samples more or less move no figure by more than the promise.
            near = [truth(percentile + off).low_ms for off in (-0.05, 0.0, 0.05)]
            assert max(near) < 1.011 * min(near), (percentile, near)
            assert not truth(percentile).is_jump


def test_samples_of_two_values_have_a_jump_where_they_meet() -> None:
    stall = Stall(rate_per_s=100.0, clients=400, answer_s=0.05, stall_s=0.5, seconds=19.0)
    truth = stall.truths()["service"]
    # The 50 answers of 1,900 that fall into the only stall take 10 ms longer and more.
    assert truth(100 * 1850 / 1900).is_jump
    assert truth(97.0) == exactly(pytest.approx(50.0))  # type: ignore[arg-type]


def test_random_schedules_are_compared_with_what_chance_gives() -> None:
    stall = Stall()
    chance = stall.by_chance()["response"](95.0)
    assert 0.7 * stall.truths()["response"](95.0).low_ms < chance.low_ms < chance.high_ms < 1000.0
    assert chance.high_ms > 1.05 * chance.low_ms


def test_the_table_shows_errors_jumps_and_what_was_not_measured() -> None:
    rows = [
        Row("constant", "", "response", 99.0, 20.0, {"loadstone": 20.1, "sysbench": None}),
        Row(
            "bimodal",
            "",
            "response",
            90.0,
            None,
            {"loadstone": 20.1, "sysbench": 31.0},
            jump_ms=(20.0, 200.0),
        ),
        Row(
            "stall",
            "",
            "response",
            95.0,
            750.0,
            {"loadstone": 751.5, "sysbench": 800.0},
            None,
            (700.0, 820.0),
        ),
        Row("schedule", "", "lag", 50.0, 0.0, {"loadstone": 0.014, "sysbench": None}),
    ]
    heads, first, jump, stall, lag = cells(rows)
    assert heads == ("load", "time", "percentile", "truth", "loadstone", "sysbench")
    assert first == ("constant", "response", "p99", "20.000 ms", "20.100 ms (+0.50%)", "–")
    assert jump[3:] == ("a jump, 20 … 200 ms", "20.100 ms", "31.000 ms")
    assert stall[-2:] == ("751.500 ms (+0.20%)", "800.000 ms (by chance 700 … 820 ms)")
    assert lag[-2:] == ("0.014 ms", "–")
    assert json.loads(json.dumps(document(rows)))["rows"][1]["jump_ms"] == [20.0, 200.0]
    assert summary(rows) == "3 of 3 percentiles of Loadstone are within 1 % of the truth (lag: below 0.05 ms)"


def test_percentiles_that_are_off_are_named() -> None:
    rows = [
        Row("constant", "", "response", 99.0, 20.0, {"loadstone": 20.3}),
        Row("schedule", "", "lag", 50.0, 0.0, {"loadstone": 0.2}),
        Row("pareto", "", "response", 99.9, 632.0, {"loadstone": None}),
    ]
    assert summary(rows).startswith("0 of 2 percentiles of Loadstone are within 1 %")
    assert "not constant response p99, schedule lag p50: repeat this while nothing else" in summary(rows)


@pytest.mark.parametrize("wrong", [["--peers"], ["--truth", "--clients", "3"]])
def test_options_that_do_not_belong_together_are_refused(wrong: list[str]) -> None:
    ran = CliRunner().invoke(loadstone, ["calibrate", *wrong])
    assert ran.exit_code != 0
    assert "is not allowed with" in ran.output or "only with --truth" in ran.output

"""Queries as a load in summary.json: who serialises, who kept whom waiting, and imports beside queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.flights_folders import DUCK, PG, ROWS, Flights, flights
from support.summaries import part, summarise
from support.table_load_folders import _rewrite

from loadstone.report.concurrency import verdict_words
from loadstone.results.documents.summary import Concurrency, Group, Imports, PhaseFigures, WidthPoint
from loadstone.summary.scaling.concurrency import judge_width, summarise_concurrency
from loadstone.summary.warnings import import_warnings, width_warnings

if TYPE_CHECKING:
    from pathlib import Path


def point(
    clients: int, qps: float, mean_ms: float, server: float | None, ours: float = 0.02
) -> dict[str, Any]:
    return {
        "clients": clients,
        "qps": {"value": qps},
        "mean_ns": mean_ms * 1e6,
        "cpu_server": server,
        "cpu_client": ours,
    }


def kind(few: dict[str, Any], many: dict[str, Any], *, in_process: bool = False) -> tuple[str, bool]:
    found = judge_width([part(WidthPoint, few), part(WidthPoint, many)], in_process=in_process)
    assert found
    assert found.fills_machine == (found.kind == "fills_machine")
    return found.kind, found.serialises


def test_an_engine_whose_one_query_fills_the_machine_does_not_serialise() -> None:
    assert kind(point(1, 8, 125, 0.97), point(50, 8.4, 5952, 0.98)) == ("fills_machine", False)
    # What is left beside 84 % is less than the fifth by which flat throughput may grow.
    assert kind(point(1, 8, 125, 0.84), point(50, 8.4, 5952, 0.98)) == ("fills_machine", False)
    assert kind(point(1, 8, 125, 0.82), point(50, 8.4, 5952, 0.98)) == ("serialises", True)
    assert kind(point(1, 8, 125, 0.30), point(50, 8.4, 5952, 0.31)) == ("serialises", True)
    assert kind(point(1, 8, 125, None), point(50, 8.4, 5952, None)) == ("serialises", True)
    assert kind(point(1, 8, 125, 0.97), point(50, 80, 600, 0.98)) == ("scales", False)
    assert kind(point(1, 8, 125, 0.30), point(50, 8, 130, 0.30)) == ("flat", False)


def test_our_own_cpu_time_is_the_engines_only_where_it_works_in_our_process() -> None:
    few, many = point(1, 8, 125, None, 0.95), point(50, 8.4, 5952, None, 0.99)
    assert kind(few, many, in_process=True) == ("fills_machine", False)
    assert kind(few, many) == ("serialises", True)
    found = judge_width([part(WidthPoint, few), part(WidthPoint, many)], in_process=True)
    assert found
    assert found.cpu_alone == 0.95


def test_nothing_is_said_of_queries_where_other_programs_filled_the_machine() -> None:
    few, many = point(1, 656, 1.41, None, 0.50), point(4, 701, 5.27, None, 0.60)
    assert kind(few, {**many, "cpu_others": 0.40}, in_process=True) == ("shared", False)
    assert kind(few, {**many, "cpu_others": 0.15}, in_process=True) == ("serialises", True)
    found = judge_width(
        [part(WidthPoint, few), part(WidthPoint, {**many, "cpu_others": 0.4})], in_process=True
    )
    words = verdict_words("DuckDB", found)
    assert "serialises" not in words
    assert "Other programs used 40 % of the machine's CPU" in words


def widths(done: int, clients: int, qps: float, mean_ms: float) -> list[Concurrency]:
    """Return the summary of one number of clients on one target."""
    phase: dict[str, Any] = {
        "target": "duckdb",
        "folder": "f",
        "plain_queries": {},
        "drive": {"errors": []},
        "usage": None,
        "energy_j": None,
    }
    group = {
        **dict.fromkeys(("scenario", "id", "title", "why")),
        "kind": "queries",
        "target": "duckdb",
        "variant": {"clients": clients},
        "phases": ["f"],
        "clients": clients,
        "tps": {"value": qps},
        "latency": {"mean_ns": mean_ms * 1e6},
        "percentiles": [],
        "published": [],
        "done": done,
        "failed": 0,
    }
    return summarise_concurrency([part(Group, group)], [part(PhaseFigures, phase)])


def test_a_client_that_is_busy_between_answers_is_warned_of() -> None:
    (caution,) = width_warnings(widths(435, 10, 107.1, 47.08))
    assert (caution.target, caution.level) == ("duckdb", "warning")
    assert "(5.04 of 10)" in caution.message
    (alone,) = width_warnings(widths(429, 1, 107.0, 6.85))
    assert "(0.733 of 1)" in alone.message


def test_queries_that_the_end_cut_off_are_not_held_against_the_client() -> None:
    # 55 answers to 50 clients: up to as many were in flight at the end and are not counted.
    assert list(width_warnings(widths(55, 50, 6.8, 6000))) == []
    assert list(width_warnings(widths(400, 10, 99.0, 100.0))) == []
    assert list(width_warnings(widths(0, 10, 0.0, 0.0))) == []


def imports(alone: float, *, workers: int = 1) -> list[dict[str, Any]]:
    beside = {"qps": 3.0}
    common = {"target": "pg18", "rows": ROWS}
    return [
        {
            "loads": [
                {**common, "workers": workers, "rows_per_s": {"value": alone}, "mixed": None},
                {**common, "workers": 1, "rows_per_s": {"value": 96_564.0}, "mixed": beside},
            ]
        }
    ]


def typed_imports(alone: float, *, workers: int = 1) -> list[Imports]:
    return [part(Imports, one) for one in imports(alone, workers=workers)]


def test_an_import_that_queries_did_not_slow_down_is_warned_of() -> None:
    (caution,) = import_warnings(typed_imports(81_565.0))
    assert "(96,564 rows/s)" in caution.message
    assert "(81,565 rows/s)" in caution.message
    assert caution.target == "pg18"
    assert list(import_warnings(typed_imports(120_000.0))) == []
    assert list(import_warnings(typed_imports(81_565.0, workers=2))) == [], (
        "two connections are another import"
    )


def quicker(drive: dict[str, Any]) -> dict[str, Any]:
    """Make the answers a hundred times quicker, at the same number a second."""
    response = {**drive["response"], "mean_ns": drive["response"]["mean_ns"] / 100}
    return {**drive, "response": response}


def test_the_warning_stands_in_the_summary(tmp_path: Path) -> None:
    folder = flights(tmp_path / "run", Flights(targets=(PG, DUCK)))
    for path in folder.glob("targets/*/phases/*clients-50"):
        _rewrite(path / "drive.json", quicker)
    warned = [w for w in summarise(folder)["warnings"] if w["kind"] == "ClientBusyBetween"]
    assert {w["target"] for w in warned} == {"pg18", "duckdb"}

"""Imports in summary.json: queries beside them, ratios, runs, and what two imports say of each other."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from support.fake_monitor import write_lines
from support.flights_folders import TABLE_BYTES, Flights, flights
from support.run_folders import NS, write
from support.summaries import part, summarise
from support.table_load_folders import _rewrite

from loadstone.results.documents import Drive, Interval
from loadstone.results.documents.summary import Rate
from loadstone.summary.imports import _interval_words, _ratio
from loadstone.summary.mixed import summarise_late

if TYPE_CHECKING:
    from pathlib import Path

LENGTH_S = 9
"""Of the load beside which queries are asked here."""


def line(second: int, done: int, mean_ms: float, *, warmup: bool = False) -> dict[str, Any]:
    return {
        "start_ns": second * NS,
        "end_ns": (second + 1) * NS,
        "warmup": warmup,
        "done": done,
        "response": {"count": done, "mean_ns": mean_ms * 1e6 if done else None},
    }


def growing() -> list[dict[str, Any]]:
    """Queries of an empty table for six seconds, then of a nearly complete one."""
    return [
        *(line(at, 1000, 1.0) for at in range(6)),
        line(6, 10, 90.0),
        line(7, 8, 120.0),
        line(8, 6, 150.0),
    ]


def load(batches: int = 40) -> dict[str, Any]:
    return {"measure_ns": 0, "end_ns": LENGTH_S * NS, "load": {"batches": batches}}


def asked(lines: list[dict[str, Any]]) -> list[Interval]:
    return [part(Interval, one) for one in lines]


def test_queries_beside_a_load_count_in_its_last_third() -> None:
    found = summarise_late(part(Drive, load()), asked(growing()))
    assert found
    assert (found.done, found.seconds, found.qps) == (24, 3, 8)
    assert found.mean_ns == pytest.approx((10 * 90 + 8 * 120 + 6 * 150) / 24 * 1e6)
    assert "when the table was nearly complete" in found.words


def test_a_load_in_one_batch_is_not_said_to_have_been_nearly_whole() -> None:
    found = summarise_late(part(Drive, load(batches=1)), asked(growing()))
    assert found
    assert "nearly complete" not in found.words


def test_intervals_longer_than_a_third_leave_the_last_one() -> None:
    found = summarise_late(part(Drive, load()), asked([{**line(0, 5, 900.0), "end_ns": LENGTH_S * NS}]))
    assert found
    assert (found.done, found.seconds) == (5, LENGTH_S)


def test_no_answer_in_the_last_third_has_no_mean() -> None:
    found = summarise_late(part(Drive, load()), asked([line(at, 0 if at > 3 else 7, 1.0) for at in range(9)]))
    assert found
    assert (found.qps, found.mean_ns) == (0, None)
    assert summarise_late(part(Drive, load()), []) is None


def test_of_a_load_without_an_account_the_queries_tell_how_long_it_took() -> None:
    found = summarise_late(None, asked([line(0, 50, 1.0, warmup=True), *growing()[1:]]))
    assert found
    assert found.done == 14, "of the eight seconds after the warm-up the last two whole ones"


def perform_mixed(home: Path) -> None:
    """Put queries beside a load of the folder, which takes nine seconds then."""
    drive = json.loads((home / "drive.json").read_text())
    begin_ns = drive["measure_ns"]
    write(home / "drive.json", {**drive, "end_ns": begin_ns + LENGTH_S * NS})
    beside = home / "queries"
    beside.mkdir()
    shutil.copy(home / "latency.hlog", beside)
    plain_queries: dict[str, Any] = {"table": "flights", "rows": None, "clients": 1, "draws": []}
    write(beside / "drive.json", {**drive, "load": None, "plain_queries": plain_queries})
    lines = [
        {**one, "start_ns": begin_ns + at * NS, "end_ns": begin_ns + (at + 1) * NS}
        for at, one in enumerate(growing())
    ]
    write_lines(beside / "series.jsonl", lines)


@pytest.fixture(scope="module")
def entry(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Imports of two targets, the first with queries beside its import by two connections."""
    folder = flights(tmp_path_factory.mktemp("imports") / "run", Flights(load=False))
    perform_mixed(next(folder.glob("targets/pg18/phases/*workers-2")))
    slow = next(folder.glob("targets/duckdb/phases/*workers-1")) / "drive.json"
    _rewrite(slow, lambda drive: {**drive, "end_ns": drive["measure_ns"] + 20 * NS})
    found: dict[str, Any] = summarise(folder)["imports"][0]
    return found


def one(entry: dict[str, Any], target: str, workers: int) -> dict[str, Any]:
    return next(
        load for load in entry["loads"] if (load["target"], load["variant"]["workers"]) == (target, workers)
    )


def test_the_table_of_imports_shows_the_last_third_and_all_failures(entry: dict[str, Any]) -> None:
    beside = one(entry, "pg18", 2)["mixed"]
    assert (beside["qps"], beside["done"], beside["seconds"]) == (8, 24, 3)
    assert beside["mean_ns"] == pytest.approx(115e6)
    assert (beside["failed"], beside["clients"]) == (0, 2)
    assert one(entry, "duckdb", 2)["mixed"] is None


def test_imports_and_sizes_are_related_to_those_of_the_first_target(entry: dict[str, Any]) -> None:
    assert one(entry, "pg18", 1)["ratio_to_first"] is None
    assert one(entry, "duckdb", 1)["ratio_to_first"]["value"] == pytest.approx(8 / 20)
    assert one(entry, "duckdb", 2)["ratio_to_first"]["value"] == pytest.approx(9 / 4)
    sizes = {size["target"]: size["ratio_to_first"] for size in entry["sizes"]}
    assert sizes["pg18"] is None
    assert sizes["duckdb"]["value"] == pytest.approx(TABLE_BYTES["duckdb"] / TABLE_BYTES["pg18"])


def rate(value: float, low: float | None = None, high: float | None = None) -> Rate:
    return Rate(value=value, low=low, high=high, n=1, reason="only 1 full intervals")


def test_a_ratio_of_imports_has_an_interval_where_both_rates_have_one() -> None:
    found = _ratio(rate(200, 180, 220), rate(100, 90, 110))
    assert found
    assert (found.low, found.high) == pytest.approx((180 / 110, 220 / 90))
    alone = _ratio(rate(200), rate(100, 90, 110))
    assert alone
    assert (alone.value, alone.low, alone.high) == (2, None, None)
    assert _ratio(rate(0), rate(100)) is None


def test_a_single_import_is_said_to_be_one_run() -> None:
    assert _interval_words(rate(100), 1) == "one run"
    assert _interval_words(rate(100, 90, 110), 3) == ""
    assert _interval_words(rate(100), 2) == "only 1 full intervals"

"""Queries in summary.json besides their times: what was cold, and how much of the table was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from support.flights_folders import PG, ROWS, TABLE_BYTES, Flights, flights
from support.summaries import part, plain, summarise
from support.table_load_folders import _rewrite

from loadstone.results.documents import Drive, Environment, Phase, Target
from loadstone.summary.run_files import PhaseFiles, TargetFiles
from loadstone.summary.scan_speed import Limits, Table, limits_of, named_columns, scan, widths_of

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.results.phase_folder import PhaseFolder

COLUMNS: list[dict[str, Any]] = [
    {"name": "flight_month", "type": "int16"},
    {"name": "distance", "type": "int16"},
    {"name": "dep_timestamp", "type": "timestamp"},
    {"name": "Origin_Country", "type": "text", "text_bytes": 3.0},
    {"name": "dest_city", "type": "text", "text_bytes": 8.5},
]


def query(summary: dict[str, Any], whose: str, name: str) -> dict[str, Any]:
    (entry,) = summary["plain_queries"]
    target = next(one for one in entry["targets"] if one["target"] == whose)
    return next(one for one in target["queries"] if one["name"] == name)


def cold(summary: dict[str, Any]) -> dict[str, tuple[bool | None, str]]:
    (entry,) = summary["plain_queries"]
    return {one["target"]: (one["is_cold"], one["cold_words"]) for one in entry["targets"]}


def keep_caches(folder: Path, target: str) -> None:
    """Make of one round of a target one whose caches could not be emptied."""
    path = next(folder.glob(f"targets/{target}/phases/*-round-2/drive.json"))

    def kept(drive: dict[str, Any]) -> dict[str, Any]:
        caches = {"emptied": False, "note": "only a restart does"}
        return {**drive, "plain_queries": {**drive["plain_queries"], "caches": caches}}

    _rewrite(path, kept)


def test_first_runs_with_warm_caches_are_not_called_cold(tmp_path: Path) -> None:
    folder = flights(tmp_path / "run", Flights(load=False))
    keep_caches(folder, "duckdb")
    found = summarise(folder)
    assert cold(found) == {"pg18": (True, "cold"), "duckdb": (False, "first run, not cold")}
    ours = query(found, "duckdb", "Sql4")
    assert ours["cold"]["n"] == 3, "their times stay"
    assert ours["cold_bytes_per_s"] is None
    assert ours["cold_ratio_to_first"] is None, "a first run and a cold one do not compare"
    assert ours["ratio_to_first"] is not None
    assert query(found, "pg18", "Sql4")["cold_bytes_per_s"] == pytest.approx(TABLE_BYTES["pg18"] / 6)


def test_cold_runs_of_both_targets_have_a_ratio(tmp_path: Path) -> None:
    found = summarise(flights(tmp_path / "run", Flights(load=False)))
    assert query(found, "duckdb", "Sql4")["cold_ratio_to_first"]["value"] == pytest.approx(1 / 20)


def test_nothing_is_said_of_cold_where_none_was_asked_for(tmp_path: Path) -> None:
    found = summarise(flights(tmp_path / "run", Flights(targets=(PG,), cold=False, load=False)))
    assert cold(found) == {"pg18": (None, "")}


def test_a_rate_beyond_the_machine_shows_that_not_all_was_read(tmp_path: Path) -> None:
    found = summarise(flights(tmp_path / "run", Flights(load=False)))
    row = query(found, "pg18", "Sql1")
    assert row["bytes_per_s"] == pytest.approx(TABLE_BYTES["pg18"] / 0.4), "10 of 20 GB/s"
    assert (row["cold_bytes_per_s"], row["not_all_read"]) == (
        None,
        {"warm": False, "cold": True, "named": False},
    )
    column = query(found, "duckdb", "Sql1")
    assert (column["bytes_per_s"], column["not_all_read"]["warm"]) == (None, True)
    assert column["rows_per_s"] == pytest.approx(ROWS / 0.02)


def test_without_a_bandwidth_no_rate_is_beyond_it(tmp_path: Path) -> None:
    found = summarise(flights(tmp_path / "run", Flights(bandwidth=False, load=False)))
    row = query(found, "duckdb", "Sql1")
    assert not any(row["not_all_read"].values())
    assert row["bytes_per_s"] == pytest.approx(TABLE_BYTES["duckdb"] / 0.02)


def test_the_slowest_disk_is_the_limit_and_what_was_not_measured_is_none() -> None:
    disks = {"data": {"bytes_per_s": 2e9}, "results": {"bytes_per_s": 1e9}, "other": {"bytes_per_s": None}}
    assert limits_of(
        part(Environment, {"bandwidth": {"memory": {"bytes_per_s": 2e10}, "disks": disks}})
    ) == Limits(2e10, 1e9)
    assert limits_of(Environment()) == Limits(None, None)


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run whose import tells what columns the table has."""
    folder = flights(tmp_path_factory.mktemp("named") / "run", Flights(targets=(PG,), load=False))
    table = {"name": "flights", "columns": COLUMNS}
    for path in folder.glob("targets/pg18/phases/*import*/drive.json"):
        _rewrite(path, lambda drive: {**drive, "load": {**drive["load"], "table": table}})
    return summarise(folder)


@pytest.mark.parametrize(
    ("name", "columns", "width"),
    [
        ("Sql2", ["origin_country"], 3),
        ("Sql3", ["flight_month", "distance"], 4),
        ("Sql4", ["dest_city"], 8.5),
        ("Sql5", ["distance"], 2),
    ],
)
def test_bytes_of_the_columns_that_a_query_names(
    named: dict[str, Any], name: str, columns: list[str], width: float
) -> None:
    found = query(named, "pg18", name)
    assert found["named_columns"] == columns
    assert found["named_bytes_per_s"] == pytest.approx(ROWS * width / found["warm"]["median_s"])
    assert found["named_of_memory"] == pytest.approx(found["named_bytes_per_s"] / 20e9)


def test_texts_whose_width_was_not_noted_have_none() -> None:
    bare = [{name: value for name, value in column.items() if name != "text_bytes"} for column in COLUMNS]
    target = TargetFiles(Target(), [], [PhaseFiles(cast("PhaseFolder", None), Phase(), loaded(bare), [])])
    assert widths_of(target) == {
        "flight_month": 2,
        "distance": 2,
        "dep_timestamp": 8,
        "origin_country": None,
        "dest_city": None,
    }


def loaded(columns: list[dict[str, Any]]) -> Drive:
    """Return the account of a load of such columns."""
    return part(Drive, {"load": {"table": {"name": "flights", "columns": columns}}})


def test_a_query_that_names_no_column_has_no_bytes_of_them(named: dict[str, Any]) -> None:
    found = query(named, "pg18", "Sql1")
    assert (found["named_columns"], found["named_bytes_per_s"]) == ([], None)


def test_columns_of_unknown_width_give_no_bytes() -> None:
    table = Table(ROWS, 10, {"a": None, "b": 4.0})
    both = scan(table, Limits(None, None), "select a, b from t", (1.0, None))
    assert (both.named_columns, both.named_bytes_per_s) == (["a", "b"], None)
    assert scan(table, Limits(None, None), "select b from t", (2.0, None)).named_bytes_per_s == 2.0 * ROWS


def test_columns_faster_than_memory_were_not_read_either() -> None:
    table = Table(1000, 10, {"a": 4.0})
    found = scan(table, Limits(3000.0, None), "select a from t", (1.0, None))
    assert (found.named_bytes_per_s, found.named_of_memory) == (None, None)
    assert plain(found.not_all_read) == {"warm": False, "cold": False, "named": True}


def test_texts_in_quotes_and_parts_of_words_name_no_column() -> None:
    sql = "select count(*) from t where city = 'distance''s month' and air_time > 1"
    assert named_columns(sql, dict.fromkeys(("distance", "month", "time", "city"))) == ["city"]
    assert named_columns('select "CITY" from t', {"city": 1}) == ["city"]

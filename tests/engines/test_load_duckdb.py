"""Loads into DuckDB through its library: every row once, whatever fails or is stopped."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.engines.duckdb import ENGINE as DUCKDB
from loadstone.errors import LoadstoneError
from loadstone.model import Load, Series, SeriesTables
from loadstone.model import Pace as Rate
from loadstone.target import open_target, parse_target
from loadstone.workload.tsbs.load import TimeSeriesLoadOptions, perform_load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadstone.signals import Signals
    from loadstone.target import OpenTarget

pytestmark = pytest.mark.slow

HOURS = Series(use_case="iot", start="2016-01-01T00:00:00Z", end="2016-01-01T06:00:00Z", scale=5)
LOAD = Load(data=HOURS, method="best", batch_rows=500, workers=3)


@pytest.fixture
def target() -> Iterator[OpenTarget]:
    with open_target(parse_target("duckdb:"), 4) as opened:
        control = opened.connect("test")
        DUCKDB.create_workspace(control)
        yield opened


def value(target: OpenTarget, sql: str) -> str | None:
    return DUCKDB.text_value(target.connect("looking"), sql)


class StopAfter:
    """In place of the signals of a run: asks to stop once so many rows are in."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.stop: Any = None

    def during(self, stop: Any) -> None:
        self.stop = stop

    def __call__(self, progress: dict[str, Any]) -> None:
        if progress.get("rows", 0) >= self.rows:
            self.stop()


def check_whole(account: dict[str, Any]) -> None:
    loaded = account["load"]
    assert (account["state"], account["reason"], loaded["verified"]) == ("complete", None, True)
    counts = account["counts"]
    assert counts["done"] == counts["scheduled"] == loaded["batches"]
    assert account["in_doubt"] == 0


@pytest.mark.parametrize("method", ["arrow", "insert"])
@pytest.mark.parametrize("use_case", ["iot", "devops", "cpu-only"])
def test_what_was_generated_is_in_the_tables(
    target: OpenTarget, tmp_path: Path, method: Any, use_case: Any
) -> None:
    data = replace(HOURS, use_case=use_case, end="2016-01-01T00:20:00Z", scale=3)
    account = perform_load(replace(LOAD, data=data, method=method), target, tmp_path)
    check_whole(account)
    tables = {table["name"]: table["rows"] for table in account["load"]["tables"]}
    for name, rows in tables.items():
        assert value(target, f'select count(*) from "{name}"') == str(rows)
    assert sum(tables.values()) == account["load"]["rows"] > 0
    assert value(target, "select count(*) from duckdb_tables() where table_name = 'loadstone_batches'") == "0"
    lines = [json.loads(line) for line in (tmp_path / "series.jsonl").read_text().splitlines()]
    assert sum(line["rows"] for line in lines) == account["load"]["rows"]
    assert sum(line["metrics"] for line in lines) == account["load"]["metrics"]
    assert (tmp_path / "latency.hlog").stat().st_size > 0


def test_tags_as_json_and_the_first_tag_beside_the_rows(target: OpenTarget, tmp_path: Path) -> None:
    options = SeriesTables(jsonb_tags=True, in_table_tag=True)
    check_whole(perform_load(replace(LOAD, tables=options), target, tmp_path))
    mismatched = (
        "select count(*) from readings r join tags t on t.id = r.tags_id "
        "where r.name is distinct from t.tagset->>'name'"
    )
    assert value(target, mismatched) == "0"
    assert int(value(target, "select count(distinct name) from readings") or 0) == 5


def test_wishes_without_meaning_are_told(target: OpenTarget, tmp_path: Path) -> None:
    options = SeriesTables(chunk_time_s=3600, compress=True, field_index_count=2)
    account = perform_load(replace(LOAD, tables=options, hash_workers=True), target, tmp_path)
    told = " ".join(account["load"]["notes"])
    assert "not hashed to workers" in told
    for words in ("no index on time", "no partitions", "compresses every column", "no index on fields"):
        assert words in told


def test_a_load_that_was_stopped_goes_on_without_loss_or_duplicates(
    target: OpenTarget, tmp_path: Path
) -> None:
    slow = replace(LOAD, pace=Rate("fixed", 20.0))
    stop = StopAfter(1000)
    first = perform_load(slow, target, _folder(tmp_path, "a"), _as_signals(stop), stop)
    assert first["state"] == "interrupted"
    assert 1000 <= first["load"]["rows"] < 20_000
    booked = value(target, "select sum(rows) from loadstone_batches")
    assert booked == str(first["load"]["rows"]) == str(first["load"]["committed"]["rows"])
    with pytest.raises(LoadstoneError, match="was interrupted"):
        perform_load(LOAD, target, _folder(tmp_path, "b"))
    again = perform_load(LOAD, target, _folder(tmp_path, "c"), options=TimeSeriesLoadOptions(resume=True))
    check_whole(again)
    assert again["load"]["skipped_batches"] == first["load"]["batches"]
    held = sum(int(table["fingerprint"]["rows"]) for table in again["load"]["tables"])
    assert again["load"]["rows"] + first["load"]["rows"] == held


def test_a_batch_that_is_refused_breaks_the_load_off(target: OpenTarget, tmp_path: Path) -> None:
    perform_load(replace(LOAD, limit_rows=500), target, _folder(tmp_path, "a"))
    control = target.connect("test")
    for statement in ("delete from readings", "delete from diagnostics", "delete from tags"):
        control.execute(statement)
    control.execute("alter table readings drop column velocity")
    account = perform_load(
        LOAD, target, _folder(tmp_path, "b"), options=TimeSeriesLoadOptions(make_tables=False)
    )
    assert account["state"] == "aborted"
    assert "failed: " in account["reason"]
    assert "velocity" in account["reason"]
    assert account["load"]["rows"] == 0
    assert account["errors"][0]["sqlstate"] == "BinderException"
    assert value(target, "select count(*) from diagnostics") == "0", "a batch is one transaction"


def test_a_rate_is_kept_and_latency_counts_from_the_intended_start(
    target: OpenTarget, tmp_path: Path
) -> None:
    paced = replace(LOAD, limit_rows=5_000, pace=Rate("fixed", 10.0))
    account = perform_load(paced, target, tmp_path)
    check_whole(account)
    assert account["counts"]["done"] == 10
    seconds = (account["end_ns"] - account["start_ns"]) / 1e9
    assert seconds >= 0.9
    assert account["response"]["mean_ns"] >= account["service"]["mean_ns"]
    assert account["lag"]["count"] == 10


def test_a_batch_that_takes_too_long_is_cut_off(target: OpenTarget, tmp_path: Path) -> None:
    begin = time.monotonic()
    account = perform_load(
        replace(LOAD, batch_rows=20_000, method="insert", timeout_s=0.05, workers=1), target, tmp_path
    )
    assert account["state"] == "aborted"
    assert account["errors"][0]["sqlstate"] == "timeout"
    assert time.monotonic() - begin < 60


def test_data_that_cannot_be_is_refused_before_a_table_is_made(target: OpenTarget, tmp_path: Path) -> None:
    with pytest.raises(LoadstoneError):
        perform_load(replace(LOAD, data=str(tmp_path / "missing")), target, tmp_path)
    with pytest.raises(LoadstoneError, match="does not support the load method copy_binary"):
        perform_load(replace(LOAD, method="copy_binary"), target, tmp_path)
    assert value(target, "select count(*) from duckdb_tables()") == "0"


@pytest.mark.parametrize("seed", [1, 2])
def test_the_seed_reaches_random_starts(target: OpenTarget, tmp_path: Path, seed: int) -> None:
    """What the core makes of it is the same for loads and queries: see test_library_drive.py."""
    random = replace(LOAD, limit_rows=1_000, pace=Rate("poisson", 25.0), seed=seed)
    account = perform_load(random, target, tmp_path)
    check_whole(account)
    assert (account["seed"], account["pace"]["kind"]) == (seed, "poisson")


def test_insert_intervals_go_by_worker(target: OpenTarget, tmp_path: Path) -> None:
    slow = replace(LOAD, limit_rows=1_000, insert_intervals="1", workers=1)
    account = perform_load(slow, target, tmp_path)
    check_whole(account)
    assert (account["end_ns"] - account["start_ns"]) / 1e9 >= 1.0
    wrong = replace(slow, insert_intervals="soon")
    with pytest.raises(LoadstoneError, match="is not an interval"):
        perform_load(wrong, target, tmp_path, options=TimeSeriesLoadOptions(replace=True))


def _folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder


def _as_signals(stop: StopAfter) -> Signals:
    signals: Any = stop
    found: Signals = signals
    return found

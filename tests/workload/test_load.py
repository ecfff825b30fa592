"""Bulk loads into PostgreSQL and DuckDB: in steps, verified, resumed, refused in time."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.sandbox import Database, fill, make_base, small_disk
from support.table_loads import BULK, IMPORT, UNION, USUAL, check_whole, load, opened_at, value

from loadstone import _core
from loadstone.errors import LoadstoneError
from loadstone.model import BulkLoad, LongTransactions, PlainTable, Rows
from loadstone.private_server import EmbeddedServer, ServerSpec
from loadstone.target import open_target, parse_target
from loadstone.workload.load import look, needed_bytes, perform_bulk, refuse_without_room

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.model import TableForm
    from loadstone.target import OpenTarget
    from loadstone.workload.load import Content

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
SYSTEM = Path("/usr/lib/postgresql")
LEDGERS = "select count(*) from information_schema.tables where table_name = 'loadstone_batches'"


@pytest.fixture(params=["postgres", "duckdb"])
def target(request: pytest.FixtureRequest, database: Database) -> Iterator[OpenTarget]:
    with opened_at(database.socket_url if request.param == "postgres" else "duckdb:") as opened:
        yield opened


@pytest.fixture
def server(database: Database) -> Iterator[OpenTarget]:
    with opened_at(database.socket_url) as opened:
        yield opened


class Stop:
    """In place of the signals of a run: asks to stop when told to."""

    def __init__(self) -> None:
        self.stop: Any = None

    def during(self, stop: Any) -> None:
        self.stop = stop


# What is loaded


@pytest.mark.parametrize("rows", [IMPORT, UNION], ids=["import", "union"])
def test_what_was_generated_is_in_the_table(target: OpenTarget, tmp_path: Path, rows: Rows) -> None:
    for method in target.engine.tables.methods:
        bulk = replace(BULK, rows=rows, method=method)
        loaded = check_whole(load(target, bulk, tmp_path, replace(USUAL, replace=True)))
        assert loaded["checks"][0]["detail"] == "count and fingerprint"
        assert value(target, "select count(*) from test") == str(rows.rows)
        assert value(target, LEDGERS) == "0"


def test_steps_are_told_of_when_they_are_committed_whole(target: OpenTarget, tmp_path: Path) -> None:
    seen: list[tuple[dict[str, Any], str | None]] = []
    order: list[str] = []

    def on_step(step: dict[str, Any]) -> None:
        order.append("step")
        seen.append((step, value(target, "select count(*) from test")))

    def ready() -> None:
        order.append("ready")
        assert value(target, "select count(*) from test") == "0"

    bulk = replace(BULK, rows=replace(IMPORT, rows=17_500))
    loaded = check_whole(load(target, bulk, tmp_path, replace(USUAL, on_step=on_step, ready=ready)))
    assert order == ["ready", *["step"] * 4]
    steps = [step for step, _ in seen]
    assert steps == loaded["steps"]
    assert [count for _, count in seen] == ["5000", "10000", "15000", "17500"]
    assert [(step["step"], step["first_row"], step["rows"], step["state"]) for step in steps] == [
        (0, 0, 5000, "complete"),
        (1, 5000, 5000, "complete"),
        (2, 10000, 5000, "complete"),
        (3, 15000, 2500, "complete"),
    ]
    for before, after in pairwise(steps):
        assert before["start_ns"] < before["end_ns"] <= after["start_ns"]
    size = loaded["table"]["row_bytes"] * 17_500
    assert loaded["logical_bytes"] == pytest.approx(size, rel=0.01)


def test_all_rows_are_one_step_unless_said_otherwise(target: OpenTarget, tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    check_whole(load(target, replace(BULK, step_rows=0), tmp_path, replace(USUAL, on_step=seen.append)))
    assert [(step["step"], step["rows"], step["batches"]) for step in seen] == [(0, 20_000, 20)]


def test_what_a_step_meets_ends_the_load(target: OpenTarget, tmp_path: Path) -> None:
    def on_step(step: dict[str, Any]) -> None:
        raise LoadstoneError(f"no more after step {step['step']}", "A test.")

    with pytest.raises(LoadstoneError, match="no more after step 0"):
        perform_bulk(BULK, target, tmp_path, options=replace(USUAL, on_step=on_step))
    assert value(target, "select count(*) from test") == "5000"


def test_indexes_may_be_made_after_the_rows(target: OpenTarget, tmp_path: Path) -> None:
    bulk = replace(BULK, table=replace(BULK.table, index_when="after"))
    loaded = check_whole(load(target, bulk, tmp_path))
    assert [(index["when"], index["seconds"] > 0) for index in loaded["indexes"]] == [("after", True)] * 2
    schema = "select count(*) from {} where {} = 'loadstone' and {} = 'test'"
    places = {"DuckDB": ("duckdb_indexes()", "schema_name", "table_name")}
    usual = ("pg_indexes", "schemaname", "tablename")
    assert value(target, schema.format(*places.get(target.engine.title, usual))) == "2"


def test_storage_is_looked_at_before_and_after_each_statement(server: OpenTarget, tmp_path: Path) -> None:
    after = ("delete from test where k = '2G' and 1 = 0", "vacuum (analyze) test")
    loaded = check_whole(load(server, replace(BULK, after=after, storage=True), tmp_path))
    storage = loaded["storage"]
    assert [look["when"] for look in storage["looks"]] == [
        "after the load",
        *(f"after {text}" for text in after),
    ]
    for found in storage["looks"]:
        (table,) = found["tables"]
        assert (table["name"], table["rows"]) == ("test", 20_000)
        assert table["heap_bytes"] > table["logical_bytes"] == loaded["logical_bytes"]
        assert len(table["indexes"]) == 2
    assert storage["written"]["wal_bytes"] > loaded["logical_bytes"]
    assert [(entry["text"], entry["seconds"] >= 0) for entry in loaded["after"]] == [(t, True) for t in after]


def test_a_table_is_put_in_order_before_what_else_is_wished(target: OpenTarget, tmp_path: Path) -> None:
    bulk = replace(BULK, after=("select count(*) from test",), settle=True, storage=True)
    loaded = check_whole(load(target, bulk, tmp_path))
    texts = [entry["text"] for entry in loaded["after"]]
    assert texts == ['vacuum analyze "loadstone"."test"', "select count(*) from test"]
    whens = [look["when"] for look in loaded["storage"]["looks"]]
    assert whens == ["after the load", *(f"after {text}" for text in texts)]
    assert [entry["seconds"] >= 0 for entry in loaded["after"]] == [True, True]


def test_partitions_are_loaded_and_verified_as_one(server: OpenTarget, tmp_path: Path) -> None:
    table = replace(BULK.table, partition_column="l", partition_rows=6_000, primary_key="l")
    bulk = replace(BULK, rows=replace(IMPORT, first=1_000_000), table=table)
    loaded = check_whole(load(server, bulk, tmp_path))
    assert len(loaded["statements"]) == 1 + 4 + 2
    counts = "select count(*) as c from test group by tableoid"
    assert (
        value(server, f"select string_agg(c::text, ',' order by c desc) from ({counts}) as q")
        == "6000,6000,6000,2000"
    )


def timescale_place() -> Path | None:
    """Find an installed PostgreSQL that has TimescaleDB."""
    found = [place for place in SYSTEM.glob("*/bin") if (place.parent / "lib" / "timescaledb.so").is_file()]
    return max(found, default=None)


@pytest.mark.skipif(timescale_place() is None, reason="no PostgreSQL with TimescaleDB is installed here")
@pytest.mark.parametrize(
    ("scheme", "form"), [("timescaledb", "columnar"), ("timescaledb-columnstore", "default")]
)
def test_timescale_moves_all_rows_into_columns(tmp_path: Path, scheme: str, form: TableForm) -> None:
    settings = {"shared_preload_libraries": "timescaledb", "timescaledb.telemetry_level": "off"}
    with EmbeddedServer(ServerSpec(f"pg:{timescale_place()}", clients=10, settings=settings)) as private:
        url = Database(private, private.connection.database).socket_url.replace("postgres:", f"{scheme}:")
        with opened_at(url) as target:
            rows = PlainTable("test", indexes="a", form=form, partition_column="l", partition_rows=5_000)
            loaded = check_whole(load(target, replace(BULK, table=rows, storage=True), tmp_path))
            assert "convert_to_columnstore" in loaded["after"][-1]["text"]
            # The time of the conversion is the load's.
            assert [entry.get("part_of_load") for entry in loaded["after"]] == [True, True]
            (table,) = loaded["storage"]["looks"][0]["tables"]
            assert table["heap_bytes"] + table["toast_bytes"] < 1.1 * loaded["logical_bytes"]
            chunks = "select count(*) from timescaledb_information.chunks where is_compressed"
            assert value(target, chunks) in ("4", "5")


@pytest.mark.parametrize("pipeline", [True, False])
def test_long_transactions_are_marked_on_their_way(target: OpenTarget, tmp_path: Path, pipeline: Any) -> None:
    long = LongTransactions(rows=1_000, pipeline=pipeline, mark_rows=250)
    bulk = replace(BULK, rows=replace(UNION, rows=2_500), transactions=long, step_rows=0)
    loaded = check_whole(load(target, bulk, tmp_path))
    assert [(t["transaction"], t["rows"], t["state"]) for t in loaded["transactions"]] == [
        (0, 1_000, "committed"),
        (1, 1_000, "committed"),
        (2, 500, "committed"),
    ]
    lines = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    first = [line for line in lines if line["transaction"] == 0]
    assert [line["rows"] for line in first if line["state"] == "open"] == [250, 500, 750, 1_000]
    assert (first[-1]["rows"], first[-1]["state"]) == (1_000, "committed")
    times = [line["t_ns"] for line in first]
    assert times == sorted(times)
    assert loaded["committed"] == {"batches": 3, "rows": 2_500}


# What is wrong


def test_a_changed_row_is_found(target: OpenTarget, tmp_path: Path) -> None:
    spoilt = replace(BULK, after=("update test set c = 'x' where l = (select min(l) from test)",))
    account = load(target, spoilt, tmp_path)
    assert (account["state"], account["load"]["verified"]) == ("complete", False)
    assert account["load"]["checks"][0]["detail"] == "count and fingerprint; different: bytes, content"
    assert value(target, LEDGERS) == "1"
    by_count = load(target, replace(spoilt, verify="count"), tmp_path, replace(USUAL, replace=True))
    assert by_count["load"]["verified"] is True


def test_a_statement_that_fails_is_named(target: OpenTarget, tmp_path: Path) -> None:
    account = load(target, replace(BULK, after=("select 1", "drop table nowhere")), tmp_path)
    assert account["state"] == "failed"
    assert "the rows were loaded, but then `drop table nowhere` failed" in account["reason"]
    assert [entry["text"] for entry in account["load"]["after"]] == ["select 1"]
    assert account["load"]["committed"]["rows"] == 20_000


def test_a_table_that_is_there_is_refused_or_replaced(target: OpenTarget, tmp_path: Path) -> None:
    check_whole(load(target, BULK, tmp_path))
    with pytest.raises(LoadstoneError, match="the table test"):
        perform_bulk(BULK, target, tmp_path)
    check_whole(load(target, BULK, tmp_path, replace(USUAL, replace=True)))
    with pytest.raises(LoadstoneError, match="already contain rows"):
        perform_bulk(BULK, target, tmp_path, options=replace(USUAL, make_tables=False))
    assert value(target, "select count(*) from test") == "20000"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": replace(IMPORT, set="nothing")}, "there is no data set"),
        ({"rows": replace(IMPORT, options={"colour": "red"})}, "no option"),
        ({"rows": replace(IMPORT, rows=0)}, "0 is not a number of rows to generate"),
        ({"rows": Rows(files=("/nowhere/rows.csv",), format="csv")}, "'/nowhere/rows.csv' cannot be read:"),
        ({"table": PlainTable("test", indexes="13")}, "13 indexes are requested, but the table has only 12"),
        ({"table": PlainTable("test", indexes="a,z")}, "needs a column 'z'"),
        (
            {"table": PlainTable("test", primary_key="z")},
            "primary key of the table 'test' needs a column 'z'",
        ),
        ({"table": PlainTable("test", partition_rows=9, partition_column="a")}, "cannot be partitioned by a"),
        ({"batch_rows": 0}, "batch_rows cannot be 0"),
        ({"workers": 0}, "workers cannot be 0"),
        ({"step_rows": -1}, "step_rows cannot be -1"),
    ],
)
def test_bad_input_is_refused_before_anything_is_touched(change: dict[str, Any], words: str) -> None:
    with pytest.raises(LoadstoneError, match=words):
        look(replace(BULK, **change))


def test_what_the_server_cannot_do_leaves_what_is_there(server: OpenTarget, tmp_path: Path) -> None:
    check_whole(load(server, BULK, tmp_path))
    for table, words in (
        (PlainTable("test", indexes="a:gin"), "no default operator class for gin"),
        (PlainTable("test", tablespace="nowhere"), "tablespace 'nowhere'"),
        (PlainTable("test", form="columnar"), "does not support tables of the form 'columnar'"),
    ):
        with pytest.raises(LoadstoneError, match=words):
            perform_bulk(replace(BULK, table=table), server, tmp_path, options=replace(USUAL, replace=True))
    with pytest.raises(LoadstoneError, match="does not support the load method arrow"):
        perform_bulk(replace(BULK, method="arrow"), server, tmp_path)
    assert value(server, "select count(*) from test") == "20000"


def test_a_table_whose_indexes_cannot_be_made_is_dropped_again(server: OpenTarget, tmp_path: Path) -> None:
    with closing(server.connect("test")) as control:
        control.execute("create table test_b_idx (a int)")
    with pytest.raises(
        LoadstoneError, match='the indexes cannot be created: relation "test_b_idx" already exists'
    ):
        perform_bulk(BULK, server, tmp_path)
    assert value(
        server, "select string_agg(tablename, ',') from pg_tables where schemaname = 'loadstone'"
    ) == ("test_b_idx")


# Broken and resumed


def broken(target: OpenTarget, out: Path, bulk: BulkLoad = BULK) -> dict[str, Any]:
    """Stop a load in the middle of its second step."""
    stop = Stop()

    def show(progress: dict[str, Any]) -> None:
        if progress.get("rows", 0) >= 6_000:
            stop.stop()

    slow = replace(bulk, method="insert", workers=1)
    account = load(target, slow, out, signals=stop, show=show)
    assert account["state"] == "interrupted"
    assert account["load"]["verified"] is None
    assert account["load"]["steps"][0]["state"] == "complete"
    assert 6_000 <= account["load"]["committed"]["rows"] == account["load"]["rows"]
    return account


def test_a_broken_load_goes_on_where_it_stopped(target: OpenTarget, tmp_path: Path) -> None:
    bulk = replace(BULK, rows=replace(IMPORT, rows=100_000), batch_rows=500)
    before = broken(target, tmp_path, bulk)["load"]["rows"]
    if before == 100_000:
        pytest.fail("it was over before it could be stopped")
    with pytest.raises(LoadstoneError, match="an earlier load of these tables was interrupted"):
        perform_bulk(bulk, target, tmp_path)
    for other in (replace(bulk, batch_rows=250), replace(bulk, rows=replace(bulk.rows, seed=9))):
        with pytest.raises(LoadstoneError, match="the interrupted load was another one"):
            perform_bulk(other, target, tmp_path, options=replace(USUAL, resume=True))
    other = replace(bulk, table=replace(bulk.table, indexes="3"))
    with pytest.raises(LoadstoneError, match="the interrupted load was another one: its table"):
        perform_bulk(other, target, tmp_path, options=replace(USUAL, resume=True))
    seen: list[dict[str, Any]] = []
    loaded = check_whole(load(target, bulk, tmp_path, replace(USUAL, resume=True, on_step=seen.append)))
    assert loaded["resumed"]["rows"] == before
    assert loaded["rows"] == 100_000 - before
    assert sum(step["rows"] for step in seen) == loaded["rows"]
    assert [step["step"] for step in seen] == list(range(before // 5_000, 20))
    with pytest.raises(LoadstoneError, match="no interrupted load"):
        perform_bulk(bulk, target, tmp_path, options=replace(USUAL, resume=True))


def test_indexes_that_are_missing_are_made_when_a_load_goes_on(target: OpenTarget, tmp_path: Path) -> None:
    later = replace(BULK, table=replace(BULK.table, index_when="after"))
    first = load(target, replace(later, after=("drop table nowhere",)), tmp_path)
    assert first["state"] == "failed"
    with closing(target.connect("test")) as control:
        control.execute("drop index test_b_idx")
    loaded = check_whole(load(target, later, tmp_path, replace(USUAL, resume=True)))
    assert loaded["rows"] == 0
    assert loaded["steps"] == []
    assert [index["when"] for index in loaded["indexes"]] == ["after", "after"]


def test_a_lost_server_leaves_an_account(server: OpenTarget, tmp_path: Path) -> None:
    def on_step(step: dict[str, Any]) -> None:
        if step["step"] == 1:
            cut = (
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'loadstone' "
            )
            with closing(server.connect("test")) as control:
                control.execute(cut + "and pid <> pg_backend_pid()")

    account = load(server, BULK, tmp_path, replace(USUAL, on_step=on_step))
    loaded = account["load"]
    assert account["state"] == "aborted", account["reason"]
    assert loaded["committed"]["rows"] == 10_000
    assert [step["state"] for step in loaded["steps"][:2]] == ["complete", "complete"]
    check_whole(load(server, BULK, tmp_path, replace(USUAL, resume=True)))


# Room


SHAPES = {
    "none": (IMPORT, PlainTable("test")),
    "five": (IMPORT, PlainTable("test", indexes="5")),
    "built": (IMPORT, PlainTable("test", indexes="3", index_when="after")),
    "kinds": (IMPORT, PlainTable("test", indexes="a:hash, l:brin, (f,l), l", primary_key="a")),
    "union": (UNION, PlainTable("test", primary_key="id")),
    "float": (replace(UNION, options={"table": "float"}, rows=50_000), PlainTable("test", indexes="data")),
    "bigint": (replace(UNION, options={"table": "bigint"}, rows=50_000), PlainTable("test", indexes="2")),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_room_that_is_asked_for_is_what_a_load_takes(
    server: OpenTarget, tmp_path: Path, shape: str
) -> None:
    rows, table = SHAPES[shape]
    bulk = replace(BULK, rows=replace(rows, rows=max(rows.rows, 20_000)), table=table, storage=True)
    need = needed_bytes(bulk, look(bulk), server.engine)
    loaded = check_whole(load(server, bulk, tmp_path))
    with closing(server.connect("test")) as control:
        size = server.engine.tables.size(control, "test")
    heap, wal = size.table_bytes + size.toast_bytes, loaded["storage"]["written"]["wal_bytes"]
    assert heap / 1.1 <= need.heap_bytes <= heap * 1.25
    assert size.index_bytes / 1.3 <= need.index_bytes <= size.index_bytes * 1.5
    assert wal / 1.6 <= need.wal_bytes <= wal * 1.8
    assert refuse_without_room(need, server) == []


@ROOT
def test_rows_that_cannot_fit_are_refused_unless_told(tmp_path: Path) -> None:
    base = make_base()
    with small_disk(base / "disk", 700) as disk:
        disk.chmod(0o777)
        with open_target(parse_target("pg"), 8, storage=disk) as opened:
            with closing(opened.connect("test")) as control:
                opened.engine.create_workspace(control)
            bulk = replace(BULK, rows=replace(IMPORT, rows=3_000_000), step_rows=50_000, batch_rows=10_000)
            with pytest.raises(LoadstoneError, match="the load needs about") as refused:
                perform_bulk(bulk, opened, tmp_path)
            assert "--ignore-space" in refused.value.hint
            assert value(opened, "select to_regclass('test') is null") == "t"
            fill(disk, 40 << 20)
            account = load(opened, bulk, tmp_path, replace(USUAL, ignore_space=True))
            assert account["state"] == "aborted"
            assert account["errors"][0]["sqlstate"] in ("53100", "connection"), account["errors"]
            assert any("the load was started anyway" in note for note in account["load"]["notes"])
            assert account["load"]["steps"][-1]["state"] == "failed"
            (disk / "ballast").unlink()
    shutil.rmtree(base)


def test_sampled_widths_are_those_of_all_rows() -> None:
    content: Content = look(BULK)
    assert sum(content.widths) == pytest.approx(content.table["row_bytes"], rel=0.02)
    assert json.loads(_core.fingerprint_rows(json.dumps(content.data)))["rows"] == "20000"


def test_mean_lengths_of_texts_are_told_with_the_table() -> None:
    bulk = replace(BULK, rows=Rows(set="flights", rows=20_000), table=PlainTable("flights"))
    columns = {column["name"]: column for column in look(bulk).table["columns"]}
    assert columns["origin_state"]["text_bytes"] == 2
    assert columns["origin_country"]["text_bytes"] == 3
    assert 7 < columns["origin_city"]["text_bytes"] < 11
    assert "text_bytes" not in columns["distance"]

"""chDB and QuestDB, asked themselves: what is loaded is there, and they answer as DuckDB does."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from datetime import date
from hashlib import md5
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow as pa
import pytest
from support.sandbox import wait_until
from support.table_loads import IMPORT, UNION, USUAL, load, opened_at, value

from loadstone.engine.library.engine import LibraryEngine
from loadstone.engines import engine
from loadstone.engines.clickhouse.load import ClickLoader
from loadstone.engines.questdb.load import QuestLoader
from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.model import BulkLoad, PlainTable, Rows
from loadstone.target import parse_target
from loadstone.workload.load import look
from loadstone.workload.load.verification import checks
from loadstone.workload.queries.answer import compare, digest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadstone.target import OpenTarget

BULK = BulkLoad(rows=IMPORT, table=PlainTable("test"), step_rows=10_000, batch_rows=2_500, workers=2)
AGAIN = replace(USUAL, replace=True)
FLIGHTS = Rows(set="flights", rows=5_000)
QUERIES = {
    "import": (
        "select count(*) as n from test",
        "select k, count(*) as n from test group by k order by n desc, k",
        "select a, b, c, l from test where l < '2018-11-01T00:00:02' order by l",
        "select min(l) as first, max(l) as last from test",
        "select count(*) as n from test where a > 'M' and f like '%A%'",
    ),
    "types": (
        "select avg(data1) as a, sum(data4) as s, max(data6) as m from test",
        "select count(*) as n, avg(data6) as a from test where id < 600",
        "select sum(data1) as s from test where id < 0",
        "select id, data2, data3, data5 from test where id between 700 and 720",
    ),
    "flights": (
        "select count(*) from test",
        "select count(*) from test where origin_country = 'USA'",
        "select count(*) as cnt, avg(distance) as dis from test where flight_month = 10",
        (
            "select origin_city, dest_city, count(*) as cnt, avg(airtime) as atime from test "
            "group by origin_city, dest_city order by cnt desc, atime"
        ),
        (
            "select origin_state, dest_state, count(*) as cnt, avg(airtime) as atime from test "
            "where distance < 175 group by origin_state, dest_state"
        ),
        "select * from test where flight_dayofmonth = 3 and flight_month = 3",
    ),
}
SLOW = {
    "chdb": "select count(*) from numbers(100000000000) where sipHash64(number) = 7",
    "questdb": "select count(*) from long_sequence(3000000) a cross join long_sequence(100000) b "
    "where a.x * b.x = 7",
}


@pytest.fixture(scope="module", params=["chdb", "questdb"])
def target(request: pytest.FixtureRequest) -> Iterator[OpenTarget]:
    with opened_at(f"{request.param}:") as opened:
        yield opened


@pytest.fixture(scope="module")
def duckdb() -> Iterator[OpenTarget]:
    with opened_at("duckdb:") as opened:
        yield opened


def driver(target: OpenTarget) -> LibraryEngine:
    assert isinstance(target.engine, LibraryEngine)
    return target.engine


def loaded(target: OpenTarget, rows: Rows, out: Path, **more: Any) -> dict[str, Any]:
    account = load(target, replace(BULK, rows=rows, **more), out, AGAIN)
    found: dict[str, Any] = account["load"]
    assert (account["state"], account["reason"], found["verified"]) == ("complete", None, True), found[
        "checks"
    ]
    assert found["checks"][0]["detail"] == "count and fingerprint"
    return found


@pytest.mark.parametrize("rows", [IMPORT, UNION, FLIGHTS], ids=["import", "types", "flights"])
def test_what_was_generated_is_there_and_is_asked_as_of_duckdb(
    target: OpenTarget, duckdb: OpenTarget, tmp_path: Path, rows: Rows
) -> None:
    for opened in (duckdb, target):
        loaded(opened, rows, tmp_path)
    with closing(target.connect("asking")) as ours, closing(duckdb.connect("asking")) as theirs:
        for sql in QUERIES[rows.set]:
            expected = digest(driver(duckdb).answer(theirs, duckdb.engine.translate(sql)))
            found = digest(driver(target).answer(ours, target.engine.translate(sql)))
            assert compare(expected, found) is None, sql
            assert target.engine.explain(ours, sql)
        assert target.engine.used_gpu(target.engine.explain(ours, sql)) is None


KINDS = {
    "y": pa.array([2008, 2008, 2008], pa.int16()),
    "d": pa.array([1, None, -32768], pa.int16()),
    "day": pa.array([date(2008, 1, 2), None, date(1969, 12, 30)]),
    "ok": pa.array([True, None, False]),
    "f": pa.array([1.5, None, -2.25], pa.float32()),
    "at": pa.array([1_199_243_045_678_901, None, 946_684_800_000_000], pa.timestamp("us")),
    "s": pa.array(["ä", "", None]),
    "r": pa.array(["x", "x", None]),
}
TEXTS = (
    r"2008|1|2008-01-02|1|1199243045678901|ä|x",
    r"2008|\N|\N|\N|\N||x",
    r"2008|-32768|1969-12-30|0|946684800000000|\N|\N",
)
"""Rows as the fingerprint writes them (crates/gen/src/rows/fingerprint.rs), floats apart."""
NAMES = {"int16": "int16", "date32[day]": "date", "bool": "bool", "float": "float32", "string": "text"}


def test_every_type_and_its_null_arrive(target: OpenTarget) -> None:
    schema = pa.schema([pa.field(name, values.type, nullable=name != "y") for name, values in KINDS.items()])
    rows = pa.record_batch(list(KINDS.values()), schema)
    columns: list[Any] = [
        {"name": field.name, "type": NAMES.get(str(field.type), "timestamp"), "nulls": field.nullable}
        for field in schema
    ]
    columns[-1]["repeats"] = True
    table: Any = {"name": "test", "columns": columns, "usual_indexes": [], "sequence": None}
    table |= {"sequence_first": None, "sequence_step": None, "row_bytes": None, "metrics": len(columns)}
    listed = [f'"{name}"' for name in KINDS]
    document = {"load": {"tables": {"test": {"name": '"test"', "columns": listed}}, "method": "arrow"}}
    loader = (ClickLoader if target.engine.name == "chdb" else QuestLoader)(
        {**document, "timeout_s": 60.0}, target.connect
    )
    with closing(target.connect("making")) as control, closing(loader.connect(0)) as session:
        control.execute(target.engine.tables.drop("test"))
        for statement in target.engine.tables.create(table, PlainTable("test")):
            control.execute(statement)
        session.send(SimpleNamespace(number=1, rows=3, tags=(), tables=(Part(rows),)))  # type: ignore[arg-type]
        loader.finish()
        found = target.engine.tables.read_fingerprint(control, table, "test")
        control.execute(target.engine.tables.drop("test"))
    digests = [int(md5(text.encode()).hexdigest()[:8], 16) for text in TEXTS]
    assert found["content"] == str(sum(digests))
    assert (found["rows"], found["bytes"], list(found["nulls"])) == ("3", "4", [0, 1, 1, 1, 1, 1, 1, 1])


class Part:
    """Rows as the core hands them over."""

    table = "test"

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.rows.__arrow_c_array__(requested_schema)


def test_a_row_that_is_missing_is_found(target: OpenTarget, tmp_path: Path) -> None:
    loaded(target, IMPORT, tmp_path)
    more = replace(IMPORT, rows=IMPORT.rows + 1)
    bulk = replace(BULK, rows=more)
    with closing(target.connect("verifying")) as control:
        (check,) = checks(control, target.engine.tables, bulk, look(bulk, target.engine.tables), more.rows)
    assert not check["passed"]
    assert "different: rows, bytes, content" in check["detail"]


def test_steps_and_the_wait_for_the_end_are_in_the_account(target: OpenTarget, tmp_path: Path) -> None:
    found = loaded(target, IMPORT, tmp_path, storage=True)
    assert [step["rows"] for step in found["steps"]] == [10_000, 10_000]
    assert found["finish_ns"] > 0
    assert found["committed"] is None, "there is no ledger: a broken load begins again"
    (table,) = found["storage"]["looks"][0]["tables"]
    assert table["heap_bytes"] > 1_000_000
    with closing(target.connect("looking")) as control:
        sizes = target.engine.sizes(control)
        assert [(relation["name"], relation["rows_estimate"]) for relation in sizes["relations"]] == [
            ("test", IMPORT.rows)
        ]
        assert all(line["durable"] for line in target.engine.durability(control))
        names = {setting["name"] for setting in target.engine.settings(control)}
        assert names & {"async_insert", "cairo.commit.mode"}
        seen = target.engine.observe(control)
        assert seen.part["gauges"]
        assert target.engine.server_pids(control).pid is not None
        assert "time series" not in target.engine.capabilities(control)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (PlainTable("test", partition_rows=100, partition_column="l"), "partitions"),
        (PlainTable("test", tablespace="fast"), "no tablespaces"),
        (PlainTable("test", indexes="a:brin"), "cannot create the index a:brin"),
        (PlainTable("test", indexes="99"), "99 indexes are requested"),
        (PlainTable("test", primary_key="zz"), "needs a column 'zz'"),
    ],
)
def test_wishes_that_cannot_be_are_refused_before_anything_is_touched(
    target: OpenTarget, tmp_path: Path, options: PlainTable, words: str
) -> None:
    with pytest.raises(LoadstoneError, match=words):
        load(target, replace(BULK, table=options), tmp_path)


def test_ways_to_load_that_it_lacks_are_refused(target: OpenTarget, tmp_path: Path) -> None:
    with pytest.raises(LoadstoneError, match="does not support the load method copy_binary"):
        load(target, replace(BULK, method="copy_binary"), tmp_path)


def test_a_query_that_takes_too_long_is_ended_and_the_connection_goes_on(target: OpenTarget) -> None:
    with closing(target.connect("slow")) as control:
        begun = time.monotonic()
        with target.engine.at_most(control, 0.5), pytest.raises(target.engine.errors):
            driver(target).answer(control, SLOW[target.engine.name])
        assert time.monotonic() - begun < 60, "it ran to its end"
        assert target.engine.text_value(control, "select 1") == "1"


def test_what_it_does_not_understand_is_an_error_of_its_own(target: OpenTarget) -> None:
    with closing(target.connect("wrong")) as control:
        with pytest.raises(target.engine.errors, match="nonsense"):
            control.execute("select nonsense from test")
        with pytest.raises(RunFailedError, match="1 rows of 2 columns"):
            target.engine.text_value(control, "select 1 as a, 2 as b")
        assert target.engine.text_value(control, "select null") is None


def test_caches_are_emptied_and_connections_live_on(target: OpenTarget, tmp_path: Path) -> None:
    loaded(target, IMPORT, tmp_path)
    with closing(target.connect("cold")) as control:
        assert target.engine.flush_caches(control)["emptied"]
        assert target.engine.text_value(control, "select count(*) from test") == str(IMPORT.rows)


def ask_until_it_fails(control: Any) -> None:
    def answers_no_more() -> bool:
        control.execute("select count(*) from test")
        return False

    wait_until(answers_no_more, "the system has ended it")


def test_an_engine_that_dies_fails_the_statement_and_comes_back_with_what_it_had(
    target: OpenTarget, tmp_path: Path
) -> None:
    loaded(target, IMPORT, tmp_path)
    with closing(target.connect("dying")) as control:
        pid = target.engine.server_pids(control).pid
        assert pid is not None
        psutil.Process(pid).kill()
        with pytest.raises(target.engine.errors):
            ask_until_it_fails(control)
    assert value(target, "select count(*) from test") == str(IMPORT.rows)
    with closing(target.connect("again")) as control:
        assert target.engine.server_pids(control).pid not in (None, pid)


def test_what_it_is_and_what_it_needs_is_told(target: OpenTarget) -> None:
    name = target.engine.name
    assert engine(name) is target.engine
    assert target.identity["version"] in target.identity["version_text"]
    assert target.engine.label(target.identity) == f"{target.engine.title} {target.identity['version']}"
    assert target.engine.needs
    assert target.local
    assert target.private
    assert not target.engine.in_process
    assert parse_target(f"{name}:").id == name


def test_the_workspace_goes_with_all_that_is_in_it(target: OpenTarget, tmp_path: Path) -> None:
    loaded(target, IMPORT, tmp_path)
    with closing(target.connect("cleaning")) as control:
        assert target.engine.has_workspace(control)
        target.engine.drop_workspace(control)
        assert not target.engine.has_workspace(control)
        target.engine.create_workspace(control)
        assert target.engine.tables.existing(control, ["test"]) == []

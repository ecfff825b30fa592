"""chDB and QuestDB, asked themselves: what is loaded is there, and they answer as DuckDB does."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from bulkdesk import IMPORT, UNION, USUAL, load, opened_at, value

from loadstone.asking.answer import compare, digest
from loadstone.bulk import look
from loadstone.bulk.verify import checks
from loadstone.engine.driver import DriverEngine
from loadstone.engines import engine
from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.model import BulkLoad, PlainTable
from loadstone.target import parse_target

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadstone.model import Rows
    from loadstone.target import OpenTarget

BULK = BulkLoad(rows=IMPORT, table=PlainTable("test"), step_rows=10_000, batch_rows=2_500, workers=2)
AGAIN = replace(USUAL, replace=True)
QUESTIONS = {
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


def driver(target: OpenTarget) -> DriverEngine:
    assert isinstance(target.engine, DriverEngine)
    return target.engine


def loaded(target: OpenTarget, rows: Rows, out: Path, **more: Any) -> dict[str, Any]:
    account = load(target, replace(BULK, rows=rows, **more), out, AGAIN)
    found: dict[str, Any] = account["load"]
    assert (account["state"], account["reason"], found["verified"]) == ("complete", None, True), found[
        "checks"
    ]
    assert found["checks"][0]["detail"] == "count and fingerprint"
    return found


@pytest.mark.parametrize("rows", [IMPORT, UNION], ids=["import", "types"])
def test_what_was_generated_is_there_and_is_asked_as_of_duckdb(
    target: OpenTarget, duckdb: OpenTarget, tmp_path: Path, rows: Rows
) -> None:
    for opened in (duckdb, target):
        loaded(opened, rows, tmp_path)
    with closing(target.connect("asking")) as ours, closing(duckdb.connect("asking")) as theirs:
        for sql in QUESTIONS[rows.set]:
            expected = digest(driver(duckdb).answer(theirs, duckdb.engine.in_words(sql)))
            found = digest(driver(target).answer(ours, target.engine.in_words(sql)))
            assert compare(expected, found) is None, sql
            assert target.engine.explain(ours, sql)
        assert target.engine.used_gpu(target.engine.explain(ours, sql)) is None


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
    ("wishes", "words"),
    [
        (PlainTable("test", partition_rows=100, partition_column="l"), "partitions"),
        (PlainTable("test", tablespace="fast"), "no tablespaces"),
        (PlainTable("test", indexes="a:brin"), "cannot make the index a:brin"),
        (PlainTable("test", indexes="99"), "99 indexes are asked for"),
        (PlainTable("test", primary_key="zz"), "needs a column zz"),
    ],
)
def test_wishes_that_cannot_be_are_refused_before_anything_is_touched(
    target: OpenTarget, tmp_path: Path, wishes: PlainTable, words: str
) -> None:
    with pytest.raises(LoadstoneError, match=words):
        load(target, replace(BULK, table=wishes), tmp_path)


def test_ways_to_load_that_it_lacks_are_refused(target: OpenTarget, tmp_path: Path) -> None:
    with pytest.raises(LoadstoneError, match="cannot be loaded by copy_binary"):
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
            control.execute(b"select nonsense from test")
        with pytest.raises(RunFailedError, match="1 rows of 2 columns"):
            target.engine.text_value(control, "select 1 as a, 2 as b")
        assert target.engine.text_value(control, "select null") is None


def test_caches_are_emptied_and_connections_live_on(target: OpenTarget, tmp_path: Path) -> None:
    loaded(target, IMPORT, tmp_path)
    with closing(target.connect("cold")) as control:
        assert target.engine.flush_caches(control)["emptied"]
        assert target.engine.text_value(control, "select count(*) from test") == str(IMPORT.rows)


def ask_until_it_fails(control: Any) -> None:
    for _ in range(10):  # the system may take a moment to end it
        control.execute(b"select count(*) from test")
        time.sleep(0.05)


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

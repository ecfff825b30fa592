"""Queries in plain SQL, asked of real databases: their answers, their draws, their caches."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest
from support.table_loads import opened_at

from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.model import Draw, PlainQueries, PlainQuery
from loadstone.private_server.page_cache import evict
from loadstone.results.folder import RunFolder
from loadstone.run.queries import compare_queries, outcome_of_queries
from loadstone.run.server import Server
from loadstone.workload.queries.answer import compare
from loadstone.workload.queries.rounds import QueryContext, perform_in_turn, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from loadstone.engine import Caches
    from loadstone.target import OpenTarget

ROWS = 1_000_000
TABLE = (
    "create table t (id int, g int, town varchar(10), x double precision, long bigint)",
    f"""insert into t select i, i % 1000, 'town ' || i % 7, i * 0.1, i * 3000000000
        from generate_series(1, {ROWS}) as s(i)""",
)
SAME = {
    "the average of whole numbers, numeric here and double there": "select avg(id), avg(long) from t",
    "of groups": "select g, town, count(*) as n, avg(id) as mean from t group by g, town",
    "sums of doubles in any order": "select town, sum(x), avg(x), min(x), max(x) from t group by town",
    "sums of whole numbers beyond 64 bits": "select sum(long) from t",
    "no row": "select id from t where id < 0",
    "NULLs": "select avg(id), max(town), count(id) from t where id < 0",
}
NOT_TRIED: Caches = {"emptied": False, "note": "not tried"}


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[OpenTarget, OpenTarget]]:
    """A private PostgreSQL and a DuckDB that hold the same rows."""
    with ExitStack() as stack:
        pg, duck = (stack.enter_context(opened_at(name)) for name in ("pg", "duckdb:"))
        for opened in (pg, duck):
            with closing(opened.connect("test")) as control:
                for statement in TABLE:
                    control.execute(statement)
        yield pg, duck


def asked(
    opened: OpenTarget,
    out: Path,
    *texts: str,
    cool: Callable[[], Caches] = lambda: NOT_TRIED,
    control: Callable[[], Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Ask each text as a query of its own, once unless told otherwise."""
    queries = tuple(PlainQuery(f"Sql{number}", text) for number, text in enumerate(texts, 1))
    given = {"cold": False, "warm_runs": 1, "table": "t", **more}
    out.mkdir(exist_ok=True)
    kept: list[dict[str, Any]] = []
    with closing(opened.connect("test")) as own:
        working = control or (lambda: own)
        context = QueryContext(working, working, cool, None, None, "loadstone", kept.append)
        account = perform_in_turn(PlainQueries(queries, **given), opened, out, context)
    assert len(kept) == len(texts)
    assert list(out.iterdir()) == []
    return account


def digests(account: dict[str, Any]) -> list[dict[str, Any]]:
    assert [run["state"] for run in account["plain_queries"]["runs"]] == ["done"] * len(
        account["plain_queries"]["runs"]
    )
    return [query["answer"] for query in account["plain_queries"]["queries"]]


def test_engines_agree_at_a_million_rows(both: tuple[OpenTarget, OpenTarget], tmp_path: Path) -> None:
    here, there = (digests(asked(opened, tmp_path, *SAME.values())) for opened in both)
    assert [compare(a, b) for a, b in zip(here, there, strict=True)] == [None] * len(SAME)


def test_ties_in_the_order_do_not_matter(both: tuple[OpenTarget, OpenTarget], tmp_path: Path) -> None:
    text = "select g, count(*) as n, avg(x) as mean from t group by g order by n desc"
    orders = ["", ", g", ", g desc", ", mean"]
    found = [
        digest for opened in both for digest in digests(asked(opened, tmp_path, *(text + o for o in orders)))
    ]
    assert {compare(found[0], other) for other in found} == {None}


def test_a_millionth_is_told_apart(both: tuple[OpenTarget, OpenTarget], tmp_path: Path) -> None:
    pg, duck = both
    (here,) = digests(asked(pg, tmp_path, "select count(*) as n, sum(x) as x from t"))
    (there,) = digests(asked(duck, tmp_path, "select count(*) as n, sum(x) as x from t where id > 1"))
    assert compare(here, there) == "column 1 (n): sums differ by 1.0e-06"


def test_an_account_says_when_each_run_was(both: tuple[OpenTarget, OpenTarget], tmp_path: Path) -> None:
    for opened in both:
        account = asked(opened, tmp_path, "select count(*) from t", "select 1 as one", cold=True, warm_runs=2)
        runs = account["plain_queries"]["runs"]
        assert [run["number"] for run in runs] == [1, 1, 2] * 2
        times = [time for run in runs for time in (run["start_ns"], run["end_ns"])]
        assert times == sorted(times)
        assert account["start_ns"] <= times[0] <= times[-1] <= account["end_ns"]
        assert account["counts"] == {"scheduled": 6, "done": 6, "failed": 0, "skipped": 0, "dropped": 0}
        assert account["plain_queries"]["caches"] == NOT_TRIED
        assert account["plain_queries"]["table_bytes"] > ROWS
        assert outcome_of_queries(account) == ("complete", None)


def test_what_cannot_be_found_out_is_noted(both: tuple[OpenTarget, OpenTarget], tmp_path: Path) -> None:
    account = asked(both[0], tmp_path, "select 1 as one", table="nowhere")
    (note,) = account["plain_queries"]["notes"]
    assert note.startswith("the size of nowhere could not be read: ")
    assert account["plain_queries"]["table_bytes"] is None


def test_queries_after_a_server_was_lost_for_good_are_skipped(
    both: tuple[OpenTarget, OpenTarget], tmp_path: Path
) -> None:
    def gone() -> Any:
        raise RunFailedError("the server was not available again", "")

    account = asked(both[0], tmp_path, "select nothing", "select 1 as one", control=gone)
    assert [(run["state"], run["reason"]) for run in account["plain_queries"]["runs"]] == [
        ("failed", 'column "nothing" does not exist (42703)'),
        ("skipped", "the server was not available again"),
    ]
    state, reason = outcome_of_queries(account)
    assert (state, str(reason).startswith("2 of 2 queries failed: Sql1 (warm run 1): ")) == ("failed", True)


def test_an_answer_that_changes_between_runs_fails_the_run(
    both: tuple[OpenTarget, OpenTarget], tmp_path: Path
) -> None:
    for opened in both:
        account = asked(opened, tmp_path, "select random() as r", warm_runs=3)
        states = [run["state"] for run in account["plain_queries"]["runs"]]
        assert states == ["done", "failed", "skipped"]
        assert "(answer)" in account["plain_queries"]["runs"][1]["reason"]


def test_every_target_is_asked_with_the_same_draws(both: tuple[OpenTarget, OpenTarget]) -> None:
    pair = (PlainQuery("a", "select :n"), PlainQuery("b", "select :m - :n"))
    queries = PlainQueries(pair, duration_s=1, draws=(Draw("n", -3, 3), Draw("m", 7, 7)), distinct=500)
    pg, duck = ([text for _, text in texts_of(queries, opened)] for opened in both)
    assert pg == duck
    assert len(pg) == 1000
    assert set(pg[::2]) == {"select (-3)", "select (-2)", "select (-1)"} | {f"select {n}" for n in range(4)}
    # Both queries of a round have the same numbers.
    assert all(b == a.replace("select ", "select 7 - ") for a, b in zip(pg[::2], pg[1::2], strict=True))


def test_each_query_is_compared_with_the_first_target_that_has_an_answer(
    both: tuple[OpenTarget, OpenTarget], tmp_path: Path
) -> None:
    pg, duck = both
    broken = asked(pg, tmp_path, "select nothing", "select 2 as n")
    whole = asked(duck, tmp_path, "select 1 as n", "select 2 as n")
    third = asked(pg, tmp_path, "select 7 as n", "select 2 as n")
    assert [check["passed"] for check in compare_queries(whole, [("pg", broken)])] == [True]
    checks = compare_queries(third, [("pg", broken), ("duck", whole)])
    assert [(check["name"], check["passed"]) for check in checks] == [
        ("the answer to Sql1 is that of duck", False),
        ("answers are those of pg", True),
    ]
    assert third["plain_queries"]["queries"][0]["wrong"].startswith(
        "the answer differs from duck's: column 1 (n): "
    )


def test_cooling_starts_a_private_server_anew_on_what_it_held(own_registry: None, tmp_path: Path) -> None:
    del own_registry
    run = RunFolder.create(tmp_path / "run", "run")
    with opened_at("pg") as opened, closing(Server(opened, run)) as server:
        server.claim()
        server.control.execute("create table t as select generate_series(1, 100000) as a")
        embedded = opened.server
        assert embedded is not None
        before = embedded.pid
        with server.watch():
            caches = server.cool()
            assert embedded.pid != before
            assert "the server was restarted" in caches["note"]
            assert server.count("select count(*) from t") == 100000
        assert server.count("select count(*) from t") == 100000
        with closing(Server(opened, run)) as other, pytest.raises(LoadstoneError, match="another run"):
            other.claim()
        embedded.stop()
        (embedded.data_directory / "postgresql.conf").write_text("no_such_setting = 1\n")
        assert server.cool()["emptied"] is False
        assert server.gone is not None
    run.close()


def test_pages_of_files_go_and_what_stays_is_counted(tmp_path: Path) -> None:
    data, space = tmp_path / "data", tmp_path / "space"
    for folder in (data / "pg_tblspc", space):
        folder.mkdir(parents=True)
    (data / "pg_tblspc" / "1").symlink_to(space)
    size = sum((place / "file").write_bytes(b"x" * 3_000_000) for place in (data, space))
    held, found = evict(data)
    assert found == size
    # A file system that is memory keeps them all.
    assert held in (0, pytest.approx(found, abs=2 * 4096))

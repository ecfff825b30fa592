"""Runs that ask plain SQL: cold and warm, as a load, and whatever goes wrong with a query."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
from typing import TYPE_CHECKING, Any

import psutil
import psycopg
import pytest
from support.sandbox import change_plan, kill_all, read_json, wait_until

from loadstone.private_server.memory_limit import choose_groups

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Database, Ended, Running, Sandbox

HEAD = '''
id = "asks"
title = "Asks"
version = "1"
why = "A test."
parameters.round = { type = "integer", default = 1, help = "Turn" }
parameters.extra = { type = "integer", default = 0, help = "Rows more in PostgreSQL" }
PRIVATE
[[phase]]
id = "prepare"
kind = "sql"
title = "a table"
setup = [
  "create table t (id int, g int, x double precision)",
  "insert into t select i, i % 10, i * 0.5 from generate_series(1, 20000) as s(i)",
  """insert into t select i, 3, 1.5 from generate_series(1, {{ extra }}) as s(i)
     where version() like 'PostgreSQL%'""",
]
'''
ASKED = """
[[phase]]
id = "ask"
kind = "queries"
title = "Asked"
sweep = { round = [1, 2] }
queries.table = "t"
queries.warm_runs = 2
queries.statements = [
  { name = "count", sql = "select count(*) as n from t" },
  { name = "groups", sql = "groups.sql" },
]
published = [ { metric = "warm_ms", query = "count", system = "Another", value = 3, unit = "ms" } ]
"""
GROUPS = "select g, count(*) as n, avg(id) as mean, sum(x) as x from t group by g order by n desc, mean;"
ONE = """
[[phase]]
id = "ask"
kind = "queries"
title = "Asked"
queries.cold = false
queries.warm_runs = 2
queries.timeout_s = {timeout}
queries.statements = [
  {{ name = "before", sql = "select count(*) from t" }},
  {{ name = "trouble", sql = "{trouble}" }},
  {{ name = "after", sql = "select sum(id) from t" }},
]
"""
SLEEP = "select pg_sleep(600)"
LOAD = """
[[phase]]
id = "many"
kind = "queries"
title = "Many"
[phase.queries]
table = "t"
clients = 3
duration_s = 1
distinct = 20
draws = [ { name = "from", least = 1, most = 19000 } ]
statements = [ { name = "drawn", sql = "select count(*), avg(x) from t where id >= :from" } ]
"""


def scenario(sandbox: Sandbox, *phases: str, private: str = "") -> Path:
    folder = sandbox.work / "asks"
    folder.mkdir()
    (folder / "groups.sql").write_text(GROUPS)
    (folder / "scenario.toml").write_text(HEAD.replace("PRIVATE", private) + "".join(phases))
    return folder


def plain_queries(ended: Ended, target: str, phase: str = "ask") -> list[dict[str, Any]]:
    """Give `plain_queries` of drive.json of each variant of a phase."""
    paths = sorted(ended.folder.glob(f"targets/{target}/phases/*-{phase}*/drive.json"))
    return [read_json(path)["plain_queries"] for path in paths]


def runs(asked: dict[str, Any], query: str) -> list[tuple[str, str]]:
    return [(run["kind"], run["state"]) for run in asked["runs"] if run["query"] == query]


def under_way(running: Running, database: Database, words: str) -> None:
    sleeping = f"select count(*) from pg_stat_activity where query = '{words}' and state = 'active'"
    running.wait_for(lambda: database.value(sleeping) == 1, "the query is under way")


def under_way_privately(running: Running, sandbox: Sandbox) -> psutil.Process:
    """Wait until the run's own server is asked to sleep; returns the process that does."""
    sleeping = f"select max(pid) from pg_stat_activity where query = '{SLEEP}' and state = 'active'"
    found: list[int] = []

    def asleep() -> bool:
        # The server comes up, and down, in its own time.
        with contextlib.suppress(ValueError, OSError, psycopg.OperationalError):
            found.append(sandbox.private_server().value(sleeping))
        return bool(found and found[-1])

    running.wait_for(asleep, "the query is under way")
    return psutil.Process(found[-1])


def nothing_left(database: Database) -> None:
    query = f"select count(*) from pg_stat_activity where query = '{SLEEP}' and state = 'active'"
    wait_until(lambda: database.value(query) == 0, "no query of ours goes on on the server")


@pytest.mark.slow
def test_cold_and_warm_in_rounds_on_two_engines_that_agree(sandbox: Sandbox) -> None:
    ended = sandbox.measure(scenario(sandbox, ASKED), "--target", "pg", "--target", "duckdb:")
    assert ended.code == 0, ended.err
    for target in ("pg18", "duckdb"):
        rounds = plain_queries(ended, target)
        assert len(rounds) == 2
        for asked in rounds:
            assert (asked["table"], asked["rows"], asked["cold"]) == ("t", 20000, True)
            assert asked["table_bytes"] > 0
            assert [q["name"] for q in asked["queries"]] == ["count", "groups"]
            assert all(q["answer"] and q["plan"] and q["wrong"] is None for q in asked["queries"])
            assert {q["gpu"] for q in asked["queries"]} == {None}
            for name, rows in (("count", 1), ("groups", 10)):
                assert runs(asked, name) == [("cold", "done"), ("warm", "done"), ("warm", "done")]
                assert {run["rows"] for run in asked["runs"] if run["query"] == name} == {rows}
            done = [(run["start_ns"], run["end_ns"]) for run in asked["runs"]]
            assert done == sorted(done)
            assert all(first[1] <= second[0] for first, second in itertools.pairwise(done))
            for run in asked["runs"]:
                assert run["seconds"] == pytest.approx((run["end_ns"] - run["start_ns"]) / 1e9, abs=2e-6)
    assert "Seq Scan on t" in plain_queries(ended, "pg18")[0]["queries"][0]["plan"]
    assert "the server was restarted" in plain_queries(ended, "pg18")[0]["caches"]["note"]
    assert plain_queries(ended, "duckdb")[0]["caches"]["emptied"] is True
    phases = [read_json(path) for path in sorted(ended.folder.glob("targets/duckdb/phases/*/phase.json"))]
    assert [phase["round"] for phase in phases] == [None, 1, 2]
    assert phases[1]["published"][0]["system"] == "Another"
    (check,) = phases[1]["checks"]
    assert (check["name"], check["actual"]) == ("answers are those of pg18", "2 equal answers")
    assert not any("had died" in message for message in ended.told("note"))
    assert not list(ended.folder.glob("targets/*/phases/*/queries.jsonl"))


@pytest.mark.slow
def test_a_memory_limit_outlives_the_restarts(sandbox: Sandbox) -> None:
    private = '[private_server]\nmemory = "96MB"\nsettings = { shared_buffers = "16MB" }\n'
    ended = sandbox.measure(scenario(sandbox, ASKED, private=private), "--target", "pg")
    assert ended.code == 0, ended.err
    limit = None if isinstance(choose_groups("probe"), str) else 96 << 20
    (monitor,) = ended.folder.glob("targets/*/monitor.jsonl")
    groups = [json.loads(line)["group"] for line in monitor.read_text().splitlines()]
    last = read_json(max(ended.folder.glob("targets/*/phases/*-ask*/phase.json")))
    assert last["state"] == "complete"
    if limit is not None:
        assert groups[-1] is not None
        assert groups[-1]["limit_bytes"] == limit


@pytest.mark.slow
def test_a_load_with_drawn_numbers_asks_every_target_the_same(sandbox: Sandbox) -> None:
    ended = sandbox.measure(scenario(sandbox, LOAD), "--target", "pg", "--target", "duckdb:")
    assert ended.code == 0, ended.err
    texts = {}
    for target in ("pg18", "duckdb"):
        (folder,) = ended.folder.glob(f"targets/{target}/phases/*-many")
        drive = read_json(folder / "drive.json")
        assert drive["clients"] == 3
        assert drive["counts"]["failed"] == 0
        (label,) = drive["queries"]["labels"]
        assert (label["label"], label["counts"]["done"]) == ("drawn", drive["counts"]["done"])
        assert drive["plain_queries"]["draws"] == [{"name": "from", "least": 1, "most": 19000}]
        assert (drive["plain_queries"]["rows"], drive["plain_queries"]["clients"]) == (20000, 3)
        texts[target] = (folder / "queries.jsonl").read_text()
    assert texts["pg18"] == texts["duckdb"]
    assert 15 < len(set(texts["pg18"].splitlines())) <= 20
    (check,) = ended.phases("duckdb")["many"]["checks"]
    assert check["name"] == "answers are those of pg18"
    assert int(check["actual"].split()[0]) >= 1


@pytest.mark.slow
def test_a_row_more_on_one_target_is_a_wrong_answer_to_the_queries_that_see_it(sandbox: Sandbox) -> None:
    ended = sandbox.measure(
        scenario(sandbox, ASKED),
        "--target",
        "pg",
        "--target",
        "duckdb:",
        "--set",
        "extra=1",
        "--set",
        "round=1",
    )
    assert ended.code == 3, ended.err
    (asked,) = plain_queries(ended, "duckdb")
    count, groups = asked["queries"]
    assert (
        count["wrong"] == "the answer differs from pg18's: column 1 (n): sums differ by 5.0e-05 (here: pg18)"
    )
    assert "sums differ" in groups["wrong"]
    phase = ended.phases("duckdb")["ask"]
    assert phase["state"] == "failed"
    assert phase["reason"] == "a check failed: the answers differ between targets"
    assert [check["name"] for check in phase["checks"] if not check["passed"]] == [
        "the answer to count is that of pg18",
        "the answer to groups is that of pg18",
    ]
    assert ended.phases("pg18")["ask"]["state"] == "complete"


@pytest.mark.slow
def test_an_sql_error_fails_its_query_alone(sandbox: Sandbox, database: Database) -> None:
    folder = scenario(sandbox, ONE.format(timeout=60, trouble="select nothing from t"))
    ended = sandbox.measure(folder, "--target", database.url, "--target", "duckdb:")
    assert ended.code == 2, ended.err
    both = plain_queries(ended, "*")
    assert len(both) == 2
    for asked in both:
        assert runs(asked, "before") == [("warm", "done")] * 2
        assert runs(asked, "trouble") == [("warm", "failed"), ("warm", "skipped")]
        assert runs(asked, "after") == [("warm", "done")] * 2
        reason = next(run["reason"] for run in asked["runs"] if run["state"] == "failed")
        assert "nothing" in reason
        assert asked["caches"] is None
    assert "1 of 3 queries failed: trouble (warm run 1)" in ended.err
    assert any("trouble, warm run 1 failed" in message for message in ended.told("note"))


@pytest.mark.slow
def test_a_query_that_takes_too_long_is_cancelled_on_the_server(sandbox: Sandbox, database: Database) -> None:
    ended = sandbox.measure(scenario(sandbox, ONE.format(timeout=1, trouble=SLEEP)), "--target", database.url)
    assert ended.code == 2, ended.err
    nothing_left(database)
    (asked,) = plain_queries(ended, "*")
    assert runs(asked, "trouble") == [("warm", "failed"), ("warm", "skipped")]
    assert runs(asked, "after") == [("warm", "done")] * 2
    failed = next(run for run in asked["runs"] if run["state"] == "failed")
    assert "timeout" in failed["reason"]
    assert failed["end_ns"] - failed["start_ns"] > 0.9e9


@pytest.mark.slow
def test_a_query_to_duckdb_that_takes_too_long_is_interrupted(sandbox: Sandbox) -> None:
    endless = "select count(*) from generate_series(1, 1000000) as a(i), generate_series(1, 1000000) as b(i)"
    ended = sandbox.measure(scenario(sandbox, ONE.format(timeout=1, trouble=endless)), "--target", "duckdb:")
    assert ended.code == 2, ended.err
    (asked,) = plain_queries(ended, "duckdb")
    assert runs(asked, "trouble") == [("warm", "failed"), ("warm", "skipped")]
    assert runs(asked, "after") == [("warm", "done")] * 2
    assert any("no answer within 1 s (timeout)" in str(run["reason"]) for run in asked["runs"])


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False], ids=["the server", "the session, as for want of memory"])
def test_a_server_that_dies_of_a_query_answers_the_next_one(sandbox: Sandbox, whole: bool) -> None:  # noqa: FBT001
    running = sandbox.begin(scenario(sandbox, ONE.format(timeout=600, trouble=SLEEP)), "--target", "pg")
    session = under_way_privately(running, sandbox)
    kill_all(sandbox.of_postgres() if whole else [session])
    ended = running.finish()
    assert ended.code == 2, ended.err
    (asked,) = plain_queries(ended, "pg18")
    assert runs(asked, "before") == [("warm", "done")] * 2
    assert runs(asked, "trouble") == [("warm", "failed"), ("warm", "skipped")]
    assert runs(asked, "after") == [("warm", "done")] * 2, [run["reason"] for run in asked["runs"]]
    assert any("had died" in message for message in ended.told("note")) == whole
    phase = ended.phases()["ask"]
    assert phase["state"] == "failed"
    assert phase["reason"].startswith("1 of 3 queries failed: trouble (warm run 1): ")
    assert phase["reason"].endswith("the other 2 were answered")


@pytest.mark.slow
def test_ctrl_c_ends_a_long_query_in_seconds_and_the_run_can_go_on(
    sandbox: Sandbox, database: Database
) -> None:
    folder = scenario(sandbox, ONE.format(timeout=600, trouble=SLEEP))
    running = sandbox.begin(folder, "--target", database.url)
    under_way(running, database, SLEEP)
    running.send(signal.SIGINT)
    ended = running.finish()
    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    nothing_left(database)
    assert ended.phases()["ask"]["state"] == "interrupted"
    (asked,) = plain_queries(ended, "*")
    assert runs(asked, "before") == [("warm", "done")] * 2
    assert [state for _, state in runs(asked, "trouble")] == ["failed", "skipped"]
    assert "Incomplete" in ended.report
    toml = folder / "scenario.toml"
    toml.write_text(toml.read_text().replace(SLEEP, "select 1"))
    change_plan(ended.folder, SLEEP, "select 1")
    again = sandbox.run(
        "run", folder, "--target", database.url, "--size", "tiny", "--no-calibrate", "--resume", "out"
    )
    assert again.code == 0, again.err
    (asked,) = plain_queries(again, "*")
    assert {run["state"] for run in asked["runs"]} == {"done"}


@pytest.mark.slow
def test_ctrl_c_ends_a_long_query_to_duckdb(sandbox: Sandbox) -> None:
    endless = "select count(*) from generate_series(1, 1000000) as a(i), generate_series(1, 1000000) as b(i)"
    running = sandbox.begin(
        scenario(sandbox, ONE.format(timeout=600, trouble=endless)), "--target", "duckdb:"
    )
    drive = "targets/duckdb/phases/*-ask/drive.json"
    running.wait_for(lambda: list(running.folder.glob(drive)), "the first query was answered")
    running.send(signal.SIGINT)
    ended = running.finish()
    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    assert ended.phases()["ask"]["state"] == "interrupted"
    (asked,) = plain_queries(ended, "duckdb")
    assert runs(asked, "before") == [("warm", "done")] * 2

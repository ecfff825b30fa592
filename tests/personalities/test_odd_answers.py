"""Servers that answer something else than was asked: a pooler or a relative does, and no command breaks."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import psycopg
import pytest
from support.fake_postgres import INT4, PID, Answer, fake_postgres

from loadstone.engine.postgres import connections
from loadstone.engines.mariadb import control as mariadb
from loadstone.personalities import pgbench
from loadstone.personalities.observation.addresses import served_at, target_at
from loadstone.personalities.pgbench.reporting.server import ReportedServer
from loadstone.personalities.pgbench.server import Address
from loadstone.personalities.tsbs import query_targets
from loadstone.personalities.tsbs.query_replies import Reply, ask_postgres, plan_text
from loadstone.results.folder import RunFolder
from loadstone.target import parse_target

if TYPE_CHECKING:
    from pathlib import Path

POOLED = Answer(["pid"], [["7"]])
"""The process is another than the log-in named: then libpq asks, and not the core."""
COUNT, PARTITIONS, RELATION = "count(*) from pgbench_branches", "pg_inherits", "relkind"
ONE = Answer(["count"], [["1"]])


def run(*arguments: str) -> tuple[int, str, str]:
    out: list[str] = []
    err: list[str] = []
    code = pgbench.main(arguments, out.append, err.append)
    return code, "".join(out), "".join(err)


@pytest.mark.parametrize("asked_by", [PID, POOLED])
@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (
            {COUNT: ONE, PARTITIONS: Answer(["method"], [["h"]])},
            "number of columns (1) than was asked for (2): select t.partstrat",
        ),
        (
            {COUNT: ONE, PARTITIONS: Answer(["a", "b", "c"], [["h", "2", ""]])},
            "number of columns (3) than was asked for (2)",
        ),
        ({COUNT: ONE, PARTITIONS: Answer(["a", "b"], [["h", "two"]])}, 'answered "two" where a count'),
        ({COUNT: Answer([], [[]])}, "number of columns (0) than was asked for (1): select count(*)"),
        ({COUNT: Answer(["count"], [["many"]])}, 'answered "many" where a count'),
        ({COUNT: Answer(["count"], [["9" * 5000]])}, f'answered "{"9" * 40}" where a count'),
    ],
)
def test_pgbench_refuses_an_answer_of_another_form(
    tmp_path: Path, asked_by: Answer, answers: dict[str, Answer], words: str
) -> None:
    with fake_postgres(tmp_path, {"pg_backend_pid": asked_by} | answers) as server:
        code, out, err = run("-S", "-t1", server.url)
    assert (code, out) == (1, "")
    assert words in err
    assert err.count("pgbench: error: ") == 1
    assert "pgbench: hint: Check what is at this address" in err


@pytest.mark.parametrize("asked_by", [PID, POOLED])
def test_columns_of_one_name_are_told_apart(tmp_path: Path, asked_by: Answer) -> None:
    answers = {COUNT: ONE, PARTITIONS: Answer(["?column?", "?column?"], [["h", "2"]])}
    with fake_postgres(tmp_path, {"pg_backend_pid": asked_by} | answers) as server:
        code, out, err = run("-S", "-n", "-t1", server.url)
    assert code == 0, err
    assert "partition method: hash\npartitions: 2\n" in out


def test_initialization_refuses_an_answer_of_another_form(tmp_path: Path) -> None:
    with fake_postgres(tmp_path, {RELATION: Answer(["kinds"], [["r"]])}) as server:
        code, _, err = run("-i", server.url)
    assert code == 1
    assert "pgbench: error: query failed: the server's answer has no column 'kind'" in err


def test_what_a_server_answers_oddly_is_left_out_of_the_report(tmp_path: Path) -> None:
    version = Answer(["version_text", "version", "number", "standby"], [["", "", None, None]])
    processes = Answer(["pid", "by_socket", "data_directory"], [["none", "t", None]])
    with fake_postgres(tmp_path, {"version()": version, "inet_server_addr": processes}) as server:
        folder = RunFolder.create(tmp_path / "run", "run")
        address = Address(server.connection)
        with closing(ReportedServer(address, target_at(address), folder)) as reported:
            assert reported.describe()["version"] is None
        told = [event.message for event in folder.read_events()]
        folder.close()
    assert "the server's version could not be read: the server does not say which version it is" in told
    assert any("the server's processes could not be read: the server answered oddly" in text for text in told)


def test_a_server_without_processes_is_watched_by_name(tmp_path: Path) -> None:
    odd = Answer(["pid", "by_socket", "data_directory"], [[None, None, None]])
    answers = {"data_directory": odd, "pg_backend_pid": Answer(["pid"], [[None]])}
    with (
        fake_postgres(tmp_path, answers) as server,
        served_at(Address(server.connection)).backend() as backend,
    ):
        assert backend is None


def test_a_value_that_its_type_does_not_have_is_an_error_of_the_query(tmp_path: Path) -> None:
    with (
        fake_postgres(tmp_path, {"select n": Answer(["n"], [["many"]], INT4)}) as server,
        closing(connections.connect(server.connection)) as control,
        pytest.raises(psycopg.DataError, match="cannot be read: invalid literal"),
    ):
        ask_postgres(control, "select n")


def test_rows_of_mariadb_without_a_column_are_an_error_of_the_servers() -> None:
    row = mariadb._row([{"name": "one", "numeric": True}], ["1"])
    assert row == {"one": 1}
    with pytest.raises(mariadb.ServerError, match="no column 'two'"):
        row["two"]
    answers: tuple[list[str | None], ...] = (["many"], ["1", "2"])
    for values in answers:
        with pytest.raises(mariadb.ServerError, match="cannot be read"):
            mariadb._row([{"name": "one", "numeric": True}], values)


def test_a_plan_without_columns_is_shown_without_lines() -> None:
    assert plan_text("q", Reply([], [[]])) == "EXPLAIN ANALYZE q\n\n\n-----\n\n"


def test_a_server_that_cannot_list_extensions_has_no_timescaledb(tmp_path: Path) -> None:
    # It has done what it does not know, without an answer: not even one without rows.
    with fake_postgres(tmp_path, {}) as server:
        target = parse_target(server.url)
        assert query_targets._recognised(target) is target

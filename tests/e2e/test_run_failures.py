"""What goes wrong while a run goes on: what is counted, what is told, how it ends, and that it ends."""

from __future__ import annotations

import signal
import threading
import time
from typing import TYPE_CHECKING

import psutil
import pytest
from support.sandbox import COUNTED, INSERT, TIMEOUT_S, Database, kill_all

from loadstone.private_server import EmbeddedServer, ServerSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.sandbox import Ended, Running, Sandbox


@pytest.fixture
def mortal() -> Iterator[Database]:
    """A database on a server of the test's own, which it may kill."""
    with EmbeddedServer(ServerSpec("pg", clients=10)) as server:
        yield Database(server, server.connection.database)


def backend(database: Database, running: Running) -> int:
    name = f"loadstone-{running.process.pid}"
    query = f"select pid from pg_stat_activity where application_name = '{name}' limit 1"
    return int(database.value(query))


LONG_S = 10 * TIMEOUT_S
"""How long a phase would take that its lost clients end: a run that ends at all has not waited for that."""


def rows(ended: Ended, phase: str = "insert") -> dict[str, object]:
    (check,) = ended.phases()[phase]["checks"]
    return dict(check)


@pytest.mark.slow
def test_a_private_server_that_is_killed_is_started_again_to_see_what_it_kept(sandbox: Sandbox) -> None:
    running = sandbox.begin(
        sandbox.scenario(
            ("insert", INSERT, COUNTED.format(seconds=LONG_S)), ("after", INSERT, "duration_s = 0.5")
        )
    )
    running.wait_for_drive("insert")
    (postmaster,) = sandbox.of_postgres(parent=running.process.pid)
    postmaster.kill()
    kill_all(sandbox.of_postgres())
    ended = running.finish()
    assert ended.code == 2, ended.err
    phases = ended.phases()
    assert phases["insert"]["state"] == "failed"
    assert rows(ended)["passed"], rows(ended)
    drive = ended.drive("insert")
    assert drive["state"] == "aborted"
    assert sum(error["count"] for error in drive["errors"]) >= 1
    assert drive["outages"][0]["clients"] == 2
    assert drive["outages"][0]["end_ns"] is None
    assert "2 clients lost the connection until the end" in ended.told("outage")
    assert any("it is started again" in message for message in ended.told("note"))
    assert phases["after"]["state"] == "complete"
    assert "insert" in ended.err
    assert ended.run["state"] == "failed"
    assert ended.drive("insert")["errors"][0]["message"] in ended.run["reason"]
    assert "The server could not be reached" in ended.report


@pytest.mark.slow
def test_with_reconnect_a_run_goes_on_after_the_server_is_back(sandbox: Sandbox, mortal: Database) -> None:
    running = sandbox.begin(sandbox.inserts(15, "reconnect = true"), "--target", mortal.socket_url)
    running.wait_for_drive("insert")
    mortal.server.kill()
    time.sleep(0.5)  # the outage that is measured
    mortal.server.restart()
    ended = running.finish()
    assert ended.code == 0, ended.err
    drive = ended.drive("insert")
    assert drive["connect"]["reconnects"] >= 2
    assert {error["sqlstate"] for error in drive["errors"]} & {"57P01", "57P02", "connection"}
    (outage,) = drive["outages"]
    seconds = (outage["end_ns"] - outage["start_ns"]) / 1e9
    assert 0.3 < seconds < 14
    assert f"2 clients lost the connection for {seconds:.1f} s" in ended.told("outage")
    assert rows(ended)["passed"], rows(ended)
    assert drive["end_ns"] > outage["end_ns"]
    assert "The server could not be reached" in ended.report


@pytest.mark.slow
def test_a_backend_that_is_killed_takes_all_connections_with_it(sandbox: Sandbox, mortal: Database) -> None:
    """PostgreSQL ends all sessions when one dies by SIGKILL; without reconnect the phase fails there."""
    running = sandbox.begin(sandbox.inserts(LONG_S), "--target", mortal.socket_url)
    running.wait_for_drive("insert")
    psutil.Process(backend(mortal, running)).kill()
    ended = running.finish()
    assert ended.code == 2, ended.err
    assert rows(ended)["passed"], rows(ended)
    assert "insert" in ended.err
    drive = ended.drive("insert")
    counts = drive["counts"]
    begun = counts["scheduled"] + counts["carried"]
    assert begun == sum(counts[k] for k in ("done", "failed", "skipped", "dropped"))
    assert {error["sqlstate"] for error in drive["errors"]} <= {"57P02", "57P01", "connection"}


@pytest.mark.slow
def test_a_session_that_is_ended_is_an_outage_of_one_client(sandbox: Sandbox, database: Database) -> None:
    running = sandbox.begin(sandbox.inserts(3, "reconnect = true"), "--target", database.url)
    running.wait_for_drive("insert")
    database.execute(f"select pg_terminate_backend({backend(database, running)})")
    ended = running.finish()
    assert ended.code == 0, ended.err
    drive = ended.drive("insert")
    assert drive["outages"][0]["clients"] == 1
    assert drive["connect"]["reconnects"] == 1
    assert [error["sqlstate"] for error in drive["errors"]] == ["57P01"]
    assert rows(ended)["passed"]


@pytest.mark.slow
def test_a_server_that_stops_answering_is_given_up_after_the_timeout(
    sandbox: Sandbox, mortal: Database
) -> None:
    running = sandbox.begin(sandbox.inserts(30, "timeout_s = 2"), "--target", mortal.socket_url)
    running.wait_for_drive("insert")
    root = psutil.Process(mortal.server.pid)
    frozen = [root, *root.children(recursive=True)]
    for process in frozen:
        process.suspend()

    def resume() -> None:
        for process in frozen:
            if process.is_running():
                process.resume()

    thaw = threading.Timer(6, resume)
    thaw.start()
    try:
        ended = running.finish()
    finally:
        thaw.join()
    assert ended.code == 2, ended.err
    drive = ended.drive("insert")
    assert any("no answer within 2 s" in error["message"] for error in drive["errors"]), drive["errors"]
    assert rows(ended)["passed"], rows(ended)


@pytest.mark.slow
def test_an_sql_error_in_the_middle_of_a_script_is_counted_by_its_class(
    sandbox: Sandbox, database: Database
) -> None:
    script = "\\set d random(0, 1)\nbegin;\ninsert into t values (1);\nselect 1 / :d;\ncommit;\n"
    ended = sandbox.measure(
        sandbox.scenario(("divide", script, COUNTED.format(seconds=1))), "--target", database.url
    )
    assert ended.code == 0, ended.err
    drive = ended.drive("divide")
    (error,) = drive["errors"]
    assert error["sqlstate"] == "22012"
    assert "division by zero" in error["message"]
    assert error["count"] == drive["counts"]["failed"] > 0
    assert drive["counts"]["done"] > 0
    assert rows(ended, "divide")["passed"]
    assert "22012" in ended.report


def test_a_phase_in_which_nothing_succeeds_has_failed(sandbox: Sandbox, database: Database) -> None:
    scenario = sandbox.scenario(("missing", "select * from nowhere;\n", "duration_s = 0.5"))
    ended = sandbox.measure(scenario, "--target", database.url)
    assert ended.code == 2, ended.err
    assert 'relation "nowhere" does not exist' in ended.err
    assert ended.phases()["missing"]["state"] == "failed"
    assert ended.drive("missing")["errors"][0]["sqlstate"] == "42P01"


def test_a_script_with_copy_fails_in_words(sandbox: Sandbox, database: Database) -> None:
    scenario = sandbox.scenario(
        ("copy", "copy t from stdin;\n", "duration_s = 0.5"), ("after", INSERT, "duration_s = 0.5")
    )
    ended = sandbox.measure(scenario, "--target", database.url)
    assert ended.code != 0
    assert "copy" in ended.err.lower()
    assert "Traceback" not in ended.err
    if ended.code == 2:
        assert ended.phases()["after"]["state"] == "complete"


@pytest.mark.parametrize(
    ("script", "place", "words"),
    [
        ("select 1;\n\\set x random(1\n", "broken.pgbench, line 2, column", ""),
        ("\\nonsense\n", "broken.pgbench, line 1, column 2", "nonsense"),
        ("\\set a 1 +\nselect :a;\n", "broken.pgbench, line 1, column", ""),
        ("select :nobody;\n", "broken.pgbench, line 1", "nobody"),
        ("\\if true\nselect 1;\n", "broken.pgbench, line 1", "if"),
    ],
)
def test_a_broken_script_is_refused_with_its_place(
    sandbox: Sandbox, script: str, place: str, words: str
) -> None:
    ended = sandbox.quick(sandbox.scenario(("broken", script, "duration_s = 1")), "--target", "pg")
    assert ended.code == 1, ended.err
    assert place in ended.err
    assert words in ended.err
    assert "opening" not in ended.err
    assert not ended.folder.exists()


def test_set_up_that_the_server_refuses_fails_the_phase_with_its_words(
    sandbox: Sandbox, database: Database
) -> None:
    scenario = sandbox.inserts()
    text = (scenario / "scenario.toml").read_text()
    (scenario / "scenario.toml").write_text(text.replace('"truncate t"', '"drop table missing"'))
    ended = sandbox.measure(scenario, "--target", database.url)
    assert ended.code == 2, ended.err
    prepare = ended.phases()["prepare"]
    assert prepare["state"] == "failed"
    assert 'table "missing" does not exist' in prepare["reason"]
    assert [entry["text"] for entry in prepare["statements"]] == ["create table if not exists t (id int)"]
    assert 'table "missing" does not exist' in ended.err


def test_an_optional_phase_that_is_refused_is_skipped_and_fails_nothing(
    sandbox: Sandbox, database: Database
) -> None:
    scenario = sandbox.scenario(
        ("may", "select 1;\n", 'duration_s = 0.5\noptional = true\nsetup = ["select nothing()"]')
    )
    ended = sandbox.measure(scenario, "--target", database.url)
    assert ended.code == 0, ended.err
    assert ended.phases()["may"]["state"] == "skipped"
    assert "nothing() does not exist" in ended.phases()["may"]["reason"]


def test_a_wrong_answer_has_an_exit_code_of_its_own(sandbox: Sandbox, database: Database) -> None:
    settings = COUNTED.format(seconds=0.5).replace("rows_per_transaction = 1", "rows_per_transaction = 2")
    ended = sandbox.measure(sandbox.scenario(("wrong", INSERT, settings)), "--target", database.url)
    assert ended.code == 3, ended.err
    assert not rows(ended, "wrong")["passed"]
    assert "a check failed" in ended.err
    assert ended.run["state"] == "failed"
    assert ended.run["exit_code"] == 3
    answers = {entry["question"]: entry["level"] for entry in ended.summary["verdict"]}
    assert answers["Are the answers right?"] == "bad"


@pytest.mark.slow
def test_a_check_compares_one_value_as_the_server_writes_it(sandbox: Sandbox, database: Database) -> None:
    checks = {
        "true": ('sql = "select true", expected = "t"', "complete", "t"),
        "null": ('sql = "select null", expected = "null"', "complete", "null"),
        "digits": ('sql = "select 0.10", expected = "0.1"', "failed", "0.10"),
        "two": ('sql = "select 1, 2", expected = "1"', "failed", "1 rows of 2 columns"),
        "none": ('sql = "select 1 where false", expected = "1"', "failed", "0 rows of 1 columns"),
        "error": ('sql = "select no_such()", expected = "1"', "failed", "no_such() does not exist"),
    }
    phases = [
        (name, "select 1;\n", f'duration_s = 0.1\nchecks = [{{ name = "one", {check} }}]')
        for name, (check, _, _) in checks.items()
    ]
    ended = sandbox.measure(sandbox.scenario(*phases), "--target", database.url)
    assert ended.code == 3, ended.err
    found = ended.phases()
    for name, (_, state, words) in checks.items():
        phase = found[name]
        assert phase["state"] == state, name
        assert words in str([*(check["actual"] for check in phase["checks"]), phase["reason"]]), name


def test_a_count_that_is_no_number_is_told(sandbox: Sandbox, database: Database) -> None:
    settings = "rows_per_transaction = 1\nrow_check = { count = \"select 'many'\" }\nduration_s = 0.2"
    ended = sandbox.measure(sandbox.scenario(("odd", INSERT, settings)), "--target", database.url)
    assert ended.code == 2, ended.err
    assert "returned 'many', but a count of rows is needed" in ended.err


@pytest.mark.slow
def test_a_kernel_that_kills_the_drivers_own_process_is_no_hang(sandbox: Sandbox, database: Database) -> None:
    running = sandbox.begin(sandbox.inserts(30), "--target", database.url)
    running.wait_for_drive("insert")
    running.send(signal.SIGKILL)
    assert running.finish().code == -signal.SIGKILL
    again = sandbox.run("report", "out")
    assert again.code == 0, again.err
    assert "Incomplete" in (sandbox.work / "out" / "report.html").read_text()

"""Ctrl-C, SIGTERM and kill -9 at every moment: what was measured is kept, nothing goes on running."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest
from support.interrupts import interrupt_at
from support.sandbox import COUNTED, INSERT, read_json, wait_until

from loadstone.run.server import Server

if TYPE_CHECKING:
    from support.sandbox import Database, Ended, Sandbox

BOTH = pytest.mark.parametrize(
    ("signum", "code", "name"), [(signal.SIGINT, 130, "SIGINT"), (signal.SIGTERM, 143, "SIGTERM")]
)


def interrupted(ended: Ended, code: int, name: str) -> None:
    """Check that a run ended as interrupted, with a report of what there is."""
    assert ended.code == code, ended.err
    assert f"stopped by {name}" in ended.err
    assert "Traceback" not in ended.err
    assert ended.run["state"] == "interrupted"
    assert ended.run["exit_code"] == code
    assert ended.run["reason"] == f"stopped by {name}"
    assert ended.summary["run"]["state"] == "interrupted"
    assert "Incomplete" in ended.report


@BOTH
def test_in_the_middle_of_a_drive(
    sandbox: Sandbox, database: Database, signum: int, code: int, name: str
) -> None:
    settings = COUNTED.format(seconds=0.5)
    scenario = sandbox.scenario(
        ("first", INSERT, settings),
        ("second", INSERT, COUNTED.format(seconds=60)),
        ("third", INSERT, settings),
    )
    running = sandbox.begin(scenario, "--target", database.url)
    running.wait_for_drive("second")
    running.send(signum)
    ended = running.finish()
    interrupted(ended, code, name)
    phases = ended.phases()
    assert [phase["state"] for phase in phases.values()] == ["complete", "complete", "interrupted"]
    assert phases["first"]["checks"][0]["passed"]
    assert phases["second"]["checks"][0]["passed"], phases["second"]["checks"]
    assert ended.drive("second")["state"] == "interrupted"
    assert ended.drive("second")["counts"]["done"] > 0
    assert "not reached" in ended.report
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0
    query = "select count(*) from pg_stat_activity where application_name like 'loadstone%'"
    wait_until(lambda: database.value(query) == 0, "no session of ours is left")


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_as_a_terminal_does_it_to_the_whole_group_with_a_private_server(
    sandbox: Sandbox, signum: int
) -> None:
    running = sandbox.begin(sandbox.inserts(60))
    running.wait_for_drive("insert")
    running.send_group(signum)
    ended = running.finish()
    interrupted(ended, 130 if signum == signal.SIGINT else 143, signal.Signals(signum).name)
    assert ended.phases()["insert"]["checks"][0]["passed"]
    assert not any("had died" in message for message in ended.told("note"))


@BOTH
def test_during_a_slow_statement_of_the_set_up(
    sandbox: Sandbox, database: Database, signum: int, code: int, name: str
) -> None:
    scenario = sandbox.scenario(("slow", "select 1;\n", 'duration_s = 1\nsetup = ["select pg_sleep(60)"]'))
    running = sandbox.begin(scenario, "--target", database.url)
    asleep = "select count(*) from pg_stat_activity where query = 'select pg_sleep(60)' and state = 'active'"
    running.wait_for(lambda: database.value(asleep) == 1, "the statement is under way")
    running.send(signum)
    ended = running.finish()
    interrupted(ended, code, name)
    assert ended.phases()["slow"]["state"] == "interrupted"
    assert database.value(asleep) == 0
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0


def test_during_calibration(sandbox: Sandbox, database: Database) -> None:
    running = sandbox.start(
        "run", sandbox.inserts(), "--size", "tiny", "--out", "out", "--target", database.url
    )
    running.wait_for_words("Loadstone's own ceiling")
    running.wait_for(lambda: list(sandbox.tmp.iterdir()), "the built-in server's folder")
    running.send(signal.SIGINT)
    ended = running.finish()
    interrupted(ended, 130, "SIGINT")
    assert ended.phases() == {}
    assert list(sandbox.tmp.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("delay_s", [0.0, 0.3, 0.7])
def test_while_the_private_server_starts(sandbox: Sandbox, delay_s: float) -> None:
    running = sandbox.begin(sandbox.inserts(60))
    running.wait_for_words("opening pg18")
    time.sleep(delay_s)  # at which moment it comes is what is tried
    running.send_group(signal.SIGINT)
    ended = running.finish()
    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    assert ended.run["state"] == "interrupted"


@pytest.mark.slow
def test_a_second_ctrl_c_is_obeyed_at_once(sandbox: Sandbox, database: Database) -> None:
    """The first waits for a transaction in flight; the second does not."""
    with database.connect() as admin:
        admin.execute("create table public.gate (a int)")
        scenario = sandbox.scenario(("wait", "select pg_sleep(300);\n", "duration_s = 300"))
        running = sandbox.begin(scenario, "--target", database.url)
        query = "select count(*) from pg_stat_activity where query like '%pg_sleep(300)%'"
        query += " and state = 'active' and pid <> pg_backend_pid()"
        running.wait_for(lambda: int(database.value(query)) >= 2, "both clients sleep")
        running.send(signal.SIGINT)
        time.sleep(1)  # two that come at once are one
        running.send(signal.SIGINT)
        ended = running.finish()  # before the transactions end
    assert ended.code == 130, ended.err
    assert ended.run["state"] == "interrupted"
    assert "Traceback" not in ended.err
    assert "amaged" not in ended.err
    assert "the schema loadstone could not be dropped: a second signal came" in ended.err
    assert ended.drive("wait")["state"] == "interrupted"


@pytest.mark.slow
def test_a_second_ctrl_c_while_a_private_server_stops(sandbox: Sandbox) -> None:
    running = sandbox.begin(sandbox.inserts(60))
    running.wait_for_drive("insert")
    for _ in range(4):
        running.send_group(signal.SIGINT)
        time.sleep(0.4)  # each comes at another moment of the end
        if running.process.poll() is not None:
            break
    ended = running.finish()
    assert ended.code in (130, -signal.SIGINT), ended.err
    assert "Traceback" not in ended.err


@pytest.mark.slow
def test_kill_9_leaves_a_readable_folder_and_the_next_run_cleans_up(sandbox: Sandbox) -> None:
    running = sandbox.begin(
        sandbox.scenario(
            ("first", INSERT, COUNTED.format(seconds=0.5)), ("second", INSERT, COUNTED.format(seconds=60))
        )
    )
    running.wait_for_drive("second")
    running.send(signal.SIGKILL)
    ended = running.finish()
    assert ended.code == -signal.SIGKILL
    # The server is tied to our life by the kernel; its data is left for the next start to remove.
    wait_until(lambda: not list(sandbox.processes()), "the private server has ended")
    assert sandbox.servers() != []

    again = sandbox.run("report", "out")
    assert again.code == 0, again.err
    summary = read_json(ended.folder / "summary.json")
    assert summary["run"]["state"] == "killed"
    report = (ended.folder / "report.html").read_text()
    assert "Incomplete" in report
    assert "the process was killed" in report
    assert [p["state"] for p in ended.phases().values()] == ["complete", "complete", "running"]

    following = sandbox.measure(
        sandbox.scenario(("one", "select 1;\n", "duration_s = 0.5"), name="next"), out="after"
    )
    assert following.code == 0, following.err
    assert any("removed" in message and "earlier run" in message for message in following.told("note"))
    assert sandbox.servers() == []


@BOTH
def test_during_the_calibrate_command(sandbox: Sandbox, signum: int, code: int, name: str) -> None:
    running = sandbox.start("calibrate", "--seconds", "5")
    running.wait_for_words("measurements of 5 s")
    wait_until(lambda: list(sandbox.tmp.iterdir()), "the built-in server's folder")
    running.send(signum)
    ended = running.finish()
    assert ended.code == code, ended.err
    assert f"stopped by {name}" in ended.err
    assert list(sandbox.tmp.iterdir()) == []


def test_a_terminal_that_goes_away_ends_the_run_in_order(sandbox: Sandbox, database: Database) -> None:
    running = sandbox.begin(sandbox.inserts(60), "--target", database.url)
    running.wait_for_drive("insert")
    running.send(signal.SIGHUP)
    ended = running.finish()
    interrupted(ended, 143, "SIGHUP")


def test_while_our_schema_is_dropped(
    sandbox: Sandbox, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_at(monkeypatch, Server, "drop_workspace")
    ended = sandbox.quick(sandbox.scenario(), "--target", database.url)
    assert ended.code == 130, ended.err
    assert ended.run["state"] == "interrupted"
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0

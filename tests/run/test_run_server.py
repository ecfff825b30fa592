"""A run's server whose control connection is lost."""

from __future__ import annotations

import os
import signal
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import psutil
import psycopg
import pytest
from support.claim_runs import Runs, begin, lose

from loadstone.engine import waits
from loadstone.engine.postgres import resets
from loadstone.results.folder import RunFolder
from loadstone.run.server import Server
from loadstone.target import open_target, parse_target
from loadstone.workload.load.reconnecting_control import ReconnectingControl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.sandbox import Database

    from loadstone.engine.control import Control
    from loadstone.target import OpenTarget


@pytest.fixture
def server(database: Database, tmp_path: Path) -> Iterator[tuple[Server, Runs]]:
    """A server with the schema and a table of a run, and how its connection is lost."""
    runs = Runs(database, tmp_path)
    with runs.server(1) as server:
        begin(server)
        yield server, runs


def test_the_error_that_ended_the_connection_is_not_hidden_behind_missing_sizes(
    server: tuple[Server, Runs],
) -> None:
    lose(*server)
    with pytest.raises(psycopg.Error, match="terminating connection"):
        server[0].sizes()


def test_the_schema_is_dropped_though_the_last_phase_lost_the_connection(
    server: tuple[Server, Runs], database: Database
) -> None:
    lose(*server)
    with pytest.raises(psycopg.Error):
        server[0].count("select 1")
    assert server[0].drop_workspace() is None
    assert database.value("select to_regnamespace('loadstone') is null")


class Crash:
    """A private server one of whose processes was killed, which the server has not noticed yet."""

    def __init__(self, opened: OpenTarget, name: str) -> None:
        assert opened.server is not None
        assert opened.connection is not None
        self.postmaster = opened.server.pid
        there = opened.connection
        client = psycopg.connect(
            host=there.host, port=there.port, user=there.user, dbname=there.database,
            password=there.password, application_name=name, autocommit=True,
        )  # fmt: skip
        killed = psutil.Process(client.info.backend_pid)
        os.kill(self.postmaster, signal.SIGSTOP)
        killed.kill()
        with closing(client), pytest.raises(psycopg.OperationalError):
            client.execute("select 1")

    def go_on(self, control: Control) -> None:
        """Let the server notice, and wait until it has ended the session of `control`."""
        os.kill(self.postmaster, signal.SIGCONT)
        with suppress(psycopg.Error):
            control.execute("select pg_sleep(60)")


@contextmanager
def private(tmp_path: Path) -> Iterator[tuple[Server, OpenTarget]]:
    with (
        closing(RunFolder.create(tmp_path / "run", "run")) as folder,
        open_target(parse_target("pg"), clients=2) as opened,
        closing(Server(opened, folder)) as server,
    ):
        server.claim()
        yield server, opened


def noticed_while(waiting: Callable[[], object], crash: Crash, patch: pytest.MonkeyPatch) -> None:
    """Let the server notice the crash as soon as it is waited for, or, if it is not, afterwards."""
    seen: list[Control] = []

    def pause(control: Control) -> None:
        if not seen:
            crash.go_on(control)
        seen.append(control)

    patch.setattr(resets, "_pause", pause)
    waiting()
    if not seen:
        os.kill(crash.postmaster, signal.SIGCONT)


def test_a_run_waits_for_the_reset_of_a_server_one_of_whose_processes_crashed(
    own_registry: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A control connection that answers before the reset dies in the statement after it."""
    del own_registry
    with private(tmp_path) as (server, opened):
        crash = Crash(opened, server.client_name)
        before = server.control
        noticed_while(server.recover, crash, monkeypatch)
        if server.control is before:
            crash.go_on(before)
        assert server.count("select 1") == 1
        assert server.control is not before


def test_a_load_waits_for_the_reset_of_a_server_one_of_whose_processes_crashed(
    own_registry: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    del own_registry
    with open_target(parse_target("pg"), clients=2) as opened:
        assert opened.connection is not None
        named = replace(opened, connection=replace(opened.connection, application_name="loaders"))
        with ReconnectingControl(named, None) as reconnecting:
            before = reconnecting.control()
            crash = Crash(opened, "loaders")
            noticed_while(lambda: reconnecting.control(lost=True), crash, monkeypatch)
            after = reconnecting.control()
            assert after is not before
            after.execute("select 1")


def test_the_end_of_the_session_that_was_lost_is_waited_for(
    server: tuple[Server, Runs], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it crashed, the server takes a new one, and ends it a moment later."""
    row = server[0].control.execute("select pg_backend_pid() as pid").fetchone()
    assert row is not None
    session = psutil.Process(row["pid"])
    session.suspend()
    server[0].control.close()
    seen = []

    def pause(control: Control) -> None:
        seen.append(control)
        session.resume()
        psutil.wait_procs([session], timeout=60)

    monkeypatch.setattr(resets, "_pause", pause)
    server[0].revive()
    assert seen == [server[0].control]


def test_a_session_that_stays_as_it_was_is_waited_for_no_longer_than_the_limit(
    server: tuple[Server, Runs], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its client lost the connection, and the server does not know: nothing is about to be reset."""
    monkeypatch.setattr(resets, "LIMIT_S", 0.2)
    monkeypatch.setattr(waits, "SAY_S", 0.05)
    monkeypatch.setattr(resets, "_LOOK_S", 0.02)
    with closing(server[1].client(server[0])):
        server[0].revive(lost=True)
    assert "sessions whose connections were lost" in caplog.text
    caplog.clear()
    server[0].revive(lost=True)
    assert caplog.text == ""

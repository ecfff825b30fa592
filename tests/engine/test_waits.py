"""No wait for a server is silent for long, and none lasts for ever."""

from __future__ import annotations

import logging
import os
import signal
import socket
import struct
import threading
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import psycopg
import pytest
from support.sandbox import wait_until

from loadstone.cli import group
from loadstone.engine import waits
from loadstone.engine.postgres import connections
from loadstone.engine.waits import Seen, Wait
from loadstone.errors import LoadstoneError
from loadstone.model import Connection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.sandbox import Database

    from loadstone.engine.postgres.connections import PostgresControl


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look after a moment, and give up soon after it."""
    for name, seconds in {
        "SAY_S": 0.05,
        "LOOK_S": 0.02,
        "SILENCE_S": 0.2,
        "LOCK_S": 0.2,
        "LEAVE_S": 0.2,
    }.items():
        monkeypatch.setattr(waits, name, seconds)


@pytest.fixture
def control(database: Database) -> Iterator[PostgresControl]:
    there = database.server.connection
    with closing(
        connections.connect(Connection(there.host, there.port, there.user, database.name))
    ) as opened:
        yield opened


@contextmanager
def frozen(*pids: int) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def backend_of(control: PostgresControl) -> int:
    row = control.execute("select pg_backend_pid() as pid").fetchone()
    assert row is not None
    return int(row["pid"])


@pytest.mark.usefixtures("soon")
def test_work_takes_as_long_as_it_takes() -> None:
    looks = threading.Semaphore(0)

    def look() -> Seen:
        looks.release()
        return Seen()

    wait = Wait(look, lambda: pytest.fail("cut off"))
    with wait.watched():
        assert all(looks.acquire(timeout=30) for _ in range(20))
    assert wait.verdict is None


@pytest.mark.usefixtures("soon")
def test_silence_ends_at_its_limit_and_not_sooner() -> None:
    seen = iter([Seen("silent", 0.2), Seen(), *[Seen("silent", 0.2, "Wake it.")] * 1000])
    cut = threading.Event()
    wait = Wait(lambda: next(seen), cut.set)
    with wait.watched():
        assert cut.wait(30)
    assert wait.verdict is not None
    assert wait.verdict.words.endswith(": silent")
    assert wait.verdict.hint == "Wake it."


@pytest.mark.usefixtures("soon")
def test_who_holds_the_lock_is_told_and_the_wait_goes_on(
    control: PostgresControl, database: Database, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(waits, "LOCK_S", 300.0)
    control.execute("create schema ours create table t (id int)")
    with database.connect() as other, other.transaction():
        other.execute("lock ours.t; set local application_name = 'the \"other\"'; select 'secret'")
        thread = threading.Thread(target=control.execute, args=("drop schema ours cascade",))
        thread.start()
        wait_until(lambda: caplog.messages, "it is told")
        holder = other.info.backend_pid
    thread.join()
    assert f"a lock on ours.t is held by process {holder}" in caplog.messages[0]
    assert 'application "the "other""' in caplog.messages[0]
    assert f"select pg_terminate_backend({holder})" in caplog.messages[0]
    assert "secret" not in caplog.text
    assert len(caplog.messages) == 1, "it is told once"


@pytest.mark.usefixtures("soon")
def test_a_lock_is_waited_for_no_longer_than_its_limit(control: PostgresControl, database: Database) -> None:
    with database.connect() as other, other.transaction():
        other.execute("create table t (id int)")
        other.execute("lock pg_description in exclusive mode")
        with pytest.raises(psycopg.OperationalError, match=r"gave up .* a lock on pg_description is held by"):
            control.execute("comment on schema public is 'x'")
    assert control.closed


@pytest.mark.usefixtures("soon")
def test_a_frozen_server_is_left(control: PostgresControl, database: Database) -> None:
    gone = pytest.raises(psycopg.OperationalError, match="does not answer, not even on another connection")
    with frozen(backend_of(control), database.server.pid), gone:
        control.execute("select count(*) from pg_class")
    assert control.closed


@pytest.mark.usefixtures("soon")
def test_a_process_of_the_server_that_is_stopped_is_seen(control: PostgresControl) -> None:
    pid = backend_of(control)
    with frozen(pid), pytest.raises(psycopg.OperationalError, match=f"the server's process {pid} is stopped"):
        control.execute("select 1")


@pytest.mark.usefixtures("soon")
def test_a_signal_ends_the_wait_for_a_server_that_does_not_move(
    control: PostgresControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "SILENCE_S", 300.0)
    looked = threading.Event()

    def look(*_: object) -> Seen:
        looked.set()
        return Seen("silent", 300.0)

    monkeypatch.setattr(connections, "_seen", look)

    def interrupt() -> None:
        looked.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    with frozen(backend_of(control)):
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            control.execute("select 1")
    assert control.closed


@pytest.mark.usefixtures("soon")
def test_a_signal_ends_the_statement_and_leaves_the_connection(
    control: PostgresControl, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our schema is dropped on it afterwards."""
    monkeypatch.setattr(waits, "LEAVE_S", 60.0)
    monkeypatch.setattr(waits, "SILENCE_S", 300.0)
    asleep = "select count(*) from pg_stat_activity where query = 'select pg_sleep(60)' and state = 'active'"

    def interrupt() -> None:
        wait_until(lambda: database.value(asleep) == 1, "the statement is under way")
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        control.execute("select pg_sleep(60)")
    thread.join()
    assert control.execute("select 1 as one").fetchone() == {"one": 1}


class Silent:
    """Lets everybody in, and says nothing more, or leaves."""

    def __init__(self, *, leaves: bool = False) -> None:
        self.leaves = leaves
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.lines: list[socket.socket] = []
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self) -> None:
        welcome = b"R" + struct.pack("!ii", 8, 0) + b"K" + struct.pack("!iii", 12, 1, 2) + b"Z\0\0\0\5I"
        while True:
            line, _ = self.listener.accept()
            self.lines.append(line)
            if line.recv(1000) == b"":
                return
            line.sendall(welcome)
            if self.leaves:
                line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        socket.create_connection(self.listener.getsockname()).close()
        self.thread.join()
        for line in (*self.lines, self.listener):
            line.close()


def test_a_server_that_lets_us_in_and_is_silent_is_refused() -> None:
    with closing(Silent()) as server:
        port = server.listener.getsockname()[1]
        there = Connection("127.0.0.1", port, "u", "d", sslmode="disable", connect_timeout_s=0.3)
        with pytest.raises(LoadstoneError, match=r"did not answer a query within 0.3 s:"):
            connections.connect(there)


def test_a_server_that_leaves_after_the_log_in_is_not_called_silent() -> None:
    with closing(Silent(leaves=True)) as server:
        port = server.listener.getsockname()[1]
        there = Connection("127.0.0.1", port, "u", "d", sslmode="disable")
        with pytest.raises(
            LoadstoneError, match=r"accepted the connection, but its session cannot be checked: .+"
        ):
            connections.connect(there)


def test_what_is_waited_for_is_shown_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    said = {"msg": "waiting for %.0f s: %s", "args": (3, "a lock on ours.t")}
    group.Waits().emit(logging.makeLogRecord(said))
    assert "loadstone: waiting for 3 s: a lock on ours.t" in capsys.readouterr().err

"""The connection that looks at the server before a run of pgbench."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone import _core
from loadstone.target import parse_target
from loadstone.workload.drive import connection_document

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg
    from support.sandbox import Database

OURS = str(Path(sys.executable).with_name("loadstone"))
TABLES = (
    "create table pgbench_branches(bid int)",
    "create table pgbench_tellers(tid int)",
    "create table pgbench_history(tid int)",
)
WAITS = """
select count(*) from pg_stat_activity
where datname = current_database() and query like 'truncate%' and state = 'active'
"""


def document(url: str) -> str:
    connection = parse_target(url).connection
    assert connection is not None
    return json.dumps(connection_document(connection))


@contextlib.contextmanager
def conversation(url: str) -> Iterator[_core.Conversation]:
    opened = _core.Conversation(document(url), 5.0)
    yield opened
    opened.close()


def test_an_answer_has_rows_remarks_and_errors_as_libpq_shows_them(database: Database) -> None:
    with conversation(database.url) as opened:  # with a password
        assert opened.process_id is not None
        assert (opened.parameter("server_version") or "")[0].isdigit()
        opened.ask("select 1, null, 'é'")
        assert json.loads(opened.wait(60.0) or "")["rows"] == [["1", None, "é"]]
        opened.ask("do $$ begin raise notice 'mind'; end $$; select nothing")
        reply = json.loads(opened.wait(60.0) or "")
        assert reply["notices"][0]["message"] == "mind"
        assert reply["error"]["text"].startswith('ERROR:  column "nothing" does not exist\nLINE 1: do $$')
        opened.ask("select 2")
        assert json.loads(opened.wait(60.0) or "")["rows"] == [["2"]]


def test_a_wait_ends_in_time_and_the_statement_can_be_ended(database: Database) -> None:
    with conversation(database.socket_url) as opened:
        opened.ask("select pg_sleep(60)")
        assert opened.wait(0.01) is None
        opened.cancel()
        assert "canceling statement" in json.loads(opened.wait(50.0) or "")["error"]["message"]
    with pytest.raises(ValueError, match="closed"):
        opened.ask("select 1")


def test_what_cannot_be_reached_or_is_lost_is_an_error(database: Database) -> None:
    with pytest.raises(_core.DriveError, match="cannot connect"):
        _core.Conversation(document(database.url.replace(f"/{database.name}", "/no_such_database")), 5.0)
    with conversation(database.socket_url) as opened:
        opened.ask("select pg_terminate_backend(pg_backend_pid())")
        with pytest.raises(_core.DriveError, match="administrator"):
            opened.wait(60.0)


def test_errors_of_the_vacuum_are_told_as_pgbench_tells_them(database: Database, tmp_path: Path) -> None:
    (tmp_path / "one.sql").write_text("select 1;\n")
    command = [OURS, "pgbench", "-t", "1", "-f", str(tmp_path / "one.sql"), database.socket_url]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[:4] == [
        'starting vacuum...pgbench: error: ERROR:  relation "pgbench_branches" does not exist',
        "pgbench: detail: (ignoring this error and continuing anyway)",
        'pgbench: error: ERROR:  relation "pgbench_tellers" does not exist',
        "pgbench: detail: (ignoring this error and continuing anyway)",
    ]


def test_a_signal_ends_the_wait_for_a_lock_and_the_statement(database: Database, tmp_path: Path) -> None:
    (tmp_path / "one.sql").write_text("select 1;\n")
    with database.connect() as holder, database.connect() as watcher:
        for statement in (*TABLES, "begin", "lock pgbench_history"):
            holder.execute(statement)
        command = [OURS, "pgbench", "-t", "1", "-f", str(tmp_path / "one.sql"), database.socket_url]
        running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        _await(watcher, 1)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=120)
        assert running.returncode == 130, said
        _await(watcher, 0)


def _await(watcher: psycopg.Connection, count: int) -> None:
    until_s = time.monotonic() + 120
    while (row := watcher.execute(WAITS).fetchone()) != (count,):
        assert time.monotonic() < until_s, row
        watcher.execute("select pg_sleep(0.02)")

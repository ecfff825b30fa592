"""A MariaDB that is killed and started again on its data while `loadstone sysbench` runs on it."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.mariadb import mariadb
from support.sysbench import script

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.mariadb import MariaDB

OURS = (str(Path(sys.executable).with_name("loadstone")), "sysbench")
RUNS = {
    "all": ("--mysql-ignore-errors=all", "--threads=8"),
    "some": ("--mysql-ignore-errors=2006,2013,1062", "--threads=4"),
    "none": ("--threads=2",),
}
"""Runs that are going on when the server is killed, each with errors that it ignores."""
THREADS = {"all": 8, "some": 4}
ROWS = """
create table sbtest1 (id int primary key, k int, c char(120), pad char(60));
insert into sbtest1 select seq, seq, 'c', 'pad' from seq_1_to_100;
create table started_again (one int primary key);
"""
# Once the server is back, each thread does ten more events. A statement of the first one fails by error 1062.
EVENTS = """
require("oltp_common")
function prepare_statements()
   prepare_transaction()
   prepare_point_selects()
end
function event()
   in_transaction(execute_point_selects)
   if con:query_row("SELECT COUNT(*) FROM started_again") == "0" then return end
   after = (after or 0) + 1
   if after == 1 then con:query("INSERT INTO started_again VALUES (1)") end
   return after > 10
end
"""

pytestmark = pytest.mark.slow  # it starts a server twice


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[int, str]]]:
    """Return exit status and output of each run."""
    folder = tmp_path_factory.mktemp("crash")
    own = script(folder, EVENTS)
    with mariadb("--innodb-flush-log-at-trx-commit=2") as server, contextlib.ExitStack() as stack:
        server.sql(ROWS, "test")
        runs = {name: stack.enter_context(begun(server, *given, own)) for name, given in RUNS.items()}
        before = {name: until_it_counts(run) for name, run in runs.items()}
        server.kill()
        server.start()
        server.sql("insert into started_again values (1)", "test")
        after = {name: run.communicate()[0] for name, run in runs.items()}
        yield {name: (run.returncode, before[name] + after[name]) for name, run in runs.items()}


@contextlib.contextmanager
def begun(server: MariaDB, *given: str) -> Iterator[subprocess.Popen[str]]:
    where = (f"--mysql-socket={server.socket}", "--mysql-user=root", "--mysql-db=test", "--table-size=100")
    command = [*OURS, *where, "--time=0", "--events=0", "--report-interval=1", *given, "run"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        try:
            yield run
        finally:
            run.kill()


def until_it_counts(run: subprocess.Popen[str]) -> str:
    """Read until a line says that events were done; returns what was read."""
    assert run.stdout is not None
    said = ""
    while not re.search(r"^\[ \d+s \].* tps: (?!0\.00)", said, re.MULTILINE):
        line = run.stdout.readline()
        assert line, f"it ended before the server did\n{said}"
        said += line
    return said


def counted(out: str) -> dict[str, int]:
    found = re.findall(r"^ +(transactions|ignored errors|reconnects): +(\d+) ", out, re.MULTILINE)
    return {name: int(count) for name, count in found}


@pytest.mark.parametrize("run", ["all", "some"])
def test_a_run_that_ignores_lost_connections_goes_on(ended: dict[str, tuple[int, str]], run: str) -> None:
    status, out = ended[run]
    assert status == 0, out
    count = counted(out)
    assert count["reconnects"] == THREADS[run]
    assert count["ignored errors"] == THREADS[run]
    assert count["transactions"] > 10 * THREADS[run]


def test_a_run_that_ignores_no_errors_ends_with_the_server(ended: dict[str, tuple[int, str]]) -> None:
    status, out = ended["none"]
    assert status == 1
    assert re.search(r"^FATAL: mysql_\w+\(\) returned error 20(06|13) \(.*\)", out, re.MULTILINE), out
    assert re.search(r"^FATAL: `thread_run' function failed: .*\.lua:\d+: SQL error", out, re.MULTILINE), out

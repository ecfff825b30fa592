"""What goes wrong in a script, on the command line, or with clients: one message, a status, and an end."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.sysbench import run, script

from loadstone.personalities.sysbench.connection import servers_of
from loadstone.personalities.sysbench.definitions import GROUPS, Option
from loadstone.personalities.sysbench.options import parse

if TYPE_CHECKING:
    from support.mariadb import MariaDB
    from support.sandbox import Database

pytestmark = pytest.mark.slow  # many scripts wait

PEER = shutil.which("sysbench")
OURS = (str(Path(sys.executable).with_name("loadstone")), "sysbench")
DRY = ("--mysql-dry-run", "--load-threads=1")
IN_TIME_S = 120


@pytest.mark.parametrize(
    "body",
    [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "coroutine.wrap(function() while true do end end)()",
    ],
)
def test_a_script_that_does_not_come_back_is_cut_off_by_a_forced_shutdown(tmp_path: Path, body: str) -> None:
    own = script(tmp_path, f"function event() {body} end")
    code, out, _ = run(*DRY, "--time=1", "--forced-shutdown=0", own, "run")
    assert code == 2
    assert "FATAL: The --max-time limit has expired, forcing shutdown...\n" in out
    assert "Number of unfinished transactions on forced shutdown: 1\n" in out


def test_ctrl_c_ends_a_script_that_does_not_come_back_and_shows_what_was_measured(tmp_path: Path) -> None:
    own = script(
        tmp_path, "n = 0 function event() n = n + 1 if n > 5 then print('here') while true do end end end"
    )
    command = [*OURS, *DRY, "--time=0", own, "run"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
        assert ran.stdout is not None
        seen = ""
        while "here" not in seen:
            line = ran.stdout.readline()
            assert line, seen
            seen += line
        ran.send_signal(signal.SIGINT)
        out, err = ran.communicate(timeout=IN_TIME_S)
    assert (ran.returncode, err) == (130, "")
    assert re.search(r"total number of events: +5\n", out)


def test_clients_have_a_limited_time_to_get_ready_which_begins_after_init(tmp_path: Path) -> None:
    text = """
    ffi.cdef("int usleep(unsigned int);")
    function init() ffi.C.usleep(1200000) print("init is over") end
    function thread_init() if sysbench.tid == 1 then while true do end end end
    function event() end
    """
    code, out, err = run(*DRY, "--threads=3", "--thread-init-timeout=1", script(tmp_path, text), "run")
    # The driver's thread that one holds up may have to start another one, too.
    assert code == 1
    assert re.fullmatch(r"sysbench: [12] of 3 threads \([0-9.]+ %\) never started\n", err)
    assert "init is over" in out
    assert out.endswith("FATAL: Worker threads failed to initialize within 1 seconds!\n")


def test_one_client_that_does_not_get_ready_ends_the_run_before_it_begins(tmp_path: Path) -> None:
    text = """function thread_init() if sysbench.tid == 2 then error('not me') end end
    function event() print('an event') end"""
    own = script(tmp_path, text)
    code, out, err = run(*DRY, "--threads=4", "--events=9", own, "run")
    assert (code, err) == (1, "sysbench: 1 of 4 threads (25 %) never started\n")
    assert re.search(
        r"^FATAL: `thread_init' function failed: .*own\.lua:1: not me\n"
        r"FATAL: Thread initialization failed!\n\Z",
        out,
        re.MULTILINE,
    )
    assert "an event" not in out
    assert "statistics" not in out


def test_a_server_that_takes_fewer_clients_than_there_are_ends_the_run(database: Database) -> None:
    there = database.server.connection
    # With the table there, a client that does get in has nothing to complain of before the third is refused.
    database.execute("create table sbtest1 (id int primary key, k int, c text, pad text)")
    database.execute("drop role if exists few; create role few login connection limit 2")
    database.execute("grant select on sbtest1 to few")
    where = (f"--pgsql-host={there.host}", f"--pgsql-port={there.port}", "--pgsql-user=few")
    try:
        code, out, err = run(
            "--db-driver=pgsql",
            *where,
            f"--pgsql-db={database.name}",
            "--threads=5",
            "oltp_point_select",
            "run",
        )
    finally:
        database.execute("drop owned by few; drop role few")
    assert code == 1
    assert "FATAL: Connection to database failed: " in out
    assert 'too many connections for role "few"' in out
    assert "SQL statistics" not in out
    # The server may count some that it is about to refuse, and refuse more than three.
    assert re.fullmatch(r"sysbench: [345] of 5 threads \([0-9]+ %\) never started\n", err)


def test_a_thread_that_fails_and_one_that_hangs_are_counted_together(tmp_path: Path) -> None:
    text = """function thread_init()
       if sysbench.tid == 0 then error('not me') end
       if sysbench.tid == 3 then while true do end end
    end
    function event() end"""
    code, out, err = run(*DRY, "--threads=4", "--thread-init-timeout=1", script(tmp_path, text), "run")
    assert (code, err) == (1, "sysbench: 2 of 4 threads (50 %) never started\n")
    assert out.index("not me\n") < out.index("FATAL: Worker threads failed to initialize within 1 seconds!\n")
    assert "Thread initialization failed" not in out


def test_nobody_counts_threads_where_init_has_failed(tmp_path: Path) -> None:
    own = script(tmp_path, "function init() error('no') end function event() end")
    code, out, err = run(*DRY, "--threads=4", own, "run")
    assert (code, err) == (1, "")
    assert out.endswith("own.lua:1: no\n")


def test_a_script_without_events_is_refused_after_init_in_one_line(tmp_path: Path) -> None:
    own = script(tmp_path, "function init() print('init') end")
    code, out, err = run(*DRY, "--threads=3", own, "run")
    assert (code, err) == (1, "")
    assert re.search(r"\ninit\nFATAL: cannot find the event\(\) function in .*own\.lua\n\Z", out)


def test_the_same_error_of_many_threads_is_not_shown_for_each(tmp_path: Path) -> None:
    away = f"--mysql-socket={tmp_path / 'away.sock'}"
    code, out, err = run(away, "--threads=40", "oltp_point_select", "run")
    assert (code, err) == (1, "sysbench: 40 of 40 threads (100 %) never started\n")
    assert 1 <= out.count("FATAL: unable to connect to MySQL server on socket") <= 10


@pytest.mark.parametrize(
    "text", ["require('nothing.like_it')", "function event() require('nothing.like_it') end"]
)
def test_a_module_that_is_not_there_is_named_with_the_places_looked_at(tmp_path: Path, text: str) -> None:
    code, out, _ = run(*DRY, script(tmp_path, text), "run")
    assert code == 1
    assert re.search(r"^FATAL: .*own\.lua:1: module 'nothing\.like_it' not found:\n", out, re.MULTILINE)
    assert "no file './nothing/like_it.lua'" in out


def servers(*arguments: str) -> list[str]:
    found = servers_of(parse(arguments, lambda _: None).settings, "mysql")
    return [server.place for server in found]


def test_connections_take_servers_in_the_order_of_sysbench() -> None:
    assert servers("--mysql-host=a,b", "--mysql-port=1,2") == [
        "host 'a', port 1",
        "host 'a', port 2",
        "host 'b', port 1",
        "host 'b', port 2",
    ]
    assert servers("--mysql-socket=/x,/y", "--mysql-host=a") == ["socket '/x'", "socket '/y'"]


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--mysql-host=", "FATAL: No MySQL hosts specified, aborting\n"),
        ("--mysql-host=a --mysql-port=", "FATAL: No MySQL ports specified, aborting\n"),
        ("--mysql-host=a --mysql-port=1,x", "Invalid value for the 'mysql_port' option: 'x'\n"),
        ("--mysql-host=a --mysql-port=0", "Invalid value for the 'mysql_port' option: '0'\n"),
        (
            "--db-driver=pgsql --pgsql-host=a,b",
            (
                "FATAL: the target contains several hosts\n"
                "sysbench: hint: Write one host: Loadstone measures one server per target.\n"
            ),
        ),
    ],
)
def test_servers_that_cannot_be_are_refused(argument: str, said: str) -> None:
    code, out, err = run(*argument.split(), "oltp_point_select", "run")
    assert (code, (out + err).endswith(said)) == (1, True), out + err


def test_a_report_has_one_server(tmp_path: Path) -> None:
    code, _, err = run("--mysql-host=a,b", f"--report={tmp_path / 'r'}", "oltp_point_select", "run")
    assert code == 1
    assert err.startswith("--report observes one server, and 2 are named\n")
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("program", [OURS, (PEER or "",)], ids=["ours", "sysbench"])
def test_clients_take_several_servers_in_turns(
    mariadb_server: MariaDB, tmp_path: Path, program: tuple[str, ...]
) -> None:
    if not program[0]:
        pytest.skip("sysbench is not installed")
    text = """
    function thread_init() con = sysbench.sql.driver():connect() end
    function event() con:query('DO 1') end
    """
    command = [*program, "--mysql-user=root", "--mysql-db=test", "--events=4", script(tmp_path, text), "run"]
    there, away = mariadb_server.socket, tmp_path / "away.sock"
    # Of two, the second is not there: one client does without it, of two one asks for it.
    ends = []
    for threads in (1, 2):
        ran = subprocess.run(
            [*command, f"--mysql-socket={there},{away}", f"--threads={threads}"],
            capture_output=True, text=True, check=False, timeout=IN_TIME_S,
        )  # fmt: skip
        ends.append((ran.returncode, f"on socket '{away}', aborting...\n" in ran.stdout))
    assert ends == [(0, False), (1, True)]


OPTIONS = [
    option for group in GROUPS for option in group.options if option.name not in ("report", "help", "version")
]
VALUES = (
    "", "0", "1", "-1", "1e3", "x", "1,2", ",", "50%", "%", "101", "99999999999999999999", "4k", "4q", "nan",
    "inf", "0x10", "on", "off", "maybe", " 1", "1 ", "é", "\U0001f418", "\n", "'", "a,,b", "/nowhere", "..",
    "2.5", "-2.5", "5%5", "${HOME}",
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    chosen=st.lists(
        st.tuples(
            st.sampled_from(OPTIONS),
            st.sampled_from(VALUES)
            | st.text(st.characters(exclude_categories=("Cs", "Nd"), exclude_characters="\0"), max_size=9),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_any_value_of_an_option_is_taken_or_refused_in_words(
    tmp_path: Path, chosen: list[tuple[Option, str]]
) -> None:
    own = script(tmp_path, "function event() end")
    given_values = [f"--{option.name}={text}" for option, text in chosen]
    # What comes last counts, so that no run is long or large.
    limits = (
        "--mysql-dry-run",
        "--db-driver=mysql",
        "--time=1",
        "--events=1",
        "--max-time=0",
        "--max-requests=0",
    )
    code, out, err = run(*given_values, *limits, own, "run")
    assert code in (0, 1)
    if code:
        said = (out + err).strip()
        assert said
        assert "Traceback" not in said
        assert "internal" not in said


def test_standard_error_is_sysbenchs_unless_more_is_asked_for(tmp_path: Path) -> None:
    own = script(tmp_path, "function event() error('no') end")
    command = [*OURS, *DRY, own, "run"]
    usual, more = (
        subprocess.run([*command, *more], capture_output=True, text=True, check=False, env=os.environ)
        for more in ((), ("--verbosity=4",))
    )
    assert (usual.returncode, usual.stderr) == (1, "")
    assert "client 0 has failed" in more.stderr
    assert "stack traceback" in more.stderr

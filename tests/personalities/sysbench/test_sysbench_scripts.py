"""Our workloads beside those of Debian's sysbench, both run by it: the server gets the same statements.

Random numbers of `prepare` have no seed in sysbench, so that only their form is compared there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.personalities.sysbench.scripts import SCRIPTS

if TYPE_CHECKING:
    from support.sandbox import Database

PEER = shutil.which("sysbench")
THEIRS = Path("/usr/share/sysbench")
SMALL = ("--tables=2", "--table-size=60")
TABLE = (
    "create table {} (id serial primary key, k int not null default 0, c char(120) not null default '', "
    "pad char(60) not null default ''); insert into {} (k) select i from generate_series(1, 60) i"
)
RUNS = (
    ("oltp_read_write",),
    ("oltp_read_write", "--skip-trx", "--range-selects=off", "--delete-inserts=2", "--rand-type=pareto"),
    ("oltp_read_only", "--db-ps-mode=disable", "--point-selects=2", "--range-size=7"),
    ("oltp_write_only", "--rand-type=uniform"),
    ("oltp_point_select",),
    ("oltp_delete",),
    ("oltp_update_index",),
    ("oltp_update_non_index",),
    ("oltp_insert",),
    ("select_random_points", "--random-points=3"),
    ("select_random_ranges", "--number-of-ranges=2", "--delta=9"),
    ("bulk_insert",),
)
LEGACY_RUNS = (
    ("oltp",),
    ("oltp", "--oltp-skip-trx=on", "--oltp-range-selects=off", "--oltp-delete-inserts=2"),
    ("select",),
    ("insert",),
    ("delete",),
    ("update_index",),
    ("select_random_points", "--random-points=3"),
)
"""Workloads of the interface of sysbench 0.5."""
COMMANDS = (
    ("oltp_read_write", "prepare"),
    ("oltp_read_write", "prepare", "--auto-inc=off", "--create-secondary=off"),
    ("oltp_insert", "prepare", "--auto-inc=off"),
    ("bulk_insert", "prepare", "--threads=2"),
    ("oltp_read_write", "cleanup"),
    ("bulk_insert", "cleanup", "--threads=2"),
)
_STAMP = re.compile(r"^[-0-9]+ [0-9:.]+ \S+ \[[0-9]+\] (?=[A-Z])", re.MULTILINE)

pytestmark = [
    pytest.mark.skipif(PEER is None or not THEIRS.is_dir(), reason="sysbench is not installed"),
    pytest.mark.slow,
]


def recreate(database: Database, *, bulk: bool) -> None:
    database.execute("drop table if exists sbtest1, sbtest2")
    if bulk:
        database.execute("create table sbtest1 (id int, k int)")
        return
    for name in ("sbtest1", "sbtest2"):
        database.execute(TABLE.format(name, name))


def statements(
    database: Database, folder: Path, script: str, command: str, *options: str, program: tuple[str, ...] = ()
) -> list[str]:
    """What a script's command left in the server's log, spaces and names of statements apart."""
    there = database.server.connection
    log = Path(there.host) / "server.log"
    before = log.stat().st_size
    assert PEER is not None
    place = ("--db-driver=pgsql", f"--pgsql-host={there.host}", f"--pgsql-port={there.port}")
    account = (f"--pgsql-user={there.user}", f"--pgsql-db={database.name}", "--rand-seed=7")
    ran = subprocess.run(
        [*(program or (PEER,)), *place, *account, *options, str(folder / f"{script}.lua"), command],
        env=os.environ | {"LUA_PATH": f"{folder}/?.lua;;", "PGOPTIONS": "-c log_statement=all"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    with log.open() as lines:
        lines.seek(before)
        found = _STAMP.split(lines.read())
    spaced = (re.sub(r"\( | \)", lambda m: m[0].strip(), " ".join(entry.split())) for entry in found)
    texts = (re.sub(r"^LOG: execute [^:]*:", "LOG: execute:", entry) for entry in spaced)
    sent = [text for text in texts if text.startswith(("LOG: statement", "LOG: execute", "DETAIL: "))]
    # Each session of ours begins with the question whether its settings came through.
    return [text for text in sent if not text.startswith("LOG: statement: select w.name")]


@pytest.mark.parametrize("run", RUNS, ids=" ".join)
def test_a_run_sends_the_same_statements(database: Database, run: tuple[str, ...]) -> None:
    script, *options = run
    is_bulk = script == "bulk_insert"
    amount = ("--events=2000",) if is_bulk else ("--events=5", *SMALL)
    sent = []
    for folder in (THEIRS, SCRIPTS):
        recreate(database, bulk=is_bulk)
        sent.append(statements(database, folder, script, "run", *options, *amount))
    theirs, ours = sent
    assert len(theirs) > 0
    assert ours == theirs


def drawn_by_both(
    database: Database, folder: Path, script: str, *options: str
) -> tuple[list[str], list[str]]:
    """What sysbench and we send of a script of ours."""
    sent = []
    for program in ((), (str(Path(sys.executable).with_name("loadstone")), "sysbench")):
        recreate(database, bulk=False)
        sent.append(statements(database, folder, script, "run", *options, "--events=5", program=program))
    return sent[0], sent[1]


@pytest.mark.parametrize("run", RUNS[:-1], ids=" ".join)
def test_a_run_of_ours_draws_what_sysbench_draws(database: Database, run: tuple[str, ...]) -> None:
    theirs, ours = drawn_by_both(database, SCRIPTS, *run, *SMALL)
    assert len(theirs) > 0
    assert ours == theirs


@pytest.mark.parametrize("run", LEGACY_RUNS, ids=" ".join)
def test_a_run_by_the_old_interface_draws_what_sysbench_draws(
    database: Database, run: tuple[str, ...]
) -> None:
    small = ("--oltp-tables-count=2", "--oltp-table-size=60")
    theirs, ours = drawn_by_both(database, SCRIPTS / "oltp_legacy", *run, *small)
    assert len(theirs) >= 5
    assert ours == theirs


def _without_numbers(values: re.Match[str]) -> str:
    return re.sub("[0-9]+", "N", values[0])


@pytest.mark.parametrize("call", COMMANDS, ids=" ".join)
def test_a_command_sends_the_same_statements(database: Database, call: tuple[str, ...]) -> None:
    script, command, *options = call
    sent = []
    for folder in (THEIRS, SCRIPTS):
        database.execute("drop table if exists sbtest1, sbtest2")
        texts = statements(database, folder, script, command, *options, *SMALL)
        # What is drawn differs from run to run, its form does not.
        sent.append([re.sub("(?<=VALUES).*", _without_numbers, text) for text in texts])
    theirs, ours = sent
    assert len(theirs) > 0
    assert ours == theirs

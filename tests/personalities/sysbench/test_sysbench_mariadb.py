"""Scripts on MariaDB: the same statements as sysbench sends, one by one, in the server's own log."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.personalities.sysbench.scripts import SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.mariadb import MariaDB

PEER = shutil.which("sysbench")
OURS = (str(Path(sys.executable).with_name("loadstone")), "sysbench")
TABLES = ("--tables=2", "--table-size=60")
DATABASE = "sysbench"
_LINE = re.compile(r"^[^\t]*\t+ *[0-9]+ (Query|Execute)\t(.*)$", re.MULTILINE)

pytestmark = [pytest.mark.skipif(PEER is None, reason="sysbench is not installed"), pytest.mark.slow]


@pytest.fixture(scope="module")
def prepared(mariadb_server: MariaDB) -> Iterator[MariaDB]:
    mariadb_server.sql(f"create database {DATABASE}")
    account = call(mariadb_server, OURS, "oltp_read_write", "prepare")
    assert "Inserting 60 records into 'sbtest2'" in account
    yield mariadb_server
    call(mariadb_server, OURS, "oltp_read_write", "cleanup")
    assert mariadb_server.sql("show tables", DATABASE) == ""
    mariadb_server.sql(f"drop database {DATABASE}")


def call(server: MariaDB, program: tuple[str, ...], script: str, *more: str) -> str:
    place = (f"--mysql-socket={server.socket}", "--mysql-user=root", f"--mysql-db={DATABASE}")
    command = [*program, "--db-driver=mysql", *place, *TABLES, str(SCRIPTS / f"{script}.lua"), *more]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=SCRIPTS)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def statements(server: MariaDB, program: tuple[str, ...], script: str, *options: str) -> list[str]:
    """Run five events of one client, and return its statements."""
    log = Path(server.folder) / "data" / "statements.log"
    log.unlink(missing_ok=True)
    server.sql(f"set global general_log_file = '{log.name}'; set global general_log = on")
    try:
        call(server, program, script, "--rand-seed=7", "--events=5", *options, "run")
    finally:
        server.sql("set global general_log = off")
    sent = [(" ".join(text.split()), kind) for kind, text in _LINE.findall(log.read_text())]
    return [f"{kind} {text}" for text, kind in sent if not re.match("(?i)set |select .*@@|quit", text)]


@pytest.mark.parametrize("options", [(), ("--db-ps-mode=disable",)], ids=["prepared", "text"])
@pytest.mark.parametrize("script", ["oltp_read_write", "oltp_point_select", "select_random_ranges"])
def test_a_run_sends_what_sysbench_sends(prepared: MariaDB, script: str, options: tuple[str, ...]) -> None:
    assert PEER is not None
    theirs, ours = (statements(prepared, program, script, *options) for program in ((PEER,), OURS))
    assert len(theirs) >= 5
    assert ours == theirs


def test_a_socket_may_have_any_name(prepared: MariaDB, tmp_path: Path) -> None:
    place = tmp_path / "maria"
    place.symlink_to(prepared.socket)
    where = (f"--mysql-socket={place}", "--mysql-user=root", f"--mysql-db={DATABASE}")
    ran = subprocess.run(
        [*OURS, *where, *TABLES, "--events=1", "oltp_point_select", "run"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout


def test_a_refused_client_has_the_servers_number(prepared: MariaDB) -> None:
    prepared.sql(f"create user few; grant all on {DATABASE}.* to few with max_user_connections 1")
    where = (f"--mysql-socket={prepared.socket}", "--mysql-user=few", f"--mysql-db={DATABASE}")
    ran = subprocess.run(
        [*OURS, *where, *TABLES, "--threads=2", "oltp_point_select", "run"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    prepared.sql("drop user few")
    assert ran.returncode == 1
    assert "\nFATAL: error 1226: " in ran.stdout


def test_a_report_has_the_servers_settings_and_sizes(prepared: MariaDB, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    call(prepared, OURS, "oltp_point_select", "--time=1", f"--report={folder}", "run")
    (target,) = folder.glob("targets/*/target.json")
    found = json.loads(target.read_text())
    assert found["engine"] == "mariadb"
    assert found["version"].startswith("1")
    assert "innodb_flush_log_at_trx_commit" in {entry["setting"] for entry in found["durability"]}
    (phase,) = folder.glob("targets/*/phases/*/phase.json")
    kept = json.loads(phase.read_text())
    assert kept["state"] == "complete"
    assert kept["sizes"]["after"]
    assert "MariaDB" in (folder / "report.html").read_text()


ROWS = """
function prepare()
   con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b INT, c VARCHAR(100))")
   con:bulk_insert_init("INSERT INTO t (b, c) VALUES")
   for i = 1, 9000 do
      con:bulk_insert_next(string.format("(%d, 'it''s\\\\t%s'), (NULL, '')", i, ("x"):rep(i % 90)))
   end
   con:bulk_insert_done()
end
"""


def test_a_script_leaves_the_table_that_sysbench_leaves(prepared: MariaDB, tmp_path: Path) -> None:
    path = tmp_path / "rows.lua"
    path.write_text(ROWS)
    assert PEER is not None
    sums = []
    for program in ((PEER,), OURS):
        call(prepared, program, str(path.with_suffix("")), "prepare")
        rows = "select count(*), count(b), max(a) from t; checksum table t"
        sums.append(prepared.sql(f"{rows}; drop table t", DATABASE))
    assert sums[0] == sums[1]
    assert sums[0].startswith("18000\t9000\t")

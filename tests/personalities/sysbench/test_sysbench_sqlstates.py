"""What a script is told of an error of MariaDB: the number and the SQLSTATE that the server has sent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.sysbench import script

if TYPE_CHECKING:
    from support.mariadb import MariaDB

OURS = (str(Path(sys.executable).with_name("loadstone")), "sysbench")
DATABASE = "sqlstates"
# The first event waits for a row that the other connection has locked, and begins again without the lock.
LOCK_WAIT_TIMEOUT = """
function thread_init()
   local drv = sysbench.sql.driver()
   con, other = drv:connect(), drv:connect()
   con:query("SET SESSION innodb_lock_wait_timeout = 1")
   other:query("BEGIN")
   other:query("UPDATE locked SET a = 2")
end
function sysbench.hooks.sql_error_ignorable(e)
   print("hook", e.sql_errno, e.sql_state)
   timed_out = true
   return true
end
function event()
   if timed_out then other:query("COMMIT") end
   con:query("UPDATE locked SET a = 3")
end
"""

pytestmark = pytest.mark.slow  # it starts a program that waits for a second


def test_a_lock_wait_timeout_has_the_sqlstate_of_the_server(mariadb_server: MariaDB, tmp_path: Path) -> None:
    mariadb_server.sql(f"create database {DATABASE}")
    try:
        mariadb_server.sql(
            "create table locked (a int) engine=innodb; insert into locked values (1)", DATABASE
        )
        ran = subprocess.run(
            [*OURS, f"--mysql-socket={mariadb_server.socket}", "--mysql-user=root", f"--mysql-db={DATABASE}",
             "--events=1", "--time=0", "--mysql-ignore-errors=1213", script(tmp_path, LOCK_WAIT_TIMEOUT),
             "run"],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "hook\t1205\tHY000\n" in ran.stdout
        assert mariadb_server.sql("select a from locked", DATABASE) == "3"
    finally:
        mariadb_server.sql(f"drop database {DATABASE}")

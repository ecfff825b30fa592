"""Connections to MariaDB that its server ends in a run: which error the script gets, and what is counted.

Debian's sysbench is no peer here: with MariaDB's client library it crashes when it connects again.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.sysbench import script

if TYPE_CHECKING:
    from support.mariadb import MariaDB

OURS = (str(Path(sys.executable).with_name("loadstone")), "sysbench")
IGNORED = "--mysql-ignore-errors=2006,2013,1053,1927,1317"
IN_TIME_S = 120

pytestmark = pytest.mark.slow  # each starts programs

# The third event has its connection ended by another one of the script.
ENDED_BETWEEN = """
n = 0
function thread_init()
   drv = sysbench.sql.driver()
   con, other = drv:connect(), drv:connect()
   number = con:query_row("SELECT CONNECTION_ID()")
   HOW
end
function event()
   n = n + 1
   if n == 3 then
      other:query("KILL " .. number)
      local there = "SELECT COUNT(*) FROM information_schema.processlist WHERE id = " .. number
      while other:query_row(there) ~= "0" do end
   end
   WORK
end
"""
PLAIN = {"HOW": "", "WORK": 'con:query("DO 1")'}
PREPARED = {
    "HOW": """statement = con:prepare("SELECT ?")
   parameter = statement:bind_create(sysbench.sql.type.INT)
   statement:bind_param(parameter)""",
    "WORK": "parameter:set(n) statement:execute()",
}
# As the scripts of sysbench do it: its statements are gone with the connection.
HOOK = """
function sysbench.hooks.before_restart_event(trouble)
   print("hook", trouble.sql_errno, trouble.sql_state)
   statement = con:prepare("SELECT ?")
   parameter = statement:bind_create(sysbench.sql.type.INT)
   statement:bind_param(parameter)
end
"""
# While one waits for the server, the other one ends its connection.
ENDED_WITHIN = """
function thread_init()
   con = sysbench.sql.driver():connect()
   if sysbench.tid == 1 then return end
end
function event()
   done = (done or 0) + 1
   if sysbench.tid == 0 and done == 1 then
      con:query("SELECT SLEEP(600) /* ended */")
   elseif sysbench.tid == 1 and done == 1 then
      local found
      repeat
         found = con:query_row("SELECT MIN(id) FROM information_schema.processlist " ..
            "WHERE info = 'SELECT SLEEP(600) /* ended */'")
      until found
      con:query("KILL " .. found)
   end
   con:query("DO 1")
   return done == 3
end
"""


def call(server: MariaDB, *arguments: str) -> subprocess.CompletedProcess[str]:
    where = (f"--mysql-socket={server.socket}", "--mysql-user=root", "--mysql-db=test")
    return subprocess.run(
        [*OURS, *where, *arguments, "run"],
        capture_output=True, text=True, check=False, timeout=IN_TIME_S,
    )  # fmt: skip


def counted(out: str) -> dict[str, int]:
    found = re.findall(r"^ +(transactions|ignored errors|reconnects): +(\d+) ", out, re.MULTILINE)
    return {name: int(count) for name, count in found}


def filled(text: str, parts: dict[str, str]) -> str:
    for name, part in parts.items():
        text = text.replace(name, part)
    return text


@pytest.mark.parametrize(
    "text",
    [filled(ENDED_BETWEEN, PLAIN), filled(ENDED_BETWEEN, PREPARED) + HOOK],
    ids=["plain", "prepared"],
)
def test_a_lost_connection_is_made_again_where_its_error_is_ignored(
    mariadb_server: MariaDB, tmp_path: Path, text: str
) -> None:
    ran = call(mariadb_server, IGNORED, "--events=6", script(tmp_path, text))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert counted(ran.stdout)["transactions"] == 6
    assert counted(ran.stdout)["reconnects"] == 1


def test_statements_are_prepared_again_on_the_new_connection(mariadb_server: MariaDB, tmp_path: Path) -> None:
    ran = call(mariadb_server, IGNORED, "--events=6", script(tmp_path, filled(ENDED_BETWEEN, PREPARED)))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert counted(ran.stdout)["reconnects"] == 1


def test_a_connection_that_ends_before_the_answer_is_made_again(
    mariadb_server: MariaDB, tmp_path: Path
) -> None:
    own = script(tmp_path, ENDED_WITHIN)
    ran = call(mariadb_server, "--mysql-ignore-errors=all", "--threads=2", "--events=0", own)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert counted(ran.stdout)["reconnects"] == 1


def test_a_lost_connection_whose_error_is_not_ignored_ends_the_run(
    mariadb_server: MariaDB, tmp_path: Path
) -> None:
    own = script(tmp_path, filled(ENDED_BETWEEN, PLAIN))
    ran = call(mariadb_server, "--mysql-ignore-errors=1213", "--events=6", own)
    assert ran.returncode == 1
    assert re.search(
        r"^FATAL: mysql_drv_query\(\) returned error \d+ \(.*\) for query 'DO 1'$", ran.stdout, re.MULTILINE
    )
    assert re.search(
        r"^FATAL: `thread_run' function failed: .*own\.lua:\d+: SQL error", ran.stdout, re.MULTILINE
    )


def test_a_scripts_own_hook_may_connect_again(mariadb_server: MariaDB, tmp_path: Path) -> None:
    hook = "function sysbench.hooks.sql_error_ignorable(e) con:reconnect() return true end\n"
    own = script(tmp_path, filled(ENDED_BETWEEN, PLAIN) + hook)
    ran = call(mariadb_server, "--events=6", own)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert counted(ran.stdout) == {"transactions": 6, "ignored errors": 1, "reconnects": 1}

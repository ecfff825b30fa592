"""Scripts written for sysbench, driven against a real PostgreSQL."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from loadstone import _core

if TYPE_CHECKING:
    from support.mariadb import MariaDB
    from support.sandbox import Database

TRANSFER = """
function thread_init()
   con = sysbench.sql.driver():connect()
   take = con:prepare("UPDATE accounts SET balance = balance - ? WHERE id = ?")
   amount, id = take:bind_create(sysbench.sql.type.INT), take:bind_create(sysbench.sql.type.INT)
   take:bind_param(amount, id)
end
function event()
   con:query("BEGIN")
   amount:set(2)
   id:set(sysbench.rand.uniform(1, 10))
   take:execute()
   con:query_row("SELECT balance FROM accounts WHERE id = 1")
   con:query("UPDATE accounts SET balance = balance WHERE id = -1")
   con:query("COMMIT")
end
"""
PREPARE = """
sysbench.cmdline.options = {rows = {"Rows", 10}}
function prepare()
   local con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE accounts (id int PRIMARY KEY, balance int, note text)")
   con:bulk_insert_init("INSERT INTO accounts VALUES")
   for i = 1, sysbench.opt.rows do
      con:bulk_insert_next(("(%d, 0, '%s')"):format(i, sysbench.rand.string("##-@@")))
   end
   con:bulk_insert_done()
   print("prepared", sysbench.opt.rows)
end
"""


def reached(database: Database) -> dict[str, Any]:
    """Return how the core is told where the database is."""
    there = database.server.connection
    return {"host": str(there.host), "port": there.port, "user": there.user, "database": database.name}


class Run:
    """One drive of a script, to its end."""

    def __init__(
        self, database: Database | dict[str, Any], source: str, clients: int = 1, **more: Any
    ) -> None:
        """Run all of it; `more` are settings of the drive, or of its script (`lua`)."""
        lua = {"script": "t.lua", "source": source, "seed": 42, "percentile": 95} | more.pop("lua", {})
        spec = {
            "connection": database if isinstance(database, dict) else reached(database),
            "lua": lua,
            "clients": clients,
            "seed": 1,
            "timeout_s": 20,
        } | more
        self.messages: list[dict[str, str]] = []
        drive = _core.Drive(json.dumps(spec))
        drive.start()
        try:
            while (text := drive.wait(0.05)) is None:
                self._read(drive)
        finally:
            self._read(drive)
        self.account: dict[str, Any] = json.loads(text)

    def _read(self, drive: _core.Drive) -> None:
        self.messages += json.loads(drive.progress()).get("messages") or []

    @property
    def printed(self) -> str:
        """What the script wrote."""
        return "".join(line["text"] for line in self.messages if line["kind"] == "output")

    @property
    def complaints(self) -> str:
        """What went wrong, with the traceback."""
        return "\n".join(line["text"] for line in self.messages if line["kind"] in {"error", "detail"})

    @property
    def operations(self) -> dict[str, Any]:
        """Statements by what they did."""
        operations: dict[str, Any] = self.account["operations"]
        return operations


@pytest.fixture
def accounts(database: Database) -> Database:
    """Make the accounts by a script's own command."""
    run = Run(database, PREPARE, lua={"command": "prepare", "options": {"rows": 10}})
    assert (run.account["state"], run.printed) == ("complete", "prepared\t10\n")
    return database


def test_statements_do_what_the_counts_say(accounts: Database) -> None:
    run = Run(accounts, TRANSFER, clients=3, lua={"events": 30})
    assert run.account["counts"]["done"] == 30
    assert run.account["response"]["count"] == 30  # and nothing of what came before the first event
    counts = {name: run.operations[name] for name in ("reads", "writes", "others", "reconnects", "ignored")}
    assert counts == {"reads": 30, "writes": 30, "others": 90, "reconnects": 0, "ignored": []}
    assert run.operations["percentile_ns"] > 0
    assert accounts.value("select -sum(balance) from accounts") == 60


def test_a_client_draws_the_same_numbers_whatever_the_number_of_threads(accounts: Database) -> None:
    source = "function event() print(sysbench.tid, sysbench.rand.default(1, 1000)) end"
    drawn = [
        sorted(
            Run(accounts, source, clients=4, threads=threads, transactions_per_client=5).printed.splitlines()
        )
        for threads in (1, 3)
    ]
    assert len(drawn[0]) == 20
    assert drawn[0] == drawn[1]


def test_an_event_begins_again_after_a_unique_violation(accounts: Database) -> None:
    source = """
    function thread_init() con = sysbench.sql.driver():connect() end
    function event()
       tries = (tries or 0) + 1
       con:query("BEGIN")
       con:query("INSERT INTO accounts VALUES (" .. (tries == 1 and 1 or 11) .. ")")
       con:query("COMMIT")
    end
    """
    run = Run(accounts, source, lua={"events": 1})
    assert run.account["counts"]["done"] == 1
    (ignored,) = run.operations["ignored"]
    assert (ignored["sqlstate"], ignored["count"]) == ("23505", 1)
    assert accounts.value("select count(*) from accounts") == 11


BROKEN = """con = nil
function event() end
function {function}()
   sysbench.sql.driver():connect():query("SELECT nothing")
end
"""
SAID = "client 0: `{name}' function failed: t.lua:4: SQL error, errno = 0, state = '42703'"


def test_a_failure_names_client_place_and_statement(accounts: Database) -> None:
    run = Run(accounts, BROKEN.format(function="event"), lua={"events": 1})
    assert run.account["state"] == "aborted"
    assert SAID.format(name="thread_run") in run.account["reason"]
    assert "t.lua:4: in function" in run.complaints
    assert "failed query was: SELECT nothing" in run.complaints


def test_a_failure_before_the_start_is_an_error_at_once(accounts: Database) -> None:
    with pytest.raises(_core.DriveError) as raised:
        Run(accounts, BROKEN.format(function="thread_init"), lua={"events": 1})
    assert SAID.format(name="thread_init") in raised.value.args[0]


WRONG_USE = """
function event()
   print(pcall(sysbench.sql.driver, "none"))
   local con = sysbench.sql.driver():connect()
   print(pcall(con.prepare, con, "SELECT nothing"))
   local none = con:query("UPDATE accounts SET balance = 1 WHERE id = 1")
   print(none == nil, none, pcall(none.free, none))
   con:disconnect()
   print(pcall(con.query, con, "SELECT 1"))
   con = sysbench.sql.driver():connect()
   print(con:query_row("SELECT balance, NULL, note FROM accounts WHERE id = 1"))
end
function thread_done() con = nil end
"""


def test_wrong_use_is_an_error_that_the_script_can_catch(accounts: Database) -> None:
    run = Run(accounts, WRONG_USE, lua={"events": 1})
    assert run.account["state"] == "complete"
    note = accounts.value("select note from accounts where id = 1")
    assert run.printed.splitlines() == [
        "false\tfailed to initialize the DB driver",
        "false\tSQL API error",
        "true\t<sql_result>\tfalse\tdb_free_results() failed",
        "false\tt.lua:9: SQL API error",
        f"1\tnil\t{note}",
    ]
    assert 'PQprepare() failed: ERROR:  column "nothing" does not exist' in run.complaints


def test_a_script_without_a_database_needs_none_and_may_catch_that_there_is_none(
    monkeypatch: pytest.MonkeyPatch, database: Database
) -> None:
    nowhere = reached(database) | {"host": "/none"}
    monkeypatch.setattr(f"{__name__}.reached", lambda _: nowhere)
    source = "function event() print(pcall(sysbench.sql.driver().connect, sysbench.sql.driver())) end"
    run = Run(database, source, lua={"events": 1})
    assert run.printed == "false\tconnection creation failed\n"
    assert "Connection to database failed" in run.complaints
    assert Run(database, "function event() end", clients=3, lua={"events": 9}).account["counts"]["done"] == 9


def test_a_loop_without_end_is_stopped_with_the_run(accounts: Database) -> None:
    source = "function event() print('begun') while true do end end"
    lua = {"script": "t.lua", "source": source, "events": 1}
    spec = {"connection": reached(accounts), "lua": lua, "clients": 1, "seed": 1}
    drive = _core.Drive(json.dumps(spec))
    drive.start()
    while "begun" not in drive.progress():
        assert drive.wait(0.01) is None
    drive.stop()
    text = drive.wait(120)
    assert text is not None
    account = json.loads(text)
    assert (account["state"], account["counts"]["failed"]) == ("interrupted", 1)


def test_what_a_script_declares_is_told_before_anything_runs() -> None:
    described = json.loads(_core.lua_script(json.dumps({"script": "t.lua", "source": PREPARE})))
    assert described["commands"] == {"prepare": {"parallel": False}}
    assert described["options"] == [
        {"name": "rows", "description": "Rows", "default": "10", "type": "double"}
    ]
    with pytest.raises(_core.ScriptError) as raised:
        _core.lua_script(json.dumps({"script": "t.lua", "source": "\nlocal x ="}))
    assert raised.value.args[1:3] == ("t.lua", 2)


def test_the_same_script_runs_on_mariadb(mariadb_server: MariaDB) -> None:
    mariadb_server.sql("DROP DATABASE IF EXISTS lua; CREATE DATABASE lua")
    there = mariadb_server.connection(database="lua")
    prepare = {"command": "prepare", "driver": "mysql", "options": {"rows": 10}}
    assert Run(there, PREPARE, lua=prepare).printed == "prepared\t10\n"
    run = Run(there, TRANSFER, clients=3, lua={"driver": "mysql", "events": 30})
    counts = {name: run.operations[name] for name in ("reads", "writes", "others", "reconnects")}
    # A deadlock is an event that begins again.
    again = sum(error["count"] for error in run.operations["ignored"])
    assert run.account["counts"]["done"] == 30
    if not again:
        assert counts == {"reads": 30, "writes": 30, "others": 90, "reconnects": 0}
    assert mariadb_server.sql("SELECT -SUM(balance) FROM accounts", "lua") == "60"


def test_errors_are_ignored_by_the_numbers_of_mysql(mariadb_server: MariaDB) -> None:
    mariadb_server.sql(
        "DROP DATABASE IF EXISTS lua; CREATE DATABASE lua; CREATE TABLE lua.t (a int PRIMARY KEY);"
        " INSERT INTO lua.t VALUES (1)"
    )
    source = """
    function thread_init() con = sysbench.sql.driver():connect() con:reconnect() end
    function event()
       tries = (tries or 0) + 1
       con:query("INSERT INTO t VALUES (" .. tries .. ")")
    end
    """
    there = mariadb_server.connection(database="lua")
    refused = Run(there, source, lua={"driver": "mysql", "events": 1})
    assert "SQL error, errno = 1062, state = '23000'" in refused.account["reason"]
    run = Run(there, source, lua={"driver": "mysql", "events": 1, "ignore_errors": ["1062"]})
    assert run.account["state"] == "complete"
    assert [(error["sqlstate"], error["count"]) for error in run.operations["ignored"]] == [("23000", 1)]
    assert run.operations["reconnects"] == 1


def test_a_client_has_connections_side_by_side(accounts: Database) -> None:
    source = """
function thread_init()
   con = {}
   for i = 1, 3 do con[i] = sysbench.sql.driver():connect() end
   reader = con[3]:prepare("SELECT count(*) FROM accounts")
end
function event()
   con[1]:query("BEGIN")
   con[1]:query("DELETE FROM accounts WHERE id = 1")
   print(con[2]:query_row("SELECT count(*) FROM accounts"), (reader:execute():fetch_row())[1])
   local seen = con[1]:query("SELECT id FROM accounts ORDER BY id")
   local ids = {}
   for row in seen.fetch_row, seen do
      -- What is left of a result outlives statements in between, on this connection and others.
      con[2]:query("SELECT 1")
      con[1]:query("SELECT 1")
      ids[#ids + 1] = row[1]
   end
   print(table.concat(ids, ","))
   con[1]:query("ROLLBACK")
   con[2]:disconnect()
   print(con[1]:query_row("SELECT count(*) >= 2 FROM pg_stat_activity WHERE datname = current_database()"))
end
"""
    for io in ("io_uring", "epoll"):
        run = Run(accounts, source, io=io, lua={"events": 1})
        assert run.complaints == ""
        assert run.printed == "10\t10\n2,3,4,5,6,7,8,9,10\nt\n"
    assert accounts.value("select count(*) from pg_stat_activity where datname = current_database()") == 1


def test_an_idle_connection_that_is_lost_fails_when_it_is_used(accounts: Database) -> None:
    source = """
function event()
   local first = sysbench.sql.driver():connect()
   local pid = first:query_row("SELECT pg_backend_pid()")
   local second = sysbench.sql.driver():connect()
   second:query("SELECT pg_terminate_backend(" .. pid .. ", 5000)")
   first:query("SELECT 1")
end
"""
    run = Run(accounts, source, lua={"events": 1})
    assert run.account["state"] == "aborted"
    assert "terminating connection" in run.complaints or "closed the connection" in run.complaints


def test_connections_of_init_are_there_for_done(accounts: Database) -> None:
    source = """
function init() con = sysbench.sql.driver():connect() con:query("CREATE TEMP TABLE own (a int)") end
function event() local c = sysbench.sql.driver():connect() c:query("SELECT 1") c:disconnect() end
function done() print(con:query_row("SELECT count(*) FROM own")) end
"""
    run = Run(accounts, source, clients=2, lua={"events": 4})
    assert (run.account["counts"]["done"], run.printed) == (4, "0\n")


def test_declarations_by_ffi_count_once_and_scripts_count_by_themselves(accounts: Database) -> None:
    source = """
ffi = require("ffi")
ffi.cdef[[
struct pair { int a, b; };
void sb_counter_inc(int, sb_counter_type);
]]
local pair = ffi.metatype("struct pair", { __index = { sum = function(p) return p.a + p.b end } })
function event()
   print(pair(1, 2):sum())
   ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_ERROR)
   ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_READ)
end
"""
    run = Run(accounts, source, clients=3, lua={"events": 6})
    assert run.complaints == ""
    assert run.printed == "3\n" * 6
    assert run.operations["reads"] == 6
    assert [(error["sqlstate"], error["count"]) for error in run.operations["ignored"]] == [("script", 6)]

"""Runs on MariaDB beside PostgreSQL, from the command line: the same scenario, each in its own SQL."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest
from support.mariadb import MARIADBD

if TYPE_CHECKING:
    from pathlib import Path

    from support.mariadb import MariaDB
    from support.sandbox import Database, Sandbox

pytestmark = pytest.mark.skipif(
    MARIADBD is None, reason="MariaDB is not installed: Debian's package is mariadb-server"
)
SCENARIO = """
id = "both"
title = "Two engines"
version = "1"
why = "A test."

[[phase]]
id = "rows"
kind = "load"
title = "rows"
data.set = "flights"
data.rows = 3000
table.name = "flights"
table.indexes = "2"
workers = 2
storage = true
after = ["settle.sql"]

[[phase]]
id = "questions"
kind = "queries"
title = "questions"
queries.table = "flights"
queries.warm_runs = 1
queries.cold = false
queries.statements = [{ name = "states", sql = "states.sql" }]

[[phase]]
id = "transfers"
kind = "script"
title = "transfers"
setup = ["make.sql"]
scripts = ["transfer.pgbench"]
clients = 4
transactions_per_client = 50
rows_per_transaction = 1
row_check = { count = "select count(*) from loadstone.history" }
checks = [{ name = "sum", sql = "select sum(a) from loadstone.accounts", expected = "0" }]
"""
FILES = {
    "states.sql": "select origin_state, count(*) n, avg(airtime) a from flights group by 1 order by 1",
    "settle.sql": "vacuum analyze loadstone.flights",
    "mysql/settle.sql": "analyze table loadstone.flights",
    "make.sql": "create table loadstone.accounts as select i as id, 0 as a from generate_series(1, 9) i;"
    "create table loadstone.history (at timestamp default now())",
    "mysql/make.sql": "create table loadstone.accounts (id int primary key, a int);"
    "insert into loadstone.accounts select seq, 0 from seq_1_to_9;"
    "create table loadstone.history (at datetime default now())",
    "transfer.pgbench": "\\set id random(1, 8)\nBEGIN;\n"
    "UPDATE loadstone.accounts SET a = a + 1 WHERE id = :id;\n"
    "UPDATE loadstone.accounts SET a = a - 1 WHERE id = :id + 1;\n"
    "INSERT INTO loadstone.history VALUES (default);\nEND;\n",
}
FILES["mysql/transfer.pgbench"] = FILES["transfer.pgbench"].replace("END;", "COMMIT;")


def scenario(sandbox: Sandbox) -> Path:
    folder = sandbox.work / "both"
    (folder / "mysql").mkdir(parents=True)
    (folder / "scenario.toml").write_text(SCENARIO)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def phases(folder: Path, target: str) -> list[dict[str, Any]]:
    found = sorted(folder.glob(f"targets/{target}/phases/*/phase.json"))
    return [json.loads(path.read_text()) for path in found]


def test_a_private_mariadb_and_postgresql_are_in_one_report(sandbox: Sandbox, database: Database) -> None:
    ended = sandbox.run(
        "run", scenario(sandbox), "--target", "mariadb", "--target", database.url, "--out", "out"
    )
    assert ended.code == 0, ended.err
    ids = sorted(path.name for path in (ended.folder / "targets").iterdir())
    assert "mariadb" in ids
    for target in ids:
        found = phases(ended.folder, target)
        assert [phase["state"] for phase in found] == ["complete"] * 3
        assert all(check["passed"] for phase in found for check in phase["checks"])
    # The second target's answers were compared with the first's.
    (other,) = (target for target in ids if target != "mariadb")
    assert phases(ended.folder, other)[1]["checks"][0]["name"] == "answers are those of mariadb"
    page = (ended.folder / "report.html").read_text()
    assert "MariaDB 10." in page
    assert "PostgreSQL" in page
    assert "innodb_flush_log_at_trx_commit" in (ended.folder / "targets/mariadb/target.json").read_text()
    assert not list(sandbox.tmp.glob("loadstone-*"))


def test_sessions_and_both_mixes_run_as_procedures_and_statements(
    sandbox: Sandbox, mariadb_server: MariaDB
) -> None:
    small = ("users=700", "mix_rows=300", "duration=0.3", "ids=1000", "clients=2")
    url = f"mariadb://root@/test?socket={mariadb_server.socket}"
    sets = [word for value in small for word in ("--set", value)]
    ended = sandbox.run("run", "session-oltp", "--size", "tiny", *sets, "--target", url, "--out", "out")
    assert ended.code == 0, ended.err
    (name,) = (path.name for path in (ended.folder / "targets").iterdir())
    found = phases(ended.folder, name)
    assert [phase["state"] for phase in found] == ["complete"] * 7
    # Every user, every session, rows of each log-in and log-out, and nothing lost or left by the mixes.
    checks = [check for phase in found for check in phase["checks"]]
    assert len(checks) >= 6
    assert all(check["passed"] for check in checks)
    assert mariadb_server.sql("show databases like 'loadstone'") == ""


def test_ctrl_c_leaves_nothing_on_a_users_server(sandbox: Sandbox, mariadb_server: MariaDB) -> None:
    mariadb_server.sql("drop database if exists loadstone")
    folder = scenario(sandbox)
    text = (folder / "scenario.toml").read_text()
    (folder / "scenario.toml").write_text(text.replace("transactions_per_client = 50", "duration_s = 600"))
    url = f"mariadb://root@/test?socket={mariadb_server.socket}"
    running = sandbox.start("run", folder, "--target", url, "--out", "out")
    running.wait_for_drive("transfers")
    running.send_group(signal.SIGINT)
    ended = running.finish()
    assert ended.code == 130, ended.err
    assert (ended.folder / "report.html").is_file()
    assert mariadb_server.sql("show databases like 'loadstone'") == ""
    left = "select count(*) from information_schema.processlist where db = 'loadstone'"
    assert mariadb_server.sql(left) == "0"


@pytest.mark.parametrize("scenario_id", ["index-import", "tsbs-iot"])
def test_loads_that_the_server_refuses_are_refused_before_anything_is_made(
    sandbox: Sandbox, mariadb_server: MariaDB, scenario_id: str
) -> None:
    mariadb_server.sql("drop database if exists loadstone; set global local_infile = off")
    try:
        url = f"mariadb://root@/test?socket={mariadb_server.socket}"
        ended = sandbox.run("run", scenario_id, "--size", "tiny", "--target", url, "--out", "out")
    finally:
        mariadb_server.sql("set global local_infile = on")
    assert ended.code == 1, ended.err
    assert f"{scenario_id}: phase '" in ended.err
    assert "local_infile is off" in ended.err
    assert "set global local_infile = on" in ended.err
    assert mariadb_server.sql("show databases like 'loadstone'") == ""

"""A statement that is given up ends on the server too: on a real PostgreSQL, by its own key."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import TYPE_CHECKING, Any

from support.sandbox import wait_until

from loadstone import _core
from loadstone.workload.drive import connection_document

if TYPE_CHECKING:
    from support.sandbox import Database

PATIENCE_S = 30.0
"""How long the server may take to give up. Without a request it would be the minute of its sleep."""
AT_WORK = "select count(*) as n from pg_stat_activity where state = 'active' and query like '%pg_sleep(60)%'"


def started(database: Database, more: dict[str, Any]) -> _core.Drive:
    connection = dataclasses.replace(database.server.connection, database=database.name)
    document: dict[str, Any] = {
        "connection": connection_document(connection),
        "scripts": [{"name": "s.pgbench", "text": "select pg_sleep(60);\n", "weight": 1}],
        "transactions_per_client": 1,
        "clients": 3,
        "seed": 1,
    }
    drive = _core.Drive(json.dumps(document | more))
    drive.start()
    return drive


def account_of(drive: _core.Drive) -> dict[str, Any]:
    text = drive.wait(120.0)
    assert text is not None
    account: dict[str, Any] = json.loads(text)
    return account


def at_work(database: Database) -> int:
    # The query holds the pattern as well, and is at work itself.
    with database.connect() as connection:
        row = connection.execute(f"{AT_WORK} and pid <> pg_backend_pid()".encode()).fetchone()
    assert row is not None
    return int(row[0])


def wait_for(database: Database, count: int, within_s: float) -> None:
    wait_until(lambda: at_work(database) == count, f"{count} at work", within_s)


def test_a_statement_over_its_time_limit_ends_on_the_server(database: Database) -> None:
    drive = started(database, {"timeout_s": 2.0})
    wait_for(database, 3, 20)
    account = account_of(drive)
    assert [(e["sqlstate"], e["count"]) for e in account["errors"]] == [("timeout", 3)]
    wait_for(database, 0, PATIENCE_S)


def test_a_statement_cut_off_at_the_end_ends_on_the_server(database: Database) -> None:
    drive = started(database, {"timeout_s": 60.0, "duration_s": 60.0, "transactions_per_client": None})
    wait_for(database, 3, 60)
    drive.stop()
    account = account_of(drive)
    assert account["state"] == "interrupted"
    assert account["in_doubt"] == 3
    wait_for(database, 0, PATIENCE_S)


def test_others_are_left_alone(database: Database) -> None:
    other = started(database, {"timeout_s": 60.0, "clients": 1})
    wait_for(database, 1, 60)
    drive = started(database, {"timeout_s": 0.5})
    assert account_of(drive)["counts"]["failed"] == 3
    wait_for(database, 1, PATIENCE_S)
    time.sleep(0.2)  # for a request too many, which would show by nothing else
    assert at_work(database) == 1
    other.stop()
    account_of(other)

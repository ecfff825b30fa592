"""Sessions behind a pooler: asked what they are before anything is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.pooler import pooler

from loadstone.engine.postgres import connections, session_checks
from loadstone.engines.postgres import ENGINE
from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.model import Connection, Drive, Script
from loadstone.personalities import pgbench
from loadstone.workload.drive import drive_document, perform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.pooler import Pooler
    from support.sandbox import Database, Sandbox

    from loadstone.private_server import EmbeddedServer
    from loadstone.workload.drive import Progress

PATH = {"options": "-c search_path=loadstone"}


@pytest.fixture(scope="module")
def by_session(postgres: EmbeddedServer) -> Iterator[Pooler]:
    with pooler(postgres, "session") as found:
        yield found


@pytest.fixture(scope="module")
def by_transaction(postgres: EmbeddedServer) -> Iterator[Pooler]:
    with pooler(postgres, "transaction") as found:
        yield found


def test_the_settings_of_the_log_in_are_read_as_the_server_reads_them() -> None:
    options = r"-c work_mem=64MB -csearch_path=a\ b --lock-timeout=3 -c search_path=loadstone"
    asked = Connection("h", 1, "u", "d", parameters={"options": options, "DateStyle": "ISO"})
    assert session_checks.wanted(asked) == {
        "work_mem": "64MB",
        "search_path": "loadstone",
        "lock_timeout": "3",
        "DateStyle": "ISO",
    }


def test_a_server_keeps_what_is_set_at_log_in_in_whatever_spelling(database: Database) -> None:
    options = {
        "options": "-c work_mem=65536kB -c search_path=loadstone,public -c my.own=x",
        "DateStyle": "ISO",
    }
    there = database.server.connection
    asked = Connection(there.host, there.port, there.user, database.name, parameters=options)
    with connections.connect(asked) as control:
        assert control.execute("show work_mem").fetchone() == {"work_mem": "64MB"}


@pytest.mark.parametrize("setting", ["search_path=loadstone", "work_mem=77MB", "my.own=x"])
def test_a_session_without_what_was_set_is_refused(
    database: Database, by_session: Pooler, setting: str
) -> None:
    with pytest.raises(LoadstoneError) as caught:
        connections.connect(by_session.connection(database.name, options=f"-c {setting}"))
    assert setting.partition("=")[0] in caught.value.message
    assert "a pooler" in caught.value.message
    assert "Connect to the server itself" in caught.value.hint


def test_a_setting_that_the_pooler_loses_is_not_called_wrong(database: Database, by_session: Pooler) -> None:
    asked = by_session.connection(database.name)
    with pytest.raises(LoadstoneError) as caught:
        ENGINE.with_settings(asked, {"work_mem": "77MB"})
    assert "a pooler" in caught.value.message
    assert "refused" not in caught.value.message
    assert "Connect to the server itself" in caught.value.hint


def test_a_role_that_has_the_settings_may_come_by_a_pooler(database: Database, by_session: Pooler) -> None:
    database.execute(f"alter role {by_session.user} in database {database.name} set search_path = loadstone")
    with connections.connect(by_session.connection(database.name, **PATH)) as control:
        assert control.execute("show search_path").fetchone() == {"search_path": "loadstone"}


def test_sessions_that_change_with_each_transaction_are_refused(
    database: Database, by_transaction: Pooler
) -> None:
    connection = by_transaction.connection(database.name)
    with pytest.raises(LoadstoneError, match="each transaction in another session") as caught:
        connections.connect(connection)
    assert "pool_mode = session" in caught.value.hint
    connections.connect(connection, needs="nothing").close()


def test_each_client_is_asked_before_the_first_transaction(database: Database, by_session: Pooler) -> None:
    """The control connection may come another way, or the pooler be another by now."""
    database.execute("create table t (id int)")
    drive = Drive((Script("drop.pgbench", "drop table public.t;\n"),), clients=2, transactions_per_client=1)
    document = drive_document(drive, by_session.connection(database.name, **PATH), None)
    with pytest.raises(RunFailedError, match=r"search_path is .*, and loadstone was asked for") as caught:
        perform(document, None)
    assert "alter role" in caught.value.hint
    assert database.value("select count(*) from t") == 0


def test_a_client_ends_the_drive_whose_schema_another_run_has_taken(database: Database) -> None:
    there = database.server.connection
    claimed = ("loadstone", "another mark")
    asked = Connection(there.host, there.port, there.user, database.name, claimed=claimed)
    document = drive_document(Drive((Script("one", "select 1;\n"),), transactions_per_client=1), asked, None)
    with pytest.raises(RunFailedError, match="replaced by another run"):
        perform(document, None)


def test_a_client_that_connects_anew_ends_the_drive_whose_schema_is_another_runs(database: Database) -> None:
    there = database.server.connection
    database.execute("create schema loadstone")
    database.execute("comment on schema loadstone is 'ours'")
    asked = Connection(
        there.host,
        there.port,
        there.user,
        database.name,
        application_name="clients",
        claimed=("loadstone", "ours"),
    )
    drive = Drive((Script("one", "select 1;\n"),), clients=2, duration_s=60, reconnect=True)
    taken: list[bool] = []

    def take(progress: Progress) -> None:
        if progress["latest"] and not taken:
            taken.append(True)
            database.execute("comment on schema loadstone is 'theirs'")
            database.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'clients'"
            )

    account = perform(drive_document(drive, asked, None), None, take)
    assert account["state"] == "aborted"
    assert "replaced by another run" in account["reason"]
    assert account["counts"]["done"] > 0


@pytest.mark.parametrize(("protocol", "code"), [("simple", 0), ("extended", 0), ("prepared", 1)])
def test_pgbench_may_use_a_pool_of_transactions_but_for_prepared_statements(
    database: Database, by_transaction: Pooler, protocol: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.execute("create table pgbench_branches as select 1 as bid")
    monkeypatch.setenv("PGHOST", str(by_transaction.folder))
    script = by_transaction.folder / "one.sql"
    script.write_text("select 1;\n")
    told: list[str] = []
    arguments = f"-n -f {script} -t 5 -c 2 -M {protocol} -p 6432 -U {by_transaction.user} {database.name}"
    assert pgbench.main(arguments.split(), told.append, told.append) == code
    assert ("each transaction in another session" in "".join(told)) == (code == 1), told


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_run_behind_a_pooler_that_drops_options_touches_nothing(
    sandbox: Sandbox, database: Database, by_session: Pooler, by_transaction: Pooler, mode: str
) -> None:
    database.execute("create table t as select generate_series(1, 7) as id")
    between = by_session if mode == "session" else by_transaction
    ended = sandbox.quick(sandbox.inserts(), "--target", between.url(database.name))
    assert ended.code == 1
    assert "a pooler" in ended.err
    assert "Connect to the server itself" in ended.err
    assert database.value("select count(*) from t") == 7
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0
    assert database.value("select count(*) from pg_locks where locktype = 'advisory'") == 0


def test_a_run_by_a_pooler_of_sessions_that_have_the_settings_is_as_any_other(
    sandbox: Sandbox, database: Database, by_session: Pooler
) -> None:
    path = ENGINE.connection_parameters()["options"].removeprefix("-c ")
    database.execute(f"alter role {by_session.user} in database {database.name} set {path}")
    ended = sandbox.measure(sandbox.inserts(0.5), "--target", by_session.url(database.name))
    assert ended.code == 0, ended.err
    assert ended.phases()["insert"]["checks"][0]["passed"]
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0
    assert database.value("select count(*) from pg_locks where locktype = 'advisory'") == 0

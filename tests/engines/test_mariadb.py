"""MariaDB as a target: its URLs, what a run does on a user's server and leaves there, private servers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import Mock

import psutil
import pytest
from support.mariadb import MARIADBD
from support.sandbox import wait_until

from loadstone.engine import SCHEMA
from loadstone.engines.mariadb import durability, server
from loadstone.engines.mariadb.control import ServerError
from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.model import Drive, PlainTable, Script
from loadstone.target import open_target, parse_target, parse_targets
from loadstone.target.opening import wire_engine
from loadstone.workload.drive import drive_document, perform

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.mariadb import MariaDB

    from loadstone.engines.mariadb.control import MariaControl
    from loadstone.model import Connection
    from loadstone.target import OpenTarget

MARIA = wire_engine("mariadb")
installed = pytest.mark.skipif(MARIADBD is None, reason="Debian's package mariadb-server is not installed")


@pytest.fixture
def opened(mariadb_server: MariaDB) -> Iterator[OpenTarget]:
    """The shared server as a user names it, without our database before and after."""
    mariadb_server.sql("drop database if exists loadstone")
    url = f"mariadb://root@/test?socket={mariadb_server.socket}"
    with open_target(parse_target(url), 4) as found:
        yield found
    mariadb_server.sql("drop database if exists loadstone")


@pytest.fixture
def control(opened: OpenTarget) -> Iterator[MariaControl]:
    with closing(opened.connect("loadstone")) as found:
        yield found  # type: ignore[misc]


def clients(opened: OpenTarget, mark: str) -> Connection:
    assert opened.connection is not None
    named = replace(opened.connection, application_name="loadstone-7", claimed=(SCHEMA, mark))
    found = opened.engine.client_connection(named)
    assert found is not None
    return found


# URLs


@pytest.mark.parametrize(
    ("url", "host", "port", "user", "database", "target"),
    [
        ("mariadb://u:p%40@h:3307/d", "h", 3307, "u", "d", "mariadb://u@h:3307/d"),
        ("mysql://u@[::1]/d", "::1", 3306, "u", "d", "mariadb://u@[::1]:3306/d"),
        ("mariadb://u@/d?socket=/s/m.sock", "/s/m.sock", 3306, "u", "d", "mariadb://u@/d?socket=/s/m.sock"),
        ("mysql://u@h/d?sslmode=require", "h", 3306, "u", "d", "mariadb://u@h:3306/d?sslmode=require"),
    ],
)
def test_urls_say_how_to_connect_and_come_back(
    url: str, host: str, port: int, user: str, database: str, target: str
) -> None:
    found = parse_target(url)
    there = found.connection
    assert there is not None
    assert (there.host, there.port, there.user, there.database) == (host, port, user, database)
    assert (there.protocol, found.url, found.engine) == ("mysql", target, "mariadb")
    again = parse_target(found.without_password()).connection
    assert again == replace(there, password=again.password if again else None)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mariadb://h/d?ssl=1", "no parameter 'ssl'"),
        ("mariadb://h/d?sslmode=on", "sslmode cannot be 'on'"),
        ("mariadb://h:99999/d", "port"),
        ("mariadb://h/d/e", "one database"),
        ("mariadb://h/d?socket=/s", "full path of a socket, and no host"),
        ("mariadb://h/d?connect_timeout=soon", "connect_timeout cannot be 'soon'"),
        ("mariadb://h/d?sslrootcert=/nowhere/ca.pem", "'/nowhere/ca.pem' does not exist"),
    ],
)
def test_wrong_urls_are_refused_in_words(url: str, words: str) -> None:
    with pytest.raises(LoadstoneError, match=words):
        parse_target(url)


def test_the_password_comes_from_the_environment_and_is_shown_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MYSQL_PWD", "from the environment")
    found = parse_target("mariadb://u@h/d")
    assert found.connection is not None
    assert found.connection.password == "from the environment"
    assert "environment" not in f"{found} {found.without_password()}"


def test_a_private_server_has_a_short_name() -> None:
    (target,) = parse_targets(["mariadb"])
    assert (target.id, target.url, target.engine) == ("mariadb", "mariadb", "mariadb")
    assert target.place is not None
    assert target.place.private


# A user's own server


def test_a_database_of_somebody_else_is_neither_used_nor_dropped(
    mariadb_server: MariaDB, control: MariaControl
) -> None:
    mariadb_server.sql("create database loadstone; create table loadstone.theirs (a int)")
    with pytest.raises(LoadstoneError, match=r"already has a database 'loadstone'.*theirs"):
        MARIA.create_workspace(control)
    with pytest.raises(LoadstoneError, match="not marked as created by Loadstone"):
        MARIA.drop_workspace(control)
    assert mariadb_server.sql("show tables", "loadstone") == "theirs"
    MARIA.create_workspace(control, replace=True)
    assert mariadb_server.sql("show tables", "loadstone") == "loadstone_mark"


def test_a_run_excludes_another_and_leaves_nothing(
    mariadb_server: MariaDB, opened: OpenTarget, control: MariaControl
) -> None:
    mark = MARIA.workspace_mark("a", "loadstone-7")
    assert MARIA.claim_workspace(control, mark=mark)
    MARIA.create_workspace(control)
    assert MARIA.claim_workspace(control, mark=mark)
    assert MARIA.keeps_workspace(control, SCHEMA, mark)
    with closing(opened.connect("loadstone")) as other:
        ((session,),) = control.texts("select connection_id()")
        with pytest.raises(LoadstoneError, match=f"another run .* session {session}"):
            MARIA.claim_workspace(other, mark=MARIA.workspace_mark("b", "loadstone-8"))
        MARIA.release_workspace(control)
        assert MARIA.claim_workspace(other, mark=MARIA.workspace_mark("b", "loadstone-8"))
        assert not MARIA.keeps_workspace(control, SCHEMA, mark)
        MARIA.drop_workspace(other, lock_wait_s=5.0)
    assert mariadb_server.sql("show databases like 'loadstone'") == ""


def test_clients_look_for_the_mark_and_are_found_by_their_name(
    opened: OpenTarget, control: MariaControl
) -> None:
    mark = MARIA.workspace_mark("a", "loadstone-7")
    MARIA.create_workspace(control)
    MARIA.claim_workspace(control, mark=mark)
    drive = Drive((Script("s", "SELECT SLEEP(30);\n"),), clients=3, transactions_per_client=1)
    document = drive_document(drive, clients(opened, mark), None)
    seen: list[int] = []

    def show(progress: object) -> None:
        del progress
        if not seen and len(MARIA_SESSIONS(control)) == 3:
            seen.append(MARIA.cancel(control, "loadstone-7"))

    account = perform(document, None, show)
    assert seen == [3]
    assert account["counts"]["done"] == 0
    other = drive_document(drive, clients(opened, MARIA.workspace_mark("b", "x")), None)
    with pytest.raises(RunFailedError, match="the schema loadstone was dropped, or replaced by another run"):
        perform(other, None)


def MARIA_SESSIONS(control: MariaControl) -> list[object]:  # noqa: N802 - read as a constant of the server
    rows = control.execute(
        "select id from information_schema.processlist where info like 'SELECT SLEEP(30)%'"
    )
    return list(rows)


def test_sessions_speak_standard_sql_in_utc(control: MariaControl) -> None:
    MARIA.create_workspace(control)
    control.execute("""create table "t" ("a b" varchar(20) character set utf8mb4)""")
    control.execute(r"""insert into "t" values ('C:\new' || 'é😀')""")
    assert MARIA.text_value(control, 'select "a b" from loadstone.t') == "C:\\newé😀"
    assert MARIA.text_value(control, "select timediff(now(), utc_timestamp())") == "00:00:00"
    with pytest.raises(ServerError, match="Data too long"):
        control.execute(f"""insert into "t" values ('{"x" * 21}')""")


def test_a_user_who_may_make_no_database_is_told_what_to_grant(
    mariadb_server: MariaDB, opened: OpenTarget
) -> None:
    mariadb_server.sql("create or replace user poor@'%'; grant all on test.* to poor@'%'")
    assert opened.connection is not None
    with (
        closing(MARIA.connect(replace(opened.connection, user="poor"))) as control,
        pytest.raises(LoadstoneError, match="may not create the database 'loadstone'") as caught,
    ):
        MARIA.create_workspace(control)
    assert "grant all on loadstone.* to 'poor'" in caught.value.hint


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"user": "nobody here"}, "Access denied"),
        ({"database": "nowhere"}, "Unknown database 'nowhere'"),
        ({"host": "/nowhere/m.sock"}, "cannot connect to /nowhere/m.sock"),
    ],
)
def test_a_server_that_refuses_is_quoted(opened: OpenTarget, change: dict[str, str], words: str) -> None:
    assert opened.connection is not None
    with pytest.raises(LoadstoneError, match=words) as caught:
        MARIA.connect(replace(opened.connection, **change))  # type: ignore[arg-type]
    assert caught.value.hint


@pytest.mark.parametrize(
    ("user", "sslmode"),
    [("plain", "disable"), ("plain", "require"), ("elliptic", "disable"), ("elliptic", "prefer")],
)
def test_every_log_in_of_a_control_connection(mariadb_server: MariaDB, user: str, sslmode: str) -> None:
    mariadb_server.sql(
        """create or replace user plain@'%' identified via mysql_native_password using password('p@:/');
        create or replace user elliptic@'%' identified via ed25519 using password('p@:/');
        grant all on test.* to plain@'%', elliptic@'%'"""
    )
    url = f"mariadb://{user}:p%40%3A%2F@127.0.0.1:{mariadb_server.port}/test?sslmode={sslmode}"
    there = parse_target(url).connection
    assert there is not None
    with closing(MARIA.connect(there)) as found:
        encrypted = MARIA.text_value(
            found,
            "select variable_value <> '' from information_schema.session_status "
            "where variable_name = 'ssl_cipher'",
        )
    assert encrypted == ("0" if sslmode == "disable" else "1")
    with pytest.raises(LoadstoneError, match=f"to {there.host}:.* \\(user {user}\\): the server refused"):
        MARIA.connect(replace(there, password="wrong"))


def test_load_data_is_refused_before_anything_is_touched_where_the_server_would(
    mariadb_server: MariaDB, control: MariaControl
) -> None:
    mariadb_server.sql("set global local_infile = off")
    try:
        for dialect in (MARIA.tables, MARIA.series):
            with pytest.raises(LoadstoneError, match="local_infile is off"):
                dialect.refuse_method(control, "copy_text")
            dialect.refuse_method(control, "insert")
    finally:
        mariadb_server.sql("set global local_infile = on")


def test_a_server_without_md5_is_told_which_component_has_it() -> None:
    server = Mock()
    server.execute.side_effect = ServerError("FUNCTION loadstone.md5 does not exist")
    with pytest.raises(LoadstoneError, match="no function md5") as refused:
        MARIA.tables.refuse(server, Mock(), PlainTable("t"))
    assert "component_classic_hashing" in refused.value.hint
    assert "md5" not in MARIA.capabilities(server)


def test_too_many_clients_are_refused(control: MariaControl) -> None:
    with pytest.raises(LoadstoneError, match=r"100000 clients are requested.*max_connections"):
        MARIA.refuse_too_many_clients(control, 100_000)


def test_a_session_sets_what_it_may_and_nothing_else(opened: OpenTarget) -> None:
    assert opened.connection is not None
    found = MARIA.with_settings(opened.connection, {"innodb_lock_wait_timeout": "7"})
    with closing(MARIA.connect(found)) as control:
        assert MARIA.text_value(control, "select @@innodb_lock_wait_timeout") == "7"
    for name in ("innodb_doublewrite", "no_such_thing", "sql_mode"):
        with pytest.raises(LoadstoneError, match=name):
            MARIA.with_settings(opened.connection, {name: "1"})


def test_a_statement_ends_after_its_time_and_the_connection_lives(control: MariaControl) -> None:
    with MARIA.at_most(control, 0.1), pytest.raises(ServerError, match="took too long"):
        control.execute("select sleep(60)")
    assert MARIA.text_value(control, "select 1") == "1"


def test_facts_are_those_of_the_server(mariadb_server: MariaDB, control: MariaControl) -> None:
    MARIA.create_workspace(control)
    control.execute("create table t (id int primary key, a int, index (a))")
    before = MARIA.observe(control).part["counters"] or {}
    control.execute("insert into t select seq, seq from seq_1_to_5000")
    after = MARIA.observe(control).part["counters"] or {}
    assert int(after["wal_bytes"] or 0) > int(before["wal_bytes"] or 0)
    (table,) = MARIA.storage(control, ["t"]).tables
    size = mariadb_server.sql(
        "select data_length, index_length from information_schema.tables"
        " where table_name = 't' and table_schema = 'loadstone'"
    )
    assert f"{table['heap_bytes']}\t{table['index_bytes']}" == size
    assert [index["name"] for index in table["indexes"]] == ["a"]
    assert {entry["name"] for entry in MARIA.sizes(control)["relations"]} == {"t", "t (indexes)"}
    assert MARIA.server_pids(control).pid == int((mariadb_server.folder / "pid").read_text())
    names = {entry["name"]: entry["value"] for entry in MARIA.settings(control)}
    assert (names["innodb_flush_log_at_trx_commit"], names["log_bin"]) == ("0", "OFF")


@pytest.mark.parametrize(
    ("values", "durable"),
    [
        ({"innodb_flush_log_at_trx_commit": "1"}, [True]),
        ({"innodb_flush_log_at_trx_commit": "2"}, [False]),
        ({"innodb_flush_log_at_trx_commit": "0"}, [False]),
        ({"innodb_doublewrite": "OFF"}, [False]),
        ({"innodb_flush_method": "nosync"}, [False]),
        ({"log_bin": "OFF", "sync_binlog": "0"}, [True]),
        ({"log_bin": "ON", "sync_binlog": "0"}, [True, True]),
    ],
)
def test_what_trades_durability_for_speed_is_called_out(values: dict[str, str], durable: list[bool]) -> None:
    assert [line["durable"] for line in durability.judge(values)] == durable


# Private servers


@installed
def test_a_private_server_is_an_ordinary_users_and_goes_with_its_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with open_target(parse_target("mariadb?setting.innodb_flush_log_at_trx_commit=2"), 5) as found:
        with closing(found.connect("loadstone")) as control:
            pid = found.engine.server_pids(control).pid
            assert pid is not None
            assert psutil.Process(pid).uids().real != 0
            assert found.engine.text_value(control, "select @@innodb_flush_log_at_trx_commit") == "2"
            assert found.engine.text_value(control, "select @@innodb_doublewrite") == "1"
            found.engine.create_workspace(control)
            control.execute("create table t (a int)")
            control.execute("insert into t values (1)")
            assert found.engine.flush_caches(control)["emptied"]
        private = found.database
        assert isinstance(private, server.PrivateMaria)
        os.kill(private.pid or 0, signal.SIGKILL)
        wait_until(lambda: not _is_there(private.pid), "the server is seen to be dead")
        process = private._process
        assert process is not None
        looks = iter(
            [None]
        )  # while its last threads end, a killed server refuses connections but counts as running
        monkeypatch.setattr(process, "poll", lambda: next(looks, process.returncode))
        with closing(found.connect("loadstone")) as control:
            assert found.engine.text_value(control, "select a from loadstone.t") == "1"
            last = found.engine.server_pids(control).pid
        folder = found.data_directory
    assert folder is not None
    assert not folder.exists()
    assert not psutil.pid_exists(last or 0)


def _is_there(pid: int | None) -> bool:
    with suppress(psutil.NoSuchProcess):
        return pid is not None and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


@installed
@pytest.mark.usefixtures("own_registry")
def test_a_private_server_ends_with_a_killed_loadstone() -> None:
    program = (
        "from loadstone.target import open_target, parse_target\n"
        "with open_target(parse_target('mariadb'), 1) as found:\n"
        "    print(found.database.pid, found.data_directory, flush=True)\n"
        "    input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        pid, folder = owner.stdout.readline().split()
        assert psutil.pid_exists(int(pid))
        owner.kill()
    wait_until(lambda: not psutil.pid_exists(int(pid)), "the server has ended")
    with open_target(parse_target("mariadb"), 1) as found:
        assert any(folder in note for note in found.notes)
    assert not os.path.exists(folder)  # noqa: PTH110 - a text


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(server, "_PATH", (str(tmp_path),))
    with (
        pytest.raises(LoadstoneError, match="MariaDB is not installed here") as caught,
        open_target(parse_target("mariadb"), 1),
    ):
        pass
    assert "apt-get install mariadb-server" in caught.value.hint


@installed
@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("no_such_setting=1", "unknown variable 'no-such-setting=1'"),
        ("datadir=/", "Loadstone itself sets 'datadir'"),
        ("--x=1", "not a setting of MariaDB"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(setting: str, words: str) -> None:
    with (
        pytest.raises(LoadstoneError) as caught,
        open_target(parse_target(f"mariadb?setting.{setting}"), 1),
    ):
        pass
    assert words in f"{caught.value.message} {caught.value.hint}"

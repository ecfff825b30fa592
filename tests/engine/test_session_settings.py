"""`--setting` on a server of one's own: what a session may set is set, the rest refused; so is read-only."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import duckdb
import pytest
from support.sandbox import PHASE

from loadstone.cli.terminal import Quiet
from loadstone.engine.postgres.session_settings import refuse_read_only
from loadstone.errors import ExitCode, LoadstoneError
from loadstone.run import Request, execute
from loadstone.scenario.scenario import load_scenario
from loadstone.target import open_target, parse_target

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.sandbox import Database

    from loadstone.engine import Engine
    from loadstone.engine.control import Control

COUNTED = 'duration_s = 0.5\nrows_per_transaction = 1\nrow_check = {{ count = "select count(*) from t" }}'
SCRIPT = "insert into t select 1 where current_setting('work_mem') = '7MB';\n"
SCENARIO = """
id = "own"
title = "own"
version = "1"
why = "A test."

[[phase]]
id = "prepare"
kind = "sql"
title = "prepare"
setup = ["create table t (id int)"]
"""


@pytest.fixture
def role(database: Database) -> Iterator[str]:
    """A user who is no superuser, by URL."""
    name = f"plain_{database.name}"
    database.execute(f"create role {name} login password 'plain'")
    yield database.url.replace(f"loadstone:{database.password}@", f"{name}:plain@")
    database.execute(f"drop owned by {name}")
    database.execute(f"drop role {name}")


def user_of(url: str) -> str:
    return url.removeprefix("postgres://").partition(":")[0]


@contextlib.contextmanager
def looking(text: str, settings: dict[str, str]) -> Iterator[tuple[Engine, Control]]:
    with (
        open_target(parse_target(text), 1, settings=settings) as opened,
        contextlib.closing(opened.connect("looking")) as control,
    ):
        yield opened.engine, control


def refused(url: str, settings: dict[str, str]) -> LoadstoneError:
    with pytest.raises(LoadstoneError) as caught, looking(url, settings):
        pass
    return caught.value


def test_every_client_of_a_server_by_url_has_the_settings(database: Database, tmp_path: Path) -> None:
    phase = PHASE.format(id="insert", script="insert.pgbench", settings=COUNTED.format())
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "scenario.toml").write_text(SCENARIO + phase)
    (tmp_path / "own" / "insert.pgbench").write_text(SCRIPT)
    settings = {"work_mem": "7MB", "synchronous_commit": "off"}
    request = Request(
        [load_scenario(tmp_path / "own")],
        [database.url],
        "tiny",
        out=tmp_path / "out",
        settings=settings,
        calibrate=False,
    )
    outcome = execute(request, Quiet())
    assert (outcome.exit_code, outcome.trouble) == (ExitCode.OK, None)
    (target,) = outcome.folder.targets()
    document = target.read_target()
    assert document
    known = {str(entry.name): (entry.value, entry.source) for entry in document.settings or []}
    assert known["work_mem"][1] == "client"
    assert known["synchronous_commit"] == ("off", "client")
    assert [
        entry.durable for entry in document.durability or [] if entry.setting == "synchronous_commit"
    ] == [False]
    assert outcome.folder.run["options"]["settings"] == settings


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"shared_buffers": "1GB"}, "shared_buffers (it applies to the whole server)"),
        ({"work_mem": "7MB", "fsync": "off", "port": "1"}, "fsync (it applies to the whole server), port"),
        ({"wrok_mem": "7MB"}, "wrok_mem (the server has no such setting)"),
        ({"Search_Path": "public"}, "Search_Path (Loadstone's connections depend on it)"),
    ],
)
def test_what_a_session_may_not_set_is_refused_and_named(
    database: Database, settings: dict[str, str], words: str
) -> None:
    error = refused(database.url, settings)
    assert f"--setting cannot set {words}" in error.message
    assert "Set the others on the server" in error.hint
    assert database.password not in str(error)


def test_a_value_that_the_server_refuses_is_told(database: Database) -> None:
    error = refused(database.url, {"work_mem": "much"})
    assert 'invalid value for parameter "work_mem": "much"' in error.message
    assert error.hint == "Check --setting."


def test_a_superusers_setting_is_for_those_who_may_set_it(database: Database, role: str) -> None:
    assert "log_statement (only a superuser may set it)" in refused(role, {"log_statement": "all"}).message
    name = user_of(role)
    database.execute(f"grant set on parameter log_statement to {name}")
    for url in (role, database.url):
        with looking(url, {"log_statement": "ddl"}) as (_, control):
            assert control.execute("show log_statement").fetchone() == {"log_statement": "ddl"}
    database.execute(f"revoke set on parameter log_statement from {name}")


def test_a_setting_of_a_library_that_is_not_loaded_is_taken(database: Database) -> None:
    with looking(database.url, {"mine.own": "a b\\c"}) as (_, control):
        assert control.execute("show mine.own").fetchone() == {"mine.own": "a b\\c"}


@pytest.mark.parametrize("where", ["user", "database user", "client"])
def test_read_only_sessions_are_refused_with_how_to_change_that(
    database: Database, role: str, tmp_path: Path, where: str
) -> None:
    name = user_of(role)
    database.execute(f"grant create on database {database.name} to {name}")
    off = {"default_transaction_read_only": "off"}
    url = role
    if where == "client":
        url += "?options=-c%20default_transaction_read_only%3Don"
    else:
        inside = f"in database {database.name}" if "database" in where else ""
        database.execute(f"alter role {name} {inside} set default_transaction_read_only = on")
        with looking(url, off) as (_, control):
            refuse_read_only(control)
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "scenario.toml").write_text(SCENARIO)
    request = Request([load_scenario(folder)], [url], "tiny", out=tmp_path / "out", calibrate=False)
    with pytest.raises(LoadstoneError) as caught:
        execute(request, Quiet())
    assert f"are read-only (default_transaction_read_only = on, from: {where})" in caught.value.message
    assert caught.value.exit_code is ExitCode.BAD_INPUT
    assert ("--setting default_transaction_read_only=off" in caught.value.hint) == (where != "client")
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0


def test_a_duckdb_file_of_ones_own_takes_settings_and_may_not_be_read_only(tmp_path: Path) -> None:
    url = f"duckdb:{tmp_path / 'mine.duckdb'}"
    with looking(url, {"threads": "1"}) as (engine, control):
        found = control.execute("select current_setting('threads') as n").fetchone()
        assert found is not None
        assert int(found["n"]) == 1
        engine.refuse_read_only(control)
    with (
        looking(url, {"access_mode": "READ_ONLY"}) as (engine, control),
        pytest.raises(LoadstoneError, match="would be opened read-only"),
    ):
        engine.refuse_read_only(control)


def test_a_duckdb_file_in_a_folder_that_may_not_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with looking(f"duckdb:{tmp_path}/mine.duckdb", {}) as (engine, control):
        # Root may write everywhere: what the system would answer others is given here.
        monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(LoadstoneError, match="write-ahead log") as caught:
            engine.refuse_read_only(control)
    assert "chmod" in caught.value.hint


def test_servers_behind_a_client_library_take_no_settings() -> None:
    error = refused("clickhouse://u@127.0.0.1:1/x", {"max_threads": "1"})
    assert "--setting sets nothing on a ClickHouse server of your own" in error.message


@pytest.mark.parametrize("out", [None, "a/b"])
def test_a_run_that_is_refused_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str | None
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "scenario.toml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    asked = Request(
        [load_scenario(tmp_path / "own")],
        [f"duckdb:{tmp_path}/mine.duckdb"],
        "tiny",
        settings={"no_such": "1"},
        out=None if out is None else tmp_path / out,
    )
    with pytest.raises(LoadstoneError, match="refuses a setting"):
        execute(asked, Quiet())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own"]


def test_a_duckdb_file_that_may_not_be_written_is_told_with_how_to_change_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise duckdb.IOException('IO Error: Cannot open file "mine.duckdb": Permission denied')

    monkeypatch.setattr("loadstone.engines.duckdb.database.opened", refuse)
    error = refused(f"duckdb:{tmp_path}/mine.duckdb", {})
    assert "chmod u+w" in error.hint

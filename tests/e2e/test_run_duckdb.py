"""Runs on DuckDB, from the command line: what cannot be there is skipped, nothing is left, nothing lost."""

from __future__ import annotations

import contextlib
import signal
import time
from typing import TYPE_CHECKING

import duckdb
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Ended, Sandbox

SQL_ONLY = """
id = "words"
title = "SQL that two engines understand"
version = "1"
why = "A test."

[[phase]]
id = "prepare"
kind = "sql"
title = "a table"
setup = [
    "create table t (id int, x double precision)",
    "insert into t select g, g from generate_series(1, 1000) as s(g)",
]
checks = [{ name = "rows", sql = "select count(*) from t", expected = "{expected}" }]

[[phase]]
id = "sizes"
kind = "size"
title = "sizes"
"""


def words(sandbox: Sandbox, expected: str = "1000") -> Path:
    folder = sandbox.work / "words"
    folder.mkdir()
    (folder / "scenario.toml").write_text(SQL_ONLY.replace("{expected}", expected))
    return folder


def value(file: Path, statement: str) -> object:
    with contextlib.closing(duckdb.connect(str(file), read_only=True)) as connection:
        ((found,),) = connection.execute(statement).fetchall()
        return found


def refused(ended: Ended, *said: str) -> None:
    assert ended.code == 1, ended.err
    for text in said:
        assert text in ended.err, ended.err
    assert not ended.folder.exists()
    assert "Traceback" not in ended.err


def test_what_duckdb_cannot_do_is_skipped_in_words_and_the_run_ends_well(sandbox: Sandbox) -> None:
    ended = sandbox.measure("iot-feed", words(sandbox), "--target", "duckdb:")
    assert ended.code == 0, ended.err
    phases = ended.phases("duckdb")
    own = {name: phase for name, phase in phases.items() if phase["scenario"] == "words"}
    assert {phase["state"] for phase in own.values()} == {"complete"}
    assert {phase["state"] for name, phase in phases.items() if name not in own} == {"skipped"}
    assert "PostgreSQL's wire protocol" in phases["one-table-single"]["reason"]
    assert ended.run["state"] == "complete"
    assert "wire protocol" in ended.report
    (note,) = [event for event in ended.events if "own process" in event["message"]]
    assert note["level"] == "info"


def test_a_run_of_which_nothing_can_be_done_is_refused(sandbox: Sandbox) -> None:
    refused(
        sandbox.measure("iot-feed", "--target", "duckdb:"),
        "nothing of this can run: ",
        "duckdb does not support plpgsql",
        "PostgreSQL's wire protocol",
    )


def test_the_plan_says_so_before_anything_is_touched(sandbox: Sandbox) -> None:
    ended = sandbox.run("plan", sandbox.inserts(), "--target", "duckdb:")
    assert ended.code == 0, ended.err
    assert "duckdb does not use PostgreSQL's wire protocol" in ended.out
    assert sandbox.servers() == []


def test_engines_are_listed_with_how_targets_name_them(sandbox: Sandbox) -> None:
    ended = sandbox.run("engines")
    (line,) = [line for line in ended.out.splitlines() if line.startswith("duckdb")]
    assert "duckdb:/path/file.duckdb" in line
    assert "verified against DuckDB" in line


def test_sql_and_checks_run_beside_postgresql(sandbox: Sandbox) -> None:
    ended = sandbox.measure(
        words(sandbox), "--target", "duckdb:", "--target", "duckdb::memory:", "--target", "pg"
    )
    assert ended.code == 0, ended.err
    for target in ("duckdb", "duckdb-memory", "pg18"):
        phases = ended.phases(target)
        assert phases["prepare"]["checks"][0]["passed"], target
        assert phases["sizes"]["state"] == "complete"
    document = (ended.folder / "targets" / "duckdb" / "target.json").read_text()
    assert '"in_process": true' in document
    assert "fsync_mode" in document


def test_a_wrong_value_is_a_failed_run(sandbox: Sandbox) -> None:
    ended = sandbox.measure(words(sandbox, "999"), "--target", "duckdb:")
    assert ended.code == 3, ended.err
    assert "the database does not contain what it should" in ended.err


def test_the_users_file_keeps_what_was_in_it_and_nothing_of_ours(sandbox: Sandbox) -> None:
    file = sandbox.work / "mine.duckdb"
    with contextlib.closing(duckdb.connect(str(file))) as connection:
        connection.execute("create table t as select 7 as seven").fetchall()
    ended = sandbox.measure(words(sandbox), "--target", f"duckdb:{file}")
    assert ended.code == 0, ended.err
    assert value(file, "select seven from t") == 7
    assert value(file, "select count(*) from duckdb_schemas() where schema_name = 'loadstone'") == 0


def test_a_schema_with_somebodys_tables_is_refused_unless_told_to_replace(sandbox: Sandbox) -> None:
    file = sandbox.work / "mine.duckdb"
    with contextlib.closing(duckdb.connect(str(file))) as connection:
        connection.execute("create schema loadstone").fetchall()
        connection.execute("create table loadstone.mine as select 7 as seven").fetchall()
    refused(
        sandbox.measure(words(sandbox), "--target", f"duckdb:{file}"),
        "the schema 'loadstone' contains",
        "--replace",
    )
    assert value(file, "select seven from loadstone.mine") == 7
    again = sandbox.measure("words", "--target", f"duckdb:{file}", "--replace")
    assert again.code == 0, again.err


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("duckdb:/nowhere/at/all/x.duckdb", ("the folder '/nowhere/at/all' does not exist", "mkdir -p")),
        ("duckdb:/", ("is a folder", "Name a file")),
    ],
)
def test_a_file_that_cannot_be_is_refused(sandbox: Sandbox, target: str, said: tuple[str, ...]) -> None:
    refused(sandbox.quick("--target", target), *said)


def test_one_file_is_a_target_once_and_not_while_another_process_has_it(sandbox: Sandbox) -> None:
    file = sandbox.work / "mine.duckdb"
    twice = sandbox.measure(words(sandbox), "--target", f"duckdb:{file}", "--target", f"duckdb:{file}")
    refused(twice, "already in use by this run", "a target only once")
    with contextlib.closing(duckdb.connect(str(file))):
        other = sandbox.measure("words", "--target", f"duckdb:{file}", out="other")
    refused(other, "is in use by process")


def test_a_setting_is_given_and_a_wrong_one_refused(sandbox: Sandbox) -> None:
    ended = sandbox.measure(words(sandbox), "--target", "duckdb:", "--setting", "fsync_mode=NONE")
    assert ended.code == 0, ended.err
    assert "a crash of the machine can destroy the whole database" in ended.report
    refused(
        sandbox.measure("words", "--target", "duckdb:", "--setting", "shared_buffers=1GB", out="other"),
        "DuckDB refuses a setting (shared_buffers=1GB)",
        "--setting",
    )


def test_kept_on_request(sandbox: Sandbox) -> None:
    sandbox.may_leave = True
    ended = sandbox.measure(words(sandbox), "--target", "duckdb:", "--keep", "--storage", sandbox.storage)
    assert ended.code == 0, ended.err
    (folder,) = sandbox.storage.iterdir()
    assert f"rm -r {folder}" in ended.err
    assert value(folder / "private.duckdb", "select count(*) from loadstone.t") == 1000


@pytest.mark.slow
def test_what_a_killed_run_left_is_removed_by_the_next(sandbox: Sandbox) -> None:
    folder = words(sandbox)
    text = (folder / "scenario.toml").read_text()
    endless = '"select max(a.i * b.i) from range(10000000) a(i), range(10000000) b(i)"'
    (folder / "scenario.toml").write_text(text.replace("setup = [", f"setup = [{endless},"))
    running = sandbox.begin(folder, "--target", "duckdb:", "--storage", sandbox.storage)
    running.wait_for(lambda: list(sandbox.storage.glob("*/private.duckdb")), "the private file")
    running.send(signal.SIGKILL)
    running.finish()
    (left,) = sandbox.storage.iterdir()
    (folder / "scenario.toml").write_text(text)
    again = sandbox.measure(folder, "--target", "duckdb:", "--storage", sandbox.storage, out="again")
    assert again.code == 0, again.err
    assert not left.exists()
    assert any(str(left) in event["message"] for event in again.events)


@pytest.mark.slow
@pytest.mark.parametrize("delay_s", [0.0, 0.02, 1.0])
def test_ctrl_c_ends_a_statement_and_leaves_nothing(sandbox: Sandbox, delay_s: float) -> None:
    folder = words(sandbox)
    text = (folder / "scenario.toml").read_text()
    endless = '"select max(a.i * b.i) from range(10000000) a(i), range(10000000) b(i)"'
    (folder / "scenario.toml").write_text(text.replace("setup = [", f"setup = [{endless},"))
    running = sandbox.begin(folder, "--target", "duckdb:")
    running.wait_for(lambda: list(running.folder.glob("targets/*/phases/*/phase.json")), "the phase")
    time.sleep(delay_s)  # the phase has just begun, or its statement is running
    running.send(signal.SIGINT)
    ended = running.finish()
    assert ended.code == 130, ended.err
    assert ended.run["state"] == "interrupted"

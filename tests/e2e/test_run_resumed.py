"""Runs that are gone on with after a kill: what is kept, what is done again, what is refused."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from support.sandbox import COUNTED, INSERT, change_plan, read_json, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Database, Ended, Sandbox

QUICK = COUNTED.format(seconds=0.5)


def three_drives(sandbox: Sandbox) -> Path:
    return sandbox.scenario(
        ("first", INSERT, QUICK), ("second", INSERT, COUNTED.format(seconds=60)), ("third", INSERT, QUICK)
    )


def killed(sandbox: Sandbox, scenario: Path, *arguments: object) -> Ended:
    """Kill a run in the middle of its second drive."""
    running = sandbox.begin(scenario, *arguments)
    running.wait_for_drive("second")
    running.send(signal.SIGKILL)
    ended = running.finish()
    assert ended.code == -signal.SIGKILL
    return ended


def shorten(scenario: Path, ended: Ended) -> None:
    """Let the second drive end soon, in scenario and plan: a user cannot, but need not wait for it either."""
    toml = scenario / "scenario.toml"
    toml.write_text(toml.read_text().replace("duration_s = 60", "duration_s = 1"))
    change_plan(ended.folder, '"duration_s": 60', '"duration_s": 1')


def resume(sandbox: Sandbox, *arguments: object) -> Ended:
    given = ("run", *arguments, "--size", "tiny", "--no-calibrate", "--resume", "out")
    return sandbox.run(*given)


def test_a_killed_run_goes_on_with_the_phase_that_was_under_way(sandbox: Sandbox, database: Database) -> None:
    scenario = three_drives(sandbox)
    before = killed(sandbox, scenario, "--target", database.url)
    database.wait_until_left()
    first = before.phases()["first"]
    shorten(scenario, before)
    ended = resume(sandbox, scenario, "--target", database.url)
    assert ended.code == 0, ended.err
    phases = ended.phases()
    assert [phase["state"] for phase in phases.values()] == ["complete"] * 4
    assert phases["first"] == first
    assert phases["second"]["start_ns"] > first["end_ns"]
    assert phases["second"]["checks"][0]["passed"]
    (again,) = before.folder.glob("targets/*/phases/*-second/before-1")
    assert (again / "series.jsonl").stat().st_size > 0
    assert ended.run["state"] == "complete"
    assert len(ended.run["resumed_at"]) == 1
    assert ended.run["duration_s"] > (phases["third"]["end_ns"] - first["start_ns"]) / 1e9
    assert any(
        "2 of 4 phases are done; what it had created is still on the server" in note
        for note in ended.told("note")
    )
    assert any("starts again from its beginning" in note for note in ended.told("note"))
    assert "Incomplete" not in ended.report
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0


def test_what_was_prepared_and_is_gone_is_prepared_again(sandbox: Sandbox, database: Database) -> None:
    """After Ctrl-C our schema is dropped: the table of the drives is made anew, what was measured is kept."""
    scenario = three_drives(sandbox)
    running = sandbox.begin(scenario, "--target", database.url)
    running.wait_for_drive("second")
    running.send(signal.SIGINT)
    before = running.finish()
    assert before.code == 130, before.err
    old = before.phases()
    shorten(scenario, before)
    ended = resume(sandbox, scenario, "--target", database.url)
    assert ended.code == 0, ended.err
    phases = ended.phases()
    assert [phase["state"] for phase in phases.values()] == ["complete"] * 4
    assert phases["first"] == old["first"]
    assert phases["prepare"]["start_ns"] > old["prepare"]["start_ns"]
    assert any("the server has nothing of it" in note for note in ended.told("note"))


def test_a_run_that_is_complete_is_left_alone(sandbox: Sandbox, database: Database) -> None:
    scenario = sandbox.inserts(0.5)
    done = sandbox.measure(scenario, "--target", database.url)
    assert done.code == 0, done.err
    was = {path: path.read_bytes() for path in done.folder.rglob("*") if path.is_file()}
    ended = resume(sandbox, scenario, "--target", database.url)
    assert ended.code == 1, ended.err
    assert "is complete: there is nothing to resume" in ended.err
    assert "Remove --resume" in ended.err
    assert {path: path.read_bytes() for path in done.folder.rglob("*") if path.is_file()} == was


def test_a_run_that_is_under_way_is_left_alone(sandbox: Sandbox, database: Database) -> None:
    scenario = sandbox.inserts(60)
    running = sandbox.begin(scenario, "--target", database.url)
    running.wait_for_drive("insert")
    ended = resume(sandbox, scenario, "--target", database.url)
    assert ended.code == 1, ended.err
    assert f"is still running, as process {running.process.pid}" in ended.err
    running.send(signal.SIGINT)
    assert running.finish().code == 130


def test_a_folder_that_is_no_run_is_refused(sandbox: Sandbox, database: Database) -> None:
    ended = resume(sandbox, sandbox.inserts(1), "--target", database.url)
    assert ended.code == 1, ended.err
    assert "the folder 'out' does not exist" in ended.err


def test_other_arguments_are_refused_by_name(sandbox: Sandbox, database: Database) -> None:
    scenario = three_drives(sandbox)
    before = killed(sandbox, scenario, "--target", database.url)
    run = read_json(before.folder / "run.json")
    cases = [
        (("--target", database.url, "--seed", "7"), "the run's seed: 1 then, 7 now"),
        (("--target", database.url, "--repeat", "2"), "the run's repeats: 1 then, 2 now"),
        (("--target", "duckdb:"), "then, 'duckdb (duckdb)' now"),
        (("--target", database.socket_url), "the run's targets: '127-0-0-1-test"),
        (
            ("--target", database.url, "--setting", "work_mem=1MB"),
            "the option settings: {} then, {'work_mem': '1MB'} now",
        ),
        (("--target", database.url, "--io", "epoll"), "the option io: 'auto' then, 'epoll' now"),
    ]
    for arguments, words in cases:
        ended = resume(sandbox, scenario, *arguments)
        assert ended.code == 1, ended.err
        assert "had other options" in ended.err
        assert words in " ".join(ended.err.split()), ended.err
        assert "they are read from the folder. It was begun with: loadstone run" in " ".join(
            ended.err.split()
        )
    toml = scenario / "scenario.toml"
    toml.write_text(toml.read_text().replace("clients = 2", "clients = 3"))
    ended = resume(sandbox, scenario, "--target", database.url)
    assert "the phase 002-first has changed" in " ".join(ended.err.split())
    assert read_json(before.folder / "run.json") == run
    assert before.phases()["second"]["state"] == "running"
    database.execute("drop schema loadstone cascade")


def test_a_resumed_run_can_be_killed_and_gone_on_with_again(sandbox: Sandbox, database: Database) -> None:
    scenario = three_drives(sandbox)
    before = killed(sandbox, scenario, "--target", database.url)
    database.wait_until_left()
    given = ("run", scenario, "--target", database.url, "--size", "tiny", "--no-calibrate", "--resume", "out")
    folder = next(before.folder.glob("targets/*/phases/*-second"))
    series = folder / "series.jsonl"

    def under_way(attempt: int) -> bool:
        return (folder / f"before-{attempt}").exists() and series.exists() and series.stat().st_size > 0

    running = sandbox.start(*given)
    running.wait_for(lambda: under_way(1), "the drive is under way again")
    running.send(signal.SIGKILL)
    running.finish()
    wait_until(lambda: not list(sandbox.processes()), "it is gone")
    database.wait_until_left()
    running = sandbox.start(*given)
    running.wait_for(lambda: under_way(2), "the drive is under way for the third time")
    running.send(signal.SIGINT)
    ended = running.finish()
    assert ended.code == 130, ended.err
    assert len(ended.run["resumed_at"]) == 2
    assert [phase["state"] for phase in ended.phases().values()] == ["complete", "complete", "interrupted"]


@pytest.mark.slow
def test_the_data_of_a_killed_runs_private_server_are_gone_on_with(sandbox: Sandbox) -> None:
    scenario = three_drives(sandbox)
    before = killed(sandbox, scenario)
    shorten(scenario, before)
    first = before.phases()["first"]
    ended = resume(sandbox, scenario)
    assert ended.code == 0, ended.err
    assert ended.phases()["first"] == first
    assert any("what it had created is still on the server" in note for note in ended.told("note"))
    assert [phase["state"] for phase in ended.phases().values()] == ["complete"] * 4

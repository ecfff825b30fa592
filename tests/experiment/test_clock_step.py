"""The wall clock is set while servers are measured: times that have passed stay what they were."""

from __future__ import annotations

import json
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from click.testing import CliRunner
from support.clocks import let_wall_clock_leap
from support.interrupts import interrupt_at
from support.sandbox import INSERT, PHASE, SCENARIO

from loadstone.ab import trial as trials
from loadstone.ab.documents import Experiment
from loadstone.cli.group import loadstone
from loadstone.crash import session as sessions
from loadstone.crash.documents import Crash
from loadstone.errors import ExitCode
from loadstone.results.documents.summary import Summary

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = ("--setting=fsync=off", "--setting=shared_buffers=128MB")


@pytest.fixture(autouse=True)
def leaping(own_registry: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    let_wall_clock_leap(monkeypatch)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "insert.pgbench").write_text(INSERT)
    phase = PHASE.format(id="insert", script="insert.pgbench", settings="duration_s = 1")
    (folder / "scenario.toml").write_text(SCENARIO.format(name="own", phases=phase))
    return folder


def invoke(*arguments: object) -> tuple[int, str, float]:
    """Run a command in this process; returns its status, what it says, and the seconds it took."""
    begin = monotonic()
    ended = CliRunner().invoke(loadstone, [str(one) for one in arguments])
    return ended.exit_code, ended.output, monotonic() - begin


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_trials_and_their_runs_last_as_long_as_they_last(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    given = ["--a", "pg", "--b", "pg", "--b-setting", "work_mem=8MB", "--no-aa", "--max-blocks", "2"]
    interrupt_at(monkeypatch, trials, "measure", 2)
    code, said, seconds = invoke("ab", scenario, *given, *SETTINGS, "--out", out)
    assert code == ExitCode.INTERRUPTED, said
    (trial,) = msgspec.convert(read(out / "ab.json"), Experiment).trials
    assert 1 <= trial.seconds <= seconds
    folder = out / trial.folder
    assert 1 <= read(folder / "run.json")["duration_s"] <= trial.seconds
    summary = msgspec.convert(read(folder / "summary.json"), Summary)
    (phase,) = (one for one in summary.phases if one.id == "insert")
    assert phase.drive is not None
    assert phase.drive.tps is not None
    assert 1 <= phase.drive.measured_s <= trial.seconds
    assert phase.drive.counts.done > 0


def test_crashes_are_timed_without_the_wall_clock(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_AFTER_S", 0.1)
    monkeypatch.setattr(sessions, "_AFTER_MOST_S", 0.6)
    out = tmp_path / "out"
    code, said, seconds = invoke("crash", scenario, "--cycles=1", "--window=0.6", *SETTINGS, "--out", out)
    assert code == ExitCode.OK, said
    document = msgspec.convert(read(out / "crash.json"), Crash)
    assert document.verdict == "kept"
    (cycle,) = document.cycles
    seen = cycle.recovery
    assert cycle.found is not None
    assert cycle.found.acknowledged > 0
    for passed in (seen.down_s, seen.connection_s):
        assert passed is not None
        assert 0 < passed < seconds
    assert seen.wal_bytes is not None
    assert abs(seen.clock_step_s or 0) > 3600
    assert (seen.replay_s, seen.before_replay_s) == (None, None), "the log has times of the wall clock"
    assert "as the clock was set by" in " ".join(said.split())

"""`--verify`: a second run into partitions of the size that the first one advises."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from support.sandbox import read_json
from support.summaries import summarise, typed
from support.table_load_folders import index_import

from loadstone.advice import advised_rows, verify
from loadstone.cli.terminal import Quiet
from loadstone.errors import ExitCode
from loadstone.results.folder import RunFolder
from loadstone.run import Outcome, Request
from loadstone.scenario.scenario import find_scenario

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Database, Sandbox

    from loadstone.plan.model import PlannedPhase

SCENARIO = """
id = "own"
title = "own"
version = "1"
why = "A test."
parameters.partition_rows = { type = "integer", default = 0, minimum = 0, help = "Rows of a partition" }

[[phase]]
id = "import"
kind = "load"
title = "import"
data = { set = "import", rows = 60000 }
table = { name = "test", partition_rows = "{{ partition_rows }}", partition_column = "l" }
step_rows = 2000
batch_rows = 100
"""


class Listening(Quiet):
    """Remembers what is said, and interrupts the first load that has come to its third step."""

    def __init__(self, *, interrupts: bool = False) -> None:
        self.said_words: list[str] = []
        self.interrupts = interrupts

    def said(self, message: str) -> None:
        self.said_words.append(message)

    def progressed(self, _target: str, _phase: PlannedPhase, progress: dict[str, Any]) -> None:
        if self.interrupts and len(progress.get("steps", ())) >= 2:
            self.interrupts = False
            os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def advised(tmp_path: Path) -> Outcome:
    """A run that has ended well, with knees in its curves."""
    return Outcome(RunFolder.open(index_import(tmp_path / "out")), ExitCode.OK)


@pytest.fixture
def request_of(tmp_path: Path, database: Database) -> Request:
    """What such a run was requested: of the scenario that follows the advice, a small one."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "scenario.toml").write_text(SCENARIO)
    scenario = find_scenario(str(folder))
    return Request([scenario], [database.socket_url], size="tiny", calibrate=False)


def bulk_of(folder: Path) -> dict[str, Any]:
    (target,) = read_json(folder / "plan.json")["targets"]
    (phase,) = target["phases"]
    found: dict[str, Any] = phase["workload"]["load"]
    return found


def phase_of(folder: Path, name: str) -> dict[str, Any]:
    (path,) = folder.glob(f"targets/*/phases/*-import*/{name}")
    return read_json(path)


def test_the_second_run_gets_partitions_of_the_advised_size(advised: Outcome, request_of: Request) -> None:
    rows = advised_rows(typed(summarise(advised.folder.path)))
    assert rows is not None
    listener = Listening()
    outcome = verify(request_of, advised, listener)
    assert outcome.exit_code is ExitCode.OK, outcome.trouble
    assert outcome.folder is advised.folder
    (words,) = listener.said_words[:1]
    assert words.startswith("verifying: the same rows into partitions of ")
    inside = advised.folder.path / "verify"
    assert bulk_of(inside)["table"]["partition_rows"] == rows
    made = [statement["text"] for statement in phase_of(inside, "phase.json")["statements"]]
    assert any("partition by range" in text.lower() for text in made)
    assert phase_of(inside, "drive.json")["load"]["verified"] is True
    verify(request_of, outcome, again := Listening())
    assert again.said_words == []


def test_a_broken_verification_is_gone_on_with(advised: Outcome, request_of: Request) -> None:
    inside = advised.folder.path / "verify"
    broken = verify(request_of, advised, Listening(interrupts=True))
    assert broken.exit_code is ExitCode.INTERRUPTED
    assert read_json(inside / "run.json")["state"] == "interrupted"
    outcome = verify(request_of, advised, Listening())
    assert outcome.exit_code is ExitCode.OK, outcome.trouble
    run = read_json(inside / "run.json")
    assert run["state"] == "complete"
    assert len(run["resumed_at"]) == 1
    assert phase_of(inside, "phase.json")["state"] == "complete"
    assert phase_of(inside, "drive.json")["load"]["verified"] is True


def test_a_run_that_ended_badly_is_not_verified(advised: Outcome, request_of: Request) -> None:
    failed = Outcome(advised.folder, ExitCode.FAILED)
    assert verify(request_of, failed, listener := Listening()) is failed
    assert listener.said_words == ["the run did not succeed: its advice is not verified"]
    assert not (advised.folder.path / "verify").exists()


def test_a_run_without_a_knee_says_that_there_is_nothing_to_verify(
    tmp_path: Path, request_of: Request
) -> None:
    flat = Outcome(RunFolder.open(index_import(tmp_path / "flat", flat=True)), ExitCode.OK)
    assert verify(request_of, flat, listener := Listening()) is flat
    assert listener.said_words == ["no partitions are advised: there is nothing to verify"]
    assert not (flat.folder.path / "verify").exists()


@pytest.mark.slow
def test_index_import_is_verified_or_says_why_not(sandbox: Sandbox, database: Database) -> None:
    """Whether so few rows have a knee is a matter of luck; what is done and said about it is not."""
    given = ("index-import", "--target", database.url, "--set", "indexes=1", "--verify")
    ended = sandbox.begin(*given).finish()
    assert ended.code == 0, ended.err
    rows = advised_rows(typed(ended.summary))
    inside = ended.folder / "verify"
    if rows is None:
        assert "no partitions are advised: there is nothing to verify" in ended.err
        assert not inside.exists()
        assert ended.summary["verification"] is None
        return
    assert "verifying: the same rows into partitions of" in ended.err
    assert read_json(inside / "run.json")["state"] == "complete"
    phases = ended.summary["verification"]["phases"]
    assert phases
    assert all(phase["sentence"] for phase in phases)
    assert "Verified with the partitioned table" in ended.report

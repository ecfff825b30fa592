"""What every experiment does: its document after each trial, and an end by any way."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from support.sandbox import fill, small_disk

from loadstone.errors import ExitCode, LoadstoneError, RunFailedError
from loadstone.experiment.documents import Head, begun
from loadstone.experiment.experiment import Experiment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loadstone.signals import Signals


class Sums(Head, kw_only=True):
    """sums.json."""

    found: list[int] = []  # noqa: RUF012 - msgspec copies it
    total: int = 0


@dataclass
class Adding(Experiment[Sums]):
    """Trials that are numbers, or whatever else comes of calling them."""

    NAME: ClassVar[str] = "sums.json"
    path: Path
    trials: list[Callable[[], int]]
    said: list[tuple[str, int]] = field(default_factory=list, init=False)
    """With how many trials were in the file when it was said."""

    def __post_init__(self) -> None:
        self.say = lambda line: self.said.append((line, len(read(self.path)["found"])))

    @property
    def folder(self) -> Path:
        return self.path

    @property
    def has_measured(self) -> bool:
        return bool(self.document.found)

    def before(self) -> list[str]:
        return []

    def settle(self) -> None:
        self.document.total = sum(self.document.found)

    def perform(self, signals: Signals) -> None:
        for trial in self.trials:
            signals.check()
            self.document.found.append(trial())
            self.after(f"trial {len(self.document.found)}")


def read(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "sums.json").read_text()))


def adding(folder: Path, *trials: Callable[[], int]) -> Adding:
    folder.mkdir(exist_ok=True)
    command = ["loadstone", "add", "postgres://me:secret@host/db"]
    document = begun(Sums, "sums", "2026-01-01T00:00:00Z", command, format=1, scenario="s")
    return Adding(document, print, folder, [*trials])


def refused() -> int:
    raise LoadstoneError("it cannot work", "Do otherwise.")


def failed() -> int:
    raise RunFailedError("the server died", "Look at its log.")


def interrupted() -> int:
    os.kill(os.getpid(), signal.SIGINT)
    return 5


def test_the_document_is_on_disk_before_a_trial_is_shown(tmp_path: Path) -> None:
    experiment = adding(tmp_path, lambda: 2, lambda: 3)
    experiment.run()
    assert experiment.said == [("trial 1", 1), ("trial 2", 2)]
    found = read(tmp_path)
    assert (found["state"], found["found"], found["total"]) == ("complete", [2, 3], 5)
    assert found["ended_at"] is not None
    assert "secret" not in (tmp_path / "sums.json").read_text()
    assert (experiment.exit_code, experiment.trouble) == (ExitCode.OK, None)


@pytest.mark.parametrize(
    ("end", "state", "reason", "code"),
    [
        (interrupted, "interrupted", "stopped by SIGINT", ExitCode.INTERRUPTED),
        (failed, "failed", "the server died", ExitCode.FAILED),
        (refused, "failed", "it cannot work", ExitCode.BAD_INPUT),
    ],
)
def test_what_was_found_before_an_end_stays(
    tmp_path: Path, end: Callable[[], int], state: str, reason: str, code: ExitCode
) -> None:
    experiment = adding(tmp_path, lambda: 2, end, lambda: 3)
    experiment.run()
    found = read(tmp_path)
    assert (found["state"], found["reason"], found["total"]) == (state, reason, 2)
    assert experiment.exit_code is code
    assert (experiment.trouble is None) == (state == "interrupted")


def test_what_cannot_work_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(LoadstoneError, match="it cannot work"):
        adding(tmp_path / "out", refused).run()
    assert not (tmp_path / "out").exists()
    adding(tmp_path / "out", failed).run()
    assert read(tmp_path / "out")["state"] == "failed"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_disk_that_is_full_at_the_end_does_not_take_the_answer(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:

        def filled() -> int:
            fill(disk, 0)
            return 7

        experiment = adding(disk / "out", lambda: 2, filled)
        experiment.run()
        assert experiment.document.total == 9
        assert experiment.exit_code is ExitCode.FAILED
        assert experiment.trouble is not None
        assert read(disk / "out")["total"] == 2

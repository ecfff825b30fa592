"""Files of data sets, and a signal at the worst moment."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from loadstone import _core
from loadstone.signals import InterruptedRun, Signals
from loadstone.workload.tsbs import generation
from loadstone.workload.tsbs.files import write_tables

DATA = {
    "kind": "tsbs",
    "use_case": "cpu-only",
    "seed": 1,
    "scale": 2,
    "start_ns": 0,
    "end_ns": 60_000_000_000,
    "interval_ns": 10_000_000_000,
    "initial_scale": 2,
    "max_points": 0,
    "max_metrics": 0,
    "group": 0,
    "groups": 1,
}


def test_a_signal_right_after_the_folder_was_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folder = Path.mkdir

    def make_and_interrupt(path: Path, *arguments: Any, **named: Any) -> None:
        make_folder(path, *arguments, **named)
        os.kill(os.getpid(), signal.SIGINT)

    with Signals() as signals:
        monkeypatch.setattr(Path, "mkdir", make_and_interrupt)
        with pytest.raises(InterruptedRun):
            write_tables(DATA, "parquet", str(tmp_path / "data"), signals)
    assert list(tmp_path.iterdir()) == []


class InterruptedStart:
    """A generation whose start is followed by a signal at once."""

    real = _core.Generation

    def __init__(self, specification: str) -> None:
        self._generation = self.real(specification)

    def start(self) -> None:
        self._generation.start()
        os.kill(os.getpid(), signal.SIGINT)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generation, name)


def test_a_signal_right_after_the_file_was_opened_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_core, "Generation", InterruptedStart)
    specification = {
        "data": DATA | {"scale": 1000, "end_ns": 10**18},
        "format": "timescaledb",
        "output": {"path": str(tmp_path / "data")},
        "compress": "none",
    }
    with Signals() as signals:
        account = generation.make(specification, signals)
    assert account["state"] == "interrupted"
    assert list(tmp_path.iterdir()) == []

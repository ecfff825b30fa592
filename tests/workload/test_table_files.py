"""Folders of Parquet and Arrow files, and a signal at the worst moment."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from loadstone.signals import InterruptedRun, Signals
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

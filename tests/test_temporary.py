"""Temporary folders go whatever ends their use."""

from __future__ import annotations

import shutil
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from loadstone.signals import InterruptedRun
from loadstone.temporary import temporary_folder


def test_a_folder_is_private_and_goes_with_its_files(tmp_path: Path) -> None:
    with temporary_folder("one-", tmp_path) as folder:
        assert folder.parent == tmp_path
        assert folder.name.startswith("one-")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "below").mkdir()
        (folder / "below" / "file").write_text("text")
    assert list(tmp_path.iterdir()) == []


def test_a_signal_just_after_a_folder_was_made_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Path.mkdir

    def interrupted(self: Path, *given: Any, **named: Any) -> None:
        make(self, *given, **named)
        raise InterruptedRun(signal.SIGINT)

    monkeypatch.setattr(Path, "mkdir", interrupted)
    with pytest.raises(InterruptedRun), temporary_folder("one-", tmp_path):
        pytest.fail("the folder was used")
    assert list(tmp_path.iterdir()) == []


def test_a_signal_while_a_folder_is_removed_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, calls = shutil.rmtree, []

    def interrupted(path: Path, **named: Any) -> None:
        calls.append(path)
        if len(calls) == 1:
            raise InterruptedRun(signal.SIGTERM)
        remove(path, **named)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(InterruptedRun), temporary_folder("one-", tmp_path) as folder:
        (folder / "file").write_text("text")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_somebody_else_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = Path.mkdir

    def taken(self: Path, *given: Any, **named: Any) -> None:
        make(self)
        make(self, *given, **named)

    monkeypatch.setattr(Path, "mkdir", taken)
    with pytest.raises(FileExistsError), temporary_folder("one-", tmp_path):
        pytest.fail("the folder was used")
    assert len(list(tmp_path.iterdir())) == 1

"""Files for results are tried before anything is asked of a server, and left as they were."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from loadstone.personalities.tsbs import main
from loadstone.results.json_files import try_to_write

if TYPE_CHECKING:
    from pathlib import Path

NOBODY_LISTENS = "--target=postgres://u@127.0.0.1:1/x"
"""A command that gets as far as the target says that the connection is refused."""
COMMANDS = {
    "load": ("load", NOBODY_LISTENS, "--use-case=iot", "--seed=1"),
    "run-queries": ("run-queries", NOBODY_LISTENS, "--file=/nowhere/queries"),
}


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        ("load", "results-file"),
        ("load", "out"),
        ("run-queries", "results-file"),
        ("run-queries", "hdr-latencies"),
        ("run-queries", "answers"),
        ("run-queries", "out"),
    ],
)
@pytest.mark.parametrize("path", ["/proc/none/x", "/dev/null/x"])
def test_what_cannot_be_written_is_told_before_the_run(command: str, flag: str, path: str) -> None:
    err: list[str] = []
    assert main([*COMMANDS[command], f"--{flag}={path}"], err.append, err.append) == 1
    said = "".join(err)
    assert f"{path} cannot be written: " in said
    assert f"--{flag}" in said
    assert "connection refused" not in said


def test_a_try_leaves_nothing_and_changes_nothing(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("kept")
    try_to_write(new)
    try_to_write(old)
    assert not new.exists()
    assert old.read_text() == "kept"
    with pytest.raises(IsADirectoryError):
        try_to_write(tmp_path)


def test_a_pipe_is_not_opened_by_the_try(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    try_to_write(pipe)  # opening it would wait for a reader
    assert stat.S_ISFIFO(pipe.stat().st_mode)

"""Damaged run folders end in an error that names the file and the place: no traceback, and no wait."""

import json
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.run_folders import Phase, Run, build
from support.summaries import summarise

from loadstone.errors import LoadstoneError

PHASE = "targets/pg18/phases/001-one-table-single"
DOCUMENTS = (
    "run.json",
    "plan.json",
    "environment.json",
    "targets/pg18/target.json",
    f"{PHASE}/phase.json",
    f"{PHASE}/drive.json",
)
LINES = ("events.jsonl", "targets/pg18/monitor.jsonl", f"{PHASE}/series.jsonl")
FILES = (*DOCUMENTS, *LINES, f"{PHASE}/latency.hlog")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    event = {"t_ns": 1, "level": "info", "kind": "note", "message": "begun"}
    run = Run(phases=(Phase(seconds=4, warmup=1, tps=50.0),), events=(event, event))
    return build(tmp_path / "run", run)


def refused(folder: Path, name: str, words: str) -> None:
    with pytest.raises(LoadstoneError, match=words) as caught:
        summarise(folder)
    assert name in str(caught.value)


def socket_at(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as end:
        os.chdir(path.parent)  # a socket's address has about a hundred bytes
        end.bind(path.name)


@pytest.mark.parametrize("name", FILES[1:])
@pytest.mark.parametrize(
    ("place", "words"),
    [
        (os.mkfifo, "a named pipe, not a regular file"),
        (socket_at, "cannot be read|a socket"),
        (lambda path: path.symlink_to("/dev/zero"), "a device, not a regular file"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
        (Path.mkdir, "a folder, not a regular file"),
    ],
    ids=["pipe", "socket", "device", "loop", "folder"],
)
def test_what_is_no_file_is_not_read(
    folder: Path, name: str, place: Callable[[Path], None], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / name).unlink()
    place(folder / name)
    refused(folder, Path(name).name, words)


def test_a_run_json_that_is_a_pipe_is_named(folder: Path) -> None:
    (folder / "run.json").unlink()
    os.mkfifo(folder / "run.json")
    refused(folder, "run.json", "a named pipe, not a regular file")


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"a":' * 100_000, "not JSON|nested more than"),
        (b'{"a":' + b"[" * 900 + b"]" * 900 + b"}", "nested more than 64 levels"),
        (b'{"a":' + b"9" * 400 + b"}", "a number is too large"),
        (b'{"a":1e999}', "a number is too large"),
        (b'{"a":NaN}', "NaN is not a JSON number"),
        (b'{"a":"\xff"}', "not JSON"),
    ],
)
def test_documents_that_are_no_json_of_ours(folder: Path, name: str, text: bytes, words: str) -> None:
    (folder / name).write_bytes(text)
    refused(folder, name, words)


@pytest.mark.parametrize("name", LINES)
def test_a_broken_line_is_named_by_its_number(folder: Path, name: str) -> None:
    first, *rest = (folder / name).read_bytes().splitlines(keepends=True)
    (folder / name).write_bytes(b"".join([first, b'{"t_ns":NaN}\n', *rest]))
    refused(folder, f"{name}, line 2", "NaN")


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("run.json", "origin_ns", "early"),
        ("run.json", "prices", [1]),
        ("plan.json", "targets.0.phases", {"key": 1}),
        ("environment.json", "warnings", ["hot"]),
        ("targets/pg18/target.json", "durability", "all of it"),
        (f"{PHASE}/phase.json", "state", "done"),
        (f"{PHASE}/phase.json", "checks.0", None),
        (f"{PHASE}/phase.json", "headline", "warnings"),
        (f"{PHASE}/drive.json", "counts.done", "many"),
        (f"{PHASE}/drive.json", "counts.done", -1),
        (f"{PHASE}/drive.json", "start_ns", 2**63),
        (f"{PHASE}/drive.json", "statements", {}),
        (f"{PHASE}/drive.json", "outages", [{"end_ns": 1}]),
    ],
)
def test_values_of_another_type(folder: Path, name: str, path: str, value: object) -> None:
    document: Any = json.loads((folder / name).read_text())
    *way, last = [int(key) if key.isdecimal() else key for key in path.split(".")]
    inner = document
    for key in way:
        inner = inner[key]
    inner[last] = value
    (folder / name).write_text(json.dumps(document))
    refused(folder, name, re.escape("- at `$." + path.partition(".")[0]))


def test_names_that_are_no_text_are_refused(folder: Path) -> None:
    (folder / "targets" / os.fsdecode(b"\xff")).mkdir()
    refused(folder, "targets", "not of this run")


def test_a_run_that_verifies_itself_is_summarised_once(folder: Path) -> None:
    (folder / "verify").symlink_to(".")
    assert summarise(folder)["verification"]["state"] == "complete"


def test_a_folder_that_may_not_be_read_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refuse)  # root may read everything
    refused(folder, "targets", "cannot be read: Permission denied")

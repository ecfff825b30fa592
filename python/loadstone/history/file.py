"""history.jsonl: read, and appended to by several processes at once.

The file only grows: a line that replaces another one is appended, and the last one of a run and target
counts. So lines that this version does not understand stay as they are.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from typing import TYPE_CHECKING

import msgspec

from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.history.documents import FORMAT, HistoryLine
from loadstone.results.document_reader import decode, exists, read_bytes, typed
from loadstone.results.json_files import redact_json, to_json
from loadstone.visible import visible_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_BLOCK = 1 << 16


def read(path: Path) -> tuple[list[HistoryLine], list[str]]:
    """Return the lines of a history, oldest run first, and what is wrong with those that were left out.

    Raises LoadstoneError when the file is missing, unreadable or larger than 256 MiB.
    """
    if not exists(path):
        raise LoadstoneError(
            f"'{path}' does not exist", "`loadstone history add DIR` makes it; --history names another file."
        )
    found, wrong = _parsed(read_bytes(path), str(path))
    return sorted(found, key=HistoryLine.at), wrong


def _parsed(content: bytes, name: str) -> tuple[list[HistoryLine], list[str]]:
    found: dict[object, HistoryLine] = {}
    wrong = []
    for number, text in enumerate(content.split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            line = _line(text, f"{name}, line {number}")
        except LoadstoneError as error:
            wrong.append(error.message)
            continue
        found[line.key] = line
    return list(found.values()), wrong


def _line(text: bytes, place: str) -> HistoryLine:
    document = decode(text, place)
    version = document.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise LoadstoneError(f"{place}: written by a newer version of Loadstone (format {version})")
    return typed(visible_tree(document), place, HistoryLine)


def append(path: Path, lines: Sequence[HistoryLine], *, replace: bool = False) -> None:
    """Append lines, all or none. Others that append at the same time wait.

    Raises LoadstoneError when a run is already there, unless `replace`; RunFailedError when the file cannot
    be written: it then has the lines that it had.
    """
    text = b"".join(
        redact_json(to_json(msgspec.to_builtins(line))).encode("utf-8", "backslashreplace") + b"\n"
        for line in lines
    )
    with _locked(path) as handle:
        if not replace:
            _refuse_twice(path, lines)
        with _explained(path):
            _cut_torn_line(handle)
            _write(handle, text)


def _refuse_twice(path: Path, lines: Sequence[HistoryLine]) -> None:
    known = {line.key for line in _parsed(read_bytes(path), str(path))[0]}
    for line in lines:
        if line.key in known:
            raise LoadstoneError(
                f"'{path}' already has the run {line.run} of {line.target.id}; nothing was added",
                "Add --replace if the new line is to count.",
            )
        known.add(line.key)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int]:
    with _explained(path):
        handle = os.open(
            path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, 0o644
        )
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise LoadstoneError(f"'{path}' is not a regular file", "Name another file with --history.")
        with _explained(path):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        hint = "Free some space there" if full else "Name another file with --history"
        raise RunFailedError(
            f"'{path}' cannot be written: {error.strerror or error}; nothing was added", f"{hint}."
        ) from error


def _cut_torn_line(handle: int) -> None:
    """Remove a half line that a killed writer left; a whole last line without its end gets it."""
    size = os.fstat(handle).st_size
    begin = _last_line(handle, size)
    if begin == size:
        return
    try:
        decode(os.pread(handle, size - begin, begin), "")
    except LoadstoneError:
        os.ftruncate(handle, begin)
    else:
        os.write(handle, b"\n")


def _last_line(handle: int, size: int) -> int:
    """Return where the text after the last line end begins."""
    end = size
    while end > 0:
        begin = max(0, end - _BLOCK)
        newline = os.pread(handle, end - begin, begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end = begin
    return 0


def _write(handle: int, text: bytes) -> None:
    """Write all, or leave the file as it was."""
    size = os.fstat(handle).st_size
    rest = memoryview(text)
    try:
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
    except BaseException:
        os.ftruncate(handle, size)
        raise

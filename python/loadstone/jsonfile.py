"""JSON documents and JSON lines on disk that a kill at any moment or a full disk leaves readable."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from loadstone.errors import LoadstoneError, RunFailedError

Document = dict[str, Any]


def to_json(value: object, indent: int | None = None) -> str:
    """Return JSON text of plain values, dataclasses, mappings and paths.

    Not-a-number and infinity are refused (ValueError): no JSON reader need know them.
    """
    separators = (",", ":") if indent is None else None
    options: Document = {"default": _plain, "allow_nan": False, "indent": indent, "separators": separators}
    text = json.dumps(value, ensure_ascii=False, **options)
    try:
        text.encode()
    except UnicodeEncodeError:  # a path that is not UTF-8 arrives as lone surrogates
        return json.dumps(value, ensure_ascii=True, **options)
    return text


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    message = f"{type(value).__name__} has no JSON form"
    raise TypeError(message)


def write_atomic(path: Path, text: str) -> None:
    """Replace a file as a whole: at any moment a reader sees the old text or the new one.

    Raises RunFailedError when the disk refuses; the old text then still stands.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise write_error(path, error) from error


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network filesystems cannot
            raise
    finally:
        os.close(handle)


def write_error(path: Path, error: OSError) -> RunFailedError:
    """Say in words why a file could not be written."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    hint = "Free some space there, or put the results elsewhere with --out." if full else mend(error)
    return RunFailedError(f"Cannot write {path}: {error.strerror or error}.", hint)


def mend(error: OSError) -> str:
    """Say what helps when a place for results cannot be used."""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "Choose a folder that you may write to with --out."
    return "Choose another folder with --out."


class JsonLines:
    """Appends objects to a file, each as one whole line in one write call; usable from several threads."""

    def __init__(self, path: Path) -> None:
        """Open for appending; a torn last line of an earlier writer is cut off. Raises RunFailedError."""
        self.path = path
        self.lost = 0
        self._failing = False
        self._lock = threading.Lock()
        try:
            self._handle: int | None = os.open(
                path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
            )
            self._cut_torn_line(self._handle)
        except OSError as error:
            raise write_error(path, error) from error

    @staticmethod
    def _cut_torn_line(handle: int) -> None:
        end = os.fstat(handle).st_size
        while end > 0:
            begin = max(0, end - 65536)
            newline = os.pread(handle, end - begin, begin).rfind(b"\n")
            if newline >= 0:
                end = begin + newline + 1
                break
            end = begin
        os.ftruncate(handle, end)

    def write(self, record: Mapping[str, object]) -> bool:
        """Append one line. Returns False when it was lost.

        The first line lost raises RunFailedError; those after it only count in `lost`, until a write succeeds
        again. What is in the file are whole lines in any case.
        """
        line = to_json(record).encode() + b"\n"
        with self._lock:
            error = self._append(line)
            first, self._failing = error is not None and not self._failing, error is not None
        if error is None:
            return True
        self.lost += 1
        if first:
            raise write_error(self.path, error) from error
        return False

    def _append(self, line: bytes) -> OSError | None:
        if self._handle is None:
            return OSError(errno.EBADF, "the file is closed")
        size = os.fstat(self._handle).st_size
        try:
            written = os.write(self._handle, line)
        except OSError as error:
            return error
        if written == len(line):
            return None
        try:
            os.ftruncate(self._handle, size)
        except OSError as error:
            self._shut()  # a half line now stands at the end: nothing may follow it
            return error
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _shut(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def close(self) -> None:
        """Bring the lines to the disk and close; safe to call twice."""
        with self._lock:
            if self._handle is not None:
                try:
                    os.fsync(self._handle)
                except OSError:
                    self.lost += 1
                self._shut()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_jsonl(path: Path) -> Iterator[Document]:
    """Yield the objects of a JSON-lines file; a missing file has none.

    The last line may be torn (the writer was killed) and is then left out. A broken line elsewhere raises
    LoadstoneError with its number.
    """
    try:
        with path.open("rb") as file:
            held: tuple[int, bytes] | None = None
            for number, line in enumerate(file, start=1):
                if held is not None:
                    yield _object(path, *held)
                held = (number, line)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _read_error(path, error) from error
    if held is not None:
        try:
            last = _object(path, *held)
        except LoadstoneError:
            return
        yield last


def _object(path: Path, number: int, line: bytes) -> Document:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise LoadstoneError(
            f"{path}, line {number}: not JSON ({error}).",
            "The file was changed after the run: use an untouched copy.",
        ) from error
    if not isinstance(value, dict):
        raise LoadstoneError(
            f"{path}, line {number}: not a JSON object.", "Use an untouched copy of the folder."
        )
    return value


def read_json(path: Path) -> Document:
    """Return the object in a JSON file. Raises LoadstoneError when it is missing, unreadable or broken."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise _read_error(path, error) from error
    return _object(path, 1, text)


def _read_error(path: Path, error: OSError) -> LoadstoneError:
    return LoadstoneError(
        f"Cannot read {path}: {error.strerror or error}.", "Check the path and its permissions."
    )

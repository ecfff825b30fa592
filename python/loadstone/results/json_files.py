"""JSON documents and JSON lines on disk that a kill at any moment or a full disk leaves readable.

Secrets do not get into them: whatever is written here passes `redact`.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from loadstone.errors import RunFailedError
from loadstone.results.redact import has_hints, redact, redact_document, redact_known

Document = dict[str, Any]


def to_json(value: object, indent: int | None = None) -> str:
    """Return JSON text of plain values, dataclasses, mappings and paths.

    Not-a-number and infinity are refused (ValueError): no JSON reader need know them.
    """
    options: Document = {"default": _plain, "allow_nan": False, "separators": (",", ":")}
    text = json.dumps(value, ensure_ascii=False, **options)
    try:
        encoded = text.encode()
    except UnicodeEncodeError:  # a path that is not UTF-8 arrives as lone surrogates
        text = json.dumps(value, ensure_ascii=True, **options)
        encoded = text.encode()
    if indent is None:
        return text
    import msgspec  # noqa: PLC0415 - 2 MiB, which a run without files does without

    # Python's own encoder is written in Python where it indents.
    return msgspec.json.format(encoded, indent=indent).decode()


def redact_json(text: str) -> str:
    """Return the text of a JSON document without secrets; the same text where there are none."""
    if "\\" not in text and not has_hints(text) and redact_known(text) == text:
        return text  # all strings are in it as they are, so none of them holds a secret either
    try:
        document = json.loads(text)
    except ValueError:
        return redact(text)
    shown = redact_document(document)
    if shown == document:
        return text
    indented = "\n" in text.rstrip()
    return to_json(shown, indent=1 if indented else None) + ("\n" if text.endswith("\n") else "")


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

    Secrets in JSON are hidden; a page holds none, because it is made of such documents. Raises
    RunFailedError when the disk refuses; the old text then still stands.
    """
    write_bytes(path, _hidden(path, text).encode())


def _hidden(path: Path, text: str) -> str:
    """Return the text of a file without its secrets, where it is JSON."""
    if path.suffix == ".json":
        return redact_json(text)
    if path.suffix == ".jsonl":
        return "".join(redact_json(line) + "\n" for line in text.split("\n") if line)
    return text


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file as a whole, as `write_atomic` does with text."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
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


def try_to_write(path: Path) -> None:
    """Find out whether a file can be written, and leave it as it is; raises OSError when it cannot."""
    if path.exists() and not path.is_file():
        # Whoever reads from a pipe would take its first close for the end.
        if path.is_dir() or not os.access(path, os.W_OK):
            code = errno.EISDIR if path.is_dir() else errno.EACCES
            raise OSError(code, os.strerror(code))
        return
    is_new = not path.exists()
    with path.open("ab"):
        pass
    if is_new:
        path.unlink()


def write_error(path: Path, error: OSError) -> RunFailedError:
    """Say in words why a file could not be written."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    hint = "Free some space there, or choose another folder with --out." if full else mend(error)
    return RunFailedError(f"'{path}' cannot be written: {error.strerror or error}", hint)


def mend(error: OSError) -> str:
    """Say what helps when a place for results cannot be used."""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "Choose a folder that you may write to with --out."
    return "Choose another folder with --out."


class JsonLines:
    """Appends objects to a file, each as one whole line in one write call; usable from several threads."""

    def __init__(self, path: Path, *, checksums: bool = False) -> None:
        """Open for appending; a torn last line of an earlier writer is cut off. Raises RunFailedError.

        `checksums` says that the lines hold names of files and checksums: nothing in them is redacted, for
        the digits of a checksum may hold a short secret by chance.
        """
        self.path = path
        self._hide = str if checksums else redact_json
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
        """Append one line, its secrets hidden. Returns False when it was lost.

        The first line lost raises RunFailedError; those after it only count in `lost`, until a write succeeds
        again. What is in the file are whole lines in any case.
        """
        line = self._hide(to_json(record)).encode() + b"\n"
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
            self._shut()  # a half line now is at the end: nothing may follow it
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

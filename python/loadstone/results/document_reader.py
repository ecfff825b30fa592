"""Reads the files of a run folder, which may have been damaged or replaced since they were written.

Only regular files are opened, so that a pipe or a device cannot block the reader. Every document is checked
against its type, and every refusal names the file and the place in it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import stat
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import msgspec

from loadstone.errors import LoadstoneError
from loadstone.results.documents.base import Struct
from loadstone.results.older import renamed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedReader
    from pathlib import Path

Document = dict[str, Any]
DocumentType = TypeVar("DocumentType", bound=Struct)
Line = TypeVar("Line")

DEEPEST = 64
"""Levels of nesting that a document may have: ours have about ten, and the report's libraries recurse."""
LONGEST = 1 << 28
"""Bytes that a document or a line may have."""
_HINT = "The file was changed after the run: use an untouched copy of the folder."
_MANY_BRACKETS = 2 * DEEPEST
_LONG_NUMBER = re.compile(rb"\d{19}")
_LARGEST = 1 << 64
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def exists(path: Path) -> bool:
    """Say whether there is anything of this name, a broken link included."""
    return os.path.lexists(path)


@contextlib.contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file. Raises LoadstoneError for anything else; never waits for a writer."""
    try:
        with open(path, "rb", opener=_regular) as file:
            yield file
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> LoadstoneError:
    """Return the error that says that a file or folder cannot be read."""
    return LoadstoneError(
        f"'{path}' cannot be read: {error.strerror or error}", "Check the path and its permissions."
    )


def _regular(path: str, flags: int) -> int:
    handle = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    kind = stat.S_IFMT(os.fstat(handle).st_mode)
    if kind == stat.S_IFREG:
        return handle
    os.close(handle)
    raise LoadstoneError(f"'{path}' is {_KINDS.get(kind, 'no file')}, not a regular file", _HINT)


def read_bytes(path: Path) -> bytes:
    """Return the content of a regular file. Raises LoadstoneError when it is missing, unreadable or huge."""
    with open_regular(path) as file:
        found = file.read(LONGEST + 1)
    if len(found) > LONGEST:
        raise LoadstoneError(f"'{path}' is larger than {LONGEST >> 20} MiB", _HINT)
    return found


def read_json(path: Path, kind: type[Struct] | None = None) -> Document:
    """Return the object in a JSON file. Raises LoadstoneError when it is missing, broken or not a `kind`."""
    return decode(read_bytes(path), str(path), kind)


def read_jsonl(path: Path, kind: type[Struct] | None = None) -> Iterator[Document]:
    """Yield the objects of a JSON-lines file; a missing file has none.

    The last line may be torn (the writer was killed) and is then left out. A broken line elsewhere raises
    LoadstoneError with its number.
    """
    return _decoded(path, lambda text, place: decode(text, place, kind))


def read_document(path: Path, kind: type[DocumentType]) -> DocumentType:
    """Return a document of the run folder as its type. Raises LoadstoneError as `read_json` does."""
    return typed(renamed(decode(read_bytes(path), str(path)), kind), str(path), kind)


def read_lines(path: Path, kind: type[DocumentType]) -> Iterator[DocumentType]:
    """Yield the lines of a JSON-lines file as their type; torn and broken ones as `read_jsonl` has them."""
    return _decoded(path, lambda text, place: typed(decode(text, place), place, kind))


def _decoded(path: Path, decoded: Callable[[bytes, str], Line]) -> Iterator[Line]:
    if not exists(path):
        return
    held: tuple[int, bytes] | None = None
    with open_regular(path) as file:
        number = 0
        while line := file.readline(LONGEST + 1):
            if len(line) > LONGEST:
                raise LoadstoneError(f"{path}, line {number + 1}: longer than {LONGEST >> 20} MiB", _HINT)
            if held is not None:
                yield decoded(held[1], f"{path}, line {held[0]}")
            number += 1
            held = (number, line)
    if held is None:
        return
    if held[1].endswith(b"\n"):
        yield decoded(held[1], f"{path}, line {held[0]}")
        return
    with contextlib.suppress(LoadstoneError):
        last = decoded(held[1], f"{path}, line {held[0]}")
        yield last


def decode(text: bytes, place: str, kind: type[Struct] | None = None) -> Document:
    """Return the JSON object in `text`, checked against `kind`; `place` is what an error names."""
    value = _parse(text, place)
    if not isinstance(value, dict):
        raise LoadstoneError(f"{place}: not a JSON object", _HINT)
    if kind is None:
        return value
    value = renamed(value, kind)
    validate(value, place, kind)
    return value


def validate(value: Document, place: str, kind: type[Struct]) -> None:
    """Raise LoadstoneError with the place when a document is not of its type."""
    typed(value, place, kind)


def typed(value: Document, place: str, kind: type[DocumentType]) -> DocumentType:
    """Return a document as its type. Raises LoadstoneError with the place when it is not of it."""
    try:
        found = msgspec.convert(value, kind)
        found.check()
    except ValueError as error:  # msgspec's ValidationError is one
        raise LoadstoneError(f"{place}: {error}", _HINT) from error
    return found


def _parse(text: bytes, place: str) -> object:
    try:
        value = msgspec.json.decode(text)
    except RecursionError as error:
        raise _too_deep(place) from error
    except (msgspec.MsgspecError, ValueError):
        value = _parse_slowly(text, place)
    if _LONG_NUMBER.search(text) or text.count(b"[") + text.count(b"{") > _MANY_BRACKETS:
        _inspect(value, place)
    return value


def _parse_slowly(text: bytes, place: str) -> object:
    """Parse as the standard library does: it says where a text is broken, and reads lone surrogates."""
    try:
        return _visible(json.loads(text.decode(), parse_constant=_refuse_constant, parse_float=_finite))
    except RecursionError as error:
        raise _too_deep(place) from error
    except ValueError as error:
        raise LoadstoneError(f"{place}: not JSON ({error})", _HINT) from error


def _refuse_constant(name: str) -> NoReturn:
    message = f"{name} is not a JSON number"
    raise ValueError(message)


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        message = "a number is too large"
        raise ValueError(message)
    return value


def _visible(value: object) -> object:
    r"""Write lone surrogates (bytes of a name that is not UTF-8) as `\udcff`: no file takes them."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_visible(name): _visible(item) for name, item in value.items()}
    return [_visible(item) for item in value] if isinstance(value, list) else value


def _inspect(value: object, place: str) -> None:
    """Refuse what no document of ours holds and libraries stumble over: deep nesting, and huge numbers."""
    layer: list[Any] = [value]
    for _ in range(DEEPEST):
        if any(isinstance(item, int) and abs(item) > _LARGEST for item in layer):
            raise LoadstoneError(f"{place}: a number is too large", _HINT)
        inside = (item.values() if isinstance(item, dict) else item for item in layer if _holds(item))
        layer = [item for items in inside for item in items]
        if not layer:
            return
    raise _too_deep(place)


def _holds(item: object) -> bool:
    return isinstance(item, dict | list)


def _too_deep(place: str) -> LoadstoneError:
    return LoadstoneError(f"{place}: nested more than {DEEPEST} levels deep", _HINT)

"""What a load is to load: its data as the core is told of it, its tables, its span of time.

Tables must be made before the first row is read, and standard input cannot be read twice: of that, the header
is read here and handed on with the rest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone import _core
from loadstone.errors import LoadstoneError
from loadstone.workload.tsbs.dataset import data_document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.engine.dialect.timeseries import Dataset
    from loadstone.model import Load

STANDARD_INPUT = "-"
_HEADER_MOST = 16 << 20
_LOOK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Content:
    """A data set that has been looked at; no row of it is used up."""

    data: Mapping[str, Any]
    """The core's specification."""
    dataset: Dataset
    span_us: tuple[int, int] | None
    """First and last time, microseconds since 1970, the last one exclusive; None where only reading tells."""
    about: Mapping[str, Any]
    """What tells this data from other data, without where it lies."""


def content_of(load: Load) -> Content:
    """Look at the data of a load. Raises LoadstoneError when it cannot be made or read."""
    if not isinstance(load.data, str):
        data = data_document(load.data)
        span = (data["start_ns"] // 1000, data["end_ns"] // 1000)
        return Content(data, _dataset(data), span, data)
    if load.data == STANDARD_INPUT:
        data = {"kind": "text", "fd": 0, "head": _header(0)}
        about = {"kind": "text", "header": _digest(data["head"].encode())}
        return Content(data, _header_dataset(data["head"]), None, about)
    return _file(Path(load.data))


def _file(path: Path) -> Content:
    data = {"kind": "text", "path": str(path)}
    try:
        with path.open("rb") as file:
            begin = file.read(_LOOK_BYTES)
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - _LOOK_BYTES))
            end = file.read(_LOOK_BYTES)
    except OSError as error:
        raise LoadstoneError(
            f"'{path}' cannot be read: {error.strerror}", "Use a file of TSBS's text that can be read."
        ) from error
    about = {"kind": "text", "bytes": size, "begin": _digest(begin)}
    return Content(data, _dataset(data), _span(begin, end), about)


def _header(descriptor: int) -> str:
    """Read up to and with the empty line that ends the header, and not a byte more."""
    held = bytearray()
    while not held.endswith(b"\n\n") and held != b"\n":
        byte = os.read(descriptor, 1)
        if not byte or len(held) > _HEADER_MOST:
            raise LoadstoneError(
                "standard input has no header of TSBS's text: the empty line that ends it is missing",
                "Use what tsbs_generate_data writes for timescaledb, uncompressed; or generate the data "
                "with --use-case.",
            )
        held += byte
    try:
        return held.decode()
    except UnicodeDecodeError as error:
        raise LoadstoneError(
            f"standard input is not TSBS's text: byte {error.start} is not UTF-8",
            "Use what tsbs_generate_data writes for timescaledb, uncompressed.",
        ) from error


def _header_dataset(head: str) -> Dataset:
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _dataset({"kind": "text", "fd": nothing, "head": head})
    finally:
        os.close(nothing)


def _dataset(data: Mapping[str, Any]) -> Dataset:
    try:
        dataset: Dataset = json.loads(_core.DataStream(json.dumps(data)).dataset())
    except _core.DriveError as error:
        raise LoadstoneError(*error.args) from error
    return dataset


def _span(begin: bytes, end: bytes) -> tuple[int, int] | None:
    """Return the first and last time of a file by its first and last rows; None when there are none."""
    rows = begin.partition(b"\n\n")[2].split(b"\n")
    first = next((found for line in rows if (found := _time_us(line)) is not None), None)
    last = next((found for line in reversed(end.split(b"\n")) if (found := _time_us(line)) is not None), None)
    return None if first is None or last is None else (min(first, last), max(first, last) + 1)


def _time_us(line: bytes) -> int | None:
    """Return the time of a line of values (`cpu,1451606400000000000,…`); None for any other line."""
    words = line.split(b",", 2)
    if len(words) < 3 or words[0] == b"tags":  # noqa: PLR2004 - table, time, values
        return None
    with contextlib.suppress(ValueError):
        return int(words[1]) // 1000
    return None


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]

"""Files compressed by zstd, in several frames: written, read again, damaged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from loadstone import _core
from loadstone.model import Rows
from loadstone.workload.generate import Files, generate
from loadstone.workload.tsbs.generation import make

if TYPE_CHECKING:
    from pathlib import Path

START_NS = 1_451_606_400_000_000_000
DATA = {
    "kind": "tsbs",
    "use_case": "iot",
    "seed": 123,
    "scale": 20,
    "start_ns": START_NS,
    "end_ns": START_NS + 6 * 3600 * 10**9,
    "interval_ns": 10**10,
}


def unpacked(path: Path) -> bytes:
    with pa.input_stream(path, compression="zstd") as stream:
        content: bytes = stream.read()
    return content


def text(path: Path, compress: str) -> bytes:
    """Write TSBS's text and return its bytes."""
    output = {"path": str(path)}
    made = make({"data": DATA, "format": "timescaledb", "output": output, "compress": compress, "threads": 3})
    assert made["bytes"] == path.stat().st_size
    return path.read_bytes()


def rows_of(path: Path) -> Any:
    stream = _core.DataStream(json.dumps({"kind": "text", "path": str(path)}))
    while stream.read(1000) is not None:
        pass
    return stream.rows, json.loads(stream.fingerprints())


def test_texts_in_frames_are_one_text_and_read_as_the_plain_one(tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    whole = text(plain, "none")
    assert text(packed, "zstd").count(b"\x28\xb5\x2f\xfd") > 1
    assert unpacked(packed) == whole
    assert packed.stat().st_size * 4 < len(whole)
    assert rows_of(packed) == rows_of(plain)


@pytest.mark.parametrize("harm", ["cut", "damaged"])
def test_a_damaged_file_is_an_error(tmp_path: Path, harm: str) -> None:
    path = tmp_path / "packed"
    content = bytearray(text(path, "zstd"))
    middle = len(content) // 2
    if harm == "cut":
        del content[middle:]
    else:
        content[middle : middle + 100] = bytes(100)
    path.write_bytes(content)
    with pytest.raises(_core.DriveError):
        rows_of(path)


def test_rows_of_plain_tables_are_the_same_rows(tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    generate(Rows(set="flights", rows=5000), Files(str(plain), format="csv"))
    generate(Rows(set="flights", rows=5000), Files(str(packed), format="csv", compress="zstd"))
    assert unpacked(packed) == plain.read_bytes()

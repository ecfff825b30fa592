"""How fast memory and disks are: honest figures, or none and why."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from loadstone.host import bandwidth

if TYPE_CHECKING:
    from pathlib import Path

GIBI, MEBI = 2**30, 2**20


@pytest.mark.slow
def test_memory_is_copied_beyond_the_caches() -> None:
    found = bandwidth.copy_memory()
    assert found["bytes_per_s"] > 10 * MEBI
    assert found["buffer_bytes"] >= bandwidth.LEAST_BUFFER
    assert found["threads"] == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("available", "cache", "expected"),
    [
        (8 * GIBI, 32 * MEBI, 128 * MEBI),
        (8 * GIBI, None, 64 * MEBI),
        (64 * GIBI, 400 * MEBI, 512 * MEBI),
        (None, 1 * MEBI, 64 * MEBI),
        (255 * MEBI, 1 * MEBI, None),
    ],
)
def test_the_buffer_is_larger_than_the_caches_and_leaves_memory(
    available: int | None, cache: int | None, expected: int | None
) -> None:
    assert bandwidth.buffer_bytes(available, cache) == expected


def test_without_memory_to_spare_nothing_is_measured(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 200000 kB\nMemAvailable: 100000 kB\n")
    found = bandwidth.copy_memory(tmp_path)
    assert found["bytes_per_s"] is None
    assert "too little free memory" in found["reason"]


def test_the_largest_cache_counts(tmp_path: Path) -> None:
    for index, size in enumerate(("32K", "1024K", "33M")):
        folder = tmp_path / f"sys/devices/system/cpu/cpu0/cache/index{index}"
        folder.mkdir(parents=True)
        (folder / "size").write_text(size)
    assert bandwidth.cache_bytes(tmp_path) == 33 * MEBI
    assert bandwidth.cache_bytes(tmp_path / "nowhere") is None


def test_a_disk_is_read_past_the_page_cache_or_said_not_to_be(tmp_path: Path) -> None:
    found = bandwidth.read_disk(tmp_path)
    assert (found["bytes_per_s"] is None) == (found["reason"] is not None)
    assert found["bytes_per_s"] is None or found["bytes_per_s"] > 0
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_a_file_system_without_direct_reads_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def refuse(path: str, flags: int, *more: int, **named: int) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(bandwidth, "FILE_BYTES", MEBI)
    found = bandwidth.read_disk(tmp_path)
    assert found["bytes_per_s"] is None
    assert found["reason"] == "the file system refuses it: Invalid argument"
    assert list(tmp_path.iterdir()) == []


def test_a_nearly_full_disk_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "SPARE", 10**9)
    assert bandwidth.read_disk(tmp_path)["reason"] == "the disk is nearly full"
    assert list(tmp_path.iterdir()) == []


def test_places_of_one_file_system_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []

    def read(path: Path) -> dict[str, object]:
        asked.append(path)
        return {"bytes_per_s": 1e9, "reason": None}

    monkeypatch.setattr(bandwidth, "read_disk", read)
    monkeypatch.setattr(bandwidth, "copy_memory", lambda _: {"bytes_per_s": None, "reason": "none"})
    (tmp_path / "data").mkdir()
    found = bandwidth.measure({"results": tmp_path, "data of pg18": tmp_path / "data"})
    assert len(asked) == 1
    assert found["disks"]["results"] == found["disks"]["data of pg18"]

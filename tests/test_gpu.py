"""GPUs by NVML: a library that behaves as NVIDIA's does stands in for it, for most machines have none."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from loadstone import environment
from loadstone.gpu import Gpus

if TYPE_CHECKING:
    from collections.abc import Callable

GB = 1 << 30


class NVMLError(Exception):
    """What NVML raises, whatever is wrong."""


class FakeNvml:
    """Two GPUs; the second does not tell its utilisation, as a part of a shared one."""

    NVMLError = NVMLError

    def __init__(self) -> None:
        self.begun = 0
        self.lost: set[int] = set()
        self.no_driver = False

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's own name, here and below
        if self.no_driver:
            raise NVMLError("NVML_ERROR_DRIVER_NOT_LOADED")
        self.begun += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.begun -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle: int) -> str | bytes:  # noqa: N802
        return ("H100", b"A2")[handle]  # older versions of the library give bytes

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "580.1"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:  # noqa: N802
        if handle in self.lost:
            raise NVMLError("GPU is lost")
        return SimpleNamespace(total=(80 * GB, 16 * GB)[handle], used=(handle + 1) * GB)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:  # noqa: N802
        if handle in self.lost:
            raise NVMLError("GPU is lost")
        if handle == 1:
            raise NVMLError("Not Supported")
        return SimpleNamespace(gpu=73, memory=11)


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    library = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", library)
    return library


def test_what_the_gpus_do(nvml: FakeNvml) -> None:
    gpus = Gpus()
    assert gpus.sample() == [
        {
            "index": 0,
            "name": "H100",
            "utilisation": 0.73,
            "memory_used_bytes": GB,
            "memory_total_bytes": 80 * GB,
        },
        {
            "index": 1,
            "name": "A2",
            "utilisation": None,
            "memory_used_bytes": 2 * GB,
            "memory_total_bytes": 16 * GB,
        },
    ]
    assert gpus.gone == []
    gpus.close()
    gpus.close()
    assert nvml.begun == 0
    assert gpus.sample() is None


def test_a_gpu_that_falls_away_leaves_nulls_and_is_told_once(nvml: FakeNvml) -> None:
    gpus = Gpus()
    nvml.lost.add(0)
    samples = [gpus.sample() or [] for _ in range(3)]
    assert [[gpu["memory_used_bytes"] for gpu in sample] for sample in samples] == [[None, 2 * GB]] * 3
    assert samples[0][0]["utilisation"] is None
    assert gpus.gone == ["GPU 0 (H100) no longer answers: GPU is lost"]


def missing(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    del nvml
    monkeypatch.setitem(sys.modules, "pynvml", None)


def without_driver(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    del monkeypatch
    nvml.no_driver = True


def without_gpu(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "nvmlDeviceGetCount", lambda: 0)


@pytest.mark.parametrize("lack", [missing, without_driver, without_gpu])
def test_without_library_driver_or_gpu_there_is_none_and_no_fuss(
    lack: Callable[[FakeNvml, pytest.MonkeyPatch], None], nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    lack(nvml, monkeypatch)
    gpus = Gpus()
    assert gpus.sample() is None
    assert gpus.facts() == []
    assert gpus.gone == []
    gpus.close()


def test_the_environment_names_them(nvml: FakeNvml) -> None:
    assert environment.collect({})["gpus"] == [
        {"model": "H100", "memory_bytes": 80 * GB, "driver": "580.1"},
        {"model": "A2", "memory_bytes": 16 * GB, "driver": "580.1"},
    ]
    assert nvml.begun == 0

"""GPUs by NVML: a library that behaves as NVIDIA's does stands in for it, for most machines have none."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.host import environment
from loadstone.host.gpu import Gpus

if TYPE_CHECKING:
    from collections.abc import Callable

GB = 1 << 30


NOT_SUPPORTED, LOST = 3, 15


class NVMLError(Exception):
    """What NVML raises, with its code."""

    def __init__(self, value: int) -> None:
        super().__init__({NOT_SUPPORTED: "Not Supported", LOST: "GPU is lost"}.get(value, "Unknown Error"))
        self.value = value


class FakeNvml:
    """Two GPUs; the second tells neither utilisation nor energy, as a part of a shared one."""

    NVMLError = NVMLError
    NVML_SUCCESS = 0
    NVML_ERROR_UNINITIALIZED = 1
    NVML_ERROR_NOT_SUPPORTED = NOT_SUPPORTED
    NVML_ERROR_FUNCTION_NOT_FOUND = 13
    NVML_ERROR_GPU_IS_LOST = LOST
    NVML_PCIE_UTIL_TX_BYTES = 0
    NVML_PCIE_UTIL_RX_BYTES = 1
    NVML_FI_DEV_PCIE_COUNT_TX_BYTES = 197
    NVML_FI_DEV_PCIE_COUNT_RX_BYTES = 198

    def __init__(self) -> None:
        self.begun = 0
        self.lost: set[int] = set()
        self.no_driver = False
        self.asked = 0
        self.tired = False

    def _answer(self, handle: int, values: tuple[Any, Any]) -> Any:
        self.asked += 1
        if handle in self.lost:
            raise NVMLError(LOST)
        if self.tired:
            raise NVMLError(10)  # NVML_ERROR_TIMEOUT
        if values[handle] is None:
            raise NVMLError(NOT_SUPPORTED)
        return values[handle]

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's own name, here and below
        if self.no_driver:
            raise NVMLError(9)
        self.begun += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.begun -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        if index in self.lost:
            raise NVMLError(LOST)
        return index

    def nvmlDeviceGetName(self, handle: int) -> str | bytes:  # noqa: N802
        return ("H100", b"A2")[handle]  # older versions of the library give bytes

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "580.1"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:  # noqa: N802
        held = SimpleNamespace(total=(80 * GB, 16 * GB)[handle], used=(handle + 1) * GB)
        return self._answer(handle, (held, held))

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:  # noqa: N802
        return self._answer(handle, (SimpleNamespace(gpu=73, memory=11), None))

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:  # noqa: N802
        return int(self._answer(handle, (312_500, 18_250)))

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:  # noqa: N802
        return int(self._answer(handle, (987_654_321, None)))

    def nvmlDeviceGetFieldValues(self, handle: int, fields: list[int]) -> list[Any]:  # noqa: N802
        self._answer(handle, (True, True))
        counted = {197: 4_000, 198: 9_000_000_000}
        refused = NOT_SUPPORTED if handle == 1 else 0
        return [
            SimpleNamespace(nvmlReturn=refused, value=SimpleNamespace(ullVal=counted[field]))
            for field in fields
        ]

    def nvmlDeviceGetPcieThroughput(self, handle: int, counter: int) -> int:  # noqa: N802
        return int(self._answer(handle, ((12, 345_000)[counter],) * 2))


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
            "memory_utilisation": 0.11,
            "memory_used_bytes": GB,
            "memory_total_bytes": 80 * GB,
            "power_w": 312.5,
            "energy_j": 987_654.321,
            "pcie_rx_bytes": 9_000_000_000,
            "pcie_rx_bytes_per_s": None,
            "pcie_tx_bytes": 4_000,
            "pcie_tx_bytes_per_s": None,
        },
        {
            "index": 1,
            "name": "A2",
            "utilisation": None,
            "memory_utilisation": None,
            "memory_used_bytes": 2 * GB,
            "memory_total_bytes": 16 * GB,
            "power_w": 18.25,
            "energy_j": None,
            "pcie_rx_bytes": None,
            "pcie_rx_bytes_per_s": 345_000_000,
            "pcie_tx_bytes": None,
            "pcie_tx_bytes_per_s": 12_000,
        },
    ]
    assert gpus.gone == []
    gpus.close()
    gpus.close()
    assert nvml.begun == 0
    assert gpus.sample() is None


def test_a_gpu_that_falls_away_leaves_nulls_is_told_once_and_asked_no_more(nvml: FakeNvml) -> None:
    gpus = Gpus()
    before = gpus.sample() or []
    nvml.lost.add(0)
    samples = [gpus.sample() or [] for _ in range(3)]
    for first, other in samples:
        assert (first["index"], first["name"]) == (0, "H100")
        assert {value for key, value in first.items() if key not in ("index", "name")} == {None}
        assert other == before[1], "the other goes on"
    assert gpus.gone == ["GPU 0 (H100) no longer answers: GPU is lost"]
    asked = nvml.asked
    nvml.lost.add(1)
    gpus.sample()
    gpus.sample()
    assert nvml.asked == asked + 1, "of a lost GPU nothing is asked: each question may take long"
    assert [words[:5] for words in gpus.gone] == ["GPU 0", "GPU 1"]


def test_a_gpu_that_was_lost_before_leaves_the_others_with_their_numbers(nvml: FakeNvml) -> None:
    nvml.lost.add(0)
    gpus = Gpus()
    assert [(gpu["index"], gpu["name"]) for gpu in gpus.sample() or []] == [(1, "A2")]
    assert [gpu["model"] for gpu in gpus.facts()] == ["A2"]
    assert gpus.gone == []


def test_what_a_gpu_does_not_tell_is_asked_once_and_what_only_took_too_long_again(nvml: FakeNvml) -> None:
    gpus = Gpus()
    full = gpus.sample()
    asked = nvml.asked
    gpus.sample()
    again = nvml.asked - asked
    assert again == asked - 4, "utilisation, energy and the two counters of the second GPU"
    nvml.tired = True
    assert [gpu["power_w"] for gpu in gpus.sample() or []] == [None, None]
    nvml.tired = False
    assert gpus.sample() == full
    assert gpus.gone == []


def test_an_older_library_has_no_counters_of_pcie(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    del nvml
    monkeypatch.delattr(FakeNvml, "NVML_FI_DEV_PCIE_COUNT_RX_BYTES")
    sample = (Gpus().sample() or [])[0]
    assert (sample["pcie_rx_bytes"], sample["pcie_rx_bytes_per_s"]) == (None, 345_000_000)
    assert sample["pcie_tx_bytes"] == 4_000


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

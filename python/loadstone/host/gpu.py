"""What the NVIDIA GPUs of this machine are and do, by NVML: where nvidia-ml-py and a driver are installed.

Source: NVIDIA's NVML API reference. Both utilisations are shares of the driver's last sample period: in which
a kernel ran, and in which memory was read or written. Energy is counted since the driver was loaded, from
Volta on. PCIe bytes are counted by newer cards; of others NVML tells the throughput of 20 ms, and takes so
long for it.
"""

from __future__ import annotations

import contextlib
import importlib
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.host.machine import Facts

_PCIE_UNIT_BYTES = 1000
"""NVML's throughput is in KB/s."""


class Gpus:
    """The GPUs that were there at the beginning; one that falls away later leaves nulls."""

    def __init__(self) -> None:
        """Look which there are; without library, driver or GPU there are none, and nothing is raised."""
        self._nvml = _library()
        self._handles: dict[int, tuple[Any, str]] = {}
        """Handle and name by number; one that is lost already when we begin is not among them."""
        self.gone: list[str] = []
        """What fell away since, in words."""
        self._lost: set[int] = set()
        self._mute: set[tuple[int, str]] = set()
        """What a GPU has said that it does not tell, by its number: it is not asked again."""
        if self._nvml is not None:
            with contextlib.suppress(self._nvml.NVMLError):
                for index in range(self._nvml.nvmlDeviceGetCount()):
                    self._find(self._nvml, index)

    def facts(self) -> list[Facts]:
        """Return `gpus` of environment.json."""
        found: list[Facts] = []
        for index, (handle, name) in self._handles.items():
            memory = self._ask(index, "memory", partial(_memory, handle=handle))
            driver = self._ask(index, "driver", lambda nvml: _text(nvml.nvmlSystemGetDriverVersion()))
            found.append({"model": name, "memory_bytes": memory.total if memory else None, "driver": driver})
        return found

    def sample(self) -> list[Facts] | None:
        """Return `gpu` of monitor.jsonl; None when there is no GPU."""
        return [self._one(index, *known) for index, known in self._handles.items()] or None

    def close(self) -> None:
        """Let go of the library; may be called again."""
        nvml, self._nvml, self._handles = self._nvml, None, {}
        if nvml is not None:
            try:
                nvml.nvmlShutdown()
            except nvml.NVMLError:
                return  # it was lost before

    def _find(self, nvml: Any, index: int) -> None:
        with contextlib.suppress(nvml.NVMLError):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            self._handles[index] = (handle, _text(nvml.nvmlDeviceGetName(handle)))

    def _one(self, index: int, handle: Any, name: str) -> Facts:
        memory = self._ask(index, "memory", partial(_memory, handle=handle))
        shares = self._ask(index, "shares", lambda nvml: nvml.nvmlDeviceGetUtilizationRates(handle))
        power_mw = self._ask(index, "power", lambda nvml: nvml.nvmlDeviceGetPowerUsage(handle))
        energy_mj = self._ask(index, "energy", lambda nvml: nvml.nvmlDeviceGetTotalEnergyConsumption(handle))
        return {
            "index": index,
            "name": name,
            "utilisation": shares.gpu / 100 if shares else None,
            "memory_utilisation": shares.memory / 100 if shares else None,
            "memory_used_bytes": memory.used if memory else None,
            "memory_total_bytes": memory.total if memory else None,
            "power_w": power_mw / 1e3 if power_mw is not None else None,
            "energy_j": energy_mj / 1e3 if energy_mj is not None else None,
            **self._pcie(index, handle),
        }

    def _pcie(self, index: int, handle: Any) -> Facts:
        """Return what came to the GPU (rx) and went from it (tx): counted bytes, else bytes a second."""
        found: Facts = {}
        for way in ("rx", "tx"):
            counted = self._ask(index, f"counted {way}", partial(_counted, handle=handle, way=way))
            rate = None
            if counted is None:
                rate = self._ask(index, f"rate {way}", partial(_throughput, handle=handle, way=way))
            found |= {f"pcie_{way}_bytes": counted, f"pcie_{way}_bytes_per_s": rate}
        return found

    def _ask(self, index: int, what: str, ask: Callable[[Any], Any]) -> Any:
        """Ask the library; None for what this GPU does not tell, or when it is gone."""
        nvml, place = self._nvml, (index, what)
        if nvml is None or index in self._lost or place in self._mute:
            return None
        try:
            return ask(nvml)
        except (_UntoldError, AttributeError):  # AttributeError: an older library lacks newer questions
            self._mute.add(place)
        except nvml.NVMLError as error:
            code = getattr(error, "value", None)
            if code in (nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_UNINITIALIZED):
                self._lost.add(index)
                self.gone.append(f"GPU {index} ({self._handles[index][1]}) no longer answers: {error}")
            elif code in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND):
                self._mute.add(place)
        return None


class _UntoldError(Exception):
    """A GPU does not tell this."""


def _memory(nvml: Any, handle: Any) -> Any:
    return nvml.nvmlDeviceGetMemoryInfo(handle)


def _counted(nvml: Any, handle: Any, way: str) -> int | None:
    """Return the bytes that crossed PCIe since the driver was loaded; None where they are not counted."""
    field = getattr(nvml, f"NVML_FI_DEV_PCIE_COUNT_{way.upper()}_BYTES")
    (value,) = nvml.nvmlDeviceGetFieldValues(handle, [field])
    if value.nvmlReturn != nvml.NVML_SUCCESS:
        raise _UntoldError
    return int(value.value.ullVal)


def _throughput(nvml: Any, handle: Any, way: str) -> int:
    """Return bytes per second over PCIe, in the 20 ms that the question takes."""
    counter = getattr(nvml, f"NVML_PCIE_UTIL_{way.upper()}_BYTES")
    return int(nvml.nvmlDeviceGetPcieThroughput(handle, counter)) * _PCIE_UNIT_BYTES


def _library() -> Any:
    """Return NVML, begun; None where it cannot be had."""
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
    except Exception:  # noqa: BLE001 - not installed, no driver, no permission: there is none for us
        return None
    return nvml


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value

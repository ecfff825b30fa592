"""What the NVIDIA GPUs of this machine are and do, by NVML: where nvidia-ml-py and a driver are installed.

Source: NVIDIA's NVML API reference. Utilisation is the share of the driver's last sample period in which a
kernel ran.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.machine import Facts


class Gpus:
    """The GPUs that were there at the beginning; one that falls away later leaves nulls."""

    def __init__(self) -> None:
        """Look which there are; without library, driver or GPU there are none, and nothing is raised."""
        self._nvml = _library()
        self._handles: list[tuple[Any, str]] = []
        self.gone: list[str] = []
        """What fell away since, in words."""
        if self._nvml is not None:
            try:
                count = self._nvml.nvmlDeviceGetCount()
                handles = [self._nvml.nvmlDeviceGetHandleByIndex(i) for i in range(count)]
                self._handles = [(handle, _text(self._nvml.nvmlDeviceGetName(handle))) for handle in handles]
            except self._nvml.NVMLError:
                self._handles = []

    def facts(self) -> list[Facts]:
        """Return `gpus` of environment.json."""
        found: list[Facts] = []
        for sample in self.sample() or []:
            driver = self._try(lambda nvml: _text(nvml.nvmlSystemGetDriverVersion()))
            found.append(
                {"model": sample["name"], "memory_bytes": sample["memory_total_bytes"], "driver": driver}
            )
        return found

    def sample(self) -> list[Facts] | None:
        """Return `gpu` of monitor.jsonl; None when there is no GPU."""
        return [self._one(i, *known) for i, known in enumerate(self._handles)] or None

    def close(self) -> None:
        """Let go of the library; may be called again."""
        nvml, self._nvml, self._handles = self._nvml, None, []
        if nvml is not None:
            try:
                nvml.nvmlShutdown()
            except nvml.NVMLError:
                return  # it was lost before

    def _one(self, index: int, handle: Any, name: str) -> Facts:
        memory = self._try(lambda nvml: nvml.nvmlDeviceGetMemoryInfo(handle), f"GPU {index} ({name})")
        share = self._try(lambda nvml: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100)
        return {
            "index": index,
            "name": name,
            "utilisation": share,
            "memory_used_bytes": memory.used if memory else None,
            "memory_total_bytes": memory.total if memory else None,
        }

    def _try(self, ask: Callable[[Any], Any], who: str = "") -> Any:
        """Ask the library; None for what this GPU does not tell, or when it is gone."""
        nvml = self._nvml
        if nvml is None:
            return None
        try:
            return ask(nvml)
        except nvml.NVMLError as error:
            if who and not any(words.startswith(who) for words in self.gone):
                self.gone.append(f"{who} no longer answers: {error}")
            return None


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

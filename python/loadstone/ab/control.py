"""The control of a trial: two seconds of work that no arm can change, to see whether the machine did.

One second of hashing on one core, one second of writes of 8 kB that are synced to the disk of the servers'
data. Medians, because one pause says nothing about the machine.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from loadstone.results.json_files import write_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EACH_S = 1.0
_CHUNK = bytes(1 << 16)
_PAGE = bytes(8192)
_FEWEST = 5


class Control(NamedTuple):
    """Median times of one piece of work."""

    cpu_us: float
    fsync_us: float


def measure(folder: Path) -> Control:
    """Run the control; `folder` is on the file system of the servers' data. Raises RunFailedError."""
    cpu = _median_us(lambda: hashlib.sha256(_CHUNK).digest())
    try:
        handle, name = tempfile.mkstemp(prefix=".control-", dir=folder)
        try:
            return Control(cpu, _median_us(lambda: _synced(handle)))
        finally:
            os.close(handle)
            os.unlink(name)  # noqa: PTH108 - the name is no Path
    except OSError as error:
        raise write_error(folder, error) from error


def _synced(handle: int) -> None:
    os.pwrite(handle, _PAGE, 0)
    os.fdatasync(handle)


def _median_us(work: Callable[[], object]) -> float:
    times: list[float] = []
    begin = now = perf_counter()
    while now - begin < EACH_S or len(times) < _FEWEST:
        work()
        end = perf_counter()
        times.append(end - now)
        now = end
    return median(times) * 1e6

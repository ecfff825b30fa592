"""How fast this machine's memory and disks are: the limits that a scan can come near to.

Memory is measured as STREAM's Copy does (J. D. McCalpin, IEEE TCCA Newsletter, December 1995): bytes read and
written of a buffer far larger than the caches, best of several, on all usable cores at once. A disk is read
in order past the page cache (O_DIRECT); where the file system has no such way it is not measured, for what
the page cache answers says nothing of a disk.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from loadstone.host import machine
from loadstone.host.machine import ROOT, Facts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MEBI = 2**20
LEAST_BUFFER, MOST_BUFFER = 64 * MEBI, 512 * MEBI
"""Of all cores together: read from one, written to another of the same size."""
TIMES_CACHE = 4
"""How many times the last level's cache the buffer is large, at least."""
REPEATS = 5
FILE_BYTES = 192 * MEBI
PIECE = 4 * MEBI
LONGEST_S = 1.5
"""For which a file is written, and then read."""
LEAST_READ = 16 * MEBI
SPARE = 20
"""A disk with less free space than so many times the file is left alone."""


def measure(places: Mapping[str, Path], root: Path = ROOT) -> Facts:
    """Return `bandwidth` of environment.json: of memory, and of the disks under places that are ours to use.

    Takes a second or two, and three more for each file system. What could not be measured is None, with why.
    """
    disks: Facts = {}
    by_device: dict[int, Facts] = {}
    for name, path in sorted(places.items()):
        device = path.stat().st_dev
        by_device[device] = by_device.get(device) or read_disk(path)
        disks[name] = by_device[device]
    return {"memory": copy_memory(root), "disks": disks}


def copy_memory(root: Path = ROOT) -> Facts:
    """Copy a large buffer on all usable cores at once; bytes read and written a second, best of several."""
    threads = len(os.sched_getaffinity(0))
    size = buffer_bytes(machine.meminfo(root).get("MemAvailable"), cache_bytes(root))
    if size is None:
        return {
            "bytes_per_s": None,
            "reason": "there is too little free memory for a buffer larger than the caches",
        }
    words = size // threads // 8
    pairs = [(np.ones(words), np.empty(words)) for _ in range(threads)]
    seconds = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(REPEATS + 1):  # the first touches the pages
            begun_ns = time.monotonic_ns()
            list(pool.map(lambda pair: np.copyto(pair[1], pair[0]), pairs))
            seconds.append((time.monotonic_ns() - begun_ns) / 1e9)
    moved = 2 * words * 8 * threads
    return {
        "bytes_per_s": moved / min(seconds[1:]),
        "reason": None,
        "threads": threads,
        "buffer_bytes": size,
        "method": f"copy, threads: {threads}, bytes read and written, best of {REPEATS}",
    }


def buffer_bytes(available: int | None, cache: int | None) -> int | None:
    """Return the size of the buffer to copy; None where memory does not allow one beyond the caches."""
    wanted = min(MOST_BUFFER, max(LEAST_BUFFER, TIMES_CACHE * (cache or 0)))
    return wanted if available is None or 4 * wanted <= available else None


def cache_bytes(root: Path = ROOT) -> int | None:
    """Return the largest cache of the first core; None where the kernel does not tell."""
    found = []
    for index in (root / "sys/devices/system/cpu/cpu0/cache").glob("index*"):
        text = machine.read(index / "size") or ""
        number = machine.number(text.rstrip("KMG"))
        if number is not None:
            found.append(number * {"K": 1024, "M": MEBI, "G": 1024 * MEBI}.get(text[-1:], 1))
    return max(found, default=None)


def read_disk(folder: Path) -> Facts:
    """Write a file into a folder that is ours, and read it in order past the page cache; bytes a second."""
    space = os.statvfs(folder)
    if space.f_bavail * space.f_frsize < SPARE * FILE_BYTES:
        return _not_measured("the disk is nearly full")
    try:
        with tempfile.NamedTemporaryFile(prefix="loadstone-", dir=folder) as file:
            _write(file.fileno())
            return _read_past_cache(file.name)
    except OSError as error:
        return _not_measured(f"the file system refuses it: {error.strerror or error}")


def _write(descriptor: int) -> None:
    # Bytes that do not compress: what a file system would make of zeros is no disk's speed.
    piece = np.random.default_rng(1).bytes(PIECE)
    begun_ns = time.monotonic_ns()
    written = 0
    while written < FILE_BYTES and _seconds_since(begun_ns) < LONGEST_S:
        written += os.write(descriptor, piece)
    os.fsync(descriptor)


def _read_past_cache(name: str) -> Facts:
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECT)
    try:
        with contextlib.closing(mmap.mmap(-1, PIECE)) as piece:  # aligned as O_DIRECT wants it
            begun_ns = time.monotonic_ns()
            read = 0
            while (got := os.preadv(descriptor, [piece], read)) and _seconds_since(begun_ns) < LONGEST_S:
                read += got
            seconds = _seconds_since(begun_ns)
    finally:
        os.close(descriptor)
    if read < LEAST_READ:
        return _not_measured(f"only {read // MEBI} MiB could be read in {seconds:.1f} s")
    method = f"{read // MEBI} MiB read in order past the page cache, {PIECE // MEBI} MiB at a time"
    return {"bytes_per_s": read / seconds, "reason": None, "method": method}


def _seconds_since(begun_ns: int) -> float:
    return (time.monotonic_ns() - begun_ns) / 1e9


def _not_measured(reason: str) -> Facts:
    return {"bytes_per_s": None, "reason": reason}

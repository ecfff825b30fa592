"""The kernel's pages of files: dropped, and looked for. Sources: posix_fadvise(2), mincore(2), proc(5)."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_DROP = Path("/proc/sys/vm/drop_caches")
_PAGES = "1"
"""Pages of files, and not the kernel's other caches."""
_WINDOW = 1 << 30
"""Bytes of a file that are looked at at a time."""
_FAILED = ctypes.c_void_p(-1).value
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]


def evict(folder: Path) -> tuple[int, int]:
    """Have the kernel forget the pages of a data folder's files, PostgreSQL's tablespaces included.

    Returns how many of their bytes it keeps all the same, and how many they are. The files are at rest.
    """
    held = size = 0
    for path in _files(folder):
        # A file may be another user's, or go away: it is then none of those that are read.
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                _forget(handle)
                held += _held(handle)
                size += os.fstat(handle).st_size
            finally:
                os.close(handle)
    return held, size


def forget(path: Path) -> None:
    """Have the kernel forget the pages of one file that is at rest. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _forget(handle)
    finally:
        os.close(handle)


def drop_all() -> bool:
    """Have the kernel forget its pages of all files of the machine; False where we may not."""
    try:
        _DROP.write_text(_PAGES)
    except OSError:
        return False
    return True


def _forget(handle: int) -> None:
    os.fsync(handle)  # a page that is not yet written would stay
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)


def _files(folder: Path) -> Iterator[Path]:
    spaces = folder / "pg_tblspc"
    links = list(spaces.iterdir()) if spaces.is_dir() else []
    for place in (folder, *(link.resolve() for link in links)):
        yield from (path for path in place.rglob("*") if path.is_file() and not path.is_symlink())


def _held(handle: int) -> int:
    """Return how many bytes of an open file are in memory, by whole pages."""
    size, held = os.fstat(handle).st_size, 0
    for start in range(0, size, _WINDOW):
        length = min(_WINDOW, size - start)
        address = _libc.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, handle, start)
        if address == _FAILED:
            raise OSError(ctypes.get_errno(), "mmap")
        try:
            pages = ctypes.create_string_buffer(-(-length // mmap.PAGESIZE))
            if _libc.mincore(address, length, pages):
                raise OSError(ctypes.get_errno(), "mincore")
            held += sum(page & 1 for page in pages.raw) * mmap.PAGESIZE
        finally:
            _libc.munmap(address, length)
    return held

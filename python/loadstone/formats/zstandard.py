"""Zstandard: files that are read, and blocks that are compressed for files."""

from __future__ import annotations

import pyarrow as pa

_LEVEL = 3


def open_file(path: str) -> pa.NativeFile:
    """Open a compressed file, of one frame or several; `read(n)` gives what they hold. Raises OSError."""
    return pa.input_stream(path, compression="zstd")


def codec() -> pa.Codec:
    """Return what compresses a block to a frame by `compress(bytes, asbytes=True)`, in any thread."""
    return pa.Codec("zstd", compression_level=_LEVEL)

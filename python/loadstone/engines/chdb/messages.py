"""Messages between Loadstone and the process that holds chDB.

A message is a letter, a length and so many bytes: `q` SQL; `p` SQL of an insert, and `r` its rows as an Arrow
stream. Answers: `t` a table as an Arrow stream, `n` done without one, `e` an error as JSON.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import socket

READY = b"r"
"""What the process says once the database is open."""
_HEAD = struct.Struct("!cQ")
_PIECE = 1 << 20


def receive(line: socket.socket) -> tuple[bytes, bytearray] | None:
    """Return the kind and content of the next message; None when the other side is gone."""
    head = _exactly(line, _HEAD.size)
    if head is None:
        return None
    kind, size = _HEAD.unpack(head)
    content = _exactly(line, size)
    return None if content is None else (kind, content)


def send(line: socket.socket, kind: bytes, content: Any) -> None:
    """Send one message; `content` is anything that holds bytes."""
    view = memoryview(content)
    line.sendall(_HEAD.pack(kind, view.nbytes))
    line.sendall(view)


def as_stream(table: pa.Table) -> pa.Buffer:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def of_stream(content: Any) -> pa.Table:
    """Return the table of an Arrow stream; its columns are in `content`."""
    return pa.ipc.open_stream(pa.py_buffer(content)).read_all()


def _exactly(line: socket.socket, size: int) -> bytearray | None:
    content = bytearray(size)
    view, at = memoryview(content), 0
    while at < size:
        got = line.recv_into(view[at:], min(_PIECE, size - at))
        if not got:
            return None
        at += got
    return content

"""The process that holds chDB: answers statements, one thread and one of chDB's connections for each socket.

Run as a module (`python -m loadstone.engines.chdb.server DATA DOOR`). The descriptor DOOR is a socket by
which whoever started it sends sockets, one for each connection; when it is closed, this process ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import sys
import threading
from typing import Any

import chdb
import pyarrow as pa

from loadstone.engines.chdb.messages import READY, as_stream, of_stream, receive, send

_CODE = re.compile(r"Code: (\d+)")


def main(arguments: list[str]) -> None:
    """Open the database in the folder DATA, say so, and serve what comes by DOOR."""
    data, door = arguments[0], socket.socket(fileno=int(arguments[1]))
    first = chdb.connect(data)
    first.query("select 1")
    door.sendall(READY)
    while True:
        _, handles, _, _ = socket.recv_fds(door, 1, 1)
        if not handles:
            break
        line = socket.socket(fileno=handles[0])
        threading.Thread(target=_serve, args=(line, data), daemon=True).start()
    first.close()
    os._exit(0)


def _serve(line: socket.socket, data: str) -> None:
    connection = chdb.connect(data)
    with line, contextlib.suppress(OSError), contextlib.closing(connection):
        while (message := receive(line)) is not None:
            kind, content = message
            rows = None
            if kind == b"p":
                sent = receive(line)
                if sent is None:
                    return
                rows = of_stream(sent[1])
            _answer(line, connection, content.decode(), rows)


def _answer(line: socket.socket, connection: Any, sql: str, rows: pa.Table | None) -> None:
    try:
        # chDB finds `rows` by its name: the insert selects from Python(rows).
        found = connection.query(sql, "arrowtable")
    except Exception as error:  # noqa: BLE001 - whatever it is, the other side is told
        said = str(error).strip()
        code = _CODE.search(said)
        told = {"message": said, "code": int(code.group(1)) if code else 0}
        send(line, b"e", json.dumps(told).encode())
        return
    del rows
    if isinstance(found, pa.Table) and found.num_columns:
        send(line, b"t", as_stream(found))
    else:
        send(line, b"n", b"")


if __name__ == "__main__":
    main(sys.argv[1:])

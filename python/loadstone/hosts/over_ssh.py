"""Loaded by Dask's processes that were started by ssh (Dask calls it a preload): they leave nothing behind.

Such a process has no terminal, so nothing tells it when the connection is lost, but the end of its input.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from pathlib import Path
from typing import Any

_INPUT = 0
_IN_ORDER_S = 3.0
"""So long a process may take to end in order; its agents end with it either way."""
_CLOSING: list[asyncio.Task[Any]] = []
"""Kept, because a loop does not keep its tasks."""


async def dask_setup(server: Any) -> None:
    """Delete the credentials, which are read by now, and end the process with its input."""
    _forget(Path(server.security.tls_ca_file))
    loop = asyncio.get_running_loop()
    loop.add_reader(_INPUT, _look, loop, server)


def _forget(credentials: Path) -> None:
    """Delete a file; the last one of the folder takes it along."""
    credentials.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        credentials.parent.rmdir()


def _look(loop: asyncio.AbstractEventLoop, server: Any) -> None:
    try:
        more = os.read(_INPUT, 1 << 16)
    except OSError:
        more = b""
    if more:
        return
    loop.remove_reader(_INPUT)
    shutil.rmtree(Path(server.security.tls_ca_file).parent, ignore_errors=True)
    loop.call_later(_IN_ORDER_S, os._exit, 1)
    _CLOSING.append(loop.create_task(server.close()))

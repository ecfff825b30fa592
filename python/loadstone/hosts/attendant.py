"""What runs on a Dask worker: it starts the agent there, passes messages to it, and reads its records.

No function raises: Dask would write their arguments, and with them a password, into the worker's log.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import socket
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import loadstone
from loadstone import _core
from loadstone.host.machine import cores_at_a_time
from loadstone.host.procfs import count_as_ours

Message = dict[str, Any]
_LINE_MAX = 1 << 26
"""Bytes of the longest answer: that many lines for the user may have gathered."""
_END_S = 3.0
"""So long an agent may take to end by itself: it cuts off after two seconds."""
CHUNK = 1 << 20
RECORDS = "records.jsonl"
ASK = "loadstone_ask"
"""The operation of a Dask worker that `begin` adds to it: `ask`."""
RESTARTED: Message = {"lost": "the Dask worker was restarted"}


@dataclass(slots=True)
class _Attended:
    process: asyncio.subprocess.Process
    folder: Path

    @property
    def pipes(self) -> tuple[asyncio.StreamWriter, asyncio.StreamReader]:
        """To it, and from it."""
        to, back = self.process.stdin, self.process.stdout
        if to is None or back is None:
            raise OSError("an agent without pipes")
        return to, back


_AGENTS: dict[str, _Attended] = {}
"""By the key that the caller has chosen: in tests several workers share a process."""


def about() -> Message:
    """Return what this host is: its name, what tells it apart, and what is installed there."""
    core = hashlib.sha256(Path(str(_core.__file__)).read_bytes()).hexdigest()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return {
        "name": socket.gethostname(),
        "machine": boot,
        "network": str(Path("/proc/self/ns/net").readlink()),
        "version": loadstone.__version__,
        "core": core[:16],
        "cpus": cores_at_a_time(),
        "pid": os.getpid(),
    }


def read_clock() -> int:
    """Return this host's monotonic clock in nanoseconds, the one of the core."""
    return time.monotonic_ns()


async def begin(key: str, lease_s: float, dask_worker: Any = None) -> Message:
    """Start an agent; it knows nothing yet.

    `dask_worker` comes from Dask. It gets an operation of ours for messages, because its operation `run`
    packs function, arguments and result anew each time, and logs every call.
    """
    if dask_worker is not None:
        dask_worker.handlers[ASK] = ask
    try:
        folder = Path(tempfile.mkdtemp(prefix="loadstone-agent-"))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "loadstone.hosts.agent",
            str(folder),
            str(lease_s),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LINE_MAX,
            start_new_session=True,  # Ctrl-C is for who watches it
        )
    except OSError as error:
        return {"lost": f"its agent cannot be started: {error}"}
    _AGENTS[key] = _Attended(process, folder)
    count_as_ours(process.pid)
    return {"pid": process.pid, "folder": str(folder)}


async def ask(key: str, message: bytes) -> bytes:
    """Pass a message to the agent; returns its answer, or why there is none. Both are JSON."""
    attended = _AGENTS.get(key)
    if attended is None:
        return json.dumps(RESTARTED).encode()
    process = attended.process
    try:
        to, back = attended.pipes
        to.write(message + b"\n")
        await to.drain()
        line = await back.readline()
        if line.endswith(b"\n"):
            return line
    except (OSError, ValueError, RuntimeError):
        pass  # what it was shows in how the process has ended
    return json.dumps({"lost": await _end_of(process)}).encode()


async def _end_of(process: asyncio.subprocess.Process) -> str:
    try:
        code = await asyncio.wait_for(process.wait(), _END_S)
    except TimeoutError:
        return "its agent no longer answers"
    return f"its agent was killed by signal {-code}" if code < 0 else f"its agent ended with status {code}"


async def put(key: str, name: str, chunk: bytes) -> str | None:
    """Append to a file in the agent's folder; returns why it cannot be, or None."""
    attended = _AGENTS.get(key)
    if attended is None:
        return "the Dask worker was restarted"
    try:
        with (attended.folder / name).open("ab") as file:
            file.write(chunk)
    except OSError as error:
        return f"{attended.folder / name} cannot be written: {error.strerror}"
    return None


async def fetch(key: str, offset: int) -> bytes:
    """Return the next bytes of the agent's records; none at their end."""
    attended = _AGENTS.get(key)
    try:
        if attended is None:
            return b""
        with (attended.folder / RECORDS).open("rb") as records:
            records.seek(offset)
            return records.read(CHUNK)
    except OSError:
        return b""


async def close(key: str) -> None:
    """End the agent and remove what it has left."""
    attended = _AGENTS.pop(key, None)
    if attended is None:
        return
    process = attended.process
    attended.pipes[0].close()
    try:
        await asyncio.wait_for(process.wait(), _END_S)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    shutil.rmtree(attended.folder, ignore_errors=True)

"""How a server is made to crash: what is lost with it, and what a level cannot show."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from threading import Event
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Protocol, Self

import psutil

from loadstone.errors import RunFailedError
from loadstone.private_server.registry import Process

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import TracebackType

    from loadstone.crash.documents import LevelName
    from loadstone.private_server import EmbeddedServer

_STOP_S = 5.0
_GONE_S = 30.0
_POLL_S = 0.002


@dataclass(frozen=True, slots=True)
class Crashed:
    """What a crash was."""

    killed_ns: int
    """When the server's processes were killed, by the monotonic clock."""
    forgot: Mapping[str, int] | None = None
    """What was lost with them, as the file system counts it; None: nothing can be."""


class Level(Protocol):
    """A way to crash, as a context manager around the life of one server."""

    name: LevelName
    storage: Path | None
    """Where the server's data have to be; None: anywhere."""

    def __enter__(self) -> Self:
        """Make what the level needs."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove it."""

    def settle(self, server: EmbeddedServer) -> None:
        """Make what the server has until now survive."""

    def crash(self, server: EmbeddedServer) -> Crashed:
        """End the server as the level does: no process of it lives afterwards."""

    def counters(self) -> dict[str, int] | None:
        """Return what the level has counted of the server's files; None where it counts nothing."""


class ProcessLevel:
    """All processes are killed; what they had written is in the page cache, and stays."""

    name: LevelName = "process"

    def __init__(self, storage: Path | None) -> None:
        """Keep the server's data in `storage`."""
        self.storage = storage

    def __enter__(self) -> Self:
        """Need nothing."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave nothing."""

    def settle(self, server: EmbeddedServer) -> None:
        """Nothing is lost at this level."""

    def crash(self, server: EmbeddedServer) -> Crashed:
        """Kill all processes."""
        return Crashed(kill_all(server))

    def counters(self) -> None:
        """Count nothing."""


def kill_all(server: EmbeddedServer) -> int:
    """Stop the postmaster, so that it starts no more processes and sees none die; kill these, then it.

    Each backend is in a session of its own, so that no process group has them all. Returns when they were
    killed, by the monotonic clock. Raises RunFailedError where a process outlives that.
    """
    postmaster = psutil.Process(server.pid)
    try:
        postmaster.suspend()
        wait_for(lambda: postmaster.status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE), _STOP_S)
        children = [one for one in map(Process.of, _pids_below(postmaster)) if one is not None]
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
        killed_ns = monotonic_ns()
    finally:
        # Also when a signal comes: a stopped server would not even end.
        with contextlib.suppress(psutil.NoSuchProcess):
            postmaster.kill()
    server.kill()
    if not wait_for(lambda: not any(child.alive for child in children), _GONE_S):
        raise RunFailedError(
            "processes of the server outlive SIGKILL: the disk does not answer", "Look at the disk."
        )
    refuse_second(server.data_directory)
    return killed_ns


def refuse_second(data: Path) -> None:
    """Refuse to go on where another postmaster works in the server's data folder."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.cwd() == str(data) and "postgres" in process.name():
                raise RunFailedError(
                    f"process {process.pid} is a second postmaster in {data}: it is not ours",
                    "Nothing but Loadstone may start servers there.",
                )


def _pids_below(process: psutil.Process) -> list[int]:
    return [child.pid for child in process.children(recursive=True)]


def wait_for(condition: Callable[[], bool], limit_s: float) -> bool:
    """Wait until a condition holds; returns False where it never does."""
    end = monotonic() + limit_s
    while not condition():
        if monotonic() > end:
            return False
        Event().wait(_POLL_S)
    return True


def why_not(name: LevelName) -> str | None:
    """Return why a level cannot be used here; None when it can."""
    if name == "process":
        return None
    from loadstone.power_disk import available  # noqa: PLC0415 - what only that level needs

    return available()


def level_of(name: LevelName, storage: Path | None, seed: int) -> Level:
    """Return a level that can be used here."""
    if name == "process":
        return ProcessLevel(storage)
    from loadstone.crash.power import PowerLevel  # noqa: PLC0415 - what only that level needs

    return PowerLevel(storage, seed)

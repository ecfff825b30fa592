"""Load hosts that tests share: workers of a Dask cluster in this process, each with an agent of its own."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import psutil

from loadstone.hosts import fleet as fleets
from loadstone.hosts.fleet import Fleet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    import pytest

    from loadstone.hosts.places import Places


LIMIT_S = 120.0
"""Longest wait for a state."""


def fleet_of(client: Any, hosts: int, *, calibrate: bool = False) -> Fleet:
    """Return the first workers of a local cluster as a fleet."""
    fleet = Fleet(client, calibrate=calibrate)
    fleet.find(local=True)
    for name in fleet.names[hosts:]:
        del fleet._lines[name]
    return fleet


def share_cluster(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `--hosts local:N` take workers of this cluster."""

    @contextlib.contextmanager
    def taken(places: Places, *, calibrate: bool = False) -> Iterator[Fleet]:
        yield fleet_of(client, places.local, calibrate=calibrate)

    monkeypatch.setattr(fleets, "open_fleet", taken)


def agents() -> list[psutil.Process]:
    """Return the agents that this process has started, the first one first."""

    def is_agent(process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.Error):
            return "loadstone.hosts.agent" in process.cmdline()
        return False

    return sorted(filter(is_agent, psutil.Process().children()), key=lambda p: p.pid)


def kill_agent(number: int = 0) -> None:
    """Kill the agent of the host with this number, counted from the end where it is negative."""
    agents()[number].kill()


def kill_at(
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    kill: Callable[[], None],
    *,
    when: Callable[..., bool] = lambda *_: True,
    until: Callable[[], object] | None = None,
) -> list[str]:
    """Kill a host when this coroutine is called for the first time: before it, or in it once `until` holds.

    `when` is given its arguments. The list that is returned is empty as long as nobody was killed.
    """
    coroutine = getattr(owner, name)
    killed: list[str] = []

    async def killing(*arguments: Any) -> Any:
        if killed or not when(*arguments):
            return await coroutine(*arguments)
        killed.append(name)
        called = asyncio.ensure_future(coroutine(*arguments)) if until is not None else coroutine(*arguments)
        end = time.monotonic() + LIMIT_S
        while until is not None and not until():
            assert time.monotonic() < end, f"a state that never comes about: {name}"
            await asyncio.sleep(0.005)
        kill()
        return await called

    monkeypatch.setattr(owner, name, killing)
    return killed


@contextlib.contextmanager
def started(module: str, *arguments: str, says: str) -> Iterator[str]:
    """Start a program of Dask and return what it says once it is there."""
    command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments, "--no-dashboard"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield next(found[1] for line in process.stderr if (found := re.search(says, line)))
            process.stderr.close()
        finally:
            os.kill(process.pid, signal.SIGKILL)


def serve_as_worker(scheduler: str, registered: Connection) -> None:
    """Be a Dask worker on loopback until killed; says its address once it is registered."""
    from distributed import Worker  # noqa: PLC0415 - slow to import; where it runs, it has been imported

    async def serve() -> None:
        async with Worker(scheduler, host="127.0.0.1", nthreads=1, memory_limit=0) as worker:
            registered.send(worker.address)
            await worker.finished()

    asyncio.run(serve())


@contextlib.contextmanager
def worker_of(scheduler: str) -> Iterator[tuple[psutil.Process, str]]:
    """Start a Dask worker that may be killed; yields it, and its address. All are forked by one process."""
    forking = multiprocessing.get_context("forkserver")
    forking.set_forkserver_preload(["distributed", "loadstone.hosts.fleet"])
    answer, registered = forking.Pipe(duplex=False)
    process = forking.Process(target=serve_as_worker, args=(scheduler, registered), daemon=True)
    process.start()
    registered.close()
    try:
        assert answer.poll(LIMIT_S), "the worker does not register"
        yield psutil.Process(process.pid), answer.recv()
    finally:
        process.kill()
        process.join()


class Quiet:
    """A listener that says nothing."""

    def __getattr__(self, _: str) -> Any:
        return lambda *_: None

"""Load hosts that tests share: workers of a Dask cluster in this process, each with an agent of its own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psutil

from loadstone.hosts import fleet as fleets
from loadstone.hosts.fleet import Fleet

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from loadstone.hosts.places import Places


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


class Quiet:
    """A listener that says nothing."""

    def __getattr__(self, _: str) -> Any:
        return lambda *_: None

"""A load host that is killed in each state of a drive: its agent alone, or its Dask worker and so its agent.

States of loads in steps, of queries and of sysbench's scripts are in the tests of those.
"""

from __future__ import annotations

import json
import re
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from support.load_hosts import agents, kill_at, worker_of
from support.sandbox import wait_until

from loadstone import model
from loadstone.errors import HostLostError
from loadstone.hosts import joint as joints
from loadstone.hosts.cluster import client_of
from loadstone.hosts.fleet import Fleet
from loadstone.hosts.joint import JointDrive
from loadstone.hosts.places import Places
from loadstone.workload.calibrate import null_server
from loadstone.workload.drive import drive_document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.hosts.joint import Share

pytestmark = [
    pytest.mark.slow,  # Dask workers are started
    pytest.mark.filterwarnings("default"),  # what Dask and its libraries warn of is not ours
]
WHY = {"agent": r"its agent was killed by signal 9", "worker": r"its Dask worker is gone \(\w+\)"}


@dataclass
class Victim:
    """One of two hosts, which is to be killed."""

    what: str
    fleet: Fleet
    name: str
    process: psutil.Process | None = None
    """Its Dask worker; None where that stays."""
    agents: list[psutil.Process] = field(default_factory=list)
    """Those that it had when it was killed."""

    def agent(self) -> psutil.Process:
        if self.process is not None:
            return self.process.children()[0]
        return agents()[self.fleet.names.index(self.name)]

    def kill(self) -> None:
        self.agents.append(self.agent())
        self.folder = Path(self.agents[0].cmdline()[-2])
        victim = self.process or self.agents[0]
        victim.kill()

    def is_this(self, _: JointDrive, share: Share, *__: object) -> bool:
        return share.name == self.name


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with client_of(Places("local", local=2)) as client:
        yield client


def fleet_of(client: Any) -> Fleet:
    fleet = Fleet(client, calibrate=False)
    fleet.find(local=True)
    return fleet


@pytest.fixture
def agent(client: Any) -> Victim:
    fleet = fleet_of(client)
    assert len(fleet.names) == 2
    return Victim("agent", fleet, fleet.names[0])


@pytest.fixture
def worker(client: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Victim]:
    """Start a worker of its own for the host that is to be killed; the other host's stays."""
    monkeypatch.setattr(joints, "AGAIN_S", 0.3)
    with worker_of(client.scheduler.address) as (process, address):
        client.wait_for_workers(3)
        fleet = fleet_of(client)
        name = next(name for name, line in fleet._lines.items() if line.address == address)
        del fleet._lines[next(other for other in fleet.names if other != name)]
        victim = Victim("worker", fleet, name, process)
        yield victim
        _, left = psutil.wait_procs(victim.agents, timeout=60)
        assert not left, "an agent outlives its Dask worker"
        assert not victim.folder.exists()
    wait_until(lambda: len(client.scheduler_info(n_workers=-1)["workers"]) == 2, "the scheduler has noticed")


@pytest.fixture(params=["agent", "worker"])
def victim(request: pytest.FixtureRequest) -> Victim:
    found: Victim = request.getfixturevalue(request.param)
    return found


def asked(connection: model.Connection, folder: Path, duration_s: float) -> dict[str, Any]:
    script = model.Script("one", "\\set n random(1, 9)\nselect :n;\n")
    drive = model.Drive(scripts=(script,), mode="simple", clients=4, seed=5, duration_s=duration_s)
    return drive_document(drive, connection, folder) | {"interval_s": 0.1}


def lose_before_start(victim: Victim, connection: model.Connection, folder: Path) -> None:
    """Perform a drive whose victim is killed before its start: nothing was measured, and nothing is left."""
    message = f"load host {victim.name} was lost before the start: {WHY[victim.what]}"
    with pytest.raises(HostLostError, match=message) as lost:
        victim.fleet.perform(asked(connection, folder, 60.0), None)
    assert lost.value.exit_code == 1
    assert list(folder.iterdir()) == []
    assert agents() == []


@pytest.mark.parametrize("state", ["measure_clocks", "_prepare", "go"])
def test_killed_before_the_start(
    victim: Victim, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    when = victim.is_this if state == "_prepare" else lambda _: True
    kill_at(monkeypatch, JointDrive, state, victim.kill, when=when)
    with null_server(8) as (_, connection):
        lose_before_start(victim, connection, tmp_path)


def test_killed_while_it_calibrates(victim: Victim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calibrate = JointDrive._calibrate

    async def until_killed(joint: JointDrive, share: Share, *wanted: Any) -> None:
        joint.calibration_s = 600.0 if share.name == victim.name else 0.05
        await calibrate(joint, share, *wanted)

    def is_driving() -> bool:
        return victim.agent().num_threads() > 1

    monkeypatch.setattr(JointDrive, "_calibrate", until_killed)
    kill_at(monkeypatch, JointDrive, "_calibrate", victim.kill, when=victim.is_this, until=is_driving)
    victim.fleet._calibrate = True
    with null_server(8) as (_, connection):
        lose_before_start(victim, connection, tmp_path)


def test_killed_while_it_connects(victim: Victim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(0)
        connected: list[socket.socket] = []

        def all_wait() -> bool:
            try:
                connected.append(silent.accept()[0])
            except BlockingIOError:
                return False
            return len(connected) == 4

        kill_at(monkeypatch, JointDrive, "look_ready", victim.kill, until=all_wait)
        port = silent.getsockname()[1]
        nothing = model.Connection(host="127.0.0.1", port=port, user="u", database="d")
        lose_before_start(victim, nothing, tmp_path)
        for connection in connected:
            connection.close()


class Stop:
    """A signal that asks the drive to end."""

    def __init__(self) -> None:
        self.end: Callable[[], None] | None = None

    def during(self, end: Callable[[], None] | None) -> None:
        self.end = end

    def check(self) -> None:
        assert self.end is not None


def perform(victim: Victim, folder: Path, *, stops: bool = False) -> dict[str, Any]:
    """Perform a drive; where it `stops`, it does once all hosts have told of an interval, else by itself."""
    stop = Stop()

    def show(progress: dict[str, Any]) -> None:
        if stops and progress["latest"] and stop.end is not None:
            stop.end()

    with null_server(8) as (_, connection):
        return victim.fleet.perform(asked(connection, folder, 60.0 if stops else 0.3), stop, show)  # type: ignore[arg-type]


def refuse_lost(victim: Victim, account: dict[str, Any], folder: Path) -> None:
    """Check that the drive has failed, and that what there is is kept and marked."""
    assert account["state"] == "aborted"
    assert re.fullmatch(f"load host {victim.name} was lost: {WHY[victim.what]}", account["reason"])
    assert account["lost_hosts"] == [victim.name]
    counts = account["counts"]
    assert counts["scheduled"] == counts["done"] + counts["failed"]
    states = {
        host["name"]: host["state"] for host in json.loads((folder / "hosts.json").read_text())["hosts"]
    }
    assert {name for name, state in states.items() if state == "lost"} == {victim.name}
    assert len(states) == 2
    (kept,) = states.keys() - {victim.name}
    of_kept, of_lost = (
        json.loads((folder / "hosts" / name / "drive.json").read_text()) for name in (kept, victim.name)
    )
    assert of_lost["state"] == "aborted"
    assert 0 < of_kept["counts"]["done"] == counts["done"] - of_lost["counts"]["done"]


@pytest.mark.parametrize("state", ["look", "stop"])
def test_killed_after_the_start(
    victim: Victim, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def have_begun(joint: JointDrive) -> bool:
        return all(share.progress.get("recent") for share in joint.shares)

    killed = kill_at(monkeypatch, JointDrive, state, victim.kill, when=have_begun)
    account = perform(victim, tmp_path, stops=True)
    assert killed == [state]
    refuse_lost(victim, account, tmp_path)
    assert agents() == []


@pytest.mark.parametrize("state", ["measure_clocks", "fetch", "close"])
def test_killed_after_the_end(
    victim: Victim, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def has_ended(joint: JointDrive, share: Share | None = None, *_: object) -> bool:
        return joint.go_ns is not None and (share is None or share.name == victim.name)

    killed = kill_at(monkeypatch, JointDrive, state, victim.kill, when=has_ended)
    account = perform(victim, tmp_path)
    assert killed == [state]
    if victim.what == "worker" and state != "close":
        refuse_lost(victim, account, tmp_path)
    else:  # all that it has recorded was there
        assert account["state"] == "complete"
        assert "lost_hosts" not in account
        assert account["counts"]["failed"] == 0
    assert agents() == []

"""Several load hosts: how exactly they begin, what they cost, and how much of its ceiling each drives.

Agents are processes on this machine. Dask's traffic, with its frames, is what the kernel has counted on the
worker's TCP connections (`ss`); the drive itself uses unix sockets.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil

from loadstone import model
from loadstone.hosts.cluster import client_of, workers_of
from loadstone.hosts.fleet import Fleet, open_fleet
from loadstone.hosts.places import parse_hosts
from loadstone.hosts.progress import JointProgress
from loadstone.workload.calibrate import null_server
from loadstone.workload.drive import drive_document, perform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.model import Connection

HOSTS = 2
CLIENTS = 16
SIMULATED = 100
SCRIPT = model.Script(
    "one", "\\set aid random(1, 1000000)\nselect abalance from accounts where aid = :aid;\n"
)
TESTS = Path(__file__).parents[1] / "tests"


def run(rounds: int, seconds: float) -> None:
    """Print all of it; `rounds` starts, drives of so many seconds."""
    with tempfile.TemporaryDirectory(prefix="loadstone-bench-") as folder:
        place = Path(folder)
        with open_fleet(parse_hosts(f"local:{HOSTS}"), calibrate=True) as fleet:
            _starts(fleet, place, rounds)
            _shares(fleet, place, seconds)
        _traffic(place, seconds)
    _collector(max(3, round(seconds)))


def _document(connection: Connection, folder: Path | None, seconds: float, clients: int) -> dict[str, Any]:
    drive = model.Drive(scripts=(SCRIPT,), mode="prepared", clients=clients, duration_s=seconds, seed=1)
    return drive_document(drive, connection, folder)


def _performed(
    fleet: Fleet, folder: Path, seconds: float, show: Callable[[dict[str, Any]], None] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the account of a drive on all hosts, and hosts.json."""
    path = Path(tempfile.mkdtemp(dir=folder))
    with null_server(CLIENTS * HOSTS) as (_, connection):
        account = fleet.perform(_document(connection, path, seconds, CLIENTS * HOSTS), None, show)
    return account, json.loads((path / "hosts.json").read_text())


def _starts(fleet: Fleet, folder: Path, rounds: int) -> None:
    found = [_performed(fleet, folder, 0.2)[1] for _ in range(rounds)]
    skews = sorted(one["start_skew_ns"] / 1e6 for one in found)
    errors = [host["clock"]["error_ns"] / 1e6 for one in found for host in one["hosts"]]
    print(f"### {HOSTS} load hosts on this machine\n")
    print(
        f"start skew of {rounds} starts on loopback: median {statistics.median(skews):.3f} ms, longest "
        f"{skews[-1]:.3f} ms (aim: under 1 ms); clocks known to {max(errors):.3f} ms\n"
    )


def _shares(fleet: Fleet, folder: Path, seconds: float) -> None:
    """Each host's rate as a share of what one process alone drives with as many clients."""
    with null_server(CLIENTS) as (_, connection):
        alone = _tps(perform(_document(connection, None, seconds, CLIENTS), None))
    account, hosts = _performed(fleet, folder, seconds)
    print(f"one process, {CLIENTS} clients, built-in server: {alone:,.0f} transactions/s")
    print(f"local:{HOSTS}, {CLIENTS} clients each: {_tps(account):,.0f} transactions/s\n")
    print("| host | transactions/s | of one process alone | of its own ceiling | agent CPU | agent traffic |")
    print("|---|---:|---:|---:|---:|---:|")
    for host in hosts["hosts"]:
        own = host["agent"]
        rate = _rate_of(folder, host["name"], hosts)
        share = f"{rate / host['ceiling_tps']:.0%}" if host["ceiling_tps"] else "–"
        print(
            f"| {host['name']} | {rate:,.0f} | {rate / alone:.0%} | {share} | "
            f"{own['cpu_ns_per_s'] / 1e6:.2f} ms/s | {own['bytes_per_s']:,.0f} B/s |"
        )
    print(
        f"\naim: no host under 90 % of its ceiling; that needs a core for each host and one for the server "
        f"(here: {os.cpu_count()} cores)\n"
    )


def _tps(account: dict[str, Any]) -> float:
    return float(account["counts"]["done"] / ((account["end_ns"] - account["measure_ns"]) / 1e9))


def _rate_of(folder: Path, name: str, hosts: dict[str, Any]) -> float:
    """Return a host's own rate in the drive that began at the same instant."""
    for path in folder.glob(f"*/hosts/{name}/drive.json"):
        account = json.loads(path.read_text())
        if account["start_ns"] == hosts["go_ns"]:
            return _tps(account)
    raise FileNotFoundError(name)


def _traffic(folder: Path, seconds: float) -> None:
    """One agent behind a worker process of its own, as on another machine."""
    seconds = max(5.0, seconds)
    with _worker() as (scheduler, worker), client_of(parse_hosts(scheduler)) as client:
        fleet = Fleet(client, calibrate=False)
        fleet.find(local=False)
        quiet = [_spent(worker)]
        time.sleep(seconds)
        quiet.append(_spent(worker))
        busy: list[Spent] = []
        hosts = _performed(fleet, folder, seconds, lambda _: busy.append(_spent(worker)))[1]
    own = hosts["hosts"][0]["agent"]
    print("| a second and host | CPU | bytes by TCP |\n|---|---:|---:|")
    print(_row("Dask worker, idle", *_each_second(quiet)))
    print(_row("Dask worker, while a drive is followed", *_each_second(busy)))
    print(_row("our agent, beside its drive", own["cpu_ns_per_s"] / 1e9, own["bytes_per_s"]))
    print("\naim: under 1 kB and 1 ms a second and host\n")


class Spent(NamedTuple):
    """What there was up to a moment."""

    at_s: float
    cpu_s: float
    bytes: int


def _spent(worker: psutil.Process) -> Spent:
    """Return a process's CPU time, without its children, and the bytes of its TCP connections."""
    times = worker.cpu_times()
    listed = subprocess.run(["ss", "-tinpHO"], capture_output=True, text=True, check=True).stdout
    own = [line for line in listed.splitlines() if f"pid={worker.pid}," in line]
    counted = re.findall(r"\bbytes_(?:sent|received):(\d+)", "\n".join(own))
    return Spent(time.monotonic(), times.user + times.system, sum(map(int, counted)))


def _each_second(spent: list[Spent]) -> tuple[float, float]:
    first, last = spent[0], spent[-1]
    seconds = last.at_s - first.at_s
    return (last.cpu_s - first.cpu_s) / seconds, (last.bytes - first.bytes) / seconds


def _row(name: str, cpu_s: float, sent: float) -> str:
    return f"| {name} | {cpu_s * 1e3:.2f} ms | {sent:,.0f} |"


@contextmanager
def _worker(**variables: str) -> Iterator[tuple[str, psutil.Process]]:
    """Start a scheduler and one worker as a user would; yields the scheduler's address and the worker.

    `variables` are added to their environment.
    """
    with tempfile.TemporaryDirectory(prefix="loadstone-bench-dask-") as folder:
        file = Path(folder) / "scheduler.json"
        module = [sys.executable, "-m"]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        quiet["env"] = os.environ | variables
        place = ["--no-dashboard", "--scheduler-file", str(file)]
        own = ["--host", "127.0.0.1", "--port", "0"]
        with subprocess.Popen(
            [*module, "distributed.cli.dask_scheduler", *own, *place], **quiet
        ) as scheduler:
            worker_place = [*place, "--nthreads", "1", "--no-nanny", "--local-directory", folder]
            with subprocess.Popen([*module, "distributed.cli.dask_worker", *worker_place], **quiet) as worker:
                try:
                    yield _address(file), psutil.Process(worker.pid)
                finally:
                    worker.kill()  # in order, it waits for a scheduler that is gone
                    scheduler.kill()


def _address(file: Path) -> str:
    """Wait for the scheduler and its worker, and return where the scheduler is."""
    from distributed import Client  # noqa: PLC0415 - slow to import

    for _ in range(300):
        if file.exists() and file.stat().st_size:
            break
        time.sleep(0.1)
    address = str(json.loads(file.read_text())["address"])
    with Client(address, timeout=30) as client:
        client.wait_for_workers(1, timeout=60)
    return address


def _collector(seconds: int) -> None:
    """Follow a hundred agents that answer as ours do.

    Scheduler and worker are processes of their own, as with `--hosts tcp://…`.
    """
    sys.path.insert(0, str(TESTS))
    from support.simulated_hosts import simulated  # noqa: PLC0415 - of the tests

    path = filter(None, (str(TESTS), os.environ.get("PYTHONPATH")))
    with (
        _worker(PYTHONPATH=os.pathsep.join(path)) as (scheduler, _),
        client_of(parse_hosts(scheduler)) as client,
    ):
        joint = simulated(client, workers_of(client)[0], SIMULATED)
        progress = JointProgress(joint.shares)
        client.sync(joint.look)  # connects
        begun, cpu_s = time.monotonic(), time.process_time()
        time.sleep(seconds)
        idle = (time.process_time() - cpu_s) / (time.monotonic() - begun)
        cpu_s = time.process_time()
        for _ in range(seconds):  # each is a second of the drive, and longer where the machine is busy
            client.sync(joint.look)
            progress.take()
        share = (time.process_time() - cpu_s) / seconds
    print(
        f"{SIMULATED} simulated agents cost the collector {share:.1%} of a core (aim: under 5 %), of which "
        f"{idle:.1%} is that of a Dask client that does nothing\n"
    )

"""Two load hosts in network namespaces, behind delay and loss where the kernel has netem. Needs root."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from loadstone import model
from loadstone.hosts.fleet import open_fleet
from loadstone.hosts.places import parse_hosts
from loadstone.workload.calibrate import null_server
from loadstone.workload.drive import drive_document, perform

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),  # what Dask and its libraries warn of is not ours
    pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("tc"), reason="needs root, ip and tc"
    ),
]
HERE = "10.213.77.1"
DELAY_MS = 20


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@contextlib.contextmanager
def host(number: int, *netem: str) -> Iterator[str]:
    """Make a namespace that reaches ours through a bridge, with what `netem` does to all that it sends."""
    name, far = f"ls-{os.getpid()}-{number}", f"lsf{os.getpid() % 100_000}-{number}"
    run("ip", "netns", "add", name)
    try:
        near = f"lsn{os.getpid() % 100_000}-{number}"
        run("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", name)
        run("ip", "link", "set", near, "master", bridge(), "up")
        inside = ("ip", "-n", name)
        run(*inside, "addr", "add", f"10.213.77.{10 + number}/24", "dev", far)
        run(*inside, "link", "set", far, "up")
        run(*inside, "link", "set", "lo", "up")
        added = ("tc", "-n", name, "qdisc", "add", "dev", far, "root", "netem", *netem)
        yield (
            name
            if subprocess.run(added, check=False, capture_output=True).returncode == 0
            else f"{name} near"
        )
    finally:
        run("ip", "netns", "del", name)


def bridge() -> str:
    return f"lsb{os.getpid() % 100_000}"


@pytest.fixture
def network() -> Iterator[None]:
    made = subprocess.run(["ip", "link", "add", bridge(), "type", "bridge"], check=False, capture_output=True)
    if made.returncode:
        pytest.skip(f"no bridge can be made here: {made.stderr.decode()}")
    try:
        run("ip", "addr", "add", f"{HERE}/24", "dev", bridge())
        run("ip", "link", "set", bridge(), "up")
        yield
    finally:
        run("ip", "link", "del", bridge())


@contextlib.contextmanager
def started(says: str, *command: str) -> Iterator[str]:
    """Start a program and return what it says once it is there."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield next(found[1] for line in process.stderr if (found := re.search(says, line)))
            process.stderr.close()
        finally:
            os.kill(process.pid, signal.SIGKILL)


def dask(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", f"distributed.cli.{module}", *arguments, "--no-dashboard"]


@pytest.mark.usefixtures("network")
def test_two_hosts_behind_delay_and_loss_count_as_one(tmp_path: Path) -> None:
    script = model.Script("one", "\\set n random(1, 9)\nselect :n;\n")
    asked = model.Drive(scripts=(script,), mode="simple", clients=5, transactions_per_client=40, seed=5)
    scheduler = started(r"Scheduler at: +(tcp:\S+)", *dask("dask_scheduler", "--host", HERE, "--port", "0"))
    with (
        contextlib.ExitStack() as stack,
        null_server(16) as (_, connection),
        scheduler as address,
    ):
        is_near = ""
        for number, netem in enumerate([("delay", f"{DELAY_MS}ms"), ("delay", "1ms", "loss", "2%")]):
            name, _, is_near = stack.enter_context(host(number, *netem)).partition(" ")
            worker = dask("dask_worker", address, "--no-nanny", "--nthreads", "1")
            inside = ("ip", "netns", "exec", name, *worker)
            stack.enter_context(started(r"Registered to: +(\S+)", *inside))
        fleet = stack.enter_context(open_fleet(parse_hosts(address)))
        assert len(fleet.names) == 2
        account = fleet.perform(drive_document(asked, connection, tmp_path), None)
        alone = perform(drive_document(asked, connection, None), None)
    assert account["counts"] == alone["counts"]
    assert account["counts"]["done"] == 200
    hosts = json.loads((tmp_path / "hosts.json").read_text())["hosts"]
    far, near = sorted(hosts, key=lambda one: -one["clock"]["round_trip_ns"])
    for one in (far, near):
        # Here all namespaces have one clock: its offset is 0, and known to within the error that is told.
        assert abs(one["clock"]["offset_ns"]) <= one["clock"]["error_ns"]
        assert one["clock"]["error_ns"] == pytest.approx(one["clock"]["round_trip_ns"] / 2, abs=1)
    if not is_near:
        assert far["clock"]["round_trip_ns"] >= DELAY_MS * 1e6 > near["clock"]["round_trip_ns"]

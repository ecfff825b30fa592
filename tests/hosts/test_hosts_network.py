"""Load hosts in network namespaces: links with delay and loss, and one that goes dead. Needs root."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from support.far_network import HERE, FarNetwork, RefusedError, address, far_network

from loadstone.personalities import pgbench

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.sandbox import Database

pytestmark = pytest.mark.slow
SERVER_PORT, DASK_PORT = 5432, 8786
"""Free in every new namespace."""
DELAYS_S = {1: (0.015, 0.015), 2: (0.004, 0.03)}
"""Of each host's link, there and back: one is symmetric, the other one is not."""
AHEAD_S = {1: 1000, 2: 5}
"""By so much the monotonic clocks of the hosts are ahead of ours. Not where a drive ends by time: io_uring
takes a time of such a clock for one of the kernel's, and wakes the driver too late."""
LOSS = 0.01
CLIENTS, EACH = 6, 15
CHOICES = "\\set value random(1, 1000000000)\ninsert into choices values (:client_id, :value);\n"
COMMAND = """
from loadstone.hosts import joint
joint.PATIENCE_S, joint.AGAIN_S = {patience_s}, 1.0
from loadstone.cli import main
main()
"""
USUAL_S = 10.0
"""So long a host may be silent before it is lost."""


@pytest.fixture
def network() -> Iterator[FarNetwork]:
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(far_network(2))
        except RefusedError as refused:
            pytest.skip(str(refused))
        yield made


@contextlib.contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Start a program; it is killed at the end, and its agents end with it."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            agents = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            _, left = psutil.wait_procs(agents, timeout=60)
            assert not left, "an agent outlives its Dask worker"


def wait_for(process: subprocess.Popen[str], words: str) -> None:
    """Wait for what a program says once it is there."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if words in line:
            break
    else:
        pytest.fail(f"it ended in place of saying '{words}': {''.join(said)}")
    process.stderr.close()


def dask(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", f"distributed.cli.{program}", *arguments, "--no-dashboard"]


@pytest.fixture
def hosts(network: FarNetwork, request: pytest.FixtureRequest) -> Iterator[str]:
    """Start a Dask scheduler here, and a worker on each host; returns the value of `--hosts`.

    The parameter is how far the clocks of the hosts are ahead; none are.
    """
    scheduler = f"tcp://{HERE}:{DASK_PORT}"
    ahead_s: dict[int, int] = getattr(request, "param", {})
    with contextlib.ExitStack() as stack:
        here = dask("dask_scheduler", "--host", HERE, "--port", str(DASK_PORT))
        wait_for(stack.enter_context(started(network.inside(0, *here))), "Scheduler at:")
        workers = []
        for number in (1, 2):
            there = dask("dask_worker", scheduler, "--host", address(number), "--no-nanny", "--nthreads", "1")
            worker = started(network.inside(number, *there, ahead_s=ahead_s.get(number, 0)))
            workers.append(stack.enter_context(worker))
        for process in workers:
            wait_for(process, "Registered to:")
        yield scheduler


@pytest.fixture
def url(network: FarNetwork, database: Database) -> Iterator[str]:
    """Return where the hosts find the database: at our address in the network."""
    there = database.server.connection
    with started(network.passing_on(f"{there.host}/.s.PGSQL.{there.port}", SERVER_PORT)) as process:
        wait_for(process, "listening")
        yield f"postgres://{there.user}@{HERE}:{SERVER_PORT}/{database.name}"


@pytest.fixture
def asked(database: Database, tmp_path: Path) -> list[str]:
    """Return what makes clients choose, and the database keep it."""
    database.execute("create table choices (client int, value int, at serial)")
    (tmp_path / "choices.sql").write_text(CHOICES)
    return ["-n", "-f", str(tmp_path / "choices.sql"), "-c", str(CLIENTS), "--random-seed=3"]


def chosen(database: Database) -> list[tuple[int, int]]:
    with database.connect() as connection:
        rows = connection.execute("select client, value from choices order by client, at").fetchall()
        connection.execute("truncate choices restart identity")
    return rows


def loadstone(network: FarNetwork, patience_s: float, *arguments: str) -> list[str]:
    """Return the command as it is run here; `patience_s`: so long a host may be silent."""
    return network.inside(0, sys.executable, "-c", COMMAND.format(patience_s=patience_s), *arguments)


@pytest.mark.parametrize("hosts", [AHEAD_S], indirect=True, ids=["clocks-apart"])
def test_two_hosts_behind_delay_and_loss_make_the_choices_of_one(
    network: FarNetwork, hosts: str, url: str, database: Database, asked: list[str], tmp_path: Path
) -> None:
    asked += ["-t", str(EACH)]
    out: list[str] = []
    assert pgbench.main([*asked, database.url], out.append, out.append) == 0, "".join(out)
    alone = chosen(database)
    assert len(set(alone)) == CLIENTS * EACH
    for number, delays_s in DELAYS_S.items():
        network.order(number, delays_s=delays_s, loss=LOSS)
    kept = tmp_path / "out"
    command = loadstone(network, USUAL_S, "pgbench", *asked, "--hosts", hosts, "--out", str(kept), url)
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert chosen(database) == alone
    assert f"number of transactions actually processed: {CLIENTS * EACH}/{CLIENTS * EACH}" in done.stdout
    assert all(lost for number in DELAYS_S for lost in network.order(number)), "nothing was lost on the way"
    account = json.loads((kept / "drive.json").read_text())
    assert (account["counts"]["done"], account["counts"]["failed"]) == (CLIENTS * EACH, 0)
    assert account["response"]["min_ns"] >= 1e9 * min(map(sum, DELAYS_S.values()))
    compare_clocks(network, json.loads((kept / "hosts.json").read_text()))
    assert re.search(r"warning: 2 load hosts may have begun .* apart, more than 10 ms", done.stderr)


def compare_clocks(network: FarNetwork, document: dict[str, Any]) -> None:
    """What is said of clocks and of the common start is true, however a delay is divided between the ways."""
    begun, errors = [], []
    for one, (number, delays_s) in zip(document["hosts"], DELAYS_S.items(), strict=True):
        clock, ahead_ns = one["clock"], AHEAD_S[number] * 10**9 if network.has_clocks else 0
        assert clock["round_trip_ns"] >= sum(delays_s) * 1e9
        assert abs(clock["offset_ns"] - ahead_ns) <= clock["error_ns"]
        assert 2 * clock["error_ns"] >= clock["round_trip_ns"]
        assert one["began_after_go_ns"] >= 0
        begun.append(one["began_after_go_ns"] + clock["offset_ns"] - ahead_ns)
        errors.append(clock["error_ns"])
    assert max(begun) - min(begun) <= document["start_skew_ns"] + sum(errors)
    assert document["start_skew_ns"] + max(errors) > document["start_skew_limit_ns"]


def test_a_host_whose_link_goes_dead_is_lost_and_the_figures_of_the_other_are_kept(
    network: FarNetwork, hosts: str, url: str, database: Database, asked: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    asked += ["-T", "600", "-P", "1", "--hosts", hosts, "--out", str(out)]
    command = loadstone(network, 3.0, "pgbench", *asked, url)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        try:
            said = ""
            for line in run.stderr:
                said += line
                if line.startswith("progress:"):
                    network.order(2, loss=1.0)
            printed = run.stdout.read()
            assert run.wait(60) == 2, said
        finally:
            run.kill()
    kept, lost = (one["name"] for one in json.loads((out / "hosts.json").read_text())["hosts"])
    assert f"load host {lost} was lost: it did not answer within" in said
    account = json.loads((out / "drive.json").read_text())
    assert (account["state"], account["lost_hosts"]) == ("aborted", [lost])
    of_kept = json.loads((out / "hosts" / kept / "drive.json").read_text())
    assert account["counts"]["done"] == of_kept["counts"]["done"] > 0
    assert f"number of transactions actually processed: {of_kept['counts']['done']}\n" in printed
    # Half of the clients were the lost host's, and nobody took them over.
    stored = sum(client < CLIENTS / 2 for client, _ in chosen(database))
    assert 0 <= stored - of_kept["counts"]["done"] <= of_kept["counts"]["failed"]

"""sysbench's workloads: `loadstone sysbench` beside the installed sysbench, the same command line, in turns.

CPU and memory are those of the client's process from its start to its end; the CPU of a run of one event for
each client, which is start, connecting and preparing, is measured apart and taken off. MariaDB is the
installed one, in a folder of its own, unless the socket of another server is given.
"""

from __future__ import annotations

import itertools
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.engines.mariadb.server import PrivateMaria
from loadstone.errors import LoadstoneError
from loadstone.private_server import EmbeddedServer, ServerSpec
from loadstone.private_server.folder import PrivateFolder
from loadstone.private_server.os_user import server_account

if TYPE_CHECKING:
    from collections.abc import Iterator

OURS = Path(sys.executable).with_name("loadstone")
WORKLOADS = ("oltp_point_select", "oltp_read_only", "oltp_read_write")
CLIENTS = (1, 8, 64, 512)
TABLES = ("--tables=4", "--table-size=20000")
PREPARED = ("--tables=10", "--table-size=100000")
CPU_AIM = 0.5
MEMORY_AIM = 0.1
PREPARE_AIM = 3.0
_DATABASE = "sbtest"
_STARTER = """import os, sys, time
begun = time.monotonic()
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)])
status, used = os.wait4(pid, 0)[1:]
print(time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))"""
_MEASURE = (sys.executable, "-I", "-S", "-c", _STARTER)
"""A small process starts each side: what it begins with counts as memory of the program that it becomes."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is measured."""

    workloads: tuple[str, ...] = WORKLOADS
    clients: tuple[int, ...] = CLIENTS
    prepared: tuple[str, ...] = PREPARED


WHOLE = Extent()
QUICK = Extent(("oltp_point_select",), (1, 512), ("--tables=2", "--table-size=20000"))
"""A row of each kind, to see that all of it works."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one side."""

    wall_s: float
    cpu_s: float
    memory_mib: float
    events: int
    tps: float


@dataclass(frozen=True, slots=True)
class Place:
    """A server, and the two programs."""

    title: str
    options: tuple[str, ...]
    sides: tuple[tuple[str, ...], tuple[str, ...]]
    seconds: float
    extent: Extent


def run(target: str, rounds: int, seconds: float | None, socket: str | None, extent: Extent = WHOLE) -> None:
    """Print the tables of PostgreSQL, and of the server behind `socket`, or of a private MariaDB."""
    peer = shutil.which("sysbench")
    if peer is None:
        print("sysbench is not installed: the comparison is left out (Debian: sysbench)\n")
        return
    sides = ((peer,), (str(OURS), "sysbench"))
    seconds = seconds or 5.0
    with EmbeddedServer(ServerSpec(name=target, clients=2 * max(CLIENTS))) as server:
        there = server.connection
        place = ("--db-driver=pgsql", f"--pgsql-host={there.host}", f"--pgsql-port={there.port}")
        account = (f"--pgsql-user={there.user}", f"--pgsql-db={there.database}")
        _measure(Place(str(server.build), (*place, *account), sides, seconds, extent), rounds)
    try:
        with _mysql(socket) as (title, options):
            _measure(Place(title, options, sides, seconds, extent), rounds)
    except LoadstoneError as error:
        print(f"MySQL and MariaDB are left out: {error.message} (--mysql-socket names a server)\n")


@contextmanager
def _mysql(socket: str | None) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what the server is called, and the options by which both programs reach it."""
    if socket is not None:
        yield "MySQL or MariaDB", _mysql_options(socket)
        return
    with PrivateFolder(user=server_account()) as folder:
        server = PrivateMaria(folder.path, {}, 2 * max(CLIENTS))
        try:
            control = server.connect_as_user()
            control.execute(f"CREATE DATABASE {_DATABASE}")
            yield "the installed MariaDB", _mysql_options(server.connection.host)
        finally:
            server.close()


def _mysql_options(socket: str) -> tuple[str, ...]:
    return ("--db-driver=mysql", f"--mysql-socket={socket}", "--mysql-user=root", f"--mysql-db={_DATABASE}")


def _measure(place: Place, rounds: int) -> None:
    _prepare_table(place, rounds)
    _once(place, 0, (*TABLES, "oltp_read_write", "prepare"))
    _events_table(place, rounds)
    _once(place, 0, (*TABLES, "oltp_read_write", "cleanup"))


def _events_table(place: Place, rounds: int) -> None:
    print(f"### sysbench's workloads on {place.title}: {rounds} rounds of {place.seconds:g} s, medians\n")
    print(
        "| workload | clients | sysbench tps | ours tps | ratio | sysbench CPU µs/event | ours | ratio "
        "| sysbench MiB | ours | ratio |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for workload, clients in itertools.product(place.extent.workloads, place.extent.clients):
        limits = (f"--threads={clients}", "--rand-seed=1")
        short = (*TABLES, *limits, "--time=0", f"--events={clients}", workload, "run")
        long = (*TABLES, *limits, f"--time={place.seconds:.0f}", workload, "run")
        starts = [statistics.median(_once(place, side, short).cpu_s for _ in range(3)) for side in (0, 1)]
        runs: tuple[list[Run], list[Run]] = ([], [])
        for side in _turns(rounds):
            runs[side].append(_once(place, side, long))
        tps = [statistics.median(r.tps for r in side) for side in runs]
        cpu = [
            statistics.median((r.cpu_s - start) / max(1, r.events) * 1e6 for r in side)
            for side, start in zip(runs, starts, strict=True)
        ]
        memory = [statistics.median(r.memory_mib for r in side) for side in runs]
        print(
            f"| {workload} | {clients} | {_pair(tps, 0)} | {_pair(cpu, 1)} | {_pair(memory, 1)} |", flush=True
        )
    print(
        f"\naims: tps ratio at least 1, CPU at most {CPU_AIM}, memory at 512 clients at most {MEMORY_AIM}\n"
    )


def _prepare_table(place: Place, rounds: int) -> None:
    size = " ".join(place.extent.prepared)
    print(f"### prepare on {place.title}: {size}, {rounds} rounds in turns, medians\n")
    print("| threads | sysbench s | ours s | ratio | sysbench CPU s | ours | ratio |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for threads in (1, 2):
        runs: tuple[list[Run], list[Run]] = ([], [])
        for side in _turns(rounds):
            words = (*place.extent.prepared, f"--threads={threads}", "oltp_read_write")
            runs[side].append(_once(place, side, (*words, "prepare")))
            _once(place, side, (*words, "cleanup"))
        wall = [statistics.median(r.wall_s for r in side) for side in runs]
        cpu = [statistics.median(r.cpu_s for r in side) for side in runs]
        print(f"| {threads} | {_pair(wall, 2)} | {_pair(cpu, 2)} |", flush=True)
    print(f"\naim: ours at least {PREPARE_AIM:g} times as fast\n")


def _pair(values: list[float], digits: int) -> str:
    theirs, ours = values
    return f"{theirs:,.{digits}f} | {ours:,.{digits}f} | {ours / theirs if theirs else 0:.2f}"


def _turns(rounds: int) -> Iterator[int]:
    """Name the sides, ABBA: neither is always the first of its pair."""
    for number in range(rounds):
        yield from (0, 1) if number % 2 == 0 else (1, 0)


def _once(place: Place, side: int, words: tuple[str, ...]) -> Run:
    """Run one side; ends the program where that fails."""
    with tempfile.TemporaryFile("w+") as said:
        command = [*_MEASURE, *place.sides[side], *place.options, *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=said, text=True, check=False)
        said.seek(0)
        text = said.read()
    if done.returncode != 0:
        sys.exit(f"{' '.join(place.sides[side])} {' '.join(words)} failed:\n{text}")
    wall_s, cpu_s, memory_kib = map(float, done.stdout.split())
    events = re.search(r"transactions: +(\d+) +\(([\d.]+) per sec", text)
    return Run(
        wall_s=wall_s,
        cpu_s=cpu_s,
        memory_mib=memory_kib / 1024,
        events=int(events[1]) if events else 0,
        tps=float(events[2]) if events else 0.0,
    )

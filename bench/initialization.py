"""`pgbench -i`: ours beside the installed pgbench, on the same private server, in turns.

Every command makes the tables again with the default steps; a checkpoint comes before each, so that none
pays for the pages of another. CPU is user and system time: of the client from its start to its end, and of
the server's processes together.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from loadstone.private_server import EmbeddedServer, ServerSpec

SCALE = 50
OURS = Path(sys.executable).with_name("loadstone")
JOBS = 4
OPTIONS: tuple[tuple[str, ...], ...] = ((), ("--partitions=8",))
"""Options of both: plain tables, then partitions."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One initialization."""

    wall_s: float
    client_s: float
    """CPU of the client."""
    server_s: float
    """CPU of the server."""


def run(target: str, rounds: int) -> None:
    """Print the table."""
    pgbench = shutil.which("pgbench")
    if pgbench is None:
        print("pgbench is not installed: -i is not compared (Debian: postgresql-client)\n")
        return
    with EmbeddedServer(ServerSpec(name=target, clients=20)) as server:
        print(f"### Initialization, scale {SCALE}, {rounds} rounds in turns, server: {server.build}\n")
        for options in OPTIONS:
            sides = _sides(pgbench, options)
            measured: dict[str, list[Figures]] = {side: [] for side in sides}
            for number in range(rounds):
                for side in sides if number % 2 == 0 else reversed(sides):
                    measured[side].append(_initialize(server, sides[side]))
            _print(measured)


def _sides(pgbench: str, options: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the commands to compare, by what the table calls them."""
    ours = [str(OURS), "pgbench", "-i", *options]
    named = " ".join(("pgbench -i", *options))
    return {
        named: [pgbench, "-i", *options],
        f"loadstone {named}": ours,
        f"loadstone {named} -j {JOBS}": [*ours, "-j", str(JOBS)],
    }


def _initialize(server: EmbeddedServer, command: list[str]) -> Figures:
    where = server.connection
    environment = os.environ | {
        "PGHOST": where.host,
        "PGPORT": str(where.port),
        "PGUSER": where.user,
        "PGDATABASE": where.database,
        "PGPASSWORD": where.password or "",
    }
    _checkpoint(server)
    server_s, client = _server_cpu_s(server), resource.getrusage(resource.RUSAGE_CHILDREN)
    begun_s = time.monotonic()
    done = subprocess.run(
        [*command, "-q", "-s", str(SCALE)], env=environment, capture_output=True, text=True, check=False
    )
    wall_s = time.monotonic() - begun_s
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    client_s = (after.ru_utime + after.ru_stime) - (client.ru_utime + client.ru_stime)
    return Figures(wall_s, client_s, _server_cpu_s(server) - server_s)


def _checkpoint(server: EmbeddedServer) -> None:
    from loadstone.engines.postgres import ENGINE  # noqa: PLC0415 - only the real run needs it

    with ENGINE.connect(server.connection) as control:
        control.execute("checkpoint")


def _server_cpu_s(server: EmbeddedServer) -> float:
    """Return the CPU of the server's processes, of those that have ended as well."""
    postmaster = psutil.Process(server.pid)
    total_s = 0.0
    for process in postmaster.children():
        with contextlib.suppress(psutil.NoSuchProcess):  # its CPU is then among the postmaster's
            own = process.cpu_times()
            total_s += own.user + own.system
    times = postmaster.cpu_times()
    return float(total_s + times.user + times.system + times.children_user + times.children_system)


def _print(measured: dict[str, list[Figures]]) -> None:
    theirs = next(iter(measured.values()))
    print("| command | wall s | range | pgbench's wall / its | client CPU s | server CPU s |")
    print("|---|---:|---|---:|---:|---:|")
    for side, figures in measured.items():
        walls = sorted(f.wall_s for f in figures)
        ratio = statistics.median(t.wall_s / f.wall_s for t, f in zip(theirs, figures, strict=True))
        cells = (
            side,
            f"{statistics.median(walls):.2f}",
            f"{walls[0]:.2f}–{walls[-1]:.2f}",
            f"{ratio:.2f}",
            f"{statistics.median(f.client_s for f in figures):.2f}",
            f"{statistics.median(f.server_s for f in figures):.2f}",
        )
        print(f"| {' | '.join(cells)} |")
    print()

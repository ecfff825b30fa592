"""Loadstone's driver beside the installed pgbench: same private server, same scripts, prepared, unix socket.

The two sides take turns, round by round, so that what else the machine does meets both alike; the table shows
medians. CPU is that of the whole client process while it drives, for pgbench from its start to its end.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone import model
from loadstone.private_server import EmbeddedServer, ServerSpec
from loadstone.workload.drive import drive_document, perform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCALE = 10
SELECT = "\\set aid random(1, 100000 * :scale)\nselect abalance from pgbench_accounts where aid = :aid;\n"
INSERT = "insert into feed (id, val) values (1,0.1);\n"
CASES = (
    ("select-only", SELECT, (1, 8, 32, 128)),
    ("iot-feed, one row", INSERT, (8, 32)),
)
ACCOUNTS = f"""
create table pgbench_accounts as
select aid, 1 as bid, 0 as abalance, repeat(' ', 84)::char(84) as filler
from generate_series(1, {SCALE} * 100000) aid
"""
SETUP = (
    ACCOUNTS,
    "alter table pgbench_accounts add primary key (aid)",
    "create table feed (id int, val float, crt_time timestamp default now())",
    "create index idx_feed on feed using brin (crt_time)",
    "vacuum analyze pgbench_accounts",
)


@dataclass(frozen=True, slots=True)
class Figures:
    """One run of one side."""

    tps: float
    cpu_us: float
    """Client CPU per transaction."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where both sides connect, and for how long they run."""

    connection: model.Connection
    seconds: float
    pgbench: str


def run(target: str, rounds: int, seconds: float) -> None:
    """Print the table."""
    pgbench = shutil.which("pgbench")
    if pgbench is None:
        print("pgbench is not installed: the comparison is left out (Debian: postgresql-client)\n")
        return
    version = subprocess.run(
        [pgbench, "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()
    most = max(clients for _, _, numbers in CASES for clients in numbers)
    # Twice as many as needed: a run may begin while the sessions of the one before still end.
    with EmbeddedServer(ServerSpec(name=target, clients=2 * most)) as server:
        _set_up(server.connection)
        print(f"### Beside {version}, server: {server.build}\n")
        print(
            f"{rounds} interleaved rounds of {seconds:g} s, medians; one thread on each side; "
            "ratio = ours / pgbench\n"
        )
        print(
            "| script | clients | pgbench tps | ours tps | ratio | spread of ratio "
            "| pgbench CPU µs/tx | ours CPU µs/tx | ratio |"
        )
        print("|---|---:|---:|---:|---:|---|---:|---:|---:|")
        place = Place(server.connection, seconds, pgbench)
        for name, script, numbers in CASES:
            for clients in numbers:
                print(_row(name, script, clients, place, rounds), flush=True)
    print()


def _set_up(connection: model.Connection) -> None:
    from loadstone.engines.postgres import ENGINE  # noqa: PLC0415 - only the real run needs it

    with ENGINE.connect(connection) as control:
        for statement in SETUP:
            control.execute(statement.encode())


def _row(name: str, script: str, clients: int, place: Place, rounds: int) -> str:
    theirs: list[Figures] = []
    ours: list[Figures] = []
    for side in _turns(rounds):
        measured = (_pgbench if side == "theirs" else _loadstone)(script, clients, place)
        (theirs if side == "theirs" else ours).append(measured)
    ratios = sorted(o.tps / t.tps for o, t in zip(ours, theirs, strict=True))
    tps_theirs, tps_ours = _median(theirs, lambda f: f.tps), _median(ours, lambda f: f.tps)
    cpu_theirs, cpu_ours = _median(theirs, lambda f: f.cpu_us), _median(ours, lambda f: f.cpu_us)
    cells = (
        name,
        str(clients),
        f"{tps_theirs:,.0f}",
        f"{tps_ours:,.0f}",
        f"{tps_ours / tps_theirs:.2f}",
        f"{ratios[0]:.2f}–{ratios[-1]:.2f}",
        f"{cpu_theirs:.2f}",
        f"{cpu_ours:.2f}",
        f"{cpu_ours / cpu_theirs:.2f}",
    )
    return f"| {' | '.join(cells)} |"


def _turns(rounds: int) -> Iterator[str]:
    """ABBA: neither side is always the first of its pair."""
    for number in range(rounds):
        yield from ("theirs", "ours") if number % 2 == 0 else ("ours", "theirs")


def _median(figures: list[Figures], of: Callable[[Figures], float]) -> float:
    return statistics.median(of(figure) for figure in figures)


def _pgbench(script: str, clients: int, place: Place) -> Figures:
    where = place.connection
    environment = os.environ | {"PGPASSWORD": where.password or ""}
    command = [place.pgbench, "-n", "-M", "prepared", "-f", "-", "-c", str(clients), "-j", "1"]
    command += ["-T", f"{place.seconds:.0f}", "-D", f"scale={SCALE}"]
    command += ["-h", where.host, "-p", str(where.port), "-U", where.user, where.database]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, input=script, capture_output=True, text=True, env=environment, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"pgbench failed: {done.stderr}")
    tps = float(_found(r"tps = ([\d.]+) \(without", done.stdout))
    transactions = int(_found(r"actually processed: (\d+)", done.stdout))
    return Figures(tps, _cpu_s(before, after) / transactions * 1e6)


def _loadstone(script: str, clients: int, place: Place) -> Figures:
    drive = model.Drive(
        scripts=(model.Script("bench", script),),
        clients=clients,
        threads=1,
        duration_s=place.seconds,
        variables={"scale": SCALE},
    )
    before = resource.getrusage(resource.RUSAGE_SELF)
    account = perform(drive_document(drive, place.connection, None), None)
    after = resource.getrusage(resource.RUSAGE_SELF)
    done = account["counts"]["done"]
    if account["state"] != "complete" or account["counts"]["failed"]:
        sys.exit(f"our run failed: {account['reason']} {account['errors']}")
    elapsed_s = (account["end_ns"] - account["measure_ns"]) / 1e9
    return Figures(done / elapsed_s, _cpu_s(before, after) / done * 1e6)


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        sys.exit(f"pgbench's output is not understood:\n{text}")
    return match.group(1)


def _cpu_s(before: resource.struct_rusage, after: resource.struct_rusage) -> float:
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)

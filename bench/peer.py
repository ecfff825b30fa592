"""Loadstone's driver beside the installed pgbench: same private server, same scripts, prepared, unix socket.

The two sides take turns, round by round, so that what else the machine does meets both alike; the table shows
medians. CPU is that of the whole client process while it drives, for pgbench from its start to its end.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from bench.sides import Case, Place, in_turns, median
from loadstone.private_server import EmbeddedServer, ServerSpec

if TYPE_CHECKING:
    from loadstone import model

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
        place = Place(server.connection, seconds, pgbench, SCALE)
        for name, script, numbers in CASES:
            for clients in numbers:
                print(_row(name, Case(script, clients), place, rounds), flush=True)
    print()


def _set_up(connection: model.Connection) -> None:
    from loadstone.engines.postgres import ENGINE  # noqa: PLC0415 - only the real run needs it

    with ENGINE.connect(connection) as control:
        for statement in SETUP:
            control.execute(statement.encode())


def _row(name: str, case: Case, place: Place, rounds: int) -> str:
    theirs, ours = in_turns(case, place, rounds)
    ratios = sorted(o.tps / t.tps for o, t in zip(ours, theirs, strict=True))
    tps_theirs, tps_ours = median(theirs, lambda f: f.tps), median(ours, lambda f: f.tps)
    cpu_theirs, cpu_ours = median(theirs, lambda f: f.cpu_us), median(ours, lambda f: f.cpu_us)
    cells = (
        name,
        str(case.clients),
        f"{tps_theirs:,.0f}",
        f"{tps_ours:,.0f}",
        f"{tps_ours / tps_theirs:.2f}",
        f"{ratios[0]:.2f}–{ratios[-1]:.2f}",
        f"{cpu_theirs:.2f}",
        f"{cpu_ours:.2f}",
        f"{cpu_ours / cpu_theirs:.2f}",
    )
    return f"| {' | '.join(cells)} |"

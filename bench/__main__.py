"""`python -m bench`: run the benchmarks and print their tables in Markdown."""

from __future__ import annotations

import argparse
import platform
import sys
from typing import TYPE_CHECKING

from bench import (
    bulk,
    ceiling,
    connections,
    fit,
    flights,
    generate,
    hosts,
    in_flight,
    initialization,
    ledger,
    load,
    peer,
    pgbench,
    power_disk,
    queries,
    query_times,
    rows,
    slo,
    startup,
    sysbench,
    watching,
)

if TYPE_CHECKING:
    from collections.abc import Callable

PARTS = (
    "peer",
    "pgbench",
    "sysbench",
    "initialization",
    "startup",
    "ceiling",
    "ledger",
    "connections",
    "generate",
    "rows",
    "load",
    "bulk",
    "flights",
    "queries",
    "query_times",
    "in_flight",
    "fit",
    "watching",
    "hosts",
    "power_disk",
    "slo",
)


def main() -> int:
    """Run what was requested."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, help="interleaved runs of each side (default 5; pgbench: 3)")
    parser.add_argument("--seconds", type=float, help="length of each run (default 5; pgbench: 1)")
    parser.add_argument("--target", default="pg", help="private server to measure on (default pg)")
    parser.add_argument("--only", choices=PARTS, help="run one part")
    parser.add_argument(
        "--quick", action="store_true", help="of pgbench and sysbench: a few rows of every kind"
    )
    parser.add_argument(
        "--pick",
        nargs="+",
        metavar="WORD",
        choices=pgbench.words(),
        default=[],
        help=f"of pgbench: only rows with these words, of each kind: {' '.join(pgbench.words())}",
    )
    parser.add_argument(
        "--mysql-socket",
        help="of sysbench: socket of a MySQL or MariaDB, root without password (default: a private MariaDB)",
    )
    given = parser.parse_args()
    rounds = given.rounds or 5
    print(f"machine: {platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}\n")
    parts: dict[str, Callable[[], None]] = {
        "peer": lambda: peer.run(given.target, rounds, given.seconds or 5.0),
        "pgbench": lambda: pgbench.run(
            given.target, given.rounds, given.seconds, pgbench.QUICK if given.quick else given.pick
        ),
        "sysbench": lambda: sysbench.run(
            given.target,
            given.rounds or 3,
            given.seconds,
            given.mysql_socket,
            sysbench.QUICK if given.quick else sysbench.WHOLE,
        ),
        "initialization": lambda: initialization.run(given.target, rounds),
        "startup": lambda: startup.run(given.target, rounds),
        "ceiling": lambda: ceiling.run(rounds),
        "ledger": lambda: ledger.run(rounds, given.seconds or 1.0),
        "connections": connections.run,
        "generate": lambda: generate.run(rounds),
        "rows": rows.run,
        "load": lambda: load.run(rounds),
        "bulk": lambda: bulk.run(given.target, rounds),
        "flights": lambda: flights.run(given.target, rounds),
        "queries": lambda: queries.run(rounds),
        "query_times": lambda: query_times.run(given.target, rounds),
        "in_flight": in_flight.run,
        "fit": lambda: fit.run(rounds),
        "watching": watching.run,
        "hosts": lambda: hosts.run(given.rounds or 20, given.seconds or 5.0),
        "power_disk": lambda: power_disk.run(given.target, given.rounds or 3, given.seconds or 5.0),
        "slo": lambda: slo.run(rounds, given.seconds or 3.0),
    }
    for name in PARTS:
        if given.only in (None, name):
            parts[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())

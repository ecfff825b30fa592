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
    in_flight,
    initialization,
    load,
    peer,
    queries,
    query_times,
    rows,
    startup,
)

if TYPE_CHECKING:
    from collections.abc import Callable

PARTS = (
    "peer",
    "initialization",
    "startup",
    "ceiling",
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
)


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="interleaved runs of each side (default 5)")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each run (default 5)")
    parser.add_argument("--target", default="pg", help="private server to measure on (default pg)")
    parser.add_argument("--only", choices=PARTS, help="run one part")
    given = parser.parse_args()
    print(f"machine: {platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}\n")
    parts: dict[str, Callable[[], None]] = {
        "peer": lambda: peer.run(given.target, given.rounds, given.seconds),
        "initialization": lambda: initialization.run(given.target, given.rounds),
        "startup": lambda: startup.run(given.target, given.rounds),
        "ceiling": lambda: ceiling.run(given.rounds),
        "connections": connections.run,
        "generate": lambda: generate.run(given.rounds),
        "rows": rows.run,
        "load": lambda: load.run(given.rounds),
        "bulk": lambda: bulk.run(given.target, given.rounds),
        "flights": lambda: flights.run(given.target, given.rounds),
        "queries": lambda: queries.run(given.rounds),
        "query_times": lambda: query_times.run(given.target, given.rounds),
        "in_flight": in_flight.run,
        "fit": lambda: fit.run(given.rounds),
    }
    for name in PARTS:
        if given.only in (None, name):
            parts[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())

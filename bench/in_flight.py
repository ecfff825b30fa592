"""How many of many clients of DuckDB have a query in flight, and what a query costs the process."""

from __future__ import annotations

import resource
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.target import open_target, parse_target
from loadstone.workload.queries.execution import QueryOptions, perform_all

if TYPE_CHECKING:
    from loadstone.target import OpenTarget

CLIENTS = (1, 10, 50)
SECONDS = 3.0
TEXTS = 1000
SETUP = "create table main.t as select i as id, i % 100 as g, i * 0.5 as x from range(1, 1000001) s(i)"
QUERIES = {
    "nothing": "select {0} as one",
    "2,000 rows of a million": (
        "select g, count(*) as n, avg(x) as mean from main.t where id between {0} and {0} + 2000 group by g"
    ),
    "all rows": "select g, sum(x) as s, count(*) as n from main.t where id > {0} group by g",
}


def run() -> None:
    """Print the table."""
    print("### Queries under way on DuckDB in memory (mean, by Little's law)\n")
    print("| query | clients | queries/s | latency ms | under way | CPU µs/query |")
    print("|---|---:|---:|---:|---:|---:|")
    with open_target(parse_target("duckdb::memory:"), max(CLIENTS)) as opened:
        with closing(opened.connect("bench")) as control:
            control.execute(SETUP)
        for name, sql in QUERIES.items():
            for clients in CLIENTS:
                print(f"| {name} | {clients} | {_measured(opened, clients, sql)} |", flush=True)
    print()


def _measured(opened: OpenTarget, clients: int, sql: str) -> str:
    texts = [("", sql.format(number * 7919 % 900_000)) for number in range(TEXTS)]
    options = QueryOptions(workers=clients, duration_s=SECONDS, resting=False, records=False)
    before = _cpu_s()
    with tempfile.TemporaryDirectory(prefix="loadstone-bench-") as folder:
        account = perform_all(texts, opened, Path(folder), None, None, options)
    cpu_s, done = _cpu_s() - before, account["counts"]["done"]
    per_s = done / ((account["end_ns"] - account["start_ns"]) / 1e9)
    latency_s = account["service"]["mean_ns"] / 1e9
    cells = (
        f"{per_s:,.0f}",
        f"{latency_s * 1e3:.3f}",
        f"{per_s * latency_s:.1f}",
        f"{cpu_s / done * 1e6:,.0f}",
    )
    return " | ".join(cells)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

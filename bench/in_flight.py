"""How many of fifty clients of DuckDB have a query under way: the measurement of crates/adbc/examples."""

from __future__ import annotations

import json
import subprocess

from loadstone.engines.duckdb.adbc import spec

CLIENTS = (1, 2, 50)
SECONDS = 3
SETUP = (
    "create table t (id int, g int, x double);"
    "insert into t select i, i % 100, i * 0.5 from range(1, 1000001) s(i)"
)
QUERIES = {
    "nothing": "select {} as one",
    "2,000 rows of a million": (
        "select g, count(*) as n, avg(x) as mean from t where id between {0} and {0} + 2000 group by g"
    ),
    "all rows": "select g, sum(x) as s, count(*) as n from t where id > {} group by g",
}


def run() -> None:
    """Print the table."""
    print("### Queries under way on DuckDB in memory, by clients of the core (mean, by Little's law)\n")
    print("| query | clients | queries/s | latency ms | under way |")
    print("|---|---:|---:|---:|---:|")
    for name, sql in QUERIES.items():
        for clients in CLIENTS:
            _, rate, latency, under_way = _measured(clients, sql.replace("{0}", "{}"))
            print(f"| {name} | {clients} | {rate} | {latency} | {under_way} |", flush=True)
    print()


def _measured(clients: int, sql: str) -> list[str]:
    command = ["cargo", "run", "--quiet", "--release", "-p", "loadstone-adbc", "--example", "in_flight", "--"]
    given = [json.dumps(spec(None, {})), str(clients), str(SECONDS), SETUP, sql]
    done = subprocess.run([*command, *given], check=True, capture_output=True, text=True)
    return done.stdout.split()

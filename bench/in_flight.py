"""How many of fifty clients of DuckDB have a query under way: the measurement of crates/adbc/examples.

DuckDB's library is a module of Python and refers to names of the interpreter, which a process of another kind
has only if Python's shared library is loaded first: a Python without one cannot run this.
"""

from __future__ import annotations

import json
import subprocess
import sysconfig
from functools import cache

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
    given = [json.dumps(spec(None, {})), str(clients), str(SECONDS), SETUP, sql]
    python = f"{sysconfig.get_config_var('LIBDIR')}/{sysconfig.get_config_var('LDLIBRARY')}"
    done = subprocess.run(
        ["env", f"LD_PRELOAD={python}", *_built(), *given], check=True, capture_output=True, text=True
    )
    return done.stdout.split()


@cache
def _built() -> list[str]:
    """Build the example, without Python's library; returns how it is started."""
    command = ["cargo", "build", "--release", "-p", "loadstone-adbc", "--example", "in_flight"]
    built = subprocess.run(
        [*command, "--message-format=json"], check=True, capture_output=True, text=True
    ).stdout
    made = [json.loads(line).get("executable") for line in built.splitlines()]
    return [path for path in made if path]

r"""What our figure of a query holds beside the engine's own: psql's `\timing`, DuckDB's profiler.

The sides take turns on the same server, round by round; each query is run warm, 100 times a turn, and the
table shows medians over all of them. Without psql on PATH our figures stand alone. psql sends the text by
the simple protocol; ours parses, binds, describes and executes in one exchange, and digests the answer.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.model import PlainQueries, PlainQuery
from loadstone.target import open_target, parse_target
from loadstone.workload.queries.rounds import QueryContext, perform_in_turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.engine import Caches
    from loadstone.model import Connection
    from loadstone.target import OpenTarget

RUNS = 100
ROWS = 10_000
SETUP = (
    "create table t (id int, g int, x double precision)",
    f"insert into t select i, i % 100, i * 0.5 from generate_series(1, {ROWS}) as s(i)",
)
QUERIES = {
    "select 1": "select 1 as one",
    f"one group of {ROWS:,} rows": "select count(*) as n, avg(x) as mean from t",
    "100 groups": "select g, count(*) as n, avg(x) as mean from t group by g order by n desc, mean",
}
_TIME = re.compile(r"^Time: ([\d.]+) ms", re.MULTILINE)


def run(target: str, rounds: int) -> None:
    """Print the table."""
    psql = shutil.which("psql")
    print("### Queries: our figure beside the engine's own client\n")
    print(
        f"{rounds} rounds by turns of {RUNS} warm runs, medians"
        + ("" if psql else "; there is no psql")
        + "\n"
    )
    print("| engine | query | its own ms | ours ms | difference ms |")
    print("|---|---|---:|---:|---:|")
    with ExitStack() as stack:
        pg = stack.enter_context(open_target(parse_target(target), 4))
        duckdb = stack.enter_context(open_target(parse_target("duckdb:"), 4))
        for opened, theirs in ((pg, _psql(psql, pg)), (duckdb, _profiler(duckdb))):
            with closing(opened.connect("bench")) as control:
                opened.engine.create_workspace(control)
            with closing(opened.connect("bench")) as control:
                for statement in SETUP:
                    control.execute(statement)
            for name, sql in QUERIES.items():
                print(_row(opened, theirs, name, sql, rounds), flush=True)
    print()


def _row(opened: OpenTarget, theirs: Callable[[str], list[float]], name: str, sql: str, rounds: int) -> str:
    own: list[float] = []
    ours: list[float] = []
    for number in range(rounds):
        if number % 2:
            own += theirs(sql)
        ours += _ours(opened, sql)
        if not number % 2:
            own += theirs(sql)
    mine = statistics.median(ours)
    if not own:
        return f"| {opened.label} | {name} | – | {mine:.3f} | – |"
    its = statistics.median(own)
    return f"| {opened.label} | {name} | {its:.3f} | {mine:.3f} | {mine - its:+.3f} |"


def _ours(opened: OpenTarget, sql: str) -> list[float]:
    """Ask; returns milliseconds of each run."""
    queries = PlainQueries((PlainQuery("it", sql),), cold=False, warm_runs=RUNS)
    with (
        tempfile.TemporaryDirectory(prefix="loadstone-bench-") as folder,
        closing(opened.connect("b")) as own,
    ):
        context = QueryContext(lambda: own, lambda: own, _never, None, None, "loadstone", lambda _: None)
        account = perform_in_turn(queries, opened, Path(folder), context)
    return [run["seconds"] * 1e3 for run in account["plain_queries"]["runs"]]


def _psql(program: str | None, opened: OpenTarget) -> Callable[[str], list[float]]:
    there = opened.connection
    if program is None or there is None:
        return lambda _: []
    return lambda sql: _timed_by_psql(program, there, sql)


def _timed_by_psql(program: str, there: Connection, sql: str) -> list[float]:
    script = "set search_path = loadstone;\n\\timing on\n" + f"{sql};\n" * (RUNS + 1)
    target = f"host={there.host} port={there.port} user={there.user} dbname={there.database}"
    done = subprocess.run(
        [program, "-X", "-d", target], input=script, capture_output=True, text=True, check=True
    )
    return [float(found) for found in _TIME.findall(done.stdout)][1:]


def _profiler(opened: OpenTarget) -> Callable[[str], list[float]]:
    def profiled(sql: str) -> list[float]:
        times = []
        with (
            tempfile.NamedTemporaryFile("r", suffix=".json") as profile,
            closing(opened.connect("profiled")) as control,
        ):
            control.execute("set enable_profiling = 'json'")
            control.execute(f"set profiling_output = '{profile.name}'")
            for _ in range(RUNS + 1):
                opened.engine.answer(control, sql)
                told: dict[str, Any] = json.loads(Path(profile.name).read_text())
                times.append(told["query"]["total_time"] * 1e3)
        return times[1:]

    return profiled


def _never() -> Caches:
    return {"emptied": False, "note": ""}

"""TSBS's queries by our driver beside tsbs_run_queries_timescaledb: same server, same file, by turns.

TSBS's program is looked for on PATH, or in the environment variable TSBS_BIN (its folder's path, or a
program's in it). Without it our figures stand alone. The queries are short ones, so that the client's own
cost counts; rates are those that each side states, CPU is that of the whole client process, start included.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.private_server import EmbeddedServer
from loadstone.private_server import ServerSpec as Server
from loadstone.workload.tsbs.queries import Query, QuerySpec, gob, mixed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.model import Connection

SCALE = 1000
QUERIES = 20_000
WORKERS = (1, 8)
START_NS = 1_451_606_400 * 10**9
DAY_NS = 86_400 * 10**9
SETUP = (
    "create table tags (id int primary key, name text, fleet text, driver text)",
    f"insert into tags select i, 'truck_' || i - 1, 'South', 'Derek' from generate_series(1, {SCALE}) i",
    "create table readings (time timestamptz, tags_id int, latitude float8, longitude float8)",
    (
        "insert into readings select '2016-01-01'::timestamptz + n * interval '10 minutes', i, n, i "
        f"from generate_series(0, 99) n, generate_series(1, {SCALE}) i"
    ),
    "create index on readings (tags_id, time desc)",
    "create index on tags (name)",
    "vacuum analyze",
)
_NAME = "tsbs_run_queries_timescaledb"
_RATE = re.compile(r"Overall query rate ([\d.]+) queries/sec")


@dataclass(frozen=True, slots=True)
class Result:
    """One run of one side."""

    per_s: float
    cpu_us: float


def run(rounds: int) -> None:
    """Print the table."""
    peer = _peer()
    print("### TSBS's queries, last location of one truck, every text another\n")
    print(
        f"{rounds} rounds by turns, medians, {QUERIES:,} queries each"
        + ("" if peer else "; TSBS is not installed")
        + "\n"
    )
    print("| workers | TSBS queries/s | ours | ratio | TSBS CPU µs/query | ours | ratio |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    with EmbeddedServer(Server("pg", clients=2 * max(WORKERS))) as server, _file() as path:
        _set_up(server.connection)
        there = server.tcp_connection
        for workers in WORKERS:
            print(_row(workers, peer, there, path, rounds), flush=True)
    print()


class _file:  # noqa: N801 - used like a function
    """A file of the queries."""

    def __enter__(self) -> Path:
        self._folder = tempfile.TemporaryDirectory(prefix="loadstone-bench-")
        path = Path(self._folder.name) / "queries.gob"
        with path.open("wb") as file:
            gob.write(_queries(), file)
        return path

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


def _queries() -> Iterator[Query]:
    return mixed([QuerySpec("iot", "single-last-loc", SCALE, START_NS, START_NS + DAY_NS, 123, QUERIES)])


def _set_up(connection: Connection) -> None:
    from loadstone.engines.postgres import ENGINE  # noqa: PLC0415 - only the real run needs it

    with ENGINE.connect(connection) as control:
        for statement in SETUP:
            control.execute(statement.encode())


def _row(workers: int, peer: Path | None, there: Connection, path: Path, rounds: int) -> str:
    theirs: list[Result] = []
    ours: list[Result] = []
    own = [str(Path(sys.executable).with_name("loadstone")), "tsbs", "run-queries", "--timeout=60s"]
    for number in range(rounds):
        sides = [(own, ours), *([([str(peer)], theirs)] if peer else [])]
        for command, results in sides if number % 2 else reversed(sides):
            results.append(_measured(command, workers, there, path))
    cells = [str(workers)]
    for what in (_per_s, _cpu):
        left = statistics.median(map(what, theirs)) if theirs else None
        right = statistics.median(map(what, ours))
        cells += ["–" if left is None else f"{left:,.0f}", f"{right:,.0f}"]
        cells.append("–" if left is None else f"{right / left:.2f}")
    return f"| {' | '.join(cells)} |"


def _per_s(result: Result) -> float:
    return result.per_s


def _cpu(result: Result) -> float:
    return result.cpu_us


def _measured(command: list[str], workers: int, there: Connection, path: Path) -> Result:
    flags = [
        f"--hosts={there.host}", f"--port={there.port}", f"--user={there.user}", f"--pass={there.password}",
        f"--db-name={there.database}", "--postgres=sslmode=disable", f"--file={path}",
        f"--workers={workers}", "--print-interval=0",
    ]  # fmt: skip
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*command, *flags], capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = _RATE.search(done.stdout)
    if done.returncode != 0 or found is None:
        sys.exit(f"{command[0]} failed: {done.stderr}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Result(float(found[1]), used / QUERIES * 1e6)


def _peer() -> Path | None:
    named = os.environ.get("TSBS_BIN")
    if named:
        folder = Path(named) if Path(named).is_dir() else Path(named).parent
        return folder / _NAME if (folder / _NAME).exists() else None
    found = shutil.which(_NAME)
    return Path(found) if found else None

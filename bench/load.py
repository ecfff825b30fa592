"""Loading TSBS's data: into a server that keeps nothing, and into PostgreSQL beside tsbs_load_timescaledb.

TSBS's program is looked for on PATH, or in the environment variable TSBS_BIN (its folder's path). Without
it our figures stand alone. Both read the same file in TSBS's format, by turns, into tables with TSBS's two
indexes; its INSERT takes five round trips a table and batch (begin, parse, execute, deallocate, commit). CPU
is that of the whole client process, start included; a share is of client and server together.
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
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from loadstone.model import Series
from loadstone.private_server import EmbeddedServer, ServerSpec
from loadstone.workload.calibrate import null_server
from loadstone.workload.drive import connection_document, perform
from loadstone.workload.tsbs.dataset import data_document

if TYPE_CHECKING:
    from loadstone.model import Connection

HOURS = {"iot": 24, "devops": 3}
SCALE = 100
SINK_HOURS = {"iot": 12, "devops": 3}
SINK_SCALE = 1000
WORKERS = 4
CASES = (
    ("iot", "COPY", 10_000),
    ("devops", "COPY", 10_000),
    ("iot", "INSERT", 1000),
    ("devops", "INSERT", 1000),
)
_NAME = "tsbs_load_timescaledb"
_LOADED = re.compile(r"loaded (\d+) metrics in ([\d.]+)sec")


@dataclass(frozen=True, slots=True)
class Result:
    """One run of one side."""

    metrics_per_s: float
    client_share: float


def run(rounds: int) -> None:
    """Print both tables."""
    _sink(rounds)
    _postgres(rounds)


def _sink(rounds: int) -> None:
    print("### Loading into the built-in server, which keeps nothing\n")
    print(
        f"{rounds} rounds, medians, millions of metrics for each second of CPU time; scale {SINK_SCALE}, "
        "batches of 10,000 rows\n"
    )
    print("| use case | method | our process | both sides |")
    print("|---|---|---:|---:|")
    for use_case in SINK_HOURS:
        for method in ("copy_binary", "copy_text", "insert"):
            found = [_into_sink(use_case, method) for _ in range(rounds)]
            own, both = (statistics.median(column) / 1e6 for column in zip(*found, strict=True))
            print(f"| {use_case} | {method} | {own:.1f} | {both:.1f} |", flush=True)
    print()


def _into_sink(use_case: str, method: str) -> tuple[float, float]:
    """Return metrics for a second of CPU: of our side, and of both."""
    with null_server(WORKERS) as (server, there):
        document = {
            "connection": connection_document(there),
            "load": {
                "data": data_document(_series(use_case, SINK_SCALE, SINK_HOURS[use_case])),
                "method": method,
                "batch_rows": 10_000,
            },
            "clients": WORKERS,
            "seed": 1,
        }
        begun_s, served_ns = time.process_time(), server.cpu_ns()
        account = perform(document, None)
        both_s = time.process_time() - begun_s
        sink_s = (server.cpu_ns() - served_ns) / 1e9
    metrics = account["load"]["metrics"]
    return metrics / (both_s - sink_s), metrics / both_s


def _postgres(rounds: int) -> None:
    peer = _peer()
    print(f"### Loading into PostgreSQL, scale {SCALE}, {WORKERS} workers, two indexes\n")
    print(
        f"{rounds} rounds by turns, medians, millions of metrics a second"
        + ("" if peer else "; TSBS is not installed")
        + "\n"
    )
    print("| use case | method | rows a batch | TSBS | ours | ratio | TSBS's share of CPU | ours |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    settings = {"max_wal_size": "8GB", "checkpoint_timeout": "1h"}
    order = ServerSpec("pg", clients=4 * WORKERS, settings=settings)
    with tempfile.TemporaryDirectory(prefix="loadstone-bench-") as folder, EmbeddedServer(order) as server:
        files = {use_case: _file(Path(folder), use_case) for use_case in HOURS}
        for use_case, method, batch in CASES:
            sides = [_ours(), *([[str(peer)]] if peer else [])]
            found: list[list[Result]] = [[] for _ in sides]
            for number in range(rounds):
                order_of = range(len(sides)) if number % 2 else reversed(range(len(sides)))
                for side in order_of:
                    flags = _flags(server.tcp_connection, method, batch)
                    found[side].append(_measured([*sides[side], *flags], server, files[use_case]))
            print(_row(use_case, method, batch, found), flush=True)
    print()


def _row(use_case: str, method: str, batch: int, found: list[list[Result]]) -> str:
    rates = [statistics.median(result.metrics_per_s for result in side) / 1e6 for side in found]
    shares = [statistics.median(result.client_share for result in side) for side in found]
    theirs = f"{rates[1]:.2f}" if len(rates) > 1 else "–"
    ratio = f"{rates[0] / rates[1]:.2f}" if len(rates) > 1 else "–"
    share = f"{shares[1]:.0%}" if len(shares) > 1 else "–"
    ours = f"{rates[0]:.2f} | {ratio} | {share} | {shares[0]:.0%}"
    return f"| {use_case} | {method} | {batch:,} | {theirs} | {ours} |"


def _ours() -> list[str]:
    return [str(Path(sys.executable).with_name("loadstone")), "tsbs", "load", "--no-verify", "--replace"]


def _flags(there: Connection, method: str, batch: int) -> list[str]:
    return [
        f"--host={there.host}",
        f"--port={there.port}",
        f"--user={there.user}",
        f"--pass={there.password}",
        "--db-name=benchmark",
        f"--admin-db-name={there.database}",
        "--use-hypertable=false",
        f"--workers={WORKERS}",
        f"--batch-size={batch}",
        f"--use-insert={'true' if method == 'INSERT' else 'false'}",
    ]


def _measured(command: list[str], server: EmbeddedServer, file: Path) -> Result:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    served = _server_cpu_s(server)
    with file.open("rb") as rows:
        ended = subprocess.run(command, stdin=rows, capture_output=True, text=True, check=False)
    found = _LOADED.search(ended.stdout)
    if found is None:
        message = f"{command[0]} loaded nothing:\n{ended.stdout}\n{ended.stderr}"
        raise RuntimeError(message)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    theirs = _server_cpu_s(server) - served
    return Result(int(found[1]) / float(found[2]), own / (own + theirs))


def _server_cpu_s(server: EmbeddedServer) -> float:
    """Return the CPU time of the server, ended children included."""
    first = psutil.Process(server.pid)
    times = [process.cpu_times() for process in (first, *first.children(recursive=True))]
    ended = first.cpu_times()
    return sum(t.user + t.system for t in times) + ended.children_user + ended.children_system


def _file(folder: Path, use_case: str) -> Path:
    path = folder / f"{use_case}.txt"
    series = _series(use_case, SCALE, HOURS[use_case])
    command = [str(Path(sys.executable).with_name("loadstone")), "tsbs", "generate-data"]
    flags = [f"--use-case={use_case}", f"--scale={SCALE}", "--seed=123", "--format=timescaledb"]
    flags += [f"--timestamp-start={series.start}", f"--timestamp-end={series.end}", f"--file={path}"]
    subprocess.run([*command, *flags], check=True, capture_output=True)
    return path


def _series(use_case: str, scale: int, hours: int) -> Series:
    days, rest = divmod(hours, 24)
    end = f"2016-01-{1 + days:02}T{rest:02}:00:00Z"
    return Series(use_case=use_case, start="2016-01-01T00:00:00Z", end=end, scale=scale)  # type: ignore[arg-type]


def _peer() -> Path | None:
    named = os.environ.get("TSBS_BIN")
    if named is None:
        found = shutil.which(_NAME)
        return Path(found) if found else None
    return Path(named) / _NAME

"""Rows of the set `import` into one table without indexes, beside the server's own limit and beside psql.

The limit is `COPY … FROM` a file in memory, which the server itself reads; psql is given the same file. Ours
makes the rows while it sends them. What several connections can gain is limited by the server's locks and the
machine's cores: the same COPY by as many connections, each of its part of the file, shows how far. The sides
take turns, round by round, and the table shows medians. What our connections wait for while they load is
sampled from pg_stat_activity, and the processor time of server and client is taken beside the machine's.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from loadstone.model import Drive
from loadstone.private_server import EmbeddedServer, ServerSpec
from loadstone.workload.drive import drive_document, perform

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.engine.control import Control
    from loadstone.model import Connection

ROWS = 2_000_000
BATCH_ROWS = 100_000
FOUR = 4
LIMIT = "server-side COPY of the file"
LIMIT_OF_FOUR = f"server-side COPY of a part of the file by each of {FOUR}"
SAMPLE_S = 0.02
COLUMNS = list("abcdefghijkl")
TABLE = f"create table test ({', '.join(f'{name} text' for name in COLUMNS[:-1])}, l timestamp)"
SETTINGS = {"max_wal_size": "16GB", "checkpoint_timeout": "1h", "autovacuum": "off"}
WAITS = """
select coalesce(wait_event_type || ':' || wait_event, 'running') as wait from pg_stat_activity
where application_name = 'loadstone' and pid <> pg_backend_pid() and state = 'active'
"""


def run(target: str, rounds: int) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory(prefix="loadstone-bench-", dir="/dev/shm") as folder:
        place = Path(folder)
        place.chmod(0o755)
        with EmbeddedServer(ServerSpec(target, clients=10, settings=SETTINGS)) as server:
            _table(server, rounds, place / "rows.binary")


def _table(server: EmbeddedServer, rounds: int, file: Path) -> None:
    from loadstone.engines.postgres import ENGINE  # noqa: PLC0415 - only the real run needs it

    there = server.connection
    with ENGINE.connect(there) as control:
        _empty(control)
        perform(_document(there, 1, ROWS), None)
        file.touch()
        file.chmod(0o666)
        control.execute(f"copy test to '{file}' (format binary)")
        parts = _parts(control, there, file.parent)
        sides: dict[str, Callable[[], object]] = {
            LIMIT: lambda: control.execute(f"copy test from '{file}' (format binary)"),
            LIMIT_OF_FOUR: lambda: _by_the_server(there, parts),
            "ours, 1 connection": lambda: _ours(there, 1),
            f"ours, {FOUR} connections": lambda: _ours(there, FOUR),
            "ours, 1 connection, from the file": lambda: _ours(there, 1, file),
        }
        if shutil.which("psql"):
            sides["psql \\copy of the file"] = lambda: _psql(there, file)
        found: dict[str, list[float]] = {side: [] for side in sides}
        for number in range(rounds):
            order = list(sides) if number % 2 else list(reversed(sides))
            for side in order:
                found[side].append(_timed(control, sides[side]))
        _print(server, rounds, file, found)
        _waits(server, control, there)


def _parts(control: Control, there: Connection, folder: Path) -> list[Path]:
    """Write the rows into a file for each of several connections."""
    found = []
    for number in range(FOUR):
        _empty(control)
        perform(_document(there, 1, ROWS // FOUR, first=number * ROWS // FOUR), None)
        part = folder / f"part-{number}.binary"
        part.touch()
        part.chmod(0o666)
        control.execute(f"copy test to '{part}' (format binary)")
        found.append(part)
    return found


def _by_the_server(there: Connection, parts: list[Path]) -> None:
    from loadstone.engines.postgres import ENGINE  # noqa: PLC0415 - only the real run needs it

    def one(part: Path) -> None:
        with ENGINE.connect(there) as control:
            control.execute(f"copy test from '{part}' (format binary)")

    with ThreadPoolExecutor(len(parts)) as pool:
        list(pool.map(one, parts))


def _print(server: EmbeddedServer, rounds: int, file: Path, found: dict[str, list[float]]) -> None:
    print(f"### Bulk import of {ROWS:,} rows (`import`, {file.stat().st_size / 1e6:.0f} MB), no index\n")
    print(f"Server: {server.build}. {rounds} rounds by turns, medians; batches of {BATCH_ROWS:,} rows\n")
    print("| side | s | rows/s | of the server's limit |\n|---|---:|---:|---:|")
    limit_s = statistics.median(found[LIMIT])
    for side, seconds in found.items():
        middle_s = statistics.median(seconds)
        spread = f"{min(seconds):.2f}-{max(seconds):.2f}"
        print(f"| {side} | {middle_s:.2f} ({spread}) | {ROWS / middle_s:,.0f} | {limit_s / middle_s:.2f} |")
    print()


def _waits(server: EmbeddedServer, control: Control, there: Connection) -> None:
    """Say what the connections of ours wait for while they load."""
    for clients in (1, FOUR):
        _empty(control)
        seen: Counter[str] = Counter()
        loading = threading.Thread(target=_ours, args=(there, clients))
        begun, before = time.monotonic(), _processor_s(server)
        loading.start()
        while loading.is_alive():
            seen.update(str(row["wait"]) for row in control.execute(WAITS).fetchall())
            loading.join(SAMPLE_S)
        shares = ", ".join(f"{name} {count / seen.total():.0%}" for name, count in seen.most_common(6))
        whole_s = (time.monotonic() - begun) * (os.cpu_count() or 1)
        used = ", ".join(
            f"{name} {(after - first) / whole_s:.0%}"
            for (name, after), first in zip(_processor_s(server).items(), before.values(), strict=True)
        )
        print(f"{clients} connection(s) are: {shares}; share of the machine's processors: {used}\n")


def _processor_s(server: EmbeddedServer) -> dict[str, float]:
    """Return the processor time used so far, seconds; of sessions that have ended, too."""
    first = psutil.Process(server.pid)
    times = [first.cpu_times(), *(child.cpu_times() for child in first.children(recursive=True))]
    ended = first.cpu_times()
    used = sum(one.user + one.system for one in times) + ended.children_user + ended.children_system
    machine = psutil.cpu_times()
    idle = machine.idle + getattr(machine, "iowait", 0.0)
    ours = time.process_time()
    return {"server": used, "client": ours, "idle": idle}


def _timed(control: Control, side: Callable[[], object]) -> float:
    _empty(control)
    begun = time.monotonic()
    side()
    seconds = time.monotonic() - begun
    (row,) = control.execute("select count(*) as count from test").fetchall()
    count = row["count"]
    if count != ROWS:
        message = f"{count} rows are there"
        raise RuntimeError(message)
    return seconds


def _empty(control: Control) -> None:
    for statement in ("drop table if exists test", TABLE, "checkpoint"):
        control.execute(statement)


def _ours(there: Connection, clients: int, file: Path | None = None) -> None:
    account = perform(_document(there, clients, ROWS, file), None)
    if account["state"] != "complete":
        raise RuntimeError(account["reason"])


def _document(
    there: Connection, clients: int, rows: int, file: Path | None = None, *, first: int = 0
) -> dict[str, Any]:
    document = drive_document(Drive(scripts=(), clients=clients, timeout_s=600), there, None)
    del document["scripts"], document["mode"]
    data: dict[str, Any] = {"kind": "rows", "set": "import", "seed": 1, "rows": rows, "first": first}
    if file is not None:
        data = {"kind": "files", "format": "binary", "paths": [str(file)], "columns": len(COLUMNS)}
    tables = {"test": {"name": "test", "columns": COLUMNS}}
    return document | {"load": {"data": data, "tables": tables, "batch_rows": BATCH_ROWS}}


def _psql(there: Connection, file: Path) -> None:
    place = [f"--host={there.host}", f"--port={there.port}", f"--username={there.user}", there.database]
    command = f"\\copy test from '{file}' (format binary)"
    subprocess.run(["psql", *place, "--no-psqlrc", "--command", command], check=True, capture_output=True)

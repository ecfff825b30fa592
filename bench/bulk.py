"""Rows of the set `import` into one table without indexes, beside the server's own limit and beside psql.

The limit is `COPY … FROM` a file in memory, which the server itself reads; psql is given the same file. Ours
makes the rows while it sends them. The sides take turns, round by round, and the table shows medians. What
our connections wait for while they load is sampled from pg_stat_activity.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.drive import drive_document, perform
from loadstone.embedded import EmbeddedServer, Order
from loadstone.model import Drive

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.engine.control import Control
    from loadstone.model import Connection

ROWS = 2_000_000
BATCH_ROWS = 100_000
FOUR = 4
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
        with EmbeddedServer(Order(target, clients=10, settings=SETTINGS)) as server:
            _table(server, rounds, place / "rows.binary")


def _table(server: EmbeddedServer, rounds: int, file: Path) -> None:
    from loadstone.engines.postgres import ENGINE  # noqa: PLC0415 - only the real run needs it

    there = server.connection
    with ENGINE.connect(there) as control:
        _empty(control)
        perform(_document(there, 1, ROWS), None)
        file.touch()
        file.chmod(0o666)
        control.execute(f"copy test to '{file}' (format binary)".encode())
        sides: dict[str, Callable[[], object]] = {
            "server-side COPY of the file": lambda: control.execute(
                f"copy test from '{file}' (format binary)".encode()
            ),
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
        _waits(control, there)


def _print(server: EmbeddedServer, rounds: int, file: Path, found: dict[str, list[float]]) -> None:
    print(f"### Bulk import of {ROWS:,} rows (`import`, {file.stat().st_size / 1e6:.0f} MB), no index\n")
    print(f"Server: {server.build}. {rounds} rounds by turns, medians; batches of {BATCH_ROWS:,} rows\n")
    print("| side | s | rows/s | of the server's limit |\n|---|---:|---:|---:|")
    limit_s = statistics.median(found["server-side COPY of the file"])
    for side, seconds in found.items():
        middle_s = statistics.median(seconds)
        spread = f"{min(seconds):.2f}-{max(seconds):.2f}"
        print(f"| {side} | {middle_s:.2f} ({spread}) | {ROWS / middle_s:,.0f} | {limit_s / middle_s:.2f} |")
    print()


def _waits(control: Control, there: Connection) -> None:
    """Say what the connections of ours wait for while they load."""
    for clients in (1, FOUR):
        _empty(control)
        seen: Counter[str] = Counter()
        loading = threading.Thread(target=_ours, args=(there, clients))
        loading.start()
        while loading.is_alive():
            seen.update(str(row["wait"]) for row in control.execute(WAITS.encode()).fetchall())
            loading.join(SAMPLE_S)
        shares = ", ".join(f"{name} {count / seen.total():.0%}" for name, count in seen.most_common(6))
        print(f"{clients} connection(s) are: {shares}\n")


def _timed(control: Control, side: Callable[[], object]) -> float:
    _empty(control)
    begun = time.monotonic()
    side()
    seconds = time.monotonic() - begun
    (row,) = control.execute(b"select count(*) as count from test").fetchall()
    count = row["count"]
    if count != ROWS:
        message = f"{count} rows are there"
        raise RuntimeError(message)
    return seconds


def _empty(control: Control) -> None:
    for statement in (b"drop table if exists test", TABLE.encode(), b"checkpoint"):
        control.execute(statement)


def _ours(there: Connection, clients: int, file: Path | None = None) -> None:
    account = perform(_document(there, clients, ROWS, file), None)
    if account["state"] != "complete":
        raise RuntimeError(account["reason"])


def _document(there: Connection, clients: int, rows: int, file: Path | None = None) -> dict[str, Any]:
    document = drive_document(Drive(scripts=(), clients=clients, timeout_s=600), there, None)
    del document["scripts"], document["mode"]
    data: dict[str, Any] = {"kind": "rows", "set": "import", "seed": 1, "rows": rows}
    if file is not None:
        data = {"kind": "files", "format": "binary", "paths": [str(file)], "columns": len(COLUMNS)}
    tables = {"test": {"name": "test", "columns": COLUMNS}}
    return document | {"load": {"data": data, "tables": tables, "batch_rows": BATCH_ROWS}}


def _psql(there: Connection, file: Path) -> None:
    place = [f"--host={there.host}", f"--port={there.port}", f"--username={there.user}", there.database]
    command = f"\\copy test from '{file}' (format binary)"
    subprocess.run(["psql", *place, "--no-psqlrc", "--command", command], check=True, capture_output=True)

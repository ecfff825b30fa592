"""Rows of the set `flights` into PostgreSQL and DuckDB, beside what each does with the same rows by itself.

PostgreSQL's own way is `COPY … FROM` a file in memory, which the server itself reads; DuckDB's is to read
Parquet from there. Ours makes the rows while it sends them, by all that a scenario's import goes through; its
time is that of the report, from the first row to the last one durable. The sides take turns, round by round,
and the table shows medians.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.engine.dialect.names import SCHEMA
from loadstone.model import BulkLoad, PlainTable, Rows
from loadstone.sqltext import literal, qualified
from loadstone.target import open_target, parse_target
from loadstone.workload.generate import Files, generate
from loadstone.workload.load import TableLoadOptions, look, perform_bulk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.engine.control import Control
    from loadstone.target import OpenTarget

ROWS = 1_000_000
WORKERS = (1, 2, 4)
SETTINGS = {"max_wal_size": "16GB", "checkpoint_timeout": "1h", "autovacuum": "off"}
TABLE = PlainTable("flights")
# Two groups of rows of DuckDB: smaller transactions it writes twice, to its log and to its file.
BATCH_ROWS = 245_760
BULK = BulkLoad(Rows(set="flights", rows=ROWS), TABLE, batch_rows=BATCH_ROWS, verify="count", timeout_s=3600)
PEERS = {"copy": "server-side COPY of the file", "parquet": "DuckDB's own reading of Parquet"}


def run(target: str, rounds: int) -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory(prefix="loadstone-bench-", dir="/dev/shm") as folder:
        place = Path(folder)
        place.chmod(0o755)
        with _opened(target) as opened:
            file = place / "flights.binary"
            reading = f"copy {{table}} from {literal(str(file))} (format binary)"
            _print(opened, rounds, file, "copy", 0.95, reading)
            file.unlink()
        with _opened("duckdb:") as opened:
            file = place / "flights.parquet"
            generate(BULK.rows, Files(str(file), "parquet"))
            reading = f"insert into {{table}} select * from read_parquet({literal(str(file))})"
            _print(opened, rounds, file, "parquet", 0.9, reading)


@contextlib.contextmanager
def _opened(name: str) -> Iterator[OpenTarget]:
    with open_target(parse_target(name), 8, settings=SETTINGS if name != "duckdb:" else None) as opened:
        with closing(opened.connect("bench")) as control:
            opened.engine.create_workspace(control)
        yield opened


def _print(opened: OpenTarget, rounds: int, file: Path, peer: str, asked: float, statement: str) -> None:
    """Print one engine's table; `asked` is the share of the peer's speed that is wanted of one connection."""
    with closing(opened.connect("bench")) as control:
        if not file.exists():
            _ours(opened, control, 1)
            _write_binary(control, file)
        sides: dict[str, Callable[[], float]] = {
            PEERS[peer]: partial(
                _theirs, opened, control, statement.format(table=qualified(SCHEMA, TABLE.name))
            )
        }
        sides |= {
            f"ours, {n} connection{'s' if n > 1 else ''}": partial(_ours, opened, control, n) for n in WORKERS
        }
        found: dict[str, list[float]] = {side: [] for side in sides}
        for number in range(rounds):
            for side in list(sides) if number % 2 else list(reversed(sides)):
                found[side].append(sides[side]())
    print(f"### Import of {ROWS:,} rows (`flights`) into {opened.label}\n")
    print(f"{rounds} rounds by turns, medians; {file.name}: {file.stat().st_size / 1e6:,.0f} MB; ", end="")
    print(f"wanted of one connection: {asked:.2f} of the engine's own speed\n")
    print("| side | s | rows/s | of its own speed |\n|---|---:|---:|---:|")
    limit_s = statistics.median(found[PEERS[peer]])
    for side, seconds in found.items():
        middle_s = statistics.median(seconds)
        spread = f"{min(seconds):.2f}-{max(seconds):.2f}"
        print(f"| {side} | {middle_s:.2f} ({spread}) | {ROWS / middle_s:,.0f} | {limit_s / middle_s:.2f} |")
    print()


def _write_binary(control: Control, file: Path) -> None:
    file.touch()
    file.chmod(0o666)
    control.execute(f"copy {qualified(SCHEMA, TABLE.name)} to {literal(str(file))} (format binary)")


def _ours(opened: OpenTarget, control: Control, workers: int) -> float:
    """Load, and return the seconds of the load alone: neither making the table nor counting it."""
    _drop(opened, control)
    bulk = replace(BULK, workers=workers)
    with tempfile.TemporaryDirectory(prefix="loadstone-bench-") as folder:
        account = perform_bulk(bulk, opened, Path(folder), options=TableLoadOptions(replace=True))
    if account["state"] != "complete" or not account["load"]["verified"]:
        raise RuntimeError(account["reason"])
    return float(account["end_ns"] - account["start_ns"]) / 1e9


def _theirs(opened: OpenTarget, control: Control, statement: str) -> float:
    """Have the engine read the rows by itself, until they are where they stay."""
    _drop(opened, control)
    answers = opened.engine.tables
    for made in answers.create(look(BULK, answers).table, TABLE):
        control.execute(made)
    begun = time.monotonic()
    control.execute(statement)
    if opened.engine.in_process:
        opened.engine.checkpoint(control)
    seconds = time.monotonic() - begun
    table = qualified(SCHEMA, TABLE.name)
    count = opened.engine.text_value(control, f"select count(*) from {table}")
    if count != str(ROWS):
        message = f"{count} rows are there"
        raise RuntimeError(message)
    return seconds


def _drop(opened: OpenTarget, control: Control) -> None:
    control.execute(opened.engine.tables.drop(TABLE.name))
    opened.engine.checkpoint(control)

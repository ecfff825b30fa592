"""What a power disk costs: pgbench's writes on a directory, and on a power disk over the same file system."""

from __future__ import annotations

import statistics
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.peer import ACCOUNTS, SCALE
from bench.sides import Case, Place, loadstone
from loadstone.engines.postgres import ENGINE
from loadstone.power_disk import PowerDisk, available
from loadstone.private_server import EmbeddedServer, ServerSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITES = """\\set aid random(1, 100000 * :scale)
\\set delta random(-5000, 5000)
begin;
update pgbench_accounts set abalance = abalance + :delta where aid = :aid;
insert into pgbench_history (aid, delta, mtime) values (:aid, :delta, now());
end;
"""
SETUP = (
    ACCOUNTS,
    "alter table pgbench_accounts add primary key (aid)",
    "create table pgbench_history (aid int, delta int, mtime timestamp)",
    "vacuum analyze pgbench_accounts",
    "checkpoint",
)
CLIENTS = (1, 8, 32)


def run(target: str, rounds: int, seconds: float) -> None:
    """Print the table."""
    reason = available()
    if reason is not None:
        print(f"no power disk can be mounted: {reason}: the comparison is left out\n")
        return
    rates: dict[tuple[int, bool], list[float]] = {}
    syncs = 0
    for number in range(rounds):
        for with_disk in (False, True) if number % 2 == 0 else (True, False):
            with _storage(with_disk) as (storage, disk):
                _measure(target, storage, seconds, {c: rates.setdefault((c, with_disk), []) for c in CLIENTS})
                syncs += disk.counters().fsyncs if disk else 0
    print(f"### Writes on a power disk, {rounds} rounds of {seconds:g} s on new servers, medians\n")
    print(f"{syncs:,} syncs on the power disk.\n")
    print("| clients | tps on a directory | tps on a power disk | ratio |")
    print("|---:|---:|---:|---:|")
    for clients in CLIENTS:
        plain, slow = (statistics.median(rates[clients, with_disk]) for with_disk in (False, True))
        print(f"| {clients} | {plain:,.0f} | {slow:,.0f} | {slow / plain:.2f} |")
    print()


@contextmanager
def _storage(with_disk: bool) -> Iterator[tuple[Path, PowerDisk | None]]:  # noqa: FBT001 - one of two sides
    with tempfile.TemporaryDirectory(prefix="loadstone-bench-") as name:
        backing, mount = Path(name, "backing"), Path(name, "mount")
        for folder in (Path(name), backing, mount):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o1777)
        if not with_disk:
            yield backing, None
            return
        with PowerDisk(backing, mount) as disk:
            yield mount, disk


def _measure(target: str, storage: Path, seconds: float, rates: dict[int, list[float]]) -> None:
    settings = {"fsync": "on", "synchronous_commit": "on"}
    spec = ServerSpec(name=target, clients=2 * max(CLIENTS), storage=storage, settings=settings)
    with EmbeddedServer(spec) as server:
        with ENGINE.connect(server.connection) as control:
            for statement in SETUP:
                control.execute(statement.encode())
        for clients, found in rates.items():
            place = Place(server.connection, seconds, "", SCALE)
            found.append(loadstone(Case(WRITES, clients), place).tps)

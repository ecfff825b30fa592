"""Makes run folders of bulk loads, storage, grids and long transactions out of those of runfolders.py."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from loadstone.results.documents import Progress, Step
from loadstone.results.documents.drive import (
    Column,
    Loaded,
    LoadedTable,
    LongTransaction,
    PlainTable,
    RowSource,
    StepSizes,
)
from loadstone.results.documents.phase import Curve, Look, Storage, StoredIndex, StoredTable, WrittenBytes
from support.fake_monitor import write_lines
from support.run_folders import NS, Phase, Run, Target, build, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

MEBI = 2**20
STEPS = 40
STEP_ROWS = 100_000
KNEES = {"0": None, "1": 30, "3": 22, "5": 14}
"""Number of indexes, and the step from which a step takes longer than the one before."""
PUBLISHED = {
    "0": {"RAID": [23, 22, 25, 24, 23, 22, 24, 25, 23, 24, 22, 25] * 3},
    "1": {"RAID": [61, 79, 71, 72, 74, 124, 76, 78, 156, 130, 129, 202, 247, 259, 389, 567, 875, 1435, 2118]},
    "3": {
        "RAID": [153, 214, 182, 275, 192, 324, 362, 419, 562, 1214, 1914, 2539, 4169, 5463, 8309],
        "one disk": [136, 176, 185, 223, 177, 363, 202, 321, 207, 341, 309, 563, 329, 504],
    },
    "5": {
        "RAID": [226, 225, 327, 255, 387, 430, 467, 989, 2600, 2958, 4264, 6482, 11236, 19992],
        "one disk": [185, 264, 282, 335, 242, 376, 419, 456, 3552, 11663],
    },
}
PUBLISHED_STEP_ROWS = 10_000_000
TABLE = PlainTable(
    name="test",
    metrics=2,
    columns=[Column("a", "text"), Column("l", "timestamp")],
    usual_indexes=["a", "l"],
    sequence="l",
    sequence_first=1_538_352_000_000_000,
    sequence_step=1000,
    row_bytes=180.0,
)
TYPES = {"bigint": 12, "int": 8, "float": 12, "json": 420, "text": 2400, "varchar": 210, "union": 1500}
"""Table of the set `types`, and its logical bytes a row."""


def index_import(
    folder: Path,
    *,
    targets: Sequence[Target] = (Target(),),
    failed: bool = False,
    limit: int | None = None,
    verified: bool = False,
    flat: bool = False,
) -> Path:
    """One bulk load a number of indexes; with `failed` the last one ends on a full disk.

    `flat` leaves out the knees; `verified` adds such a run below this one, as the partitioned table.
    """
    phases = tuple(
        Phase(
            id="import", title="Bulk import in steps", variant={"indexes": count}, seconds=4, warmup=0, tps=20
        )
        for count in KNEES
    )
    build(folder, Run(phases=phases, targets=tuple(targets), command=("loadstone", "run", "index-import")))
    for home in _phase_folders(folder):
        count = _variant(home)["indexes"]
        lines = list(_steps(count, None if flat else KNEES[count], home, fails=failed and count == "5"))
        write_lines(home / "steps.jsonl", lines)
        curves = [
            Curve(name, PUBLISHED_STEP_ROWS, [*seconds], note="8 x 2 TB SATA")
            for name, seconds in PUBLISHED[count].items()
        ]
        _change(home / "phase.json", kind="load", curves=curves, knee=True, headline="rows_per_s")
        _give_load(home, sum(line.rows for line in lines if line.state == "complete"), table=TABLE)
    _plan_bulk(folder, partition_rows=1_000_000 if flat else 0)
    if limit is not None:
        _limit_memory(folder, limit)
    if verified:
        index_import(folder / "verify", targets=targets, flat=True)
    return folder


def storage_types(folder: Path, *, targets: Sequence[Target] = (Target(),)) -> Path:
    """A load of each table with each distribution, looked at before and after VACUUM."""
    phases = tuple(
        Phase(
            id="storage",
            title="Storage by type",
            variant={"table": table, "distribution": distribution},
            seconds=2,
            warmup=0,
            tps=20,
        )
        for distribution in ("compressible", "random", "repeated")
        for table in TYPES
    )
    build(folder, Run(phases=phases, targets=tuple(targets), command=("loadstone", "run", "storage-types")))
    for home in _phase_folders(folder):
        variant = _variant(home)
        _give_load(home, 200_000)
        _change(
            home / "phase.json",
            kind="load",
            storage=_storage(variant["table"], variant["distribution"], 200_000),
            headline="rows_per_s",
        )
    return folder


def big_transaction(folder: Path, *, lost: bool = False) -> Path:
    """Ten transactions of 50,000 rows, pipelined and not; with `lost` the last has no end."""
    phases = tuple(
        Phase(
            id="big",
            title="Many rows in one transaction",
            variant={"pipeline": pipeline},
            seconds=4,
            warmup=0,
            tps=3,
        )
        for pipeline in ("on", "off")
    )
    build(folder, Run(phases=phases, command=("loadstone", "run", "big-transaction")))
    for home in _phase_folders(folder):
        seconds = 0.02 if _variant(home)["pipeline"] == "on" else 0.11
        start_ns = json.loads((home / "drive.json").read_text())["start_ns"]
        lines, told = _progress(start_ns, seconds, lost=lost)
        write_lines(home / "progress.jsonl", lines)
        _give_load(home, 500_000, transactions=told)
        _change(home / "phase.json", kind="load", headline="rows_per_s")
    return folder


def grid(folder: Path, *, targets: Sequence[Target] = (Target(),)) -> Path:
    """pgbench over scale, clients, threads and protocol, of a server that obeys the scalability law."""
    phases = tuple(
        Phase(
            id="grid",
            title="pgbench's own transaction",
            variant={"scale": scale, "clients": clients, "threads": threads, "protocol": protocol},
            clients=clients,
            seconds=2,
            warmup=0,
            median_ms=2.0,
            tps=_law(clients, threads) / (1 if scale == 1 else 1.4) * (1 if protocol == "prepared" else 0.8),
        )
        for scale in (1, 10)
        for protocol in ("simple", "prepared")
        for clients in (1, 2, 4, 8, 16, 32)
        for threads in (1, 2)
    )
    return build(
        folder, Run(phases=phases, targets=tuple(targets), command=("loadstone", "run", "pgbench-grid"))
    )


def _law(clients: int, threads: int) -> float:
    """Gunther's universal scalability law: 900 a client, 4 % waiting, 0.3 % agreeing."""
    return (
        900 * clients / (1 + 0.04 * (clients - 1) + 0.003 * clients * (clients - 1)) * (0.9 + 0.1 * threads)
    )


def _steps(count: str, knee: int | None, home: Path, *, fails: bool) -> Iterator[Step]:
    rng = np.random.default_rng(int(count))
    flat = 0.9 + 0.5 * int(count)
    clock_ns = json.loads((home / "phase.json").read_text())["start_ns"]
    for step in range(STEPS):
        slower = 1.0 if knee is None or step < knee else 1 + 0.35 * (step - knee + 1)
        seconds = flat * slower * float(rng.normal(1, 0.04))
        checkpoint = step % 9 == 8
        seconds *= 1.4 if checkpoint else 1.0
        hit = 1.0 if knee is None else 0.999 - 0.02 * max(0, step - knee)
        failed = fails and step == STEPS - 4
        end_ns = clock_ns + int(seconds * NS)
        yield Step(
            step=step,
            rows_before=step * STEP_ROWS,
            rows=0 if failed else STEP_ROWS,
            start_ns=clock_ns,
            end_ns=end_ns,
            seconds=seconds,
            state="failed" if failed else "complete",
            reason="the server's disk is full: the step needed about 96 MiB" if failed else None,
            sizes=StepSizes(
                table_bytes=(step + 1) * STEP_ROWS * 215,
                index_bytes=int((step + 1) * STEP_ROWS * 45 * int(count)),
                toast_bytes=8192,
            ),
            counters={
                "wal_bytes": int(STEP_ROWS * (230 + 80 * int(count)) * slower**0.5),
                "wal_fpi": 100,
                "blks_hit": int(1e6 * hit),
                "blks_read": int(1e6 * (1 - hit)),
                "checkpoints_timed": 0,
                "checkpoints_requested": int(checkpoint),
            },
            server_cpu_s=seconds * 0.8,
            client_cpu_s=0.12,
            server_write_bytes=STEP_ROWS * 500,
        )
        clock_ns = end_ns + 20_000_000
        if failed:
            return


def _storage(table: str, distribution: str, rows: int) -> Storage:
    logical = rows * TYPES[table]
    packed = {"compressible": 0.3, "random": 1.02, "repeated": 0.12}[distribution]
    is_long = TYPES[table] > 2000
    toast = int(logical * packed) if is_long else 0
    heap = rows * 40 + (0 if is_long else int(logical * (packed if TYPES[table] > 1000 else 1.0)))

    def look(when: str, free: float, *, tidy: bool) -> Look:
        stored = StoredTable(
            name=f"table_{table}",
            rows=rows,
            logical_bytes=logical,
            heap_bytes=heap,
            toast_bytes=toast,
            index_bytes=rows * 21,
            map_bytes=40_960 if tidy else 24_576,
            free_bytes=int(heap * free),
            allocated_bytes=heap + toast + rows * 21 + 65_536,
            indexes=[StoredIndex("pkey", rows * 21, rows * 21)],
        )
        return Look(when, [stored])

    wal = int((heap + toast) * 1.1 + rows * 64)
    written = WrittenBytes(
        wal_bytes=wal,
        device_bytes=wal * 2 + heap,
        server_bytes=wal * 2,
        amplification=(wal * 2 + heap) / logical,
        of="all writes to vda while the phase ran",
    )
    looks = [look("after the load", 0.01, tidy=False), look(f"after vacuum table_{table}", 0.03, tidy=True)]
    return Storage(looks, written, notes=[])


def _progress(start_ns: int, seconds: float, *, lost: bool) -> tuple[list[Progress], list[LongTransaction]]:
    rng = np.random.default_rng(3)
    lines: list[Progress] = []
    told = []
    clock_ns = start_ns
    for number in range(10):
        begun_ns = clock_ns
        for mark in range(50):
            clock_ns += int(NS * seconds * float(rng.lognormal(0, 0.2)) * (1 + mark / 200))
            lines.append(Progress(number, (mark + 1) * 1000, clock_ns, "open"))
        if lost and number == 9:
            break
        clock_ns += int(NS * 0.015)
        lines.append(Progress(number, 50_000, clock_ns, "committed"))
        told.append(LongTransaction(number, 50_000, begun_ns, clock_ns, "committed"))
    return lines, told


def _give_load(
    home: Path,
    rows: int,
    table: PlainTable | None = None,
    transactions: list[LongTransaction] | None = None,
) -> None:
    """Make of a phase's drive.json that of a load."""

    def load(drive: dict[str, Any]) -> dict[str, Any]:
        load = Loaded(
            rows=rows,
            metrics=rows * 12,
            batches=rows // 10_000,
            tags_rows=0,
            tables=[LoadedTable("test", rows)],
            source=RowSource(wait_ns=0),
            logical_bytes=rows * 180,
            table=table,
            transactions=transactions,
        )
        return {**drive, "mode": "copy_binary", "clients": 1, "load": load}

    _rewrite(home / "drive.json", load)


def _plan_bulk(folder: Path, *, partition_rows: int) -> None:
    """Write into plan.json what the loads were to be."""
    table = {"name": "test", "indexes": "0", "partition_column": "l", "partition_rows": partition_rows}
    bulk = {"rows": {"set": "import", "rows": STEPS * STEP_ROWS, "first": 0}, "table": table}

    def planned(plan: dict[str, Any]) -> dict[str, Any]:
        for target in plan["targets"]:
            for phase in target["phases"]:
                phase |= {"workload": {"type": "table-load", "load": bulk}, "key": phase["key"]}
        return plan

    _rewrite(folder / "plan.json", planned)


def _limit_memory(folder: Path, limit: int) -> None:
    for path in (folder / "targets").glob("*/monitor.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        group = {
            "memory_bytes": limit * 9 // 10,
            "cache_bytes": limit // 2,
            "limit_bytes": limit,
            "read_bytes": 0,
            "write_bytes": 0,
            "cpu_s": 1.0,
        }
        write_lines(
            path,
            [
                {
                    **line,
                    "group": {
                        **group,
                        "read_bytes": at * 3 * MEBI,
                        "write_bytes": at * 20 * MEBI,
                        "cpu_s": at * 0.9,
                    },
                }
                for at, line in enumerate(lines)
            ],
        )


def _phase_folders(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob("targets/*/phases/*/phase.json"))


def _variant(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home / "phase.json").read_text())["variant"]
    return found


def _change(path: Path, **changes: object) -> None:
    _rewrite(path, lambda document: {**document, **changes})


def _rewrite(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    write(path, change(json.loads(path.read_text())))

"""Writes synthetic run folders true to docs/run-folder.md, with figures that a test knows beforehand."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

from loadstone.results import documents
from loadstone.results.documents.base import Counts, Stats, WarmupCounts
from loadstone.results.documents.drive import ClientCpu, Connect, Failure, Loop, Pace, Script, TimedStatement
from loadstone.results.documents.phase import BeforeAfter, Check, Published, Relation, Sizes, Statement
from loadstone.results.documents.run import (
    PlannedFinding,
    PlannedPhase,
    PlannedScenario,
    PlannedSource,
    PlannedTarget,
    PlannedWorkload,
)
from loadstone.results.documents.target import Durability, Setting, TargetParts
from loadstone.results.manifest import Manifest
from support.fake_monitor import Monitor, write_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

NS = 1_000_000_000
ORIGIN_NS = 5_000 * NS
DEAD_PID = 2**22 + 1
"""Above the kernel's greatest process number: never alive."""


@dataclass(frozen=True)
class Phase:
    """One drive phase; `samples_ns` (the same in every interval) makes its latencies known exactly."""

    id: str = "one-table-single"
    title: str = "One table, single row"
    variant: dict[str, Any] = field(default_factory=dict)
    repeat: int = 1
    seconds: int = 20
    warmup: int = 2
    clients: int = 8
    tps: float = 4000.0
    noise: float = 0.03
    median_ms: float = 1.8
    sigma: float = 0.35
    samples_ns: tuple[int, ...] | None = None
    rows: int | None = None
    published: tuple[dict[str, Any], ...] = ()
    index_bytes: int = 1_000_000
    failed: int = 0
    skipped: int = 0
    lost: int = 0
    """Added to `scheduled` only: violates the counting equation."""
    carried: int = 0
    """Of those done in the measured window, so many were scheduled in the warm-up."""
    unlisted: int = 0
    """Added to those done in drive.json, and not to those in the intervals."""
    rate: float | None = None
    client_busy: float = 0.4
    state: Literal["complete", "failed", "interrupted", "skipped", "running"] = "complete"
    check: bool | None = True
    sql: str = "insert into feed (id, val) values (1,0.1);"
    error: str = 'duplicate key value violates unique constraint "feed_pkey"'
    drift: float = 0.0
    steal: float = 0.0


@dataclass(frozen=True)
class Target:
    id: str = "pg18"
    label: str = "PostgreSQL 18.6 (embedded)"
    build: str | None = "zonky 18.6.0 (gcc 7.5 -Os, no JIT)"
    fsync: str = "on"
    speed: float = 1.0
    url: str = "postgres://loadstone@/loadstone?host=/run/loadstone"
    name: dict[str, str] | None = None


@dataclass(frozen=True)
class Run:
    phases: tuple[Phase, ...] = (Phase(),)
    targets: tuple[Target, ...] = (Target(),)
    state: Literal["running", "complete", "failed", "interrupted"] = "complete"
    calibration: dict[str, Any] | None = None
    command: tuple[str, ...] = ("loadstone", "run", "iot-feed", "--size", "small")
    hostname: str = "bench-01"
    debug_build: bool = False
    events: tuple[dict[str, Any], ...] = ()
    repeats: int = 1
    findings: tuple[PlannedFinding, ...] = ()
    unreached: int = 0
    """How many of the last phases are planned but have no folder."""


def build(folder: Path, run: Run | None = None) -> Path:
    """Write the run folder and return its path."""
    run = run or Run()
    folder.mkdir(parents=True, exist_ok=True)
    clock_ns = ORIGIN_NS + 2 * NS
    for seed, target in enumerate(run.targets):
        home = folder / "targets" / target.id
        home.mkdir(parents=True)
        write(home / "target.json", _target(target))
        monitor = Monitor(np.random.default_rng(100 + seed))
        reached = run.phases[: len(run.phases) - run.unreached]
        for number, phase in enumerate(reached, 1):
            scaled = replace(phase, tps=phase.tps * target.speed, median_ms=phase.median_ms / target.speed)
            clock_ns = _phase(home, number, scaled, target.id, clock_ns, monitor)
        monitor.write(home / "monitor.jsonl")
    write(folder / "run.json", _run(run, clock_ns))
    write(folder / "plan.json", _plan(run))
    write(folder / "environment.json", _environment(run))
    if run.calibration is not None:
        write(folder / "calibration.json", run.calibration)
    write_lines(folder / "events.jsonl", run.events)
    return folder


def kill(folder: Path, key: str, keep_intervals: int, target: str = "pg18") -> None:
    """Make of a finished run one that was killed with -9 in the middle of the phase `key`."""
    run = json.loads((folder / "run.json").read_text())
    write(
        folder / "run.json", run | {"state": "running", "pid": DEAD_PID, "ended_at": None, "duration_s": None}
    )
    home = folder / "targets" / target / "phases" / key
    (home / "drive.json").unlink()
    phase = json.loads((home / "phase.json").read_text())
    write(home / "phase.json", phase | {"state": "running", "end_ns": None, "sizes": None, "checks": []})
    for name, per_interval in (("series.jsonl", 1), ("latency.hlog", 2)):
        lines = (home / name).read_text().splitlines(keepends=True)
        header = sum(1 for line in lines if line.startswith(("#", '"')))
        kept = header + keep_intervals * per_interval
        (home / name).write_text("".join(lines[:kept]) + lines[kept][: len(lines[kept]) // 2])


def encode(values_ns: NDArray[np.int64]) -> str:
    """The histogram's compressed payload, base64, as in the log format."""
    histogram = HdrHistogram(1, 3600 * NS, 3)
    counts = np.frombuffer(histogram.encoder.get_counts(), dtype=np.int64)
    np.add.at(counts, bucket_indexes(values_ns), 1)
    histogram.total_count = len(values_ns)
    histogram.max_value = int(values_ns.max()) if len(values_ns) else 0
    return str(histogram.encode().decode())


def bucket_indexes(values_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """The counter of each value in a histogram of three significant digits and unit 1."""
    shift = np.maximum(0, np.floor(np.log2(np.maximum(values_ns, 1))).astype(np.int64) - 10)
    return np.asarray(shift * 1024 + (values_ns >> shift), dtype=np.int64)


def write(path: Path, document: dict[str, Any] | msgspec.Struct) -> None:
    path.write_text(json.dumps(msgspec.to_builtins(document)), encoding="utf-8")


def _phase(home: Path, number: int, phase: Phase, target: str, clock_ns: int, monitor: Monitor) -> int:
    parts = [phase.id, *(f"{name}-{value}" for name, value in phase.variant.items())]
    key = f"{number:03d}-{'-'.join(parts)}" + (f"-r{phase.repeat}" if phase.repeat > 1 else "")
    folder = home / "phases" / key
    folder.mkdir(parents=True)
    start_ns = clock_ns + NS // 2
    total = phase.warmup + phase.seconds
    rng = np.random.default_rng(number)
    intervals = [_interval(phase, rng, index) for index in range(total)]
    write_lines(
        folder / "series.jsonl",
        [_series_line(phase, index, values, start_ns) for index, values in enumerate(intervals)],
    )
    _write_log(folder / "latency.hlog", phase, intervals)
    drive = _drive(phase, intervals, start_ns)
    if phase.state != "running":
        write(folder / "drive.json", drive)
    end_ns = start_ns + total * NS
    done = sum(len(values) for values in intervals) + phase.unlisted
    write(folder / "phase.json", _phase_json(phase, key, number, target, (clock_ns, end_ns), done))
    for second in range(total + 1):
        monitor.second(start_ns + second * NS, 1.0 if second else 0.1, phase.steal)
    return end_ns + NS


def _interval(phase: Phase, rng: np.random.Generator, index: int) -> NDArray[np.int64]:
    if phase.samples_ns is not None:
        return np.array(phase.samples_ns, dtype=np.int64)
    slope = 1 + phase.drift * (index / max(1, phase.seconds) - 0.5)
    count = max(0, round(phase.tps * slope * float(rng.normal(1, phase.noise))))
    values = rng.lognormal(math.log(phase.median_ms * 1e6), phase.sigma, count)
    stalled = rng.random(count) < 0.002
    values[stalled] *= 12
    return values.astype(np.int64)


def _series_line(phase: Phase, index: int, values: NDArray[np.int64], start_ns: int) -> documents.Interval:
    return documents.Interval(
        start_ns=start_ns + index * NS,
        end_ns=start_ns + (index + 1) * NS,
        warmup=index < phase.warmup,
        done=len(values),
        failed=phase.failed if index == phase.warmup else 0,
        skipped=phase.skipped if index == phase.warmup else 0,
        dropped=0,
        retries=0,
        connected=phase.clients,
        bytes_sent=100 * len(values),
        bytes_received=60 * len(values),
        loop_lag_max_ns=90_000,
        response=stats(values) if len(values) else None,
    )


def _write_log(path: Path, phase: Phase, intervals: Sequence[NDArray[np.int64]]) -> None:
    lines = [
        "#[Histogram log format version 1.3]\n",
        "#[StartTime: 5002.500 (seconds since epoch)]\n",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n',
    ]
    tags = ["response", "service", "statement-0.0"] if phase.rate else ["response", "statement-0.0"]
    for index, values in enumerate(intervals):
        prefix = "warmup-" if index < phase.warmup else ""
        top = values.max() / 1e6 if len(values) else 0
        payload = encode(values)
        lines += [f"Tag={prefix}{tag},{index:.3f},1.000,{top:.3f},{payload}\n" for tag in tags]
    path.write_text("".join(lines), encoding="ascii")


def stats(values: NDArray[np.int64]) -> Stats:
    if not len(values):
        return Stats(count=0)
    return Stats(
        count=len(values),
        mean_ns=float(values.mean()),
        stddev_ns=float(values.std()),
        min_ns=int(values.min()),
        max_ns=int(values.max()),
    )


def _counts(phase: Phase, done: int) -> Counts:
    done += phase.unlisted
    total = done + phase.failed + phase.skipped
    return Counts(
        scheduled=total + phase.lost - phase.carried,
        carried=phase.carried,
        done=done,
        failed=phase.failed,
        skipped=phase.skipped,
        dropped=0,
    )


def _drive(phase: Phase, intervals: Sequence[NDArray[np.int64]], start_ns: int) -> documents.Drive:
    empty = [np.zeros(0, dtype=np.int64)]
    values = np.concatenate([*intervals[phase.warmup :], *empty])
    before = sum(len(values) for values in intervals[: phase.warmup])
    measure_ns = start_ns + phase.warmup * NS
    counts = _counts(phase, len(values))
    busy_ns = int(phase.client_busy * phase.seconds * NS)
    error = Failure("23505", phase.error, phase.failed, first_ns=measure_ns, last_ns=measure_ns)
    return documents.Drive(
        state="complete",
        io="io_uring",
        threads=1,
        clients=phase.clients,
        mode="prepared",
        seed=42,
        pace=Pace("fixed", phase.rate) if phase.rate else Pace("closed"),
        start_ns=start_ns,
        measure_ns=measure_ns,
        end_ns=measure_ns + phase.seconds * NS,
        connect=Connect(12_000_000, stats(np.array([2_000_000, 3_000_000])), reconnects=0),
        counts=counts,
        warmup_counts=WarmupCounts(before + phase.carried, phase.carried, before),
        in_doubt=0,
        retried=0,
        retries=0,
        late=0,
        response=stats(values),
        service=stats(values),
        lag=stats(values // 10) if phase.rate else None,
        errors=[error] if phase.failed else [],
        outages=[],
        scripts=[Script("single.pgbench", 1, WarmupCounts(**msgspec.structs.asdict(counts)), stats(values))],
        statements=[TimedStatement(0, 0, line=1, text=phase.sql, failed=phase.failed, service=stats(values))],
        bytes_sent=100 * len(values),
        bytes_received=60 * len(values),
        client_cpu=ClientCpu(user_ns=busy_ns * 6 // 10, system_ns=busy_ns * 4 // 10),
        loop=Loop(1000, 5000, stats(np.array([9_000, 21_000])), lag_p99_ns=60_000),
    )


def _phase_json(
    phase: Phase, key: str, number: int, target: str, times: tuple[int, int], done: int
) -> documents.Phase:
    rows = done * (phase.rows or 1)
    actual = rows if phase.check else rows - 7
    check = Check("rows acknowledged are in the tables", str(rows), str(actual), phase.check, detail="")
    return documents.Phase(
        number=number,
        id=phase.id,
        key=key,
        kind="script",
        title=phase.title,
        why="Single-row commits show the cost of a commit.",
        variant=phase.variant,
        repeat=phase.repeat,
        target=target,
        scenario="iot-feed",
        state=phase.state,
        start_ns=times[0],
        end_ns=times[1],
        statements=[Statement("create table feed (id int, val float)", seconds=0.01)],
        headline="rows_per_s" if phase.rows else "tps",
        rows_per_transaction=phase.rows,
        published=msgspec.convert(phase.published, list[Published]),
        sizes=BeforeAfter(
            before=_sizes(0, min(8192, phase.index_bytes), 10**9),
            after=_sizes(rows * 44, phase.index_bytes, 10**9 + rows * 120),
        ),
        checks=[check] if phase.check is not None else [],
    )


def _sizes(table: int, index: int, wal: int) -> Sizes:
    relations = [
        Relation("feed", "table", "feed", table, rows_estimate=table // 44),
        Relation("idx_feed", "index", "feed", index),
    ]
    return Sizes(8_000_000 + table + index, wal, relations, relations_left_out=0)


def _target(target: Target) -> documents.Target:
    unsafe = "" if target.fsync == "on" else "a crash may lose or corrupt everything"
    return documents.Target(
        id=target.id,
        label=target.label,
        name=msgspec.convert(target.name, TargetParts) if target.name else msgspec.UNSET,
        engine="postgres",
        url=target.url,
        local=True,
        version="18.6",
        version_text=f"{target.label} on x86_64-pc-linux-gnu",
        build=target.build,
        embedded=True,
        data_directory="/var/lib/x",
        filesystem="ext4",
        settings=[
            Setting("shared_buffers", "2GB", "configuration file"),
            Setting("max_wal_size", "4GB", "configuration file"),
        ],
        durability=[
            Durability("fsync", target.fsync, durable=not unsafe, why=unsafe),
            Durability("synchronous_commit", "on", durable=True, why=""),
            Durability("full_page_writes", "on", durable=True, why=""),
        ],
    )


def _run(run: Run, clock_ns: int) -> documents.Run:
    ended = run.state != "running"
    return documents.Run(
        format=2,
        loadstone="0.1.0",
        id="20261120T101500Z-iot-feed",
        scenarios=["iot-feed"],
        size="small",
        state=run.state,
        pid=DEAD_PID,
        process="boot/1",
        started_at="2026-11-20T10:15:00.123Z",
        origin_ns=ORIGIN_NS,
        ended_at="2026-11-20T10:19:00.000Z" if ended else None,
        duration_s=(clock_ns - ORIGIN_NS) / NS if ended else None,
        exit_code=0 if ended else None,
        command=list(run.command),
    )


def _plan(run: Run) -> documents.Plan:
    source = PlannedSource(
        title="PostgreSQL 10 feed log test",
        author="digoal",
        year=2017,
        hardware="56 vCPU, 224 GB, 2 SSD cloud disks, PostgreSQL 10",
        cores=56,
        url="https://example.org/feed",
    )
    scenario = PlannedScenario(
        id="iot-feed",
        version="1",
        title="Concurrent writes under a time index",
        why="Sensors append; the query is what an index on the time costs.",
        source=source,
        parameters={"clients": 8, "duration": 20},
        findings=list(run.findings),
    )
    phases = [_planned(number, phase) for number, phase in enumerate(run.phases, 1)]
    targets = [PlannedTarget(target.id, "postgres", phases) for target in run.targets]
    return documents.Plan("small", 1, run.repeats, [scenario], targets)


def _planned(number: int, phase: Phase) -> PlannedPhase:
    parts = [f"{number:03d}", phase.id, *(f"{name}-{value}" for name, value in phase.variant.items())]
    key = "-".join(parts) + (f"-r{phase.repeat}" if phase.repeat > 1 else "")
    return PlannedPhase(key, phase.id, phase.title, phase.variant, workload=PlannedWorkload("script"))


def _environment(run: Run) -> dict[str, Any]:
    return {
        "hostname": run.hostname,
        "cpu": {"model": "Example CPU @ 2.50GHz", "cores": 2},
        "memory_bytes": 8 * 2**30,
        "kernel": "6.1.0-18-amd64",
        "os": "Debian GNU/Linux 12",
        "loadstone": {"version": "0.1.0", "core": {"debug_build": run.debug_build}},
        "libraries": {"python": "3.11.7", "numpy": "2.4.6"},
    }


def seal(folder: Path) -> Path:
    """Give a finished folder the manifest that the run would have left."""
    path = folder / "run.json"
    run = json.loads(path.read_text())
    write(path, run | {"state": "running", "manifest": True})
    manifest = Manifest(folder)
    homes = sorted((folder / "targets").iterdir())
    documents = ["plan.json", "environment.json", "calibration.json"]
    documents += [f"targets/{home.name}/target.json" for home in homes]
    for name in ("run.json", *(name for name in documents if (folder / name).exists())):
        manifest.document(folder / name, (folder / name).read_text())
    for phase in (phase for home in homes for phase in sorted((home / "phases").iterdir())):
        manifest.begin_phase(phase)
        manifest.end_phase(phase)
    write(path, run | {"manifest": True})
    manifest.close(path, path.read_text())
    manifest.release()
    return folder

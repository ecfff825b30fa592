"""Writes synthetic run folders true to docs/run-folder.md, with figures that a test knows beforehand."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

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
    state: str = "complete"
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
    state: str = "complete"
    calibration: dict[str, Any] | None = None
    command: tuple[str, ...] = ("loadstone", "run", "iot-feed", "--size", "small")
    hostname: str = "bench-01"
    debug_build: bool = False
    events: tuple[dict[str, Any], ...] = ()
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


def write(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document), encoding="utf-8")


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
    write(folder / "phase.json", _phase_json(phase, key, number, target, (clock_ns, end_ns), drive))
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


def _series_line(phase: Phase, index: int, values: NDArray[np.int64], start_ns: int) -> dict[str, Any]:
    response = None
    if len(values):
        p50, p95, p99 = (int(np.quantile(values, q)) for q in (0.5, 0.95, 0.99))
        response = {
            "count": len(values),
            "mean_ns": float(values.mean()),
            "p50_ns": p50,
            "p95_ns": p95,
            "p99_ns": p99,
            "max_ns": int(values.max()),
        }
    failed = phase.failed if index == phase.warmup else 0
    skipped = phase.skipped if index == phase.warmup else 0
    return {
        "start_ns": start_ns + index * NS,
        "end_ns": start_ns + (index + 1) * NS,
        "warmup": index < phase.warmup,
        "done": len(values),
        "failed": failed,
        "skipped": skipped,
        "dropped": 0,
        "retries": 0,
        "connected": phase.clients,
        "bytes_sent": 100 * len(values),
        "bytes_received": 60 * len(values),
        "loop_lag_max_ns": 90_000,
        "response": response,
    }


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


def stats(values: NDArray[np.int64]) -> dict[str, Any]:
    if not len(values):
        return {"count": 0, "mean_ns": None, "stddev_ns": None, "min_ns": None, "max_ns": None}
    return {
        "count": len(values),
        "mean_ns": float(values.mean()),
        "stddev_ns": float(values.std()),
        "min_ns": int(values.min()),
        "max_ns": int(values.max()),
    }


def _counts(phase: Phase, done: int, *, warmup: bool) -> dict[str, int]:
    if warmup:
        scheduled = done + phase.carried
        rest = {"failed": 0, "skipped": 0, "dropped": 0}
        return {"scheduled": scheduled, "carried": phase.carried, "done": done, **rest}
    done += phase.unlisted
    total = done + phase.failed + phase.skipped
    return {
        "scheduled": total + phase.lost - phase.carried,
        "carried": phase.carried,
        "done": done,
        "failed": phase.failed,
        "skipped": phase.skipped,
        "dropped": 0,
    }


def _drive(phase: Phase, intervals: Sequence[NDArray[np.int64]], start_ns: int) -> dict[str, Any]:
    empty = [np.zeros(0, dtype=np.int64)]
    values = np.concatenate([*intervals[phase.warmup :], *empty])
    measure_ns = start_ns + phase.warmup * NS
    counts = _counts(phase, len(values), warmup=False)
    busy_ns = int(phase.client_busy * phase.seconds * NS)
    error = {
        "sqlstate": "23505",
        "message": phase.error,
        "count": phase.failed,
        "first_ns": measure_ns,
        "last_ns": measure_ns,
    }
    return {
        "format": 1,
        "state": "complete",
        "reason": None,
        "io": "io_uring",
        "threads": 1,
        "clients": phase.clients,
        "mode": "prepared",
        "seed": 42,
        "pace": {"kind": "fixed", "rate_per_s": phase.rate} if phase.rate else {"kind": "closed"},
        "start_ns": start_ns,
        "measure_ns": measure_ns,
        "deadline_ns": None,
        "end_ns": measure_ns + phase.seconds * NS,
        "connect": {
            "wall_ns": 12_000_000,
            "latency": stats(np.array([2_000_000, 3_000_000])),
            "reconnects": 0,
        },
        "counts": counts,
        "warmup_counts": _counts(phase, sum(len(v) for v in intervals[: phase.warmup]), warmup=True),
        "in_doubt": 0,
        "retried": 0,
        "retries": 0,
        "late": 0,
        "response": stats(values),
        "service": stats(values),
        "lag": stats(values // 10) if phase.rate else None,
        "errors": [error] if phase.failed else [],
        "outages": [],
        "scripts": [{"name": "single.pgbench", "weight": 1, "counts": counts, "service": stats(values)}],
        "statements": [
            {
                "script": 0,
                "index": 0,
                "line": 1,
                "text": phase.sql,
                "failed": phase.failed,
                "service": stats(values),
            }
        ],
        "bytes_sent": 100 * len(values),
        "bytes_received": 60 * len(values),
        "client_cpu": {"user_ns": busy_ns * 6 // 10, "system_ns": busy_ns * 4 // 10},
        "loop": {
            "iterations": 1000,
            "events": 5000,
            "lag": stats(np.array([9_000, 21_000])),
            "lag_p99_ns": 60_000,
        },
    }


def _phase_json(
    phase: Phase, key: str, number: int, target: str, times: tuple[int, int], drive: dict[str, Any]
) -> dict[str, Any]:
    done = drive["counts"]["done"] + drive["warmup_counts"]["done"]
    rows = done * (phase.rows or 1)
    actual = rows if phase.check else rows - 7
    checks = [
        {
            "name": "rows acknowledged are in the tables",
            "expected": str(rows),
            "actual": str(actual),
            "passed": phase.check,
            "detail": "",
        }
    ]
    return {
        "number": number,
        "id": phase.id,
        "key": key,
        "kind": "drive",
        "title": phase.title,
        "why": "Single-row commits show the cost of a commit.",
        "variant": phase.variant,
        "repeat": phase.repeat,
        "target": target,
        "scenario": "iot-feed",
        "state": phase.state,
        "reason": None,
        "start_ns": times[0],
        "end_ns": times[1],
        "statements": [{"text": "create table feed (id int, val float)", "seconds": 0.01}],
        "headline": "rows_per_s" if phase.rows else "tps",
        "rows_per_transaction": phase.rows,
        "published": list(phase.published),
        "sizes": {
            "before": _sizes(0, min(8192, phase.index_bytes), 10**9),
            "after": _sizes(rows * 44, phase.index_bytes, 10**9 + rows * 120),
        },
        "checks": checks if phase.check is not None else [],
    }


def _sizes(table: int, index: int, wal: int) -> dict[str, Any]:
    relations = [
        {"name": "feed", "kind": "table", "table": "feed", "bytes": table, "rows_estimate": table // 44},
        {"name": "idx_feed", "kind": "index", "table": "feed", "bytes": index, "rows_estimate": None},
    ]
    return {
        "database_bytes": 8_000_000 + table + index,
        "wal_lsn_bytes": wal,
        "relations": relations,
        "relations_left_out": 0,
    }


def _target(target: Target) -> dict[str, Any]:
    return {
        "id": target.id,
        "label": target.label,
        **({"name": target.name} if target.name else {}),
        "engine": "postgres",
        "url": target.url,
        "local": True,
        "version": "18.6",
        "version_text": f"{target.label} on x86_64-pc-linux-gnu",
        "build": target.build,
        "embedded": True,
        "data_directory": "/var/lib/x",
        "filesystem": "ext4",
        "settings": [
            {"name": "shared_buffers", "value": "2GB", "source": "configuration file"},
            {"name": "max_wal_size", "value": "4GB", "source": "configuration file"},
        ],
        "durability": [
            {
                "setting": "fsync",
                "value": target.fsync,
                "durable": target.fsync == "on",
                "why": "" if target.fsync == "on" else "a crash may lose or corrupt everything",
            },
            {"setting": "synchronous_commit", "value": "on", "durable": True, "why": ""},
            {"setting": "full_page_writes", "value": "on", "durable": True, "why": ""},
        ],
    }


def _run(run: Run, clock_ns: int) -> dict[str, Any]:
    ended = run.state != "running"
    return {
        "format": 1,
        "loadstone": "0.1.0",
        "id": "20261120T101500Z-iot-feed",
        "scenarios": ["iot-feed"],
        "size": "small",
        "state": run.state,
        "pid": DEAD_PID,
        "process": "boot/1",
        "started_at": "2026-11-20T10:15:00.123Z",
        "origin_ns": ORIGIN_NS,
        "ended_at": "2026-11-20T10:19:00.000Z" if ended else None,
        "duration_s": (clock_ns - ORIGIN_NS) / NS if ended else None,
        "exit_code": 0 if ended else None,
        "reason": None,
        "command": list(run.command),
    }


def _plan(run: Run) -> dict[str, Any]:
    source = {
        "title": "PostgreSQL 10 feed log test",
        "author": "digoal",
        "year": 2017,
        "hardware": "56 vCPU, 224 GB, 2 SSD cloud disks, PostgreSQL 10",
        "cores": 56,
        "url": "https://example.org/feed",
    }
    phases = []
    for number, phase in enumerate(run.phases, 1):
        parts = [f"{number:03d}", phase.id, *(f"{name}-{value}" for name, value in phase.variant.items())]
        key = "-".join(parts) + (f"-r{phase.repeat}" if phase.repeat > 1 else "")
        phases.append(
            {
                "key": key,
                "id": phase.id,
                "title": phase.title,
                "variant": phase.variant,
                "skip": None,
                "kind": "drive",
            }
        )
    return {
        "size": "small",
        "seed": 1,
        "repeats": 1,
        "scenarios": [
            {
                "id": "iot-feed",
                "version": "1",
                "title": "Concurrent writes under a time index",
                "why": "Sensors append; the question is what an index on the time costs.",
                "source": source,
                "parameters": {"clients": 8, "duration": 20},
                "folder": "scenarios/iot-feed",
            }
        ],
        "targets": [
            {"id": target.id, "engine": "postgres", "url": target.url, "phases": phases}
            for target in run.targets
        ],
    }


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

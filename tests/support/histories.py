"""Runs of several days, and lines of their history."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner, Result

from loadstone.cli.group import loadstone
from loadstone.history.documents import HistoryLine, Machine, MetricLine, PhaseLine, TargetLine
from support.run_folders import Phase, Run, build, write

if TYPE_CHECKING:
    from pathlib import Path

NOISE = (1.0, 1.01, 0.985)
MACHINE = {
    "system": {"hostname": "bench-01", "kernel": "6.1.0-18-amd64"},
    "cpu": {"model": "Example CPU @ 2.50GHz", "cores_usable": 2},
    "memory": {"total_bytes": 8 * 2**30},
}


def run_of(folder: Path, day: int = 20, speed: float = 1.0, repeats: int = 3, **more: Any) -> Path:
    """Write a run of one day."""
    phases = tuple(
        Phase(
            id="insert",
            title="Insert",
            repeat=at + 1,
            seconds=8,
            warmup=1,
            noise=0.002,
            tps=400.0 * speed * NOISE[at],
        )
        for at in range(repeats)
    )
    build(folder, Run(**{"phases": phases} | more))
    environment = json.loads((folder / "environment.json").read_text())
    write(folder / "environment.json", environment | MACHINE)
    plan = json.loads((folder / "plan.json").read_text())
    for target in plan["targets"]:
        target["phases"] = [phase | {"scenario": "iot-feed"} for phase in target["phases"]]
    write(folder / "plan.json", plan)
    change(folder, id=f"202611{day}T101500Z-iot-feed", started_at=f"2026-11-{day}T10:15:00.123Z")
    return folder


def change(folder: Path, **keys: object) -> None:
    write(folder / "run.json", json.loads((folder / "run.json").read_text()) | keys)


def history(*arguments: object) -> Result:
    return CliRunner().invoke(loadstone, ["history", *map(str, arguments)])


def add(path: Path, *arguments: object) -> Result:
    return history("add", *arguments, "--history", path)


def line(run: str = "one", **more: Any) -> HistoryLine:
    metric = MetricLine(
        name="rate", unit="tps", better="higher", primary=True, value=400.0, n=1, values=[400.0]
    )
    whole: dict[str, Any] = {
        "format": 1,
        "run": run,
        "time": "2026-11-20T10:15:00Z",
        "machine": Machine(host="bench-01", cpu="A CPU", cores=8),
        "target": TargetLine(id="pg18", label="PostgreSQL 18.6"),
        "phases": [PhaseLine(scenario="iot-feed", id="insert", title="Insert", metrics=[metric])],
    }
    return HistoryLine(**whole | more)

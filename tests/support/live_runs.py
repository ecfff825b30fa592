"""What the listener of a run is told while the run goes on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from loadstone.live.figures import LiveFigures

PHASE: Any = SimpleNamespace(scenario="own", id="insert", title="Insert", variant={"index": "none"})


def progress(at: int, done: int = 100, failed: int = 1, **more: Any) -> dict[str, Any]:
    response: dict[str, float] = {
        "count": done,
        "mean_ns": 2e6,
        "p50_ns": 1e6,
        "p95_ns": 3e6,
        "p99_ns": 4e6,
        "max_ns": 5e6,
    }
    latest: dict[str, Any] = {
        "start_ns": at * 10**9,
        "end_ns": (at + 1) * 10**9,
        "done": done,
        "failed": failed,
    }
    latest |= {"warmup": False, "connected": 4, "response": response}
    return {"latest": latest | more}


def begun() -> LiveFigures:
    figures = LiveFigures()
    figures.began("pg18", PHASE)
    return figures

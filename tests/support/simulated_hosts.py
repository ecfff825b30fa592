"""Agents that only say how far they are: a hundred of them behind one Dask worker."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

from loadstone.hosts.attendant import ASK
from loadstone.hosts.joint import JointDrive, Share
from loadstone.hosts.line import Line

ROW = {
    "start_ns": 0, "end_ns": 0, "warmup": False, "done": 48_211, "failed": 3, "skipped": 0, "dropped": 0,
    "retries": 2, "connected": 10_000, "bytes_sent": 9_812_331, "bytes_received": 21_339_120,
    "loop_lag_max_ns": 412_331, "lag_mean_ns": 41_202.25,
    "response": {
        "count": 48_211, "mean_ns": 1_203_112.25, "stddev_ns": 301_556.125, "p50_ns": 1_151_999,
        "p95_ns": 1_853_439, "p99_ns": 2_402_303, "max_ns": 31_002_112,
    },
}  # fmt: skip
SECOND = 10**9


def answer_to(message: dict[str, Any], second: int) -> dict[str, Any]:
    """Return what an agent says after so many seconds of its drive."""
    row = ROW | {"start_ns": second * SECOND, "end_ns": (second + 1) * SECOND}
    progress = {
        "done": 48_211 * second, "failed": 3, "start_ns": 0, "measure_ns": 0, "deadline_ns": 60 * SECOND,
        "latest": row, "output_error": None, "ready": True, "began_ns": 41_000,
    }  # fmt: skip
    return {"progress": progress, "messages": [], "account": None} if message["do"] == "poll" else {}


_seconds: Counter[str] = Counter()


async def ask(key: str, message: bytes) -> bytes:
    """Answer as an agent does, when its second is over."""
    asked = json.loads(message)
    await asyncio.sleep(asked.get("wait_s", 0.0))  # an agent answers when its second is over
    _seconds[key] += 1
    return json.dumps(answer_to(asked, _seconds[key])).encode()


def begin(dask_worker: Any) -> None:
    """Let a worker answer for simulated agents, whatever their keys."""
    dask_worker.handlers[ASK] = ask


def simulated(client: Any, address: str, hosts: int) -> JointDrive:
    """Return a drive on so many hosts that has begun; all of them are behind one worker."""
    client.run(begin, workers=[address])
    shares = [Share(f"host-{n}", Line(client, address), str(n), n) for n in range(hosts)]
    return JointDrive(shares)

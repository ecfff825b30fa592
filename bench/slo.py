"""Searches for the highest rate on the built-in server, whose answer is known, by the whole command line.

Exponential times with a limit of p90 and of p99, and constant times. The answer of the command lies
between the rate that keeps the limit and the next one; steps are those of its grid, 5 %.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadstone.slo.grid import STEP
from loadstone.slo.limits import limit
from loadstone.slo.search import MOST_TRIALS
from loadstone.truth.queues import ConstantQueue, MarkovQueue
from loadstone.workload.calibrate import null_server

CLIENTS = 250
OURS = Path(sys.executable).with_name("loadstone")


@dataclass(frozen=True, slots=True)
class Knee:
    """A server and a limit; `time` is the server's distribution of service times."""

    name: str
    queue: MarkovQueue | ConstantQueue
    time: dict[str, Any]
    limit: str

    def truth(self) -> float:
        """Return the highest rate that keeps the limit."""
        kept = limit(self.limit)
        return self.queue.highest_rate(kept.share, kept.ns / 1e9)


KNEES = (
    Knee("M/M/16, mean 4 ms", MarkovQueue(16, 0.004), {"kind": "exponential", "mean_ms": 4.0}, "p90=14ms"),
    Knee("M/M/32, mean 9 ms", MarkovQueue(32, 0.009), {"kind": "exponential", "mean_ms": 9.0}, "p99=48ms"),
    Knee("M/D/32, 10 ms", ConstantQueue(32, 0.010), {"kind": "constant", "ms": 10.0}, "p99=20ms"),
)
"""Only the first is of use on a busy machine, which delays one answer in a hundred: p99 is not kept there.

*We were late* counts trials in which our own threads were late enough to explain the misses.
"""


def run(rounds: int, seconds: float) -> None:
    """Print a line for each search, `rounds` on each server, with windows of so many seconds or longer."""
    print(f"### Highest rates that are known, windows of {seconds:g} s\n")
    print(
        "| server | limit | truth /s | kept at | not kept at | steps off | trials | we were late | seconds |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    off, trials = [], []
    truths = [knee.truth() for knee in KNEES]
    for number in range(1, rounds + 1):
        for knee, truth in zip(KNEES, truths, strict=True):
            begin_s = time.monotonic()
            found = _search(knee, seconds, number)
            steps = _steps(found, truth)
            off.append(steps)
            trials.append(len(found["trials"]))
            late = sum(trial["client_late"] for trial in found["trials"])
            cells = (knee.name, knee.limit, f"{truth:.0f}", _rate(found["lower"]), _rate(found["upper"]),
                     f"{steps:+.2f}", str(trials[-1]), str(late),
                     f"{time.monotonic() - begin_s:.0f}")  # fmt: skip
            print(f"| {' | '.join(cells)} |", flush=True)
    near = f"{sum(abs(steps) <= 1 for steps in off)} of {len(off)}"
    print(f"\nwithin a step of the truth: {near}; most trials: {max(trials)} of {MOST_TRIALS}\n")


def _steps(found: dict[str, Any], truth: float) -> float:
    """Return by how many steps the middle of the bounds is off; without bounds, infinitely many."""
    if found["found"] != "found":
        return math.inf
    return math.log(math.sqrt(found["lower"] * found["upper"]) / truth) / math.log(STEP)


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"


def _search(knee: Knee, seconds: float, seed: int) -> dict[str, Any]:
    service = {"time": knee.time, "workers": knee.queue.workers, "seed": seed}
    with (
        tempfile.TemporaryDirectory(prefix="loadstone-bench-") as folder,
        null_server(CLIENTS + 8, service=service) as (_, at),
    ):
        script = Path(folder) / "one.sql"
        script.write_text("select 1;\n")
        command = [
            str(OURS), "pgbench", "-n", "-f", str(script), "-c", f"{CLIENTS}", "-T", f"{math.ceil(seconds)}",
            "--warmup=0.2", "--slo", knee.limit, "--random-seed", f"{seed}", "--report", f"{folder}/found",
            "-h", at.host, "-p", f"{at.port}", "-U", at.user, at.database,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"the search failed: {done.stderr[-2000:]}")
        found: dict[str, Any] = json.loads((Path(folder) / "found" / "slo.json").read_text())
        return found

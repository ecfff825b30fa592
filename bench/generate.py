"""Our generator beside TSBS's own: the same command line, into /dev/null, by turns.

TSBS's tsbs_generate_data is looked for on PATH, or in the environment variable TSBS_BIN (its path, or
its folder's). Without it our figures stand alone. Times are of whole processes, start included,
as a user waits for them; the rate that the generator itself measures stands beside.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

SCALE = 1000
HOURS = {"iot": 12, "devops": 3, "cpu-only": 12}
"""Enough that the start of a process does not count."""
_NAME = "tsbs_generate_data"
_RATE = re.compile(r"^(\d+) rows, .*?\((\d+\.\d+) M rows/s")


@dataclass(frozen=True, slots=True)
class Result:
    """One run: rows a second of the whole process, and by its own account."""

    rows_per_s: float
    own_rows_per_s: float


def run(rounds: int) -> None:
    """Print the table."""
    peer = _peer()
    print(f"### TSBS's data sets, scale {SCALE}, format timescaledb, into /dev/null\n")
    print(
        f"{rounds} rounds by turns, medians, millions of rows a second"
        + ("" if peer else "; TSBS is not installed")
        + "\n"
    )
    print("| use case | cores | TSBS | ours | ratio | ours without its start |")
    print("|---|---:|---:|---:|---:|---:|")
    cores = sorted(os.sched_getaffinity(0))
    for use_case in HOURS:
        for count in (1, 2):
            if count <= len(cores):
                print(_row(use_case, peer, cores[:count], rounds))
    print()


def _row(use_case: str, peer: Path | None, cores: list[int], rounds: int) -> str:
    theirs: list[float] = []
    ours: list[Result] = []
    rows = 0
    for _ in range(rounds):
        result, rows = _ours(use_case, cores)
        ours.append(result)
        if peer is not None:
            theirs.append(rows / _timed([str(peer), *_flags(use_case)], cores)[0])
    mine = statistics.median(result.rows_per_s for result in ours)
    own = statistics.median(result.own_rows_per_s for result in ours)
    their = statistics.median(theirs) if theirs else None
    shown = (
        ("–", f"{mine / 1e6:.2f}", "–")
        if their is None
        else (f"{their / 1e6:.2f}", f"{mine / 1e6:.2f}", f"{mine / their:.1f}")
    )
    return f"| {use_case} | {len(cores)} | {' | '.join(shown)} | {own / 1e6:.2f} |"


def _ours(use_case: str, cores: list[int]) -> tuple[Result, int]:
    command = [
        str(Path(sys.executable).with_name("loadstone")),
        "tsbs",
        "generate-data",
        "--debug=1",
        *_flags(use_case),
    ]
    seconds, err = _timed(command, cores)
    found = _RATE.match(err)
    if found is None:
        message = f"loadstone printed no rate:\n{err}"
        raise RuntimeError(message)
    rows = int(found[1])
    return Result(rows / seconds, float(found[2]) * 1e6), rows


def _timed(command: list[str], cores: list[int]) -> tuple[float, str]:
    begun = time.monotonic()
    pinned = ["taskset", "-c", ",".join(map(str, cores)), *command]
    ended = subprocess.run(pinned, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    return time.monotonic() - begun, ended.stderr


def _flags(use_case: str) -> list[str]:
    end = f"--timestamp-end=2016-01-01T{HOURS[use_case]:02}:00:00Z"
    return [f"--use-case={use_case}", f"--scale={SCALE}", "--seed=123", "--format=timescaledb", end]


def _peer() -> Path | None:
    named = os.environ.get("TSBS_BIN")
    if named is None:
        found = shutil.which(_NAME)
        return Path(found) if found else None
    path = Path(named)
    return path / _NAME if path.is_dir() else path

"""How long the statistics of a report take: a knee of 100 steps with its bootstrap, a scalability law."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

import numpy as np

from loadstone.summary.knee.knee import find_knee
from loadstone.summary.scaling.law import fit_usl

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 100
BUDGET_S = 1.0
CLIENTS = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]


def run(rounds: int) -> None:
    """Print the table."""
    rng = np.random.default_rng(1)
    rows = [1e6 * step for step in range(STEPS)]
    slower = [10 * 1.06 ** max(0, step - 50) for step in range(STEPS)]
    seconds = [float(value) for value in slower * np.exp(rng.normal(0, 0.1, STEPS))]
    tps = [900 * n / (1 + 0.04 * (n - 1) + 0.003 * n * (n - 1)) for n in CLIENTS]
    noisy = [float(value) for value in tps * np.exp(rng.normal(0, 0.03, len(CLIENTS)))]
    print(f"### Fits, {rounds} rounds, seconds\n")
    print("| fit | median | worst | budget |")
    print("|---|---:|---:|---:|")
    print(_row(f"knee of {STEPS} steps, with interval and tests", rounds, lambda: find_knee(rows, seconds)))
    print(
        _row(
            f"scalability law over {len(CLIENTS)} numbers of clients", rounds, lambda: fit_usl(CLIENTS, noisy)
        )
    )
    print()


def _row(what: str, rounds: int, fit: Callable[[], object]) -> str:
    fit()  # imports SciPy, which every report does once
    taken = []
    for _ in range(rounds):
        begun = time.monotonic()
        fit()
        taken.append(time.monotonic() - begun)
    return f"| {what} | {statistics.median(taken):.3f} | {max(taken):.3f} | {BUDGET_S:g} |"

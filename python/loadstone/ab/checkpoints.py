"""Checkpoints in trials: cycles that fit the window, and how many began in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.plan.model import ScriptWorkload

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from loadstone.plan.model import Plan

SETTING = "checkpoint_timeout"
SHORTEST_S = 30
"""The shortest that PostgreSQL takes."""
USUAL_S = 300
_RULES = (SETTING, "max_wal_size")


def cycle_s(window_s: float) -> int | None:
    """Return the seconds from checkpoint to checkpoint of which a window covers whole cycles, two if it can.

    None where the window is shorter than the shortest cycle.
    """
    if window_s < SHORTEST_S:
        return None
    cycles = min(max(2, round(window_s / USUAL_S)), int(window_s // SHORTEST_S))
    return max(SHORTEST_S, int(window_s // cycles))


def windows_of(plan: Plan) -> list[float]:
    """Return the seconds of each measured window of a plan that ends by time."""
    drives = [phase.workload.drive for target in plan.targets for phase in target.phases
              if phase.skip is None and isinstance(phase.workload, ScriptWorkload)]  # fmt: skip
    return [drive.duration_s for drive in drives if drive.duration_s]


def settings_for(plan: Plan, given: Collection[str]) -> Mapping[str, str]:
    """Return the setting that makes windows cover whole cycles; none where an arm sets checkpoints."""
    windows = windows_of(plan)
    shortest = min(windows, default=0.0)
    cycle = cycle_s(shortest)
    if cycle is None or any(name in _RULES for name in given):
        return {}
    return {SETTING: f"{cycle}s"}

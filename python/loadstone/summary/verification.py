"""The run that verified an advice: the same rows into partitions, kept in the folder `verify` of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.summary.advice import judge_flat

if TYPE_CHECKING:
    from loadstone.summary.reading import Json

FOLDER = "verify"


def summarise_verification(verified: Json) -> Json:
    """Return the loads in steps of the verifying run, each with whether it stayed flat.

    `verified` is that run's own summary.
    """
    return {
        "id": verified["run"].get("id"),
        "state": verified["run"]["state"],
        "phases": [_phase(phase) for phase in verified["phases"] if phase["steps"]],
    }


def _phase(phase: Json) -> Json:
    flat, sentence = judge_flat(phase["steps"])
    names = ("title", "id", "scenario", "target", "variant", "state", "steps")
    return {**{name: phase[name] for name in names}, "flat": flat, "sentence": sentence}

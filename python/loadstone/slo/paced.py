"""A plan whose only measured phase runs at a load, or in a closed loop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from loadstone.experiment.parts import only_script_phase
from loadstone.model import Pace
from loadstone.plan.model import ScriptWorkload

if TYPE_CHECKING:
    from loadstone.experiment.parts import Parts
    from loadstone.model import Drive
    from loadstone.plan.model import Plan, PlannedPhase


@dataclass(frozen=True, slots=True)
class Paced:
    """The measured part of a plan at a load; `rate` is None for a closed loop."""

    parts: Parts
    rate: float | None
    seconds: float
    seed: int

    def __call__(self, plan: Plan) -> Plan:
        """Return the plan of a trial."""
        part = self.parts.measuring(plan)
        targets = [replace(target, phases=tuple(map(self._paced, target.phases))) for target in part.targets]
        return replace(part, targets=tuple(targets))

    def _paced(self, phase: PlannedPhase) -> PlannedPhase:
        if not isinstance(phase.workload, ScriptWorkload):
            return phase
        pace = Pace() if self.rate is None else Pace("poisson", self.rate)
        drive = replace(
            phase.workload.drive, pace=pace, duration_s=self.seconds, transactions_per_client=None,
            latency_limit_ms=None, seed=self.seed,
        )  # fmt: skip
        return replace(phase, workload=ScriptWorkload(drive, phase.workload.row_check))


def measured_phase(plan: Plan, parts: Parts) -> PlannedPhase:
    """Return the one phase of scripts that is measured. Raises LoadstoneError where there is not just one."""
    return only_script_phase(
        parts.measuring(plan).targets[0].phases,
        none="A load can be searched for scripts, not for queries.",
        several="a load is searched for one phase of scripts at a time",
    )


def drive_of(phase: PlannedPhase) -> Drive:
    """Return the drive of a phase of scripts. Raises TypeError for another."""
    if not isinstance(phase.workload, ScriptWorkload):
        raise TypeError(phase.kind)
    return phase.workload.drive

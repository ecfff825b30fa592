"""The run that verified an advice: the same rows into partitions, kept in the folder `verify` of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.results.documents.summary import Verification, VerifiedPhase
from loadstone.summary.advice import judge_flat

if TYPE_CHECKING:
    from loadstone.results.documents.summary import PhaseFigures, StepsFigures, Summary

FOLDER = "verify"


def summarise_verification(verified: Summary) -> Verification:
    """Return the loads in steps of the verifying run, each with whether it stayed flat.

    `verified` is that run's own summary.
    """
    return Verification(
        id=verified.run.id,
        state=str(verified.run.state),
        phases=[_phase(phase, phase.steps) for phase in verified.phases if phase.steps],
    )


def _phase(phase: PhaseFigures, steps: StepsFigures) -> VerifiedPhase:
    flat, sentence = judge_flat(steps)
    return VerifiedPhase(
        title=phase.title,
        id=phase.id,
        scenario=phase.scenario,
        target=phase.target,
        variant=phase.variant,
        state=phase.state,
        steps=steps,
        flat=flat,
        sentence=sentence,
    )

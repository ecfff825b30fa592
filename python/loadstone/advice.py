"""Advice on partitions from a run folder: printed as DDL, and verified by a second run that follows it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.results.folder import RunFolder, state_of
from loadstone.run import Outcome, execute
from loadstone.summary.document import summarise
from loadstone.summary.knee.knee import rows_text
from loadstone.summary.verification import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from loadstone.results.documents.summary import PhaseFigures, Summary
    from loadstone.run import Listener, Request
    from loadstone.scenario.scenario import Scenario

PARAMETER = "partition_rows"
"""The parameter of a scenario that says how many rows a partition gets; 0: the table is not partitioned."""


def advice_text(folder: Path, wanted: Mapping[str, str], target: str | None = None) -> str:
    """Return a run's advice as SQL: sentences as comments, then the DDL, for each load in steps.

    `wanted` are values of the variant and `target` a target's id that choose among several. Raises
    LoadstoneError when there is nothing to advise on.
    """
    summary = summarise(folder)
    phases = [phase for phase in summary.phases if (phase.steps and phase.steps.advice)]
    if not phases:
        raise LoadstoneError(
            f"'{folder}' has no load in steps, so there is no knee to advise on",
            "Run one: loadstone run index-import.",
        )
    chosen = [phase for phase in phases if _is_wanted(phase, wanted, target)]
    if not chosen:
        there = "; ".join(dict.fromkeys(_named(phase) for phase in phases))
        raise LoadstoneError("no load in steps has that variant and target", f"Choose one of these: {there}.")
    return "\n".join(_section(phase) for phase in chosen)


def refuse_unverifiable(request: Request) -> None:
    """Raise LoadstoneError when no scenario of the request could follow an advice; touches nothing."""
    if not list(_partitionable(request)):
        raise LoadstoneError(
            f"--verify needs a scenario with the parameter '{PARAMETER}', and none of these has it",
            "Use index-import, which has it.",
        )
    if request.overrides.get(PARAMETER, "0") != "0":
        raise LoadstoneError(
            f"--verify sets '{PARAMETER}' itself, from the advice of the first run",
            f"Leave out --set {PARAMETER}, or leave out --verify.",
        )


def verify(request: Request, outcome: Outcome, listener: Listener) -> Outcome:
    """Run once more, into partitions of the advised size, and return how both runs ended together.

    The second run's folder is `verify` in the first one's. It is left out when the first did not end well,
    when that advises no partitions, and when a run that was resumed has verified already.
    """
    folder = outcome.folder.path
    if outcome.exit_code:
        listener.said("the run did not succeed: its advice is not verified")
        return outcome
    rows = advised_rows(summarise(folder))
    if rows is None:
        listener.said("no partitions are advised: there is nothing to verify")
        return outcome
    inside = folder / FOLDER
    state = state_of(RunFolder.open(inside)) if (inside / "run.json").is_file() else None
    if state == "complete":
        return outcome
    listener.said(f"verifying: the same rows into partitions of {rows_text(rows)} rows …")
    again = replace(
        request,
        scenarios=list(_partitionable(request)),
        overrides={**request.overrides, PARAMETER: str(rows)},
        out=inside if state is None else None,
        resume=inside if state is not None else None,
        calibrate=False,
    )
    try:
        second = execute(again, listener)
    except LoadstoneError as error:
        # The first run's results are there all the same.
        return replace(outcome, exit_code=error.exit_code, trouble=error)
    farewells = [*outcome.farewells, *second.farewells]
    return Outcome(outcome.folder, second.exit_code, second.trouble, farewells)


def advised_rows(summary: Summary) -> int | None:
    """Return the smallest size of a partition that a run advises, which suits all its variants."""
    found = [phase.steps.advice for phase in summary.phases if phase.steps]
    return min((advice.partition_rows for advice in found if advice and advice.partition_rows), default=None)


def _partitionable(request: Request) -> Iterator[Scenario]:
    yield from (scenario for scenario in request.scenarios if PARAMETER in scenario.parameters)


def _is_wanted(phase: PhaseFigures, wanted: Mapping[str, str], target: str | None) -> bool:
    if target is not None and phase.target != target:
        return False
    return all(str(phase.variant.get(name)) == value for name, value in wanted.items())


def _named(phase: PhaseFigures) -> str:
    values = ", ".join(f"{name}={value}" for name, value in phase.variant.items())
    return f"{values or phase.title} on {phase.target}"


def _section(phase: PhaseFigures) -> str:
    advice = phase.steps and phase.steps.advice
    if advice is None:
        return ""
    repeat = f", repeat {phase.repeat}" if phase.repeat > 1 else ""
    lines = [f"{phase.title}: {_named(phase)}{repeat}", *advice.sentences]
    return "\n".join([*_comments(lines), *([advice.ddl] if advice.ddl else []), ""])


def _comments(lines: Sequence[str]) -> list[str]:
    # A title may hold line ends, which would end the comment.
    return [f"-- {' '.join(line.split())}" for line in lines]

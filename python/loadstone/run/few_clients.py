"""Phases with fewer clients than load hosts: refused with the parameter that says how many there are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.plan.model import PlainQueriesWorkload, ScriptWorkload, TimeSeriesQueriesWorkload
from loadstone.run.preflight import split_clients

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.plan.model import Plan, PlannedPhase
    from loadstone.scenario.scenario import Scenario

_ONE_NAME = re.compile(r"\{\{\s*(\w+)\s*\}\}")
"""A template that is the value of a parameter, and nothing else."""


def refuse_too_few(plan: Plan, scenarios: Sequence[Scenario], hosts: int) -> None:
    """Refuse phases whose clients cannot be split over so many hosts.

    Raises LoadstoneError with the value that the scenario's parameter must have.
    """
    planned = [phase for target in plan.targets for phase in target.phases if phase.skip is None]
    for phase in planned:
        clients = split_clients(phase.workload)
        if clients is not None and clients < hosts:
            raise LoadstoneError(
                f"{phase.scenario}: phase '{phase.id}': {clients} client{'s' if clients > 1 else ''} "
                f"cannot be split over {hosts} load hosts",
                _hint(phase, planned, scenarios, hosts),
            )


def _hint(
    phase: PlannedPhase, planned: Sequence[PlannedPhase], scenarios: Sequence[Scenario], hosts: int
) -> str:
    scenario = next(scenario for scenario in scenarios if scenario.id == phase.scenario)
    name = _parameter(phase, scenario)
    if name is None:
        return f"Use at least {hosts} clients in this phase of the scenario, or fewer load hosts."
    swept = {
        value
        for other in planned
        if (other.scenario, other.id) == (phase.scenario, phase.id)
        and isinstance(value := other.variant.get(name), int)
    }
    values = ",".join(str(value) for value in sorted(swept) if value >= hosts) or str(hosts)
    prefix = f"{scenario.id}." if len(scenarios) > 1 else ""
    return f"Use --set {prefix}{name}={values}, or fewer load hosts."


def _parameter(phase: PlannedPhase, scenario: Scenario) -> str | None:
    """Return the parameter that is the number of clients; None where the scenario computes or fixes it."""
    body = next(one.body for one in scenario.phases if one.id == phase.id)
    if isinstance(phase.workload, PlainQueriesWorkload | TimeSeriesQueriesWorkload):
        body = body.get("queries", {})
    of_clients = isinstance(phase.workload, ScriptWorkload | PlainQueriesWorkload)
    written = _ONE_NAME.fullmatch(str(body.get("clients" if of_clients else "workers", "")))
    return written[1] if written and written[1] in scenario.parameters else None

"""What is crashed how: the command's options, or where they are silent the scenario's table [crash]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError
from loadstone.scenario.crash import crash_defaults, written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.scenario.parameter import Parameter
    from loadstone.scenario.scenario import Scenario
    from loadstone.scenario.tables.crash import Moments

_LISTED = ("integer", "number", "enum")
"""Types whose values have no commas."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Several values of one parameter."""

    parameter: Parameter
    name: str
    """As it was given: the parameter's, or `scenario.name`."""
    values: tuple[str, ...]
    """Each as after `--set`."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What options and scenario say together."""

    moments: Moments
    cycles: int
    window_s: float
    phase: str | None
    sweep: Sweep | None
    """None: one server."""


def choices_of(given: Mapping[str, Any], scenario: Scenario) -> Choices:
    """Join options and scenario. Raises LoadstoneError for two parameters with several values each."""
    own = crash_defaults(scenario, given["size"])
    return Choices(
        moments=given["moments"] or own.moments,
        cycles=given["cycles"] or own.cycles,
        window_s=given["window"] or own.window_s,
        phase=given["phase"] or own.phase,
        sweep=_sweep(given["overrides"], scenario, own.sweep),
    )


def _sweep(
    overrides: Mapping[str, str], scenario: Scenario, own: tuple[str, tuple[str, ...]] | None
) -> Sweep | None:
    named = {asked: _parameter(asked, scenario) for asked in overrides}
    found = [
        Sweep(parameter, asked, _values(parameter, overrides[asked]))
        for asked, parameter in named.items()
        if parameter is not None and parameter.type in _LISTED and "," in overrides[asked]
    ]
    if len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise LoadstoneError(
            f"one parameter can have several values, not {names}", "Set one value of the others."
        )
    if found or own is None or own[0] in {one.name for one in named.values() if one is not None}:
        return found[0] if found else None
    name, values = own
    return Sweep(scenario.parameters[name], name, values)


def _values(parameter: Parameter, text: str) -> tuple[str, ...]:
    values = (written(parameter.parse(part)) for part in text.split(","))
    return tuple(dict.fromkeys(values))


def _parameter(asked: str, scenario: Scenario) -> Parameter | None:
    """Return the parameter that a user's name means; the plan refuses a name that means none."""
    scope, _, name = asked.rpartition(".")
    return scenario.parameters.get(name) if scope in ("", scenario.id) else None

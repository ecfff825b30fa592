"""What `loadstone crash` does with a scenario where its options do not say it: [crash] → CrashDefaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError
from loadstone.model import SIZES
from loadstone.scenario.parameter import unknown_parameter
from loadstone.scenario.schema import Problem, key_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadstone.scenario.parameter import Parameter
    from loadstone.scenario.scenario import Scenario
    from loadstone.scenario.tables.crash import Moments

CYCLES, WINDOW_S = 20, 5.0


@dataclass(frozen=True, slots=True)
class CrashDefaults:
    """How a scenario is crashed unless options say otherwise."""

    moments: Moments = "random"
    cycles: int = CYCLES
    window_s: float = WINDOW_S
    phase: str | None = None
    sweep: tuple[str, tuple[str, ...]] | None = None
    """A parameter and its values as a user would write them: a server for each."""


def crash_defaults(scenario: Scenario, size: str) -> CrashDefaults:
    """Return what the scenario says at this size; keys of the size beat those for every size."""
    table = {key: value for key, value in scenario.crash.items() if key not in SIZES}
    table |= scenario.crash.get(size, {})
    for name, values in table.pop("sweep", {}).items():
        table["sweep"] = (name, tuple(dict.fromkeys(map(written, values))))
    return CrashDefaults(**table)


def written(value: object) -> str:
    """Return a value as a user would write it after `--set NAME=`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def crash_problems(
    table: Mapping[str, Any], parameters: Mapping[str, Parameter], phases: Sequence[str]
) -> Iterator[Problem]:
    """Yield what no schema can say of [crash]: names of phases and parameters, and values."""
    if table.get("phase", phases[0]) not in phases:
        where, name = key_path(("crash", "phase")), table["phase"]
        yield Problem(where, f"there is no phase '{name}'", f"Phases: {', '.join(phases)}.")
    for inside in ("", *SIZES):
        path = ("crash", inside, "sweep") if inside else ("crash", "sweep")
        part = table.get(inside, {}) if inside else table
        sweep = part.get("sweep", {})
        if len(sweep) > 1:
            yield Problem(key_path(path), "only one parameter has several values", "Remove the others.")
        for name, values in sweep.items():
            yield from _sweep_problems(name, values, parameters, key_path((*path, name)))


def _sweep_problems(
    name: str, values: Sequence[object], parameters: Mapping[str, Parameter], where: str
) -> Iterator[Problem]:
    if name not in parameters:
        yield unknown_parameter(name, parameters, where)
        return
    for value in values:
        try:
            parameters[name].check(value)
        except LoadstoneError as error:
            yield Problem(where, error.message, error.hint)

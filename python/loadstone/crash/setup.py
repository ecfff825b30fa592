"""An experiment made of the options of `loadstone crash`; what is wrong is refused before anything starts."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from loadstone.crash.checks import invariants_of
from loadstone.crash.choices import choices_of
from loadstone.crash.documents import FORMAT, Crash, Crashes, CrashesOfValue
from loadstone.crash.experiment import Bench, CrashTest
from loadstone.crash.levels import why_not
from loadstone.crash.sweep import CrashSweep
from loadstone.errors import LoadstoneError
from loadstone.experiment.documents import begun
from loadstone.experiment.parts import Parts, only_script_phase
from loadstone.experiment.runs import Quiet, begun_of, new_folder, request_of
from loadstone.host.environment import read_clocks
from loadstone.run import plan_of
from loadstone.run.targets import private_server_of
from loadstone.scenario.scenario import find_scenario
from loadstone.target import parse_targets
from loadstone.target.settings import shown_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from loadstone.crash.choices import Choices, Sweep
    from loadstone.crash.documents import LevelName
    from loadstone.plan.model import Plan, PlannedPhase
    from loadstone.run import Request
    from loadstone.scenario.scenario import Scenario
    from loadstone.target import Target

DEFAULT = "pgbench-grid"
_USUAL = {DEFAULT: ("grid", {"scale": "10", "workload": "tpcb-like", "clients": "8"})}
"""Phase and parameters where none are given: the scenario sweeps over them."""
_LOGGED = {"log_checkpoints": "on"}
"""What moments and recovery times are read from."""
_OURS = ("log_line_prefix", "log_min_messages", "log_checkpoints")


def prepare(
    given: Mapping[str, Any], arguments: Sequence[str], say: Callable[[str], None]
) -> CrashTest | CrashSweep:
    """Return the experiment, nothing started; `given` are the options. Raises LoadstoneError."""
    target = _target(given["target"])
    reason = why_not(given["level"])
    if reason is not None:
        raise LoadstoneError(
            f"--level {given['level']} cannot be used here: {reason}",
            "Use --level process, which shows nothing about a loss of power.",
        )
    for name in {**given["settings"], **target.settings}:
        if name.lower() in _OURS:
            raise LoadstoneError(f"'{name}' is set by Loadstone, which reads the server's log", "Remove it.")
    scenario = find_scenario(given["scenario"])
    choices = choices_of(given, scenario)
    choices = replace(choices, phase=choices.phase or _USUAL.get(given["scenario"], (None, {}))[0])
    request = _request(given, scenario, arguments)
    if choices.sweep is None:
        planned = [_planned(request, target, choices)]
    else:
        name, values = choices.sweep.name, choices.sweep.values
        _refuse_setting_of(choices.sweep, {**given["settings"], **target.settings})
        requests = (replace(request, overrides={**request.overrides, name: value}) for value in values)
        planned = [_planned(one, target, choices) for one in requests]
    started_at = read_clocks().started_at
    folder = new_folder(given["out"], "crash", scenario.id, started_at)
    if choices.sweep is None:
        return planned[0].test(given["level"], folder, started_at, folder.absolute().name, say)
    return _sweep(choices.sweep, planned, given["level"], folder, started_at, say)


def _request(given: Mapping[str, Any], scenario: Scenario, arguments: Sequence[str]) -> Request:
    phase_id, usual = _USUAL.get(given["scenario"], (None, {}))
    request = request_of(given, scenario, [given["target"]], arguments)
    usual = usual if given["phase"] in (None, phase_id) else {}
    return replace(request, overrides={**usual, **request.overrides})


def _refuse_setting_of(sweep: Sweep, settings: Mapping[str, str]) -> None:
    """Refuse a setting that would make servers of all values alike."""
    if sweep.parameter.name in {name.lower() for name in settings}:
        name = sweep.parameter.name
        raise LoadstoneError(
            f"'{name}' is a setting of all servers, and a parameter with several values",
            f"Use --set {name}=… alone.",
        )


def _planned(request: Request, target: Target, choices: Choices) -> _Planned:
    parts = Parts((choices.phase,) if choices.phase else ())
    plan = plan_of(request, (target,))
    parts.check(plan)
    return _Planned(request, target, choices, parts, plan, crashed_phase(plan, parts))


@dataclass(frozen=True, slots=True)
class _Planned:
    """One server, planned and found possible."""

    request: Request
    target: Target
    choices: Choices
    parts: Parts
    plan: Plan
    phase: PlannedPhase

    def test(
        self, level: LevelName, folder: Path, started_at: str, run_id: str, say: Callable[[str], None],
        template: str = "data",
    ) -> CrashTest:  # fmt: skip
        """Return its experiment, with the results in `folder`."""
        request, target, choices = self.request, self.target, self.choices
        document = begun_of(
            Crash, run_id, started_at, request, format=FORMAT, phase=self.phase.id, target=target.label,
            settings=dict(shown_settings({**request.settings, **target.settings})), level=level,
            clients=self.phase.workload.clients, wanted=choices.cycles, window_s=choices.window_s,
            moments=choices.moments,
        )  # fmt: skip
        bench = Bench(
            request, self.parts, target, self.phase,
            invariants_of(self.plan.targets[0].phases, self.phase), private_server_of(self.plan, (target,)),
            folder, Quiet(), {**_LOGGED, **request.settings}, template,
        )  # fmt: skip
        return CrashTest(document, say, bench)

    def loading(self) -> list[PlannedPhase]:
        """Return the phases that load the data, without their keys: these name variants."""
        return [replace(phase, key="") for phase in self.parts.loading(self.plan).targets[0].phases]


def _sweep(
    sweep: Sweep, planned: Sequence[_Planned], level: LevelName, folder: Path, started_at: str,
    say: Callable[[str], None],
) -> CrashSweep:  # fmt: skip
    """Return the experiment of several values: a folder for each, and one load for those that load alike."""
    loads: list[list[PlannedPhase]] = []
    tests: list[CrashTest] = []
    for value, one in zip(sweep.values, planned, strict=True):
        loading = one.loading()
        if loading not in loads:
            loads.append(loading)
        name = f"{sweep.parameter.name}-{re.sub(r'[^A-Za-z0-9._-]+', '-', value)}"
        run_id = f"{folder.absolute().name}-{name}"
        template = f"data-{loads.index(loading)}"
        tests.append(one.test(level, folder / name, started_at, run_id, say, template))
    first = planned[0]
    document = begun(
        Crashes, folder.absolute().name, started_at, first.request.command, format=FORMAT,
        scenario=first.request.scenarios[0].id, parameter=sweep.parameter.name, unit=sweep.parameter.unit,
        level=level, wanted=first.choices.cycles,
        values=[CrashesOfValue(value=sweep.parameter.parse(value), folder="") for value in sweep.values],
    )  # fmt: skip
    return CrashSweep(document, say, folder, tests)


def _target(text: str) -> Target:
    target = parse_targets([text])[0]
    if target.embedded is None:
        raise LoadstoneError(
            f"{target.url} is not a private PostgreSQL server: Loadstone kills only servers that it has "
            "started itself, with data of their own",
            "Use pg, pg10 to pg18 or pg:/path/to/bin.",
        )
    return target


def crashed_phase(plan: Plan, parts: Parts) -> PlannedPhase:
    """Return the one phase of scripts that is the load. Raises LoadstoneError where there is not just one."""
    measured = {phase.key for phase in parts.measuring(plan).targets[0].phases}
    phases = plan.targets[0].phases
    return only_script_phase(
        [one for one in phases if one.key in measured],
        none="Commits of scripts are booked, not of loads or queries.",
        several="one phase of scripts is the load of all cycles",
    )

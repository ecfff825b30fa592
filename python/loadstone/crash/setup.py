"""An experiment made of the options of `loadstone crash`; what is wrong is refused before anything starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone import __version__
from loadstone.ab.parts import Parts
from loadstone.ab.setup import Quiet
from loadstone.crash.checks import invariants_of
from loadstone.crash.documents import FORMAT, Crash
from loadstone.crash.experiment import Bench, CrashTest
from loadstone.crash.levels import why_not
from loadstone.errors import LoadstoneError
from loadstone.host.environment import read_clocks
from loadstone.plan.model import ScriptWorkload
from loadstone.results.folder import RunFolder, make_run_id
from loadstone.results.redact import redact_command
from loadstone.run import Request, plan_of
from loadstone.run.targets import private_server_of
from loadstone.scenario.scenario import find_scenario
from loadstone.target import parse_targets
from loadstone.target.settings import shown_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.plan.model import Plan, PlannedPhase
    from loadstone.target import Target

DEFAULT = "pgbench-grid"
_USUAL = {DEFAULT: ("grid", {"scale": "10", "workload": "tpcb-like", "clients": "8"})}
"""Phase and parameters where none are given: the scenario sweeps over them."""
_LOGGED = {"log_checkpoints": "on"}
"""What moments and recovery times are read from."""
_OURS = ("log_line_prefix", "log_min_messages", "log_checkpoints")


def prepare(given: Mapping[str, Any], arguments: Sequence[str], say: Callable[[str], None]) -> CrashTest:
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
    scenario = given["scenario"]
    phase_id, usual = _USUAL.get(scenario, (None, {}))
    request = Request(
        scenarios=[find_scenario(scenario)],
        targets=[given["target"]],
        size=given["size"],
        overrides={**(usual if given["phase"] in (None, phase_id) else {}), **given["overrides"]},
        seed=given["seed"],
        storage=given["storage"],
        settings=given["settings"],
        allow_shell=given["allow_shell"],
        calibrate=False,
        command=["loadstone", *arguments],
    )
    wanted = given["phase"] or phase_id
    parts = Parts((wanted,) if wanted else ())
    plan = plan_of(request, (target,))
    parts.check(plan)
    phase = crashed_phase(plan, parts)
    started_at = read_clocks().started_at
    run_id = f"{make_run_id(started_at, ['crash'])}-{plan.scenarios[0].id}"
    folder = RunFolder.create(given["out"], run_id).path
    document = Crash(
        format=FORMAT, loadstone=__version__, id=folder.absolute().name, state="running",
        started_at=started_at, command=redact_command(list(request.command)),
        scenario=request.scenarios[0].id, phase=phase.id, size=request.size, seed=request.seed,
        target=target.label,
        parameters=shown_settings(request.overrides),
        settings=dict(shown_settings({**request.settings, **target.settings})), level=given["level"],
        clients=phase.workload.clients, wanted=given["cycles"], window_s=given["window"],
    )  # fmt: skip
    bench = Bench(
        request, parts, target, phase,
        invariants_of(plan.targets[0].phases, phase), private_server_of(plan, (target,)), folder, Quiet(),
        {**_LOGGED, **request.settings},
    )  # fmt: skip
    return CrashTest(bench, document, say)


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
    found = [one for one in phases if one.key in measured and isinstance(one.workload, ScriptWorkload)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise LoadstoneError(
            "the scenario has no phase of scripts", "Commits of scripts are booked, not of loads or queries."
        )
    ids = list(dict.fromkeys(one.id for one in found))
    hint = f"Choose one with --phase: {', '.join(ids)}."
    if len(ids) == 1:
        swept = ", ".join(dict.fromkeys(name for one in found for name in one.variant))
        hint = f"The phase '{ids[0]}' has {len(found)} variants: set {swept} with --set."
    raise LoadstoneError("one phase of scripts is the load of all cycles", hint)

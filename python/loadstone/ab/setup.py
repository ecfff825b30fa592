"""An experiment made of the options of `loadstone ab`; what is wrong is refused before anything starts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loadstone.ab.arms import Arm, arm
from loadstone.ab.checkpoints import settings_for
from loadstone.ab.control import EACH_S
from loadstone.ab.experiment import Experiment, Limits, looks_until
from loadstone.ab.noise import noise_of
from loadstone.ab.parts import Parts
from loadstone.ab.trial import Bench
from loadstone.errors import LoadstoneError
from loadstone.host.environment import read_clocks
from loadstone.plan.plan import estimated_seconds
from loadstone.private_server.server import free_port
from loadstone.private_server.sizing import sized_settings
from loadstone.results.folder import RunFolder, make_run_id
from loadstone.run import Request, plan_of
from loadstone.scenario.scenario import find_scenario
from loadstone.target import parse_targets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from loadstone.plan.model import Plan, PlannedPhase
    from loadstone.workload.drive import Progress

OVERHEAD_S = 4.0
"""Copying, starting and stopping a server, beside the phases and the control."""


def prepare(given: Mapping[str, Any], arguments: Sequence[str], say: Callable[[str], None]) -> Experiment:
    """Return the experiment, nothing started; `given` are the options. Raises LoadstoneError."""
    arms = _arms(given)
    request = Request(
        scenarios=[find_scenario(given["scenario"])],
        targets=[],
        size=given["size"],
        overrides=given["overrides"],
        seed=given["seed"],
        storage=given["storage"],
        settings=given["settings"],
        allow_shell=given["allow_shell"],
        command=["loadstone", *arguments],
    )
    parts = Parts(tuple(given["phases"]))
    plan = _plans(request, arms, parts)[0]
    own = {name for one in arms for name in parse_targets([one.target])[0].settings}
    cycles = settings_for(plan, {*request.settings, *own})
    request = replace(request, settings={**cycles, **request.settings})
    noise = noise_of(given["history"], request.scenarios[0].id, request.size)
    if given["twin"] or (given["twin"] is None and noise is None):
        arms.append(arms[0].twin())
    folder = RunFolder.create(
        given["out"], f"{make_run_id(read_clocks().started_at, ['ab'])}-{plan.scenarios[0].id}"
    )
    bench = Bench(
        request, parts, folder.path, free_port(), sized_for(plan, folder.path, given["storage"]),
        {name for one in arms for name in one.parameters}, Quiet(),
    )  # fmt: skip
    seconds = estimated_seconds(plan) + 2 * EACH_S + OVERHEAD_S
    looks = given["looks"] or looks_until(given["max_blocks"])
    return Experiment(
        bench, arms, Limits(looks, given["max_time"]), given["matters"], say, plan, seconds, noise
    )


def _arms(given: Mapping[str, Any]) -> list[Arm]:
    return [
        arm("A", given["a"], given["a_setting"], given["a_set"]),
        arm("B", given["b"] or given["a"], given["b_setting"], given["b_set"]),
    ]


def _plans(request: Request, arms: Sequence[Arm], parts: Parts) -> list[Plan]:
    """Plan every arm, so that what is wrong with one of them is known now."""
    plans = []
    for one in arms:
        asked = replace(request, targets=[one.target], overrides={**request.overrides, **one.parameters})
        try:
            whole = plan_of(asked, parse_targets([one.target]))
            parts.check(whole)
        except LoadstoneError as error:
            error.message = f"arm {one.name}: {error.message}"
            raise
        plans.append(parts.measuring(whole))
    return plans


def sized_for(plan: Plan, folder: Path, storage: Path | None) -> dict[str, str]:
    """Return settings sized once, for servers of all arms; empty where a scenario limits their memory."""
    if any(scenario.private_server.memory_bytes for scenario in plan.scenarios):
        return {}
    clients = max(phase.workload.clients for target in plan.targets for phase in target.phases)
    return sized_settings(max(clients, 1), storage or folder)


class Quiet:
    """A listener that shows nothing: an experiment says itself where it is."""

    def said(self, message: str) -> None:
        """Take note of what is being done."""

    def planned(self, plan: Plan) -> None:
        """Take note of the final plan."""

    def began(self, target: str, phase: PlannedPhase) -> None:
        """Take note that a phase begins."""

    def progressed(self, target: str, phase: PlannedPhase, progress: Progress) -> None:
        """Take note of how a drive goes."""

    def ended(self, target: str, document: Mapping[str, Any]) -> None:
        """Take note that a phase has ended."""

"""An experiment made of the options of `loadstone ab`; what is wrong is refused before anything starts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loadstone.ab import texts
from loadstone.ab.checkpoints import settings_for
from loadstone.ab.control import EACH_S
from loadstone.ab.documents import FORMAT, ArmDocument
from loadstone.ab.documents import Experiment as Document
from loadstone.ab.experiment import Experiment, Limits, looks_until
from loadstone.ab.noise import noise_of
from loadstone.ab.trial import Bench
from loadstone.errors import LoadstoneError
from loadstone.experiment.arms import Arm, arm
from loadstone.experiment.parts import Parts
from loadstone.experiment.runs import Quiet, begun_of, new_folder, request_of, sized_for
from loadstone.host.environment import read_clocks
from loadstone.plan.plan import estimated_seconds
from loadstone.private_server.server import free_port
from loadstone.run import plan_of
from loadstone.scenario.scenario import find_scenario
from loadstone.target import parse_targets
from loadstone.target.settings import shown_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.plan.model import Plan
    from loadstone.run import Listener, Request

OVERHEAD_S = 4.0
"""Copying, starting and stopping a server, beside the phases and the control."""


def prepare(
    given: Mapping[str, Any],
    arguments: Sequence[str],
    say: Callable[[str], None],
    listener: Listener | None = None,
) -> Experiment:
    """Return the experiment, nothing started; `given` are the options, `listener` follows all trials.

    Raises LoadstoneError.
    """
    arms = _arms(given)
    request = request_of(given, find_scenario(given["scenario"]), [], arguments)
    parts = Parts(tuple(given["phases"]))
    plan = _plans(request, arms, parts)[0]
    own = {name for one in arms for name in parse_targets([one.target])[0].settings}
    cycles = settings_for(plan, {*request.settings, *own})
    request = replace(request, settings={**cycles, **request.settings})
    noise = noise_of(given["history"], request.scenarios[0].id, request.size)
    if given["twin"] or (given["twin"] is None and noise is None):
        arms.append(arms[0].twin())
    started_at = read_clocks().started_at
    folder = new_folder(given["out"], "ab", plan.scenarios[0].id, started_at)
    bench = Bench(
        request, parts, folder, free_port(), sized_for(plan, folder, given["storage"]),
        {name for one in arms for name in one.parameters}, listener or Quiet(),
    )  # fmt: skip
    limits = Limits(given["looks"] or looks_until(given["max_blocks"]), given["max_time"])
    document = begun_of(
        Document, folder.absolute().name, started_at, request, format=FORMAT, matters=given["matters"],
        looks=list(limits.looks), max_time_s=limits.seconds, arms=[_shown(one) for one in arms],
    )  # fmt: skip
    seconds = estimated_seconds(plan) + 2 * EACH_S + OVERHEAD_S
    return Experiment(document, say, bench, arms, limits, plan, seconds, noise)


def _shown(one: Arm) -> ArmDocument:
    return ArmDocument(
        name=one.name,  # type: ignore[arg-type]
        label=one.label,
        target=texts.target_text(one),
        parameters=shown_settings(one.parameters),
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

"""A search made of the options of `loadstone slo`; what is wrong is refused before anything starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone import __version__
from loadstone.ab.arms import arm
from loadstone.ab.parts import Parts
from loadstone.ab.setup import Quiet, sized_for
from loadstone.errors import LoadstoneError
from loadstone.host.environment import read_clocks
from loadstone.private_server.server import free_port
from loadstone.results.folder import RunFolder, make_run_id
from loadstone.results.redact import redact_command
from loadstone.run import Request, plan_of
from loadstone.scenario.scenario import find_scenario
from loadstone.slo.documents import FORMAT, Slo
from loadstone.slo.experiment import SloSearch
from loadstone.slo.paced import drive_of, measured_phase
from loadstone.slo.trial import Bench
from loadstone.target import parse_targets
from loadstone.target.settings import shown_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def prepare(given: Mapping[str, Any], arguments: Sequence[str], say: Callable[[str], None]) -> SloSearch:
    """Return the search, nothing started; `given` are the options. Raises LoadstoneError."""
    if not given["limits"]:
        raise LoadstoneError("there is no limit to keep", "Add --limit, such as --limit p99=20ms.")
    side = arm("A", given["target"], {}, {})
    request = Request(
        scenarios=[find_scenario(given["scenario"])],
        targets=[side.target],
        size=given["size"],
        overrides=given["overrides"],
        seed=given["seed"],
        storage=given["storage"],
        settings=given["settings"],
        allow_shell=given["allow_shell"],
        calibrate=False,
        command=["loadstone", *arguments],
    )
    parts = Parts((given["phase"],) if given["phase"] else ())
    plan = plan_of(request, parse_targets(request.targets))
    parts.check(plan)
    phase = measured_phase(plan, parts)
    started_at = read_clocks().started_at
    folder = RunFolder.create(given["out"], f"{make_run_id(started_at, ['slo'])}-{plan.scenarios[0].id}").path
    bench = Bench(
        request, parts, side, folder, free_port(), sized_for(parts.measuring(plan), folder, given["storage"]),
        tuple(given["limits"]), given["errors"], Quiet(), drive_of(phase),
    )  # fmt: skip
    document = Slo(
        format=FORMAT, loadstone=__version__, id=folder.absolute().name, state="running",
        started_at=started_at,
        command=redact_command(list(request.command)), scenario=request.scenarios[0].id, phase=phase.id,
        size=request.size, seed=request.seed, target=side.label, parameters=shown_settings(request.overrides),
        settings=dict(shown_settings(request.settings)), limits=[one.text for one in given["limits"]],
        errors=given["errors"], required=given["required"],
    )  # fmt: skip
    return SloSearch(bench, document, given["window"], given["most"], say)

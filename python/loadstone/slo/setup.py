"""A search made of the options of `loadstone slo`; what is wrong is refused before anything starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError
from loadstone.experiment.arms import alone
from loadstone.experiment.parts import Parts
from loadstone.experiment.runs import Quiet, begun_of, new_folder, request_of, sized_for
from loadstone.host.environment import read_clocks
from loadstone.private_server.server import free_port
from loadstone.run import plan_of
from loadstone.scenario.scenario import find_scenario
from loadstone.slo.documents import FORMAT, Slo
from loadstone.slo.experiment import SloSearch
from loadstone.slo.paced import drive_of, measured_phase
from loadstone.slo.trial import Bench
from loadstone.target import parse_targets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.run import Listener


def prepare(
    given: Mapping[str, Any],
    arguments: Sequence[str],
    say: Callable[[str], None],
    listener: Listener | None = None,
) -> SloSearch:
    """Return the search, nothing started; `given` are the options, `listener` follows all trials.

    Raises LoadstoneError.
    """
    if not given["limits"]:
        raise LoadstoneError("there is no limit to keep", "Add --limit, such as --limit p99=20ms.")
    side = alone(given["target"])
    request = request_of(given, find_scenario(given["scenario"]), [side.target], arguments)
    parts = Parts((given["phase"],) if given["phase"] else ())
    plan = plan_of(request, parse_targets(request.targets))
    parts.check(plan)
    phase = measured_phase(plan, parts)
    started_at = read_clocks().started_at
    folder = new_folder(given["out"], "slo", plan.scenarios[0].id, started_at)
    bench = Bench(
        request, parts, folder, free_port(), sized_for(parts.measuring(plan), folder, given["storage"]),
        tuple(given["limits"]), given["errors"], listener or Quiet(), drive_of(phase),
    )  # fmt: skip
    document = begun_of(
        Slo, folder.absolute().name, started_at, request, format=FORMAT, phase=phase.id, target=side.label,
        limits=[one.text for one in given["limits"]], errors=given["errors"], required=given["required"],
    )  # fmt: skip
    return SloSearch(document, say, bench, given["window"], given["most"])

"""The runs that trials are made of: what they are asked, how large their servers are, and how they failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from loadstone.errors import ExitCode, LoadstoneError
from loadstone.experiment.documents import TrialsHead, begun
from loadstone.private_server.sizing import sized_settings
from loadstone.results.folder import RunFolder, make_run_id
from loadstone.run import Request
from loadstone.signals import InterruptedRun
from loadstone.target.settings import shown_settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from loadstone.plan.model import Plan, PlannedPhase
    from loadstone.run import Outcome
    from loadstone.scenario.scenario import Scenario
    from loadstone.workload.drive import Progress

T = TypeVar("T", bound=TrialsHead)

_SIGNALS = {ExitCode.INTERRUPTED: 2, ExitCode.TERMINATED: 15}


def request_of(
    given: Mapping[str, Any], scenario: Scenario, targets: Sequence[str], arguments: Sequence[str]
) -> Request:
    """Return what all trials run; `given` are the options that experiments share."""
    return Request(
        scenarios=[scenario],
        targets=list(targets),
        size=given["size"],
        overrides=given["overrides"],
        seed=given["seed"],
        storage=given["storage"],
        settings=given["settings"],
        allow_shell=given["allow_shell"],
        calibrate=False,
        command=["loadstone", *arguments],
    )


def new_folder(out: Path | None, experiment: str, scenario: str, started_at: str) -> Path:
    """Make the folder of an experiment: `out`, or one named after it. Raises LoadstoneError."""
    return RunFolder.create(out, f"{make_run_id(started_at, [experiment])}-{scenario}").path


def begun_of(kind: type[T], run_id: str, started_at: str, request: Request, **own: Any) -> T:
    """Return the document of an experiment with trials of `request`, which begins now.

    `own` are the keys that only some documents have; they replace those of the request.
    """
    of_request = {
        "scenario": request.scenarios[0].id, "size": request.size, "seed": request.seed,
        "parameters": shown_settings(request.overrides), "settings": dict(shown_settings(request.settings)),
    }  # fmt: skip
    return begun(kind, run_id, started_at, request.command, **(of_request | own))


def sized_for(plan: Plan, folder: Path, storage: Path | None) -> dict[str, str]:
    """Return settings sized once, for servers of all arms; empty where a scenario limits their memory."""
    if any(scenario.private_server.memory_bytes for scenario in plan.scenarios):
        return {}
    clients = max(phase.workload.clients for target in plan.targets for phase in target.phases)
    return sized_settings(max(clients, 1), storage or folder)


def refuse_failed(what: str, outcome: Outcome) -> None:
    """Raise what ended a run before its end; `what` it was comes first in the message."""
    code = outcome.exit_code
    if code in _SIGNALS:
        raise InterruptedRun(_SIGNALS[code])
    if code is not ExitCode.OK:
        trouble = outcome.trouble
        error = LoadstoneError(
            f"{what}: {trouble.message if trouble else 'the run failed'}",
            f"{trouble.hint if trouble else ''} The run is in {outcome.folder.path}.".strip(),
        )
        error.exit_code = code
        raise error


class Quiet:
    """A listener that shows nothing: an experiment says itself where it is."""

    def said(self, message: str) -> None:
        """Keep what is being done."""

    def planned(self, plan: Plan) -> None:
        """Keep the final plan."""

    def began(self, target: str, phase: PlannedPhase) -> None:
        """Note that a phase begins."""

    def progressed(self, target: str, phase: PlannedPhase, progress: Progress) -> None:
        """Keep how a drive goes."""

    def ended(self, target: str, document: Mapping[str, Any]) -> None:
        """Note that a phase has ended."""

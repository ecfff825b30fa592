"""A run: targets opened, phases performed in the plan's order, everything written down as it happens."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from loadstone import __version__, environment
from loadstone.calibrate import calibrate_for
from loadstone.errors import ExitCode, LoadstoneError
from loadstone.plan import PlanTarget, make_plan, plan_to_json
from loadstone.redact import redact_command
from loadstone.run.phases import PhaseRun
from loadstone.run.server import Server
from loadstone.signals import InterruptedRun, Signals
from loadstone.runfolder import RunFolder, make_run_id
from loadstone.target import open_target, parse_targets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from loadstone.model import Plan, PlannedPhase
    from loadstone.drive import Progress
    from loadstone.scenario import Scenario
    from loadstone.target import Target

SCHEMA = "loadstone"


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for."""

    scenarios: Sequence[Scenario]
    targets: Sequence[str]
    size: str = "small"
    overrides: Mapping[str, str] = field(default_factory=dict)
    seed: int = 1
    repeats: int = 1
    out: Path | None = None
    storage: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    keep: bool = False
    replace: bool = False
    calibrate: bool = True
    command: Sequence[str] = ()


class Listener(Protocol):
    """Who wants to see the run go on: the terminal."""

    def said(self, message: str) -> None:
        """One line of what is being done."""

    def planned(self, plan: Plan) -> None:
        """The plan is final and the first phase is about to begin."""

    def began(self, target: str, phase: PlannedPhase) -> None:
        """A phase begins."""

    def progressed(self, target: str, phase: PlannedPhase, progress: Progress) -> None:
        """About ten times a second while a drive is under way."""

    def ended(self, target: str, document: Mapping[str, Any]) -> None:
        """A phase has ended; `document` is its phase.json."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where the results lie, and how the run ended."""

    folder: RunFolder
    exit_code: ExitCode
    trouble: LoadstoneError | None = None


def plan_of(request: Request, targets: Sequence[Target]) -> Plan:
    """The plan as far as it can be made without touching a target: wrong input is refused here."""
    asked = [PlanTarget(t.id, t.engine, t.url) for t in targets]
    return make_plan(
        request.scenarios, asked, request.size, request.overrides, request.seed, request.repeats
    )


def execute(request: Request, listener: Listener) -> Outcome:
    """Run what was asked. Raises LoadstoneError only for what is wrong before anything was touched."""
    targets = parse_targets(request.targets)
    plan = plan_of(request, targets)
    origin = environment.read_clocks()
    names = [scenario.id for scenario in request.scenarios]
    folder = RunFolder.create(request.out, make_run_id(origin.started_at, names))
    folder.write_run(
        loadstone=__version__,
        id=folder.path.name,
        scenarios=names,
        size=request.size,
        state="running",
        started_at=origin.started_at,
        origin_ns=origin.origin_ns,
        ended_at=None,
        duration_s=None,
        exit_code=None,
        reason=None,
        command=redact_command(list(request.command)),
    )
    folder.write_text("plan.json", plan_to_json(plan))
    try:
        code, trouble = _Run(request, listener, folder).guarded(targets, plan)
    except BaseException as error:
        # A bug of ours, not of the run's: the folder must not look as if the run went on.
        folder.write_run(state="failed", reason=f"internal error: {error!r}", exit_code=int(ExitCode.FAILED))
        raise
    now = environment.read_clocks()
    state = {ExitCode.OK: "complete", ExitCode.INTERRUPTED: "interrupted", ExitCode.TERMINATED: "interrupted"}
    folder.write_run(
        state=state.get(code, "failed"),
        ended_at=now.started_at,
        duration_s=round((now.origin_ns - origin.origin_ns) / 1e9, 3),
        exit_code=int(code),
        reason=trouble.message if trouble else None,
    )
    folder.close()
    return Outcome(folder, code, trouble)


class _Run:
    def __init__(self, request: Request, listener: Listener, folder: RunFolder) -> None:
        self.request = request
        self.listener = listener
        self.folder = folder
        self.signals = Signals()
        self.failed = self.wrong = False

    def guarded(self, targets: Sequence[Target], plan: Plan) -> tuple[ExitCode, LoadstoneError | None]:
        """Run, and turn every way of ending into an exit status; servers are stopped in each of them."""
        try:
            with self.signals, contextlib.ExitStack() as stack:
                servers = self._open(stack, targets, plan)
                final = self._final_plan(servers, plan)
                self._record(servers, final)
                self._phases(servers, final)
                self._clean_up(servers)
        except InterruptedRun as signalled:
            return self.signals.exit_code, LoadstoneError(str(signalled))
        except LoadstoneError as error:
            self.folder.event("error", "note", error.message, hint=error.hint or None)
            return ExitCode.FAILED, error
        if self.signals.received is not None:
            return self.signals.exit_code, LoadstoneError("stopped by a signal")
        if self.wrong:
            return ExitCode.WRONG_ANSWER, None
        return (ExitCode.FAILED if self.failed else ExitCode.OK), None

    def _open(self, stack: contextlib.ExitStack, targets: Sequence[Target], plan: Plan) -> list[Server]:
        clients = max((p.drive.clients for t in plan.targets for p in t.phases if p.drive), default=1)
        servers = []
        for target in targets:
            self.listener.said(f"opening {target.id}")
            opened = stack.enter_context(
                open_target(
                    target,
                    clients,
                    storage=self.request.storage,
                    settings=self.request.settings,
                    keep=self.request.keep,
                )
            )
            for note in opened.notes:
                self.folder.event("info", "note", note, target=target.id)
            server = Server(opened, self.folder, SCHEMA)
            stack.callback(server.close)
            server.engine.create_workspace(server.control, SCHEMA, replace=self.request.replace)
            servers.append(server)
        return servers

    def _final_plan(self, servers: Sequence[Server], plan: Plan) -> Plan:
        """Plan again, now that each target has said what it can do."""
        request = self.request
        asked = [
            PlanTarget(
                s.id,
                s.engine.name,
                s.opened.url,
                s.engine.capabilities(s.control),
                s.identity["version"],
            )
            for s in servers
        ]
        plan = make_plan(
            request.scenarios, asked, request.size, request.overrides, request.seed, request.repeats
        )
        self.folder.write_text("plan.json", plan_to_json(plan))
        return plan

    def _record(self, servers: Sequence[Server], plan: Plan) -> None:
        drives = [p.drive for t in plan.targets for p in t.phases if p.drive and p.skip is None]
        paths = {"results": self.folder.path}
        for server in servers:
            server.folder.write_target(server.describe())
            if server.opened.server is not None:
                paths[f"data of {server.id}"] = server.opened.server.data_directory
        clients = max((drive.clients for drive in drives), default=0)
        facts = environment.collect(paths, clients=clients)
        self.folder.write_json("environment.json", facts)
        for warning in facts["warnings"]:
            self.folder.event("warning", "warning", warning["message"], hint=warning.get("hint"))
        if self.request.calibrate and drives:
            self.listener.said("measuring our own ceiling on this machine")
            wanted = sorted({(drive.mode, drive.clients) for drive in drives})
            self.folder.write_json("calibration.json", calibrate_for(wanted, self.signals))

    def _phases(self, servers: Sequence[Server], plan: Plan) -> None:
        self.listener.planned(plan)
        # Targets take turns phase by phase, so that a slow drift of the machine meets all of them alike.
        for phases in zip(*(target.phases for target in plan.targets), strict=True):
            for server, phase in zip(servers, phases, strict=True):
                self._phase(server, phase)
                if self.signals.received is not None:
                    return

    def _phase(self, server: Server, phase: PlannedPhase) -> None:
        run = PhaseRun(phase, server, self.folder, self.signals)
        reason = phase.skip or server.gone
        if reason is not None:
            run.skip(reason)
            self.failed |= server.gone is not None
        else:
            self.listener.began(server.id, phase)
            run.perform(lambda progress: self.listener.progressed(server.id, phase, progress))
            self.failed |= run.state == "failed"
            self.wrong |= run.wrong
        self.listener.ended(server.id, run.document)

    def _clean_up(self, servers: Sequence[Server]) -> None:
        for server in servers:
            # What is thrown away with its server, or kept on request, needs no dropping.
            if server.opened.server is not None or self.request.keep or server.gone:
                continue
            server.engine.drop_workspace(server.control, SCHEMA)

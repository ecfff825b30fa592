"""A run: targets opened, phases performed in the plan's order, everything written down as it happens."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from loadstone import __version__, environment
from loadstone.calibrate import calibrate_for
from loadstone.engine import SCHEMA
from loadstone.engines import engine as engine_named
from loadstone.errors import ExitCode, LoadstoneError, RunFailedError, WrongAnswerError
from loadstone.plan import PlanTarget, clients_of, make_plan, plan_to_json
from loadstone.redact import redact_command
from loadstone.run.phases import PhaseRun
from loadstone.run.refusing import refuse_impossible
from loadstone.run.server import Server
from loadstone.runfolder import RunFolder, make_run_id
from loadstone.signals import InterruptedRun, Signals
from loadstone.target import open_target, parse_targets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from loadstone.drive import Progress
    from loadstone.embedded import EmbeddedServer
    from loadstone.model import InOut, Plan, PlannedPhase
    from loadstone.scenario import Scenario
    from loadstone.target import OpenTarget, Target


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
    io: InOut = "auto"
    command: Sequence[str] = ()


class Listener(Protocol):
    """Who wants to see the run go on: the terminal."""

    def said(self, message: str) -> None:
        """Take note of what is being done."""

    def planned(self, plan: Plan) -> None:
        """Take note of the final plan: the first phase is about to begin."""

    def began(self, target: str, phase: PlannedPhase) -> None:
        """Take note that a phase begins."""

    def progressed(self, target: str, phase: PlannedPhase, progress: Progress) -> None:
        """Take note of a drive, about ten times a second while it is under way."""

    def ended(self, target: str, document: Mapping[str, Any]) -> None:
        """Take note that a phase has ended; `document` is its phase.json."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where the results lie, and how the run ended."""

    folder: RunFolder
    exit_code: ExitCode
    trouble: LoadstoneError | None = None
    farewells: Sequence[str] = ()
    """How to reach the private servers that were asked to stay."""


def plan_of(request: Request, targets: Sequence[Target]) -> Plan:
    """Plan as far as that goes without touching a target: wrong input is refused here."""
    asked = [PlanTarget(t.id, t.engine, t.url, wire=t.place is None) for t in targets]
    plan = make_plan(request.scenarios, asked, request.size, request.overrides, request.seed, request.repeats)
    refuse_impossible(plan)
    return plan


def execute(request: Request, listener: Listener) -> Outcome:
    """Run what was asked.

    Raises LoadstoneError for what is wrong with the input; nothing was measured then, and no folder is left.
    """
    targets = parse_targets(request.targets)
    plan = plan_of(request, targets)
    origin = environment.read_clocks()
    names = [scenario.id for scenario in request.scenarios]
    existed = request.out is not None and request.out.exists()
    folder = RunFolder.create(request.out, make_run_id(origin.started_at, names))
    try:
        _begin(folder, request, names, origin)
        folder.write_text("plan.json", plan_to_json(plan))
        run = _Run(request, listener, folder)
        code, trouble = run.guarded(targets, plan)
        if trouble is None or code is not ExitCode.BAD_INPUT:
            _end(folder, origin, code, trouble)
    except LoadstoneError:
        raise
    except BaseException as error:
        # A bug of ours, not of the run's: the folder must not look as if the run went on.
        folder.write_run(state="failed", reason=f"internal error: {error!r}", exit_code=int(ExitCode.FAILED))
        raise
    finally:
        folder.close()
    if trouble is not None and code is ExitCode.BAD_INPUT:
        _discard(folder, keep=existed)
        raise trouble
    return Outcome(folder, code, trouble, run.farewells)


def _begin(folder: RunFolder, request: Request, names: list[str], origin: environment.Origin) -> None:
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


def _end(
    folder: RunFolder, origin: environment.Origin, code: ExitCode, trouble: LoadstoneError | None
) -> None:
    now = environment.read_clocks()
    states = {
        ExitCode.OK: "complete",
        ExitCode.INTERRUPTED: "interrupted",
        ExitCode.TERMINATED: "interrupted",
    }
    folder.write_run(
        state=states.get(code, "failed"),
        ended_at=now.started_at,
        duration_s=round((now.origin_ns - origin.origin_ns) / 1e9, 3),
        exit_code=int(code),
        reason=trouble.message if trouble else None,
    )


def _discard(folder: RunFolder, *, keep: bool) -> None:
    """Remove a run folder in which nothing was measured; it was empty when we got it."""
    for entry in folder.path.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
    if not keep:
        with contextlib.suppress(OSError):
            folder.path.rmdir()


def _errors_of(targets: Sequence[Target]) -> tuple[type[Exception], ...]:
    """Return what the control connections of these targets raise when the database is in trouble."""
    return tuple({error for target in targets for error in engine_named(target.engine).errors})


def _as_interrupted(signum: int) -> tuple[ExitCode, LoadstoneError]:
    signalled = InterruptedRun(signum)
    return signalled.exit_code, LoadstoneError(str(signalled))


class _Run:
    def __init__(self, request: Request, listener: Listener, folder: RunFolder) -> None:
        self.request = request
        self.listener = listener
        self.folder = folder
        self.signals = Signals()
        self.farewells: list[str] = []
        self._failures: list[str] = []
        self._wrong = False
        self._opening = True
        self._private: list[EmbeddedServer] = []

    def guarded(self, targets: Sequence[Target], plan: Plan) -> tuple[ExitCode, LoadstoneError | None]:
        """Run, and turn every way of ending into an exit status; servers are stopped in each of them."""
        try:
            with self.signals, contextlib.ExitStack() as stack:
                stack.callback(self._end_private_servers)
                servers = self._open(stack, targets, plan)
                self._opening = False
                final = self._final_plan(servers, plan)
                self._record(servers, final)
                self._phases(servers, final)
        except InterruptedRun as signalled:
            return _as_interrupted(signalled.signum)
        except Exception as error:
            if self.signals.received is not None:
                # Some libraries raise an error of their own in place of what a signal's handler has raised.
                return _as_interrupted(self.signals.received)
            if isinstance(error, LoadstoneError):
                return self._troubled(error)
            if isinstance(error, _errors_of(targets)):
                return self._troubled(RunFailedError(f"the server failed: {str(error).strip()}"))
            raise
        if not self._failures:
            return ExitCode.OK, None
        kind = WrongAnswerError if self._wrong else RunFailedError
        more = len(self._failures) - 1
        ending = f"; {more} more phase{'s' if more > 1 else ''} failed" if more else ""
        return kind.exit_code, kind(self._failures[0] + ending, "The report has the details.")

    def _troubled(self, error: LoadstoneError) -> tuple[ExitCode, LoadstoneError]:
        # On a full disk the words cannot be kept, but they are still shown.
        with contextlib.suppress(LoadstoneError):
            self.folder.event("error", "note", error.message, hint=error.hint or None)
        return (error.exit_code if self._opening else ExitCode.FAILED), error

    def _open(self, stack: contextlib.ExitStack, targets: Sequence[Target], plan: Plan) -> list[Server]:
        clients = max((clients_of(p) for t in plan.targets for p in t.phases), default=1) or 1
        # All targets are looked at before any of them is touched.
        opened = [self._open_one(stack, target, clients) for target in targets]
        servers = []
        for target in opened:
            for note in target.notes:
                self.folder.event("info", "note", note, target=target.id)
            server = Server(target, self.folder)
            stack.callback(server.close)
            server.claim()
            servers.append(server)
        for server in servers:
            server.engine.create_workspace(server.control, SCHEMA, replace=self.request.replace)
            stack.callback(self._clean_up, server)
        return servers

    def _open_one(self, stack: contextlib.ExitStack, target: Target, clients: int) -> OpenTarget:
        self.listener.said(f"opening {target.id} …")
        request = self.request
        opening = open_target(
            target, clients, storage=request.storage, settings=request.settings, keep=request.keep
        )
        try:
            opened = stack.enter_context(opening)
        except LoadstoneError as error:
            # Such as a password file that was ignored: it may well be the reason.
            error.hint = "\n  ".join([error.hint, *target.notes])
            raise
        if self.request.keep:
            stack.callback(self._say_farewell, opened)
        elif opened.server is not None:
            self._private.append(opened.server)
        return opened

    def _end_private_servers(self) -> None:
        """End again what a second signal may have kept from ending; does nothing where all went well."""
        for server in self._private:
            server.close()

    def _say_farewell(self, opened: OpenTarget) -> None:
        words = opened.farewell()
        if words is not None:
            self.farewells.append(words)

    def _clean_up(self, server: Server) -> None:
        """Drop what we made on somebody else's server, however the run ended; tell of trouble, raise none."""
        # What is thrown away with its server, or kept on request, needs no dropping.
        if server.opened.private or self.request.keep or self.signals.impatient:
            return
        trouble = server.drop_workspace()
        if trouble is None:
            return
        message = f"the schema {SCHEMA} could not be dropped: {trouble}"
        with contextlib.suppress(LoadstoneError):
            self.folder.event(
                "warning", "warning", message, hint="The next run drops it first.", target=server.id
            )
        self.listener.said(f"{server.id}: {message}")

    def _final_plan(self, servers: Sequence[Server], plan: Plan) -> Plan:
        """Plan again, now that each target has said what it can do."""
        request = self.request
        asked = [
            PlanTarget(
                s.id,
                s.engine.name,
                s.opened.url,
                s.engine.capabilities(s.control),
                s.engine.postgres_version(s.identity),
                wire=s.opened.connection is not None,
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
            if server.opened.data_directory is not None:
                paths[f"data of {server.id}"] = server.opened.data_directory
        clients = max((clients_of(p) for t in plan.targets for p in t.phases if p.skip is None), default=0)
        facts = environment.collect(paths, clients=clients)
        self.folder.write_json("environment.json", facts)
        for warning in facts["warnings"]:
            self.folder.event("warning", "warning", warning["message"], hint=warning.get("hint"))
        if self.request.calibrate and drives:
            self.listener.said("measuring our own ceiling on this machine …")
            wanted = sorted({(drive.mode, drive.clients) for drive in drives})
            found = calibrate_for(wanted, self.signals, io=self.request.io)
            self.folder.write_json("calibration.json", found)

    def _phases(self, servers: Sequence[Server], plan: Plan) -> None:
        self.listener.planned(plan)
        # Targets take turns phase by phase, so that a slow drift of the machine meets all of them alike.
        for phases in zip(*(target.phases for target in plan.targets), strict=True):
            first: PhaseRun | None = None
            for server, phase in zip(servers, phases, strict=True):
                run = self._phase(server, phase, first)
                first = first or (run if phase.query and not phase.load and run.state == "complete" else None)
                self.signals.check()

    def _phase(self, server: Server, phase: PlannedPhase, first: PhaseRun | None) -> PhaseRun:
        """Run one phase; `first` is the same phase on the first target that answered its queries."""
        run = PhaseRun(phase, server, self.folder, self.signals, self.request.io)
        reason = phase.skip or server.gone
        if reason is not None:
            run.skip(reason)
        else:
            self.listener.began(server.id, phase)
            run.perform(lambda progress: self.listener.progressed(server.id, phase, progress))
        if first is not None:
            run.compare_with(first)
        if run.state == "failed" or (run.state == "skipped" and not phase.skip and server.gone):
            self._failures.append(f"{server.id}: {phase.title}: {run.document['reason']}")
            self._wrong |= run.wrong
        self.listener.ended(server.id, run.document)
        return run

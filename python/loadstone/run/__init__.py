"""A run: targets opened, phases performed in the plan's order, everything written down as it happens."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from loadstone.engines import engine as engine_named
from loadstone.errors import (
    ExitCode,
    HostLostError,
    LoadstoneError,
    RunFailedError,
    WrongAnswerError,
    explained,
    words_of,
)
from loadstone.host import bandwidth, environment
from loadstone.host.open_files import make_room_for
from loadstone.hosts.places import parse_hosts
from loadstone.plan.model import PlainQueriesWorkload, ScriptWorkload, TableLoadWorkload
from loadstone.plan.plan import PlanTarget, make_plan, plan_to_json
from loadstone.results.folder import DEFAULT_PARENT, RunFolder, make_run_id, missing
from loadstone.run.begin_end import begin_run, end_run
from loadstone.run.few_clients import refuse_too_few
from loadstone.run.phase_context import PhaseOptions
from loadstone.run.phases import PhaseRun
from loadstone.run.preflight import (
    refuse_idle,
    refuse_impossible,
    refuse_shell,
    refuse_unqualified,
    refuse_unsplittable,
    refuse_without_room,
)
from loadstone.run.prices import prices_of
from loadstone.run.remembered import asked_document
from loadstone.run.request import Listener, Outcome, Request
from loadstone.run.resume import ResumeState, open_broken, options_of
from loadstone.run.targets import Opener, private_server_of
from loadstone.run.turns import in_turn
from loadstone.signals import InterruptedRun, Signals
from loadstone.target import parse_targets
from loadstone.workload.calibrate import calibrate_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.hosts.fleet import Fleet
    from loadstone.plan.model import Plan, PlannedPhase, Workload
    from loadstone.run.server import Server
    from loadstone.target import Target

__all__ = ["Listener", "Outcome", "Request", "execute", "plan_of"]


def plan_of(request: Request, targets: Sequence[Target]) -> Plan:
    """Plan as far as that goes without touching a target: wrong input is refused here."""
    asked = [
        PlanTarget(
            t.id,
            t.engine,
            t.url,
            wire=engine_named(t.engine).wire is not None,
            dialect=engine_named(t.engine).sql_dialect,
            lacks=engine_named(t.engine).tables.lacks,
            name=t.name(engine_named(t.engine).title),
        )
        for t in targets
    ]
    plan = _make_plan(request, asked)
    refuse_impossible(plan)
    refuse_unqualified(plan, targets)
    if not request.allow_shell:
        refuse_shell(plan)
    private_server_of(plan, targets)
    return plan


def _make_plan(request: Request, asked: Sequence[PlanTarget]) -> Plan:
    plan = make_plan(request.scenarios, asked, request.size, request.overrides, request.seed, request.repeats)
    return plan if request.part is None else request.part(plan)


def execute(request: Request, listener: Listener) -> Outcome:
    """Run what was asked.

    Raises LoadstoneError for what is wrong with the input; nothing was measured then, and no folder is left.
    """
    targets = parse_targets(request.targets)
    prices = prices_of(request.prices, request.targets, targets)
    plan = plan_of(request, targets)
    _refuse_hosts(plan, request)
    _make_room(plan, request)
    origin = environment.read_clocks()
    left = open_broken(request.resume, request, plan, targets) if request.resume is not None else None
    made = missing(DEFAULT_PARENT if request.out is None else request.out)
    folder = _folder(request, targets, plan, origin, left)
    if prices:
        folder.write_run(prices=prices)
    try:
        run = _Run(request, listener, folder, left)
        code, trouble = run.guarded(targets, plan)
        if left or code is not ExitCode.BAD_INPUT:
            end_run(folder, code, trouble.message if trouble else None)
    except LoadstoneError:
        raise
    except BaseException as error:
        # A bug of ours, not of the run's: the folder must not look as if the run went on.
        folder.write_run(state="failed", reason=f"internal error: {error!r}", exit_code=int(ExitCode.FAILED))
        raise
    finally:
        folder.close()
    if trouble is not None and code is ExitCode.BAD_INPUT:
        if not left:
            folder.discard(made if request.out is not None else [folder.path, *made])
        raise trouble
    return Outcome(folder, code, trouble, run.farewells())


def _refuse_hosts(plan: Plan, request: Request) -> None:
    """Refuse a plan without phases, and one that the load hosts cannot share. Raises LoadstoneError."""
    refuse_idle(plan)
    if request.hosts is not None:
        places = parse_hosts(request.hosts)
        refuse_unsplittable(plan)
        refuse_too_few(plan, request.scenarios, places.local)  # other hosts are counted when they are found


def _make_room(plan: Plan, request: Request) -> None:
    clients = max((phase.workload.clients for target in plan.targets for phase in target.phases), default=0)
    workloads = [phase.workload for target in plan.targets for phase in target.phases]
    drives = any(isinstance(workload, ScriptWorkload) for workload in workloads)
    # Our own ceiling is measured against a server in this process: each connection has both its ends here.
    make_room_for(2 * clients if drives and request.calibrate else clients)


def _folder(
    request: Request,
    targets: Sequence[Target],
    plan: Plan,
    origin: environment.Origin,
    left: ResumeState | None,
) -> RunFolder:
    """Make the run's folder, or take over that of the run that goes on."""
    if left is not None:
        left.folder.take_over(origin.started_at)
        return left.folder
    names = [scenario.id for scenario in request.scenarios]
    folder = RunFolder.create(request.out, make_run_id(origin.started_at, names))
    _begin(folder, request, targets, origin)
    folder.write_text("plan.json", plan_to_json(plan))
    return folder


def _begin(
    folder: RunFolder, request: Request, targets: Sequence[Target], origin: environment.Origin
) -> None:
    begin_run(
        folder,
        origin,
        request.command,
        scenarios=[scenario.id for scenario in request.scenarios],
        size=request.size,
        options=options_of(request, targets),
        asked=asked_document(request, targets),
    )


def _planned(plan: Plan) -> Iterator[PlannedPhase]:
    """Yield the phases of all targets that are not skipped."""
    return (phase for target in plan.targets for phase in target.phases if phase.skip is None)


def _has_plain_queries(workload: Workload) -> bool:
    """Return whether plain SQL runs, whose scan rates are compared with the machine's bandwidth."""
    loaded = isinstance(workload, TableLoadWorkload) and workload.mixed is not None
    return loaded or isinstance(workload, PlainQueriesWorkload)


def _errors_of(targets: Sequence[Target]) -> tuple[type[Exception], ...]:
    """Return what the control connections of these targets raise when the database is in trouble."""
    return tuple({error for target in targets for error in engine_named(target.engine).errors})


def _as_interrupted(signum: int) -> tuple[ExitCode, LoadstoneError]:
    signalled = InterruptedRun(signum)
    return signalled.exit_code, LoadstoneError(str(signalled))


class _Run:
    def __init__(
        self, request: Request, listener: Listener, folder: RunFolder, left: ResumeState | None = None
    ) -> None:
        self.request = request
        self.listener = listener
        self.folder = folder
        self.left = left
        self.signals = Signals()
        self._opener = Opener(request, listener, folder, self.signals, left)
        self._failures: list[str] = []
        self._wrong = False
        self._opening = True
        self._fleet: Fleet | None = None
        self._measured = False
        """A drive of this run has figures."""
        self._full: dict[tuple[str, str, str, int], str] = {}
        """Why the rest of a sweep is not run: (target, scenario, phase, repeat) -> the disk is full."""

    def guarded(self, targets: Sequence[Target], plan: Plan) -> tuple[ExitCode, LoadstoneError | None]:
        """Run, and turn every way of ending into an exit status; servers are stopped in each of them."""
        try:
            with self.signals, self.signals.closing(contextlib.ExitStack()) as stack:
                self._fleet = self._open_fleet(stack, plan)
                servers = self._opener.open(stack, targets, plan)
                final = self._final_plan(servers, plan)
                self._refuse_unreachable(servers)
                refuse_idle(final)
                if not (self.request.ignore_space or self.left):
                    refuse_without_room(final, servers)
                self._opening = False
                self._record(servers, final)
                self._phases(servers, final)
        except InterruptedRun as signalled:
            return _as_interrupted(signalled.signum)
        except Exception as error:
            if self.signals.received is not None:
                # Some libraries raise an error of their own in place of what a signal's handler has raised.
                return _as_interrupted(self.signals.received)
            known = explained(error)
            if known is not None:
                return self._troubled(known)
            if isinstance(error, _errors_of(targets)):
                return self._troubled(RunFailedError(f"the server failed: {words_of(error)}"))
            raise
        if not self._failures:
            return ExitCode.OK, None
        kind = WrongAnswerError if self._wrong else RunFailedError
        more = len(self._failures) - 1
        ending = f"; {more} more phase{'s' if more > 1 else ''} failed" if more else ""
        return kind.exit_code, kind(self._failures[0] + ending, "The report has the details.")

    def _open_fleet(self, stack: contextlib.ExitStack, plan: Plan) -> Fleet | None:
        """Find the load hosts, if there are to be any."""
        hosts = self.request.hosts
        if hosts is None:
            return None
        from loadstone.hosts.fleet import open_fleet  # noqa: PLC0415 - imports Dask

        self.listener.said(f"finding the load hosts of {hosts} …")
        fleet = stack.enter_context(open_fleet(parse_hosts(hosts), calibrate=self.request.calibrate))
        refuse_too_few(plan, self.request.scenarios, len(fleet.names))
        for note in (f"load hosts: {', '.join(fleet.names)}", *fleet.notes):
            self.folder.event("info", "note", note)
            self.listener.said(note)
        return fleet

    def _refuse_unreachable(self, servers: Sequence[Server]) -> None:
        """Refuse servers that the load hosts cannot reach. Raises LoadstoneError."""
        for server in servers:
            if self._fleet is not None and server.opened.connection is not None:
                self._fleet.refuse_unreachable(server.clients_connection().host)

    def farewells(self) -> list[str]:
        """Say how to reach the private servers that were asked to stay."""
        return self._opener.farewells

    def _troubled(self, error: LoadstoneError) -> tuple[ExitCode, LoadstoneError]:
        # On a full disk the words cannot be kept, but they are still shown.
        with contextlib.suppress(LoadstoneError):
            self.folder.event("error", "note", error.message, hint=error.hint or None)
        nothing = self._opening or (isinstance(error, HostLostError) and not self._measured)
        return (error.exit_code if nothing else ExitCode.FAILED), error

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
                dialect=s.engine.sql_dialect,
                name=s.opened.name,
            )
            for s in servers
        ]
        plan = _make_plan(request, asked)
        self.folder.write_text("plan.json", plan_to_json(plan))
        return plan

    def _record(self, servers: Sequence[Server], plan: Plan) -> None:
        """Write down what this machine and the servers are, as far as an earlier run has not."""
        workloads = [phase.workload for phase in _planned(plan)]
        paths = {"results": self.folder.path}
        for server in servers:
            server.folder.write_target(server.describe())
            if server.opened.data_directory is not None:
                paths[f"data of {server.id}"] = server.opened.data_directory
        clients = max((workload.clients for workload in workloads), default=0)
        if self.left and self.folder.read_json("environment.json"):
            return
        facts = environment.collect(paths, clients=clients)
        if any(_has_plain_queries(workload) for workload in workloads):
            self.listener.said("measuring the bandwidth of this machine's memory and disk …")
            ours = {f"data of {s.id}" for s in servers if s.opened.private} | {"results"}
            facts["bandwidth"] = bandwidth.measure({n: path for n, path in paths.items() if n in ours})
        self.folder.write_json("environment.json", facts)
        for warning in facts["warnings"]:
            self.folder.event("warning", "warning", warning["message"], hint=warning.get("hint"))
        wanted = sorted({(w.drive.mode, w.drive.clients) for w in workloads if isinstance(w, ScriptWorkload)})
        if self.request.calibrate and wanted and self._fleet is None:
            self.listener.said("measuring Loadstone's own ceiling on this machine …")
            found = calibrate_for(wanted, self.signals, io=self.request.io)
            self.folder.write_json("calibration.json", found)

    def _phases(self, servers: Sequence[Server], plan: Plan) -> None:
        self.listener.planned(plan)
        kept = {s.id: self._kept(s, t.phases) for s, t in zip(servers, plan.targets, strict=True)}
        # Targets take turns phase by phase, and repeat by repeat in another order, so that neither a slow
        # drift of the machine nor what the turn before leaves behind meets one of them more than others.
        for phases in zip(*(target.phases for target in plan.targets), strict=True):
            before: list[PhaseRun] = []
            for server, phase in in_turn(list(zip(servers, phases, strict=True))):
                run = self._run_of(server, phase)
                if phase.key in kept[server.id]:
                    run.keep()
                    self.listener.said(f"{server.id}: {phase.title}: done before the interruption")
                else:
                    self._phase(run, server, phase, before)
                before.append(run)
                self.signals.check()

    def _kept(self, server: Server, phases: Sequence[PlannedPhase]) -> frozenset[str]:
        """Return the keys of the phases that an earlier run has done."""
        if self.left is None:
            return frozenset()
        kept = self.left.kept(server.id, phases, there=server.kept)
        there = (
            "what it had created is still on the server" if server.kept else "the server has nothing of it"
        )
        words = f"resuming the run: {len(kept)} of {len(phases)} phases are done; {there}"
        self.folder.event("info", "note", words, target=server.id)
        self.listener.said(f"{server.id}: {words}")
        return kept

    def _run_of(self, server: Server, phase: PlannedPhase) -> PhaseRun:
        begun = self.left.begun(server.id, phase) if self.left else None
        options = PhaseOptions(self.request.io, self.request.ignore_space, begun, self._fleet)
        return PhaseRun(phase, server, self.folder, self.signals, options)

    def _phase(self, run: PhaseRun, server: Server, phase: PlannedPhase, before: list[PhaseRun]) -> None:
        """Run one phase; `before` is the same phase on the targets that had their turn."""
        sweep = (server.id, phase.scenario, phase.id, phase.repeat)
        reason = phase.skip or self._full.get(sweep) or server.gone
        try:
            if reason is not None:
                run.skip(reason)
            else:
                self.listener.began(server.id, phase)
                run.perform(lambda progress: self.listener.progressed(server.id, phase, progress))
            run.compare_with(before)
        finally:
            self._measured |= run.account is not None
            with contextlib.suppress(LoadstoneError):  # on a full disk: the report then misses the entry
                run.folder.end()
        if run.full:
            self._full[sweep] = f"the previous variant filled the disk: {run.full}"
        if run.state == "failed" or (run.state == "skipped" and not phase.skip and server.gone):
            self._failures.append(f"{server.id}: {phase.title}: {run.document['reason']}")
            self._wrong |= run.wrong
        self.listener.ended(server.id, run.document)

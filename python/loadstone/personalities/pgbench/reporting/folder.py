"""The run folder of `--report`: the same documents as `loadstone run` writes, and the same page.

It is for every command line that is another program's: `Reported` says what differs.
"""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.errors import ExitCode, LoadstoneError
from loadstone.host import environment
from loadstone.personalities.pgbench.reporting.server import ReportedServer
from loadstone.personalities.pgbench.results_folder import Measurement
from loadstone.plan.plan import plan_to_json
from loadstone.results.folder import RunFolder, missing
from loadstone.results.redact import learn
from loadstone.run.begin_end import begin_run, end_run
from loadstone.run.outcome import outcome_of
from loadstone.run.phases import phase_document
from loadstone.signals import InterruptedRun
from loadstone.target import server_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from loadstone.model import Drive
    from loadstone.personalities.pgbench.reporting.server import Address
    from loadstone.plan.model import Plan, PlannedPhase
    from loadstone.target import Target
    from loadstone.watch.watchers import Watcher

    Write = Callable[[str], object]

Ending = tuple[str, str | None]
"""State and reason of a phase."""
_STOPPED: Ending = ("interrupted", "stopped by a signal")


@dataclass(frozen=True, slots=True)
class Reported:
    """A command line whose run is kept."""

    program: str
    """How its messages begin, and the name of its scenario."""
    arguments: Sequence[str]
    plan: Callable[[Drive, Target], Plan]
    """The plan of one phase that the drive makes."""
    address: Address
    watchers_of: Callable[[str], Sequence[Watcher]] = lambda _: ()
    """What watches the machine of a target, by its id."""


@contextmanager
def report_folder(wanted: Path, reported: Reported, err: Write) -> Iterator[ReportFolder]:
    """Begin a run folder, and end it however the run ends.

    Raises LoadstoneError where there cannot be one; where nothing was measured, none is left.
    """
    origin = environment.read_clocks()
    made = missing(wanted)
    folder = RunFolder.create(wanted, wanted.name, option="--report")
    begin_run(
        folder,
        origin,
        ["loadstone", reported.program, *reported.arguments],
        scenarios=[reported.program],
        size=None,
    )
    report = ReportFolder(folder, reported, err)
    try:
        yield report
    except InterruptedRun as stop:
        report.end(stop.exit_code)
        raise
    except LoadstoneError:
        if report.measured:
            report.end(ExitCode.FAILED)
        else:
            folder.close()
            folder.discard(made)
        raise
    except BaseException as error:
        # A bug of ours: the folder must not look as if the run went on.
        folder.write_run(state="failed", reason=f"internal error: {error!r}", exit_code=int(ExitCode.FAILED))
        raise
    finally:
        folder.close()


class ReportFolder:
    """The folder while the run goes on."""

    def __init__(self, folder: RunFolder, reported: Reported, err: Write) -> None:
        """Use a run folder that has begun."""
        self.measured = False
        """Whether a drive has left something to report."""
        self._folder = folder
        self._reported = reported
        self._address = reported.address
        self._err = err
        self._reason: str | None = None
        self._ended = False

    @contextmanager
    def measuring(self, drive: Drive) -> Iterator[Measurement]:
        """Record server, machine and plan, then watch them while the drive goes on."""
        learn(dict(drive.variables))
        target = server_target(self._address.engine().name, self._address.connection)
        plan = self._reported.plan(drive, target)
        self._folder.write_text("plan.json", plan_to_json(plan))
        watchers = self._reported.watchers_of(target.id)
        with closing(ReportedServer(self._address, target, self._folder, watchers)) as server:
            server.folder.write_target(server.describe())
            self._record_environment(drive.clients)
            with self._phase(plan.targets[0].phases[0], server) as measurement:
                yield measurement

    def end(self, code: ExitCode) -> ExitCode:
        """End the run in its folder, and write the report; returns `code`, or that of a failure to write."""
        if self._ended:
            return code
        self._ended = True
        try:
            end_run(self._folder, code, self._reason if code else None)
            self._write_report()
        except LoadstoneError as error:
            self._err(f"{self._reported.program}: error: there is no report: {error.message}\n")
            return code or error.exit_code
        return code

    def _write_report(self) -> None:
        # The libraries of reports, which only this needs.
        from loadstone.report import write_report  # noqa: PLC0415

        def warn(text: str) -> None:
            self._err(f"{self._reported.program}: warning: {text}\n")

        page = write_report(self._folder.path, warn)
        self._err(f"{self._reported.program}: report: {page}\n")

    def _record_environment(self, clients: int) -> None:
        facts = environment.collect({"results": self._folder.path}, clients=clients)
        self._folder.write_json("environment.json", facts)
        for warning in facts["warnings"]:
            self._folder.event("warning", "warning", warning["message"], hint=warning.get("hint"))

    @contextmanager
    def _phase(self, phase: PlannedPhase, server: ReportedServer) -> Iterator[Measurement]:
        """Keep phase.json while the drive goes on; its end, however it came, is in it."""
        folder = server.folder.phase(1, phase.id)
        document = phase_document(phase, server.folder.id)
        before = server.sizes()
        measurement = Measurement(folder.path)
        ending = _STOPPED
        folder.begin()
        document |= {"start_ns": time.monotonic_ns(), "sizes": {"before": before, "after": None}}
        folder.write_phase(document)
        self._folder.event("info", "phase-start", phase.title, target=server.folder.id, phase=phase.key)
        try:
            with server.monitor:
                yield measurement
            ending = self._judged(measurement)
        except LoadstoneError as error:
            ending = "failed", error.message
            raise
        finally:
            state, self._reason = ending
            document |= {"state": state, "reason": self._reason, "end_ns": time.monotonic_ns()}
            document["sizes"] = {"before": before, "after": server.sizes()}
            folder.write_phase(document)
            folder.end()
            words = f"{state}: {self._reason}" if self._reason else state
            self._folder.event(
                "error" if state == "failed" else "info",
                "phase-end",
                words,
                target=server.folder.id,
                phase=phase.key,
            )

    def _judged(self, measurement: Measurement) -> Ending:
        if measurement.account is None:
            return _STOPPED
        self.measured = True
        try:
            return outcome_of(measurement.account)
        except LoadstoneError as error:
            # Records that are incomplete: what there is is reported, and printed as ever.
            return "failed", error.message

"""Crashes one after the other, and what an end by any way leaves: the verdict as far as it goes."""

from __future__ import annotations

import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import psycopg

from loadstone.crash import texts
from loadstone.crash.checks import can_check_files, connected, prepare, value
from loadstone.crash.documents import NAME, Crash
from loadstone.crash.levels import ProcessLevel, level_of
from loadstone.crash.moments import Moment, late_moments, moments
from loadstone.crash.session import NotUpError, Session
from loadstone.crash.verdict import exit_of, verdict_of
from loadstone.errors import ExitCode, LoadstoneError, RunFailedError, words_of
from loadstone.experiment.experiment import Experiment
from loadstone.experiment.runs import refuse_failed
from loadstone.plan.model import ScriptWorkload
from loadstone.private_server import PrivateFolder, Provision
from loadstone.private_server.provision import move_data
from loadstone.run import execute
from loadstone.scenario.crash import WINDOW_S
from loadstone.target import open_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from loadstone.crash.checks import Invariants
    from loadstone.crash.documents import Cycle
    from loadstone.crash.levels import Level
    from loadstone.experiment.parts import Parts
    from loadstone.model import PrivateServer
    from loadstone.plan.model import PlannedPhase
    from loadstone.run import Listener, Request
    from loadstone.signals import Signals
    from loadstone.target import Target


@dataclass(frozen=True, slots=True)
class Bench:
    """What is made to crash."""

    request: Request
    parts: Parts
    target: Target
    phase: PlannedPhase
    invariants: Invariants
    demands: PrivateServer
    folder: Path
    listener: Listener
    settings: Mapping[str, str]
    template: str = "data"
    """Name of the loaded data: tests with the same load share them."""

    def make_template(self, place: Path) -> None:
        """Load the data into `place`, unless a test before has. Raises LoadstoneError."""
        if place.is_dir():
            return
        request = replace(
            self.request, out=self.folder / "template", provision=Provision(save_to=place),
            part=self.parts.loading,
        )  # fmt: skip
        refuse_failed("loading the data", execute(request, self.listener))
        if not place.is_dir():
            raise RunFailedError(
                "the server did not stop in order after the load, so its data cannot be used",
                f"Look at {self.folder}/template/report.html.",
            )

    @contextmanager
    def session(
        self, level: Level, template: Path, document: Crash, signals: Signals, folder: Path,
        more: Mapping[str, str],
    ) -> Iterator[Session]:  # fmt: skip
        """Start a server on a copy of the data, with the ledger table; it ends with the context."""
        workload = self.phase.workload
        assert isinstance(workload, ScriptWorkload), "the phase was chosen so"  # noqa: S101
        opening = open_target(
            self.target, workload.drive.clients, storage=level.storage, settings={**self.settings, **more},
            demands=self.demands, provision=Provision(copy_of=template),
        )  # fmt: skip
        with opening as opened:
            assert opened.server is not None, "the target is a private server"  # noqa: S101
            with connected(opened.server.connection) as control:
                invariants = prepare(control, self.invariants)
                document.amcheck = can_check_files(control)
                document.version = value(control, "show server_version")
                document.max_wal_size = value(control, "show max_wal_size")
            level.settle(opened.server)
            run = zlib.crc32(document.id.encode())
            session = Session(
                opened, level, workload.drive, invariants, folder, run, document.window_s, signals.check
            )
            session.ledgers.mkdir(parents=True)
            yield session


@dataclass
class CrashTest(Experiment[Crash]):
    """Crashes of one server, until all cycles are done."""

    NAME: ClassVar[str] = NAME
    bench: Bench
    _started: bool = field(default=False, init=False)

    @property
    def brief_s(self) -> float:
        """Time of loads whose crash is not the one that is timed."""
        window_s = self.document.window_s
        return min(window_s, WINDOW_S) if self.document.moments == "late" else window_s

    @property
    def folder(self) -> Path:
        """Where everything is written."""
        return self.bench.folder

    @property
    def has_measured(self) -> bool:
        """Whether the server came up with the ledger."""
        return self._started

    def before(self) -> Iterator[str]:
        """Yield what is going to happen, and how long it may take."""
        return texts.before(self.document)

    def settle(self) -> None:
        """Put the verdict into the document."""
        self.document.verdict = verdict_of(self.document)

    def perform(self, signals: Signals) -> None:
        """Crash until all cycles are done. Raises LoadstoneError, or InterruptedRun for a signal."""
        with signals.closing(PrivateFolder(self.bench.request.storage)) as place:
            self.perform_in(place.path, signals)

    def perform_in(self, place: Path, signals: Signals) -> None:
        """Crash a server whose loaded data are in `place`, or are made there; raises as `perform` does."""
        try:
            self._perform(place / self.bench.template, signals)
        except NotUpError as error:
            self._not_up(error)
            raise
        except LoadstoneError:  # also of what a signal has cut off
            signals.check()
            raise
        except psycopg.Error as error:  # of the server, or of a statement that a signal has cut off
            signals.check()
            said = str(error).strip()
            raise RunFailedError(f"the server cannot be asked: {said}", "Look at its log.") from error

    def _perform(self, template: Path, signals: Signals) -> None:
        self.bench.make_template(template)
        if self.document.level == "power":
            self._measure_plain(template, signals)
            self._control(template, signals)
        with signals.closing(self._level()) as level:
            self._crash(level, template, signals)
            self.document.disk = level.counters()

    def _level(self) -> Level:
        return level_of(self.document.level, self.bench.request.storage, self.document.seed)

    def _measure_plain(self, template: Path, signals: Signals) -> None:
        """Measure the load without the file system that forgets, so that its own cost can be told."""
        folder, document = self.folder / "plain", self.document
        level = ProcessLevel(self.bench.request.storage)
        opening = self.bench.session(level, template, document, signals, folder, {})
        with signals.closing(opening) as session:
            self._started = True
            document.rate_plain = session.rate(self.brief_s, "000")

    def _control(self, template: Path, signals: Signals) -> None:
        """Crash a server that syncs nothing: commits have to be lost, or no loss can be seen here."""
        folder, document = self.folder / "control", self.document
        moment = Moment("anywhere", self.brief_s)
        more = {"fsync": "off", "synchronous_commit": "on"}
        with signals.closing(self._level()) as level:
            opening = self.bench.session(level, template, document, signals, folder, more)
            with signals.closing(opening) as session:
                try:
                    document.control = session.cycle(0, moment, "000")
                except NotUpError as error:
                    error.cycle.note = words_of(error)
                    document.control = error.cycle
        document.control.folder = f"{folder.name}/{document.control.folder}"
        self.after(texts.after_control(document.control))

    def _crash(self, level: Level, template: Path, signals: Signals) -> None:
        document, name = self.document, "{:03d}"
        opening = self.bench.session(level, template, document, signals, self.folder, {})
        with signals.closing(opening) as session:
            self._started = True
            draw = late_moments if document.moments == "late" else moments
            drawn = draw(document.seed, document.wanted, document.window_s)
            for number, moment in enumerate(drawn, 1):
                signals.check()
                try:
                    cycle = session.cycle(number, moment, name.format(number))
                except NotUpError as error:
                    document.cycles.append(error.cycle)
                    self._keep_data(session, error.cycle)
                    raise
                document.cycles.append(cycle)
                self.after(texts.after_cycle(cycle))
            document.checker = session.try_checker()

    def _keep_data(self, session: Session, cycle: Cycle) -> None:
        """Move the data of a server that does not come up to the results, where somebody can look at them."""
        kept = self.folder / "data"
        try:
            move_data(session.server.data_directory, kept)
        except LoadstoneError as error:  # the verdict stays what it is
            cycle.note = f"the data could not be kept: {error.message}"
        else:
            self.document.data = str(kept.absolute())

    def _not_up(self, error: NotUpError) -> None:
        # A full disk is not the server's fault: it would come up with more room.
        is_full = isinstance(error.__cause__, RunFailedError)
        error.exit_code = ExitCode.FAILED if is_full else ExitCode.WRONG_ANSWER
        if self.document.data is not None:
            error.hint = f"Its data are kept in {self.document.data}. {error.hint}"

    def status(self) -> ExitCode:
        """Return the exit status: what was lost comes before how the experiment ended."""
        return exit_of(self.document, self.exit_code)

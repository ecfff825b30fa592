"""An experiment from its beginning to its end by any way: what has been found is on disk after each trial."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Generic

from loadstone.errors import ExitCode, LoadstoneError
from loadstone.experiment.documents import D, text_of
from loadstone.host.environment import read_clocks
from loadstone.results.json_files import write_atomic
from loadstone.signals import InterruptedRun, Signals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path


@dataclass
class Experiment(ABC, Generic[D]):
    """One experiment; `run` performs it, `document` is its file as far as it came."""

    NAME: ClassVar[str]
    """Name of the document's file."""

    document: D
    say: Callable[[str], None]
    exit_code: ExitCode = field(default=ExitCode.OK, init=False)
    """How it ended; what it has found may make another one of it."""
    trouble: LoadstoneError | None = field(default=None, init=False)

    @property
    @abstractmethod
    def folder(self) -> Path | None:
        """Where everything is written; None: nowhere."""

    @property
    @abstractmethod
    def has_measured(self) -> bool:
        """Whether there is anything that an error must not take away."""

    @abstractmethod
    def before(self) -> Iterable[str]:
        """Return what is said before anything starts."""

    @abstractmethod
    def perform(self, signals: Signals) -> None:
        """Perform the trials, with `after` each. Raises LoadstoneError, or InterruptedRun for a signal."""

    @abstractmethod
    def settle(self) -> None:
        """Put into the document what the trials so far say together."""

    def run(self) -> None:
        """Perform trials until all is known, or something ends it; nothing is left running.

        Raises LoadstoneError where an option, a setting or a server cannot work and nothing was measured: no
        folder is left then.
        """
        with self.ending(), Signals() as signals:
            self.begin()
            self.perform(signals)

    def begin(self) -> None:
        """Say what is going to happen, and write the document down."""
        for line in self.before():
            self.say(line)
        self.write()

    def after(self, *lines: str) -> None:
        """Write down what there is after a trial, then say what it found."""
        self.write()
        for line in lines:
            self.say(line)

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Keep what ends the trials of this context, which is nobody else's business then."""
        try:
            yield
        except InterruptedRun as signalled:
            self.exit_code = signalled.exit_code
            self.document.state, self.document.reason = "interrupted", str(signalled)
        except LoadstoneError as error:
            self._fail(error)
        self.conclude()

    def _fail(self, error: LoadstoneError) -> None:
        if not self.has_measured and error.exit_code is ExitCode.BAD_INPUT:
            if self.folder is not None:
                shutil.rmtree(self.folder, ignore_errors=True)
            raise error
        self.exit_code, self.trouble = error.exit_code, error
        self.document.state, self.document.reason = "failed", error.message

    def conclude(self) -> None:
        """Write down how it ended; what it found is still to be said where the disk is full."""
        if self.document.state == "running":
            self.document.state = "complete"
        self.document.ended_at = read_clocks().started_at
        try:
            self.write()
        except LoadstoneError as error:
            self.exit_code, self.trouble = self.exit_code or error.exit_code, self.trouble or error

    def write(self) -> None:
        """Replace the document's file. Raises LoadstoneError where that cannot be written."""
        self.settle()
        if self.folder is not None:
            write_atomic(self.folder / self.NAME, text_of(self.document))

"""Several values of one parameter: a fresh server crashes for each, and one table joins them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from loadstone.crash import joint_texts
from loadstone.crash.documents import JOINT_NAME, Crashes
from loadstone.crash.joint import joined
from loadstone.crash.verdict import exit_of
from loadstone.errors import ExitCode, LoadstoneError
from loadstone.experiment.experiment import Experiment
from loadstone.private_server import PrivateFolder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.crash.documents import Crash, CrashesOfValue
    from loadstone.crash.experiment import CrashTest
    from loadstone.experiment.documents import State
    from loadstone.signals import Signals


@dataclass
class CrashSweep(Experiment[Crashes]):
    """One test for each value; one that ends before all its cycles ends the others, too."""

    NAME: ClassVar[str] = JOINT_NAME
    results: Path
    tests: Sequence[CrashTest]
    _begun: list[CrashTest] = field(default_factory=list, init=False)

    @property
    def folder(self) -> Path:
        """Where everything is written."""
        return self.results

    @property
    def documents(self) -> list[Crash]:
        """What the values that were begun have come to."""
        return [test.document for test in self._begun]

    @property
    def has_measured(self) -> bool:
        """Whether the server of a value came up."""
        return bool(self._begun)

    def before(self) -> Sequence[str]:
        """Return nothing: each value says what is going to happen."""
        return ()

    def settle(self) -> None:
        """Put what the tests that were begun have found into the document."""
        join(self.document, self.documents)

    def perform(self, signals: Signals) -> None:
        """Crash a server for each value. Raises LoadstoneError, or InterruptedRun for a signal."""
        with signals.closing(PrivateFolder(self.tests[0].bench.request.storage)) as place:
            for test, entry in zip(self.tests, self.document.values, strict=True):
                signals.check()
                self._perform(test, entry, place.path, signals)
                if test.document.state != "complete" or test.trouble is not None:
                    return

    def _perform(self, test: CrashTest, entry: CrashesOfValue, place: Path, signals: Signals) -> None:
        test.folder.mkdir()
        entry.folder = test.folder.name
        self.say(joint_texts.before(self.document, entry))
        self._begun.append(test)
        try:
            with test.ending():
                test.begin()
                test.perform_in(place, signals)
        except LoadstoneError:
            self._begun.remove(test)  # its folder is gone
            entry.folder = ""
            raise
        self.after()

    def conclude(self) -> None:
        """Write down how it ended: as the first test did that has not come to its end."""
        for test in self._begun:
            if test.document.state == "running":  # a signal came before or after its own trials
                is_running = self.document.state == "running"
                test.document.state = "interrupted" if is_running else self.document.state
                test.document.reason = self.document.reason
                test.conclude()
            self.trouble = self.trouble or test.trouble
            self.exit_code = self.exit_code or test.exit_code
            self.document.reason = self.document.reason or test.document.reason
        self.document.state = self._state()
        super().conclude()

    def _state(self) -> State:
        if self.exit_code in (ExitCode.INTERRUPTED, ExitCode.TERMINATED):
            return "interrupted"
        is_whole = len(self._begun) == len(self.tests) and not self.exit_code
        return "complete" if is_whole else "failed"

    def status(self) -> ExitCode:
        """Return the exit status: what was lost for any value comes first."""
        return joint_status(self.documents, self.exit_code)


def join(document: Crashes, begun: Sequence[Crash]) -> None:
    """Put what the tests that were begun have found into the joint document."""
    document.values = [
        *(joined(entry.value, entry.folder, one) for entry, one in zip(document.values, begun, strict=False)),
        *document.values[len(begun) :],
    ]


def joint_status(documents: Sequence[Crash], otherwise: ExitCode) -> ExitCode:
    """Return the exit status of several tests; `otherwise` is that of how the experiment ended."""
    codes = [exit_of(document, ExitCode.OK) for document in documents]
    if ExitCode.WRONG_ANSWER in codes:
        return ExitCode.WRONG_ANSWER
    return otherwise or max(codes, default=ExitCode.OK)

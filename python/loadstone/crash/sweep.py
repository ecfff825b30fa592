"""Several values of one parameter: a fresh server crashes for each, and one table joins them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from loadstone.crash import joint_texts
from loadstone.crash.documents import JOINT_NAME
from loadstone.crash.joint import joined
from loadstone.crash.verdict import exit_of
from loadstone.errors import ExitCode, LoadstoneError
from loadstone.host.environment import read_clocks
from loadstone.private_server import PrivateFolder
from loadstone.results.json_files import to_json, write_atomic
from loadstone.signals import InterruptedRun, Signals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from loadstone.crash.documents import Crash, Crashes, CrashesOfValue
    from loadstone.crash.experiment import CrashTest


@dataclass(slots=True)
class CrashSweep:
    """One test for each value; `run` performs them, `document` is crashes.json as far as it came."""

    folder: Path
    tests: Sequence[CrashTest]
    document: Crashes
    say: Callable[[str], None]
    exit_code: ExitCode = ExitCode.OK
    trouble: LoadstoneError | None = None
    _begun: list[CrashTest] = field(default_factory=list, init=False)

    @property
    def documents(self) -> list[Crash]:
        """What the values that were begun have come to."""
        return [test.document for test in self._begun]

    def run(self) -> None:
        """Crash a server for each value; one that ends before all its cycles ends the others, too.

        Raises LoadstoneError where an option, a setting or the server cannot work and nothing has crashed: no
        folder is left then.
        """
        try:
            self._write()
            with Signals() as signals, PrivateFolder(self.tests[0].bench.request.storage) as place:
                for test, entry in zip(self.tests, self.document.values, strict=True):
                    signals.check()
                    self._perform(test, entry, place.path, signals)
                    if test.document.state != "complete":
                        break
        except InterruptedRun as signalled:
            self.document.reason, self.exit_code = str(signalled), signalled.exit_code
        except LoadstoneError as error:
            self._fail(error)
        self._conclude()

    def _perform(self, test: CrashTest, entry: CrashesOfValue, place: Path, signals: Signals) -> None:
        test.folder.mkdir()
        entry.folder = test.folder.name
        self.say(joint_texts.before(self.document, entry))
        self._begun.append(test)
        try:
            test.perform(place, signals)
        except LoadstoneError:
            self._begun.remove(test)  # its folder is gone
            entry.folder = ""
            raise
        test.conclude()
        self._write()

    def _fail(self, error: LoadstoneError) -> None:
        if not self._begun:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise error
        self.exit_code, self.trouble, self.document.reason = error.exit_code, error, error.message

    def _conclude(self) -> None:
        document = self.document
        for test in self._begun:
            if test.document.state == "running":  # a signal came while it was written down
                test.document.state = "interrupted"
            self.trouble = self.trouble or test.trouble
            self.exit_code = self.exit_code or test.exit_code
            document.reason = document.reason or test.document.reason
        if self.exit_code in (ExitCode.INTERRUPTED, ExitCode.TERMINATED):
            document.state = "interrupted"
        else:
            is_whole = len(self._begun) == len(self.tests) and not self.exit_code
            document.state = "complete" if is_whole else "failed"
        document.ended_at = read_clocks().started_at
        self._write()

    def _write(self) -> None:
        join(self.document, self.documents)
        write_atomic(self.folder / JOINT_NAME, to_json(msgspec.to_builtins(self.document), indent=1) + "\n")

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

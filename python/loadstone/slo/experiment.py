"""A search by real trials: the closed loop, short trials, votes, and what an end by any way leaves."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import msgspec

from loadstone.errors import ExitCode, LoadstoneError
from loadstone.host.environment import read_clocks
from loadstone.results.json_files import to_json, write_atomic
from loadstone.signals import InterruptedRun, Signals
from loadstone.slo import texts
from loadstone.slo.ceiling import highest
from loadstone.slo.counting import TrialPlan
from loadstone.slo.documents import NAME
from loadstone.slo.search import Search, grid

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from loadstone.slo.documents import Kind, Slo, Trial
    from loadstone.slo.limits import Limit

    MakeTrial = Callable[[TrialPlan], Trial]
    """Raises LoadstoneError, or InterruptedRun for a signal."""

_SHORTER = 3
"""By how much short trials are shorter, and the closed loop too."""


class Bench(Protocol):
    """What makes the trials of a search."""

    @property
    def limits(self) -> tuple[Limit, ...]:
        """What must be kept."""

    @property
    def folder(self) -> Path | None:
        """Where everything is written; None: nowhere."""

    def prepared(self, signals: Signals) -> AbstractContextManager[MakeTrial]:
        """Prepare what all trials need, until the search ends. Raises LoadstoneError."""


@dataclass(slots=True)
class SloSearch:
    """One search; `run` performs it, `document` is slo.json as far as it came."""

    bench: Bench
    document: Slo
    window_s: float
    """Least length of a whole trial."""
    most: int
    say: Callable[[str], None]
    exit_code: ExitCode = ExitCode.OK
    trouble: LoadstoneError | None = None
    search: Search | None = field(default=None, init=False)

    def run(self) -> None:
        """Search until the bounds are decided, or something ends it; nothing is left running.

        Raises LoadstoneError where an option, a setting or the server cannot work: no folder is left then.
        """
        try:
            with Signals() as signals:
                self._prepare(signals)
        except InterruptedRun as signalled:
            self._interrupt(signalled)
        except LoadstoneError as error:
            self._fail(error)
        if self.document.state == "running":
            self.document.state = "complete"
        self.document.ended_at = read_clocks().started_at
        self._write()

    def _prepare(self, signals: Signals) -> None:
        for line in texts.before(self.document, self.window_s, self.most):
            self.say(line)
        self._write()
        with self.bench.prepared(signals) as make:
            self._perform(make, signals)

    def _perform(self, make: MakeTrial, signals: Signals) -> None:
        closed = self._trial(make, "closed loop", None, self.window_s / _SHORTER)
        self.document.capacity = closed.done_per_s
        self.document.top = highest(closed.done_per_s, closed.ceiling_per_s)
        if not closed.done_per_s > 0:
            raise LoadstoneError(
                "no transaction was done in a closed loop", "Look at the scenario's scripts."
            )

        def keeps(rate: float, *, whole: bool) -> bool:
            signals.check()
            length = max(self.window_s, *(one.seconds_for(rate) for one in self.bench.limits))
            kind: Kind = "whole" if whole else "short"
            trial = self._trial(make, kind, rate, round(length / (1 if whole else _SHORTER), 3))
            return trial.should > 0 and not trial.misses

        self.search = Search(grid(self.document.top), keeps, self.most)
        self.search.run()
        self._conclude()

    def _trial(self, make: MakeTrial, kind: Kind, rate: float | None, seconds: float) -> Trial:
        found = make(TrialPlan(len(self.document.trials) + 1, kind, rate, seconds))
        self.document.trials.append(found)
        self._conclude()
        self._write()
        self.say(texts.after_trial(found, self.document.limits))
        return found

    def _conclude(self) -> None:
        """Write the bounds as far as they go into the document."""
        if self.search is None:
            return
        answer, document = self.search.answer(), self.document
        document.found, document.lower, document.upper = answer.state, answer.lower, answer.upper
        document.irregular = list(answer.irregular)
        missed = [one.misses[0] for one in document.trials
                  if one.kind == "whole" and one.rate == answer.upper and one.misses]  # fmt: skip
        document.binds = max(missed, key=missed.count, default=None)

    def _interrupt(self, signalled: InterruptedRun) -> None:
        self.exit_code = signalled.exit_code
        self.document.state, self.document.reason = "interrupted", str(signalled)

    def _fail(self, error: LoadstoneError) -> None:
        if not self.document.trials and error.exit_code is ExitCode.BAD_INPUT:
            if self.bench.folder is not None:
                shutil.rmtree(self.bench.folder, ignore_errors=True)
            raise error
        self.exit_code, self.trouble = error.exit_code, error
        self.document.state, self.document.reason = "failed", error.message

    def _write(self) -> None:
        if self.bench.folder is not None:
            text = to_json(msgspec.to_builtins(self.document), indent=1) + "\n"
            write_atomic(self.bench.folder / NAME, text)

    def required(self) -> ExitCode:
        """Return what `--require` asks for: 4 if that load does not keep the limits, 5 if undecided."""
        document = self.document
        if document.required is None or (document.lower is not None and document.lower >= document.required):
            return ExitCode.OK
        too_low = document.upper is not None and document.upper <= document.required
        beyond = document.capacity is not None and document.capacity < document.required
        beyond = beyond and not texts.is_ours(document)
        return ExitCode.REGRESSION if too_low or beyond else ExitCode.UNDECIDED

"""A search by real trials: the closed loop, short trials, votes, and what an end by any way leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol

from loadstone.errors import ExitCode, LoadstoneError
from loadstone.experiment.experiment import Experiment
from loadstone.host.environment import read_clocks
from loadstone.slo import texts
from loadstone.slo.ceiling import drivable
from loadstone.slo.changed import change_of
from loadstone.slo.counting import TrialPlan
from loadstone.slo.documents import NAME, Slo
from loadstone.slo.grid import ABOVE, grid
from loadstone.slo.lateness import Repeats
from loadstone.slo.search import Answer, Search

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from loadstone.signals import Signals
    from loadstone.slo.documents import Kind, Trial
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


@dataclass
class SloSearch(Experiment[Slo]):
    """One search, until the bounds are decided."""

    NAME: ClassVar[str] = NAME
    bench: Bench
    window_s: float
    """Least length of a whole trial."""
    most: int
    search: Search | None = field(default=None, init=False)
    repeats: Repeats = field(default_factory=Repeats, init=False)

    @property
    def folder(self) -> Path | None:
        """Where everything is written; None: nowhere."""
        return self.bench.folder

    @property
    def has_measured(self) -> bool:
        """Whether a trial was made."""
        return bool(self.document.trials)

    def before(self) -> Iterator[str]:
        """Yield what is going to happen, and how long it may take."""
        return texts.before(self.document, self.window_s, self.most)

    def perform(self, signals: Signals) -> None:
        """Search. Raises LoadstoneError, or InterruptedRun for a signal."""
        with self.bench.prepared(signals) as make:
            self._search(make, signals)

    def _search(self, make: MakeTrial, signals: Signals) -> None:
        closed = self._trial(make, "closed loop", None, self.window_s / _SHORTER)
        self.document.capacity = closed.done_per_s
        if not closed.done_per_s > 0:
            raise LoadstoneError(
                "no transaction was done in a closed loop", "Look at the scenario's scripts."
            )
        loads = grid(closed.done_per_s, drivable(closed.ceiling_per_s))
        self.document.top = loads.loads[-1]

        def keeps(rate: float, *, whole: bool) -> bool | None:
            signals.check()
            length = max(self.window_s, *(one.seconds_for(rate) for one in self.bench.limits))
            kind: Kind = "whole" if whole else "short"
            trial = self._trial(make, kind, rate, round(length / (1 if whole else _SHORTER), 3))
            return trial.should > 0 and not trial.misses if trial.counted else None

        self.search = Search(loads, keeps, self.most - 1)
        if self.search.run().state == "not decided" and self.document.changed is None:
            # Nothing is cut short now by comparing trials of any length.
            self.document.changed = change_of(self.document.trials, self.bench.limits, any_length=True)

    def _trial(self, make: MakeTrial, kind: Kind, rate: float | None, seconds: float) -> Trial:
        began = read_clocks().started_at
        found = make(TrialPlan(len(self.document.trials) + 1, kind, rate, seconds))
        found.started_at = began
        if rate is not None and found.client_late:
            found.counted = not self.repeats.grant()
        self.document.trials.append(found)
        self._note_change()
        self.after(texts.after_trial(found, self.document.limits))
        return found

    def _note_change(self) -> None:
        """End the search where the server became slower: trials before and since cannot be put together."""
        self.document.changed = change_of(self.document.trials, self.bench.limits)
        if self.search is not None and self.document.changed is not None:
            self.search.ended = True

    def settle(self) -> None:
        """Put the bounds as far as they go into the document; none where the server became slower."""
        if self.search is None:
            return
        answer, document = self.search.answer(), self.document
        if document.changed is not None:
            answer = Answer("not decided", None, None, [], answer.trials)
        document.found, document.lower, document.upper = answer.state, answer.lower, answer.upper
        document.irregular = list(answer.irregular)
        deciding = [one for one in document.trials if one.counted and one.kind == "whole"]
        missed = [one.misses[0] for one in deciding if one.rate == answer.upper and one.misses]
        document.binds = max(missed, key=missed.count, default=None)

    def required(self) -> ExitCode:
        """Return what `--require` asks for: 4 if that load does not keep the limits, 5 if undecided."""
        document = self.document
        if document.required is not None and document.changed is not None:
            return ExitCode.UNDECIDED
        if document.required is None or (document.lower is not None and document.lower >= document.required):
            return ExitCode.OK
        too_low = document.upper is not None and document.upper <= document.required
        beyond = document.capacity is not None and document.capacity * ABOVE < document.required
        beyond = beyond and document.found != "all kept" and not texts.is_ours(document)
        return ExitCode.REGRESSION if too_low or beyond else ExitCode.UNDECIDED

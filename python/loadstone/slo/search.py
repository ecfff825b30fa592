"""The search for the largest load that keeps the limits, on a geometric grid, with trials as votes.

Short trials move the search and never bound it: what is answered was decided by whole trials, three of one
kind. One that kept the limits counts for all lower loads: others can delay answers, and not hasten them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from loadstone.slo.belief import Belief
from loadstone.slo.grid import OCTAVE

if TYPE_CHECKING:
    from loadstone.slo.grid import Grid

VOTES = 3
"""Of one kind decide a load, if they are more than those of the other."""
MOST_TRIALS = 25
"""With the closed loop."""
_FIRST_BELOW = 4 * OCTAVE
"""The first load is a 16th of the closed loop's: a server that is overloaded at once answers nothing."""
_SURE = 0.5
"""From this probability of the boundary within a step on, whole trials decide."""
_LOST = 0.25
"""Below this probability of it within two steps, they are at the wrong place."""
State = Literal["found", "all kept", "none kept", "not decided"]


class Keeps(Protocol):
    """Makes a trial at a load and says whether limits were kept; None: it says nothing about the server."""

    def __call__(self, rate: float, *, whole: bool) -> bool | None:
        """Make it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Bounds of the largest load that keeps the limits."""

    state: State
    lower: float | None
    """The highest load that was found to keep them."""
    upper: float | None
    """The next load, which does not; None: the highest load of the grid keeps them."""
    irregular: list[float]
    """Loads that do not keep them, below one that does."""
    trials: int


@dataclass(slots=True)
class Search:
    """A search; `keeps` makes a trial at a load, whole or short, and returns whether limits were kept."""

    grid: Grid
    keeps: Keeps
    most: int = MOST_TRIALS - 1
    trials: int = 0
    ended: bool = False
    """Set by who makes the trials, where more of them would decide nothing."""
    votes: dict[int, list[bool]] = field(default_factory=dict)
    _belief: Belief = field(init=False)

    def __post_init__(self) -> None:
        """Begin with what is likely before any trial."""
        self._belief = Belief(self.grid)

    def run(self) -> Answer:
        """Search until the boundary is decided, or the trials are used up."""
        self._try(self.grid.closed - _FIRST_BELOW, whole=False)
        at = self._approached()
        while self._has_more() and not self._is_decided(at):
            self._try(self._turn(at), whole=True)
            at = self._moved(at)
        return self.answer()

    def _has_more(self) -> bool:
        return not self.ended and self.trials < self.most

    def _approached(self) -> int:
        """Return where short trials put the boundary."""
        while self._has_more() and self._belief.within(1, self._belief.middle()) < _SURE:
            self._try(self._belief.question(), whole=False)
        return max(self._belief.middle(), 0)

    def _moved(self, at: int) -> int:
        """Return where to look next: the same place as long as its trials agree with what is believed."""
        moved = self._neighbour(at)
        if moved == at and self._belief.within(2, at) >= _LOST:
            return at
        return moved if self._belief.within(1, moved) >= _SURE else self._neighbour(self._approached())

    def _neighbour(self, at: int) -> int:
        """Return the nearest place that is not known to miss the limits, or whose next one is known to."""
        while any(self.verdict(place) is True for place in self._above(at)):
            at += 1
        while at > 0 and self.verdict(at) is False:
            at -= 1
        return at

    def _turn(self, at: int) -> int:
        """Return the load or the next one, whichever has had fewer trials, unless it is decided."""
        open_ = [place for place in (at, *self._above(at)) if self.verdict(place) is None]
        return min(open_, key=lambda place: len(self.votes.get(place, ())))

    def _is_decided(self, at: int) -> bool:
        if self.verdict(at) is False:
            return at == 0
        above = self._above(at)
        return self.verdict(at) is True and all(self.verdict(place) is False for place in above)

    def _above(self, at: int) -> tuple[int, ...]:
        return (at + 1,) if at + 1 < len(self.grid.loads) else ()

    def _try(self, place: int, *, whole: bool) -> None:
        self.trials += 1
        kept = self.keeps(self.grid.loads[place], whole=whole)
        if kept is None:
            return
        self._belief.learn(place, kept=kept, whole=whole)
        if whole:
            self.votes.setdefault(place, []).append(kept)

    def verdict(self, place: int) -> bool | None:
        """Return whether a load keeps the limits; None: not decided."""
        kept = sum(votes.count(True) for at, votes in self.votes.items() if at >= place)
        missed = self._missed(place)
        if max(kept, missed) < VOTES or kept == missed:
            return None
        return kept > missed

    def _missed(self, place: int) -> int:
        return self.votes.get(place, []).count(False)

    def answer(self) -> Answer:
        """Return what the whole trials so far say."""
        kept = [place for place in self.votes if self.verdict(place) is True]
        missed = [place for place in self.votes if self.verdict(place) is False]
        lower = max(kept, default=None)
        above = [place for place in missed if lower is None or place > lower]
        upper = min(above, default=None)
        loads = self.grid.loads
        return Answer(
            self._state(lower, upper),
            None if lower is None else loads[lower],
            None if upper is None else loads[upper],
            [loads[place] for place in range(lower or 0) if self._missed(place) >= VOTES],
            self.trials,
        )

    def _state(self, lower: int | None, upper: int | None) -> State:
        if lower is not None and upper is not None and upper == lower + 1:
            return "found"
        if lower == len(self.grid.loads) - 1:
            return "all kept"
        return "none kept" if lower is None and upper == 0 else "not decided"

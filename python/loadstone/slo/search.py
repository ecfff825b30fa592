"""The search for the largest load that keeps the limits, on a geometric grid, with trials as votes.

Short trials move the search and never bound it: what is answered was decided by whole trials, of which at
most five are made at a load, and two may be against it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

STEP = 1.05
VOTES = 3
"""Of one kind decide a load: of five, two may be of the other."""
MOST_TRIALS = 25
_OCTAVE = 14
"""Steps of the grid that double the load."""
_OCTAVES = 8
"""How far below the capacity it is searched: to 1/256."""
State = Literal["found", "all kept", "none kept", "not decided"]


def grid(top: float) -> list[float]:
    """Return the loads that are tried, lowest first: steps of 5 % up to `top`."""
    return [top / STEP**below for below in range(_OCTAVE * _OCTAVES, -1, -1)]


class Keeps(Protocol):
    """Makes a trial at a load and says whether the limits were kept."""

    def __call__(self, rate: float, *, whole: bool) -> bool:
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

    loads: list[float]
    keeps: Keeps
    most: int = MOST_TRIALS
    trials: int = 0
    votes: dict[int, list[bool]] = field(default_factory=dict)
    _short: dict[int, bool] = field(default_factory=dict)

    def run(self) -> Answer:
        """Search until the boundary is decided, or the trials are used up."""
        at = self._bisect(*self._bracket())
        while self.trials < self.most:
            for place in self._in_turn(at):
                self._vote(place)
            if self.trials >= self.most and not self._is_decided(at):
                break
            moved = self._next(at)
            if moved == at:
                break
            at = moved
        return self.answer()

    def _bracket(self) -> tuple[int, int]:
        """Return a load that a short trial kept (-1: none), and a higher one that it did not."""
        top = len(self.loads) - 1
        good = -1
        for below in (4, 3, 2, 1, 0):
            place = top - below * _OCTAVE
            if not self._try(place):
                break
            good = place
        else:
            return top, top + 1
        bad = place
        while good < 0 and bad > 0:
            place = max(bad - _OCTAVE, 0)
            if self._try(place):
                good = place
            else:
                bad = place
        return good, bad

    def _bisect(self, good: int, bad: int) -> int:
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if self._try(middle) else (good, middle)
        return max(good, 0)

    def _in_turn(self, at: int) -> Iterator[int]:
        """Yield a load and the next one by turns, until both are decided or one says where to look next."""
        places = [place for place in (at, at + 1) if place < len(self.loads)]
        while not self._is_decided(at) and self._next(at) == at:
            for place in places:
                if self.verdict(place) is None and self._next(at) == at and self.trials < self.most:
                    yield place
            if self.trials >= self.most:
                return

    def _is_decided(self, at: int) -> bool:
        return all(self.verdict(place) is not None for place in (at, at + 1) if place < len(self.loads))

    def _next(self, at: int) -> int:
        """Return where to look next; the same place where the boundary is found."""
        if self.verdict(at) is False:
            return max(at - 1, 0)
        if at + 1 < len(self.loads) and self.verdict(at + 1) is True:
            return at + 1
        return at

    def _try(self, place: int) -> bool:
        if place not in self._short:
            self.trials += 1
            self._short[place] = self.keeps(self.loads[place], whole=False)
        return self._short[place]

    def _vote(self, place: int) -> None:
        self.trials += 1
        self.votes.setdefault(place, []).append(self.keeps(self.loads[place], whole=True))

    def verdict(self, place: int) -> bool | None:
        """Return whether a load keeps the limits; None: not decided."""
        votes = self.votes.get(place, [])
        if votes.count(True) >= VOTES:
            return True
        return False if votes.count(False) >= VOTES else None

    def answer(self) -> Answer:
        """Return what the whole trials so far say."""
        kept = [place for place in self.votes if self.verdict(place) is True]
        missed = [place for place in self.votes if self.verdict(place) is False]
        lower = max(kept, default=None)
        above = [place for place in missed if lower is None or place > lower]
        upper = min(above, default=None)
        return Answer(
            self._state(lower, upper),
            None if lower is None else self.loads[lower],
            None if upper is None else self.loads[upper],
            sorted(self.loads[place] for place in missed if lower is not None and place < lower),
            self.trials,
        )

    def _state(self, lower: int | None, upper: int | None) -> State:
        if lower is not None and upper is not None and upper == lower + 1:
            return "found"
        if lower == len(self.loads) - 1:
            return "all kept"
        return "none kept" if lower is None and upper == 0 else "not decided"

"""Where on a grid the boundary is, as a probability of each place: it says which load to try next.

Each trial multiplies the probability of a place by that of its outcome, if the boundary were there. A trial
at the middle of what is left halves it, as in a bisection; but a wrong outcome costs a few trials, not
the search (A. B. Watson, D. G. Pelli: QUEST, Perception & Psychophysics 33, 1983; M. Horstein 1963).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loadstone.slo.grid import Grid

_DISTURBED = 0.15
"""Trials below the boundary that miss all the same: other programs delay answers, and never hasten them."""
_LUCKY = 0.01
"""Trials far above the boundary that keep the limits."""
_STEPS_SHORT, _STEPS_WHOLE = 1.1, 0.6
"""Steps of the grid from the boundary at which chance turns a trial in one of four."""
_LIKELY_BELOW, _LIKELY_ABOVE = 14.0, 5.0
"""Steps from the closed loop's rate in which the first probability falls by e; above, it is noise."""
_ANYWHERE = 0.003


class Belief:
    """Probabilities that the highest load that keeps the limits is each of a grid; `-1`: none keeps them."""

    def __init__(self, grid: Grid) -> None:
        """Begin with what is likely of servers: a boundary in the octave below the closed loop's rate."""
        self._highest: NDArray[np.int64] = np.arange(-1, len(grid.loads))
        away = self._highest - grid.closed
        below, above = (
            np.exp(np.minimum(away, 0) / _LIKELY_BELOW),
            np.exp(-np.maximum(away, 0) / _LIKELY_ABOVE),
        )
        self._log: NDArray[np.float64] = np.log(np.where(away <= 0, below + _ANYWHERE, above))

    def learn(self, place: int, *, kept: bool, whole: bool) -> None:
        """Take in what a trial at a place found."""
        # Half a step: the boundary is between the highest place that keeps the limits and the next one.
        beyond = (place - self._highest - 0.5) / (_STEPS_WHOLE if whole else _STEPS_SHORT)
        keeps = (1 - _DISTURBED) / (1 + np.exp(np.clip(beyond, -50, 50))) + _LUCKY
        self._log = self._log + np.log(keeps if kept else 1 - keeps)

    def middle(self) -> int:
        """Return the median place of the boundary, -1 where no load may keep the limits."""
        return int(np.searchsorted(self._probabilities().cumsum(), 0.5)) - 1

    def question(self) -> int:
        """Return the place whose outcome is least certain: the boundary is as likely at or above as below."""
        at_or_above = 1 - self._probabilities().cumsum()[:-1]
        return int(np.abs(at_or_above - 0.5).argmin())

    def within(self, steps: int, place: int) -> float:
        """Return the probability that the boundary is at most so many steps from a place."""
        near = np.abs(self._highest - place) <= steps
        return float(self._probabilities()[near].sum())

    def _probabilities(self) -> NDArray[np.float64]:
        weights = np.exp(self._log - self._log.max())
        return np.asarray(weights / weights.sum())

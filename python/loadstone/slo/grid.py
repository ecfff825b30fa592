"""The loads that a search may try: a geometric grid around the rate of the closed loop."""

from __future__ import annotations

import math
from dataclasses import dataclass

STEP = 1.05
OCTAVE = 14
"""Steps of the grid that double the load."""
_OCTAVES_BELOW = 8
"""How far below the closed loop it is searched: to 1/256."""
ABOVE = STEP**OCTAVE
"""How far above: a closed loop that was disturbed is lower than the truth, but not by half."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Loads in transactions per second, lowest first, each a step above the one before."""

    loads: tuple[float, ...]
    closed: int
    """Which of them is the rate of the closed loop, or the highest where that is less."""


def grid(closed: float, most: float | None = None) -> Grid:
    """Return steps of 5 % from 1/256 of the closed loop's rate to twice as much, none above `most`.

    >>> [round(load) for load in grid(1000.0).loads[-16:-13]]
    [952, 1000, 1050]
    >>> grid(1000.0, 720.0).loads[-1]
    720.0
    """
    anchor = closed if most is None else min(closed, most)
    room = ABOVE if most is None else min(ABOVE, most / anchor)
    above = math.floor(math.log(room) / math.log(STEP) + 1e-9)
    below = OCTAVE * _OCTAVES_BELOW
    return Grid(tuple(anchor * STEP**steps for steps in range(-below, above + 1)), below)

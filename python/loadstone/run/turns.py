"""In which order targets take their turns: as given in odd repeats, the other way round in even ones.

With a fixed order, whatever one turn leaves behind (dirty pages, a warm processor, a card that slows down)
meets always the same target, and looks like a property of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.plan.model import PlannedPhase
    from loadstone.run.server import Server


def in_turn(phases: Sequence[tuple[Server, PlannedPhase]]) -> list[tuple[Server, PlannedPhase]]:
    """Return the targets with one and the same phase, in the order of their turns."""
    return list(phases) if phases[0][1].repeat % 2 else list(reversed(phases))

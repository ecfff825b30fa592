"""The noise floor: how much blocks scatter where nothing differs, as a history of this machine has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def noise_of(history: Path, scenario: str) -> float | None:
    """Return the noise floor."""
    del history, scenario
    return None

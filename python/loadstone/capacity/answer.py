"""From a run folder and what is wanted to the answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loadstone.capacity.compute import capacity
from loadstone.capacity.documents import FORMAT, Answer
from loadstone.capacity.measured import measured_loads
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from loadstone.capacity.documents import Wanted

_SPAN = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*(ms|s|m|min|h|d|w|y)?", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_536_000}


def span_s(text: str, unit: str) -> float:
    """Return seconds of `10`, `10s`, `5m`, `12h`, `90d`, `8w`, `1y`; `unit` is that of a number alone.

    Raises LoadstoneError for anything else, and for no time at all.
    """
    found = _SPAN.fullmatch(text.strip())
    seconds = float(found[1]) * _SECONDS[found[2] or unit] if found else 0.0
    if seconds <= 0:
        raise LoadstoneError(f"'{text}' is not a time above 0", "Write such as 10s, 5m, 12h, 90d or 1y.")
    return seconds


def answer(
    folder: Path,
    wanted: Wanted,
    variant: Mapping[str, str],
    target: str | None = None,
    phase: str | None = None,
) -> Answer:
    """Return the answer of all loads of the run that are chosen. Raises LoadstoneError."""
    run, loads = measured_loads(folder, variant, target, phase)
    return Answer(
        format=FORMAT,
        run=run,
        wanted=wanted,
        needed_rows_per_s=wanted.rows_per_s,
        rows_per_day=wanted.rows_per_day,
        rows_kept=wanted.rows_kept,
        capacities=[capacity(load, wanted) for load in loads],
    )

"""Rates that change, as `-R` takes them beyond pgbench's one number.

    RATE  = PIECE {"," PIECE}
    PIECE = NUMBER [".." NUMBER] ["/" NUMBER [UNIT]]      UNIT = "ms" | "s" | "min" | "h"

`100..5000/60s` goes evenly from 100 to 5000 a second in a minute, `100,500,1000/20s` keeps each rate for
20 s. A piece without a time has that of the next piece with one. After the last piece, its last rate goes on
to the end of the run; a last piece of one number therefore needs no time. Times without a unit are seconds.
"""

from __future__ import annotations

import re

from loadstone.model import RATE_MAX_PER_S, Pace, RatePiece
from loadstone.personalities.pgbench.complaint import ComplaintError

_NUMBER = r"(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_PIECE = re.compile(
    rf"(?P<first>{_NUMBER})(?:\.\.(?P<last>{_NUMBER}))?(?:/(?P<time>{_NUMBER})(?P<unit>ms|s|min|h)?)?"
)
_SECONDS = {None: 1.0, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_HINT = "Use a rate (500), a ramp (100..5000/60s), steps (100,500,1000/20s), or several joined by commas."
_LONGEST_S = 3e8


def changes(text: str) -> bool:
    """Return whether a rate is one that changes; all other texts are pgbench's to understand."""
    return any(mark in text for mark in ("..", ",", "/"))


def varying(text: str) -> Pace:
    """Read a rate that changes; raises ComplaintError with what is wrong."""
    found = []
    for piece in text.split(","):
        match = _PIECE.fullmatch(piece.strip())
        if match is None:
            raise _complaint(text, f'"{piece.strip()}" is no rate, ramp or step')
        found.append(match)
    times = _times(text, found)
    pieces = tuple(
        RatePiece(float(match["first"]), float(match["last"] or match["first"]), time)
        for match, time in zip(found, times, strict=True)
    )
    _check(text, pieces)
    return Pace("varying", max(max(p.from_per_s, p.to_per_s) for p in pieces), pieces)


def refuse_impossible(text: str, rate_per_s: float) -> None:
    """Raise ComplaintError for a rate that the driver refuses: later, tables would be vacuumed before."""
    if rate_per_s > RATE_MAX_PER_S:
        raise ComplaintError(
            f'invalid rate limit: "{text}"',
            "No server reaches that: leave -R out, and transactions follow each other as fast as they can.",
            detail="It is above ten million.",
        )


def _times(text: str, pieces: list[re.Match[str]]) -> list[float]:
    """Seconds of each piece."""
    times: list[float] = []
    later: float | None = None
    for match in reversed(pieces):
        if match["time"] is not None:
            later = float(match["time"]) * _SECONDS[match["unit"]]
        # The last rate goes on anyway.
        time = 1.0 if later is None and not times and match["last"] is None else later
        if time is None:
            raise _complaint(text, f'"{match.group()}" has no time')
        times.append(time)
    return times[::-1]


def _check(text: str, pieces: tuple[RatePiece, ...]) -> None:
    if pieces[-1].to_per_s <= 0:
        raise _complaint(text, "the last rate is 0, and goes on to the end")
    if any(max(piece.from_per_s, piece.to_per_s) > RATE_MAX_PER_S for piece in pieces):
        raise _complaint(text, "a rate is above ten million")
    if any(not 0 < piece.length_s <= _LONGEST_S for piece in pieces):
        raise _complaint(text, "a time is 0 or longer than nine years")


def _complaint(text: str, why: str) -> ComplaintError:
    return ComplaintError(f'invalid rate limit: "{text}"', _HINT, detail=f"{why[0].upper()}{why[1:]}.")

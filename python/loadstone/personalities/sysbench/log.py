"""sysbench's log on standard output: levels, prefixes, and a count in place of the same message again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    Write = Callable[[str], object]

Level = Literal["fatal", "alert", "warning", "notice", "info", "debug"]
LEVELS: tuple[Level, ...] = ("fatal", "alert", "warning", "notice", "info", "debug")
"""From the one that every verbosity shows to the one that only 5 does."""
_PREFIXES = {"fatal": "FATAL: ", "alert": "ALERT: ", "warning": "WARNING: ", "debug": "DEBUG: "}
VERBOSITY_MAX = len(LEVELS) - 1
_USUAL = LEVELS.index("notice")


def explains(verbosity: int) -> bool:
    """Whether to say what sysbench does not: tracebacks, and how rows were sent.

    On a terminal, and elsewhere where more than sysbench's usual log is asked for: programs that read
    both of its streams know sysbench's lines, and no others.
    """
    return verbosity > _USUAL or (verbosity == _USUAL and sys.stderr.isatty())


class Log:
    """Writes messages that the verbosity lets through."""

    def __init__(self, out: Write, verbosity: int) -> None:
        """Write to `out`, a message at a time."""
        self._out = out
        self._verbosity = verbosity
        self._last: str | None = None
        self._repeated = 0

    def text(self, text: str, level: Level = "notice") -> None:
        """Write a message; the same once more is only counted, and told before the next other one."""
        if not self._shows(level):
            return
        if text == self._last:
            self._repeated += 1
            return
        if self._repeated:
            self._out(f"(last message repeated {self._repeated} times)\n")
        self._last, self._repeated = text, 0
        self._out(f"{_PREFIXES.get(level, '')}{text}\n")

    def at(self, seconds: float, text: str) -> None:
        """Write a message with the time since the start; the same one again is written again."""
        if self._shows("notice"):
            self._out(f"[ {seconds:.0f}s ] {text}\n")

    def plain(self, text: str) -> None:
        """Write what a script prints, as it is."""
        self._out(text)

    def _shows(self, level: Level) -> bool:
        return LEVELS.index(level) <= self._verbosity

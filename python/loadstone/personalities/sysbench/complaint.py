"""What ends `loadstone sysbench` before or without a run: texts for standard output or standard error."""

from __future__ import annotations

from loadstone.errors import LoadstoneError

PROGRAM = "sysbench"
"""The name that messages about our own hints begin with."""


class ComplaintError(LoadstoneError):
    """Trouble with the command line, in sysbench's form, then our hint in a line of its own."""

    def __init__(self, message: str, hint: str = "", *, fatal: bool = False, gap: bool = False) -> None:
        """`fatal` messages go to standard output, as in sysbench's log; `gap` has an empty line follow."""
        super().__init__(message, hint)
        self._fatal = fatal
        self._gap = gap

    def out(self) -> str:
        """Return what goes to standard output."""
        return f"FATAL: {self.message}\n" + "\n" * self._gap if self._fatal else ""

    def err(self) -> str:
        """Return what goes to standard error."""
        hint = f"{PROGRAM}: hint: {self.hint}\n" if self.hint else ""
        return hint if self._fatal else f"{self.message}\n{hint}"


class AnswerGivenError(Exception):
    """An option asked for a text and nothing else: it goes to standard output."""

    def __init__(self, out: str) -> None:
        """Keep it."""
        super().__init__(out)
        self.out = out


class EndedError(Exception):
    """All has been said; only the exit status is left."""

    def __init__(self, code: int) -> None:
        """Keep it."""
        super().__init__(str(code))
        self.code = code

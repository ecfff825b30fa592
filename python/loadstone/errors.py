"""What can go wrong, in words that say how to mend it."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit statuses of the `loadstone` command (documented in docs/exit-codes.md)."""

    OK = 0
    BAD_INPUT = 1
    FAILED = 2
    WRONG_ANSWER = 3
    INTERRUPTED = 130
    TERMINATED = 143


class LoadstoneError(Exception):
    """Trouble that the user can mend: one sentence of what is wrong, one of what to do."""

    exit_code = ExitCode.BAD_INPUT

    def __init__(self, message: str, hint: str = "") -> None:
        """Keep the message and the hint apart: the terminal shows them on two lines."""
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Message and hint as one text."""
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class ServerStartingError(LoadstoneError):
    """The server is there, and takes no sessions yet: it starts, or recovers from a crash."""


class RunFailedError(LoadstoneError):
    """The run began and could not be brought to its end."""

    exit_code = ExitCode.FAILED


class WrongAnswerError(LoadstoneError):
    """A check failed: the database's content is not what it acknowledged."""

    exit_code = ExitCode.WRONG_ANSWER

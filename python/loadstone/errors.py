"""What can go wrong, in words that say how to mend it."""

from __future__ import annotations

import errno
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit statuses of the `loadstone` command (documented in docs/exit-codes.md)."""

    OK = 0
    BAD_INPUT = 1
    FAILED = 2
    WRONG_ANSWER = 3
    REGRESSION = 4
    UNDECIDED = 5
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


class ShellRefusedError(LoadstoneError):
    """A scenario would run commands on this machine, which nobody has allowed."""


class ServerStartingError(LoadstoneError):
    """The server is there, and takes no sessions yet: it starts, or recovers from a crash."""


class OtherSessionError(LoadstoneError):
    """A session is not the one that was requested: a pooler stands between."""


class HostLostError(LoadstoneError):
    """A load host was lost before clients began: of that drive nothing was measured."""


class RunFailedError(LoadstoneError):
    """The run began and could not be brought to its end."""

    exit_code = ExitCode.FAILED


class ResultsLostError(RunFailedError):
    """Standard output takes no more results."""


class WrongAnswerError(LoadstoneError):
    """A check failed: the database's content is not what it acknowledged."""

    exit_code = ExitCode.WRONG_ANSWER


UNREADABLE: tuple[type[Exception], ...] = (
    ArithmeticError,
    LookupError,
    StopIteration,
    TypeError,
    ValueError,
)
"""What it raises to make a figure of a server's answer with other columns, types or NULLs than requested."""

_LONGEST_SHOWN = 80


def words_of(error: Exception) -> str:
    """Return what an error says, without its hint."""
    return error.message if isinstance(error, LoadstoneError) else str(error).strip()


def explained(error: BaseException) -> LoadstoneError | None:
    """Return what an error means to the user; None for one that is a bug of ours."""
    if isinstance(error, LoadstoneError):
        return error
    if isinstance(error, MemoryError):
        return RunFailedError(
            "there is not enough memory",
            "Free some, raise its limit (ulimit -v), or choose a smaller --size.",
        )
    if isinstance(error, OSError) and error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
        name = str(error.filename)
        shown = name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}…"
        return LoadstoneError(f"'{shown}' cannot be used: {error.strerror}", "Choose another name.")
    return None

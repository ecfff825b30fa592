"""What an engine behind a client library brings to a drive: connections, calls, and what its errors mean.

The core drives them: one of its threads a client, which holds the interpreter for the call alone, or not at
all where the core reaches the library by itself (`NativeLibrary`). Pace, queue, steps, time limits, digests
and records are the core's, as for clients on the wire.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone._core import NativeLibrary, RowBatch

_SERIALIZATION_FAILURE = "40001"


class Client(ABC):
    """One client's connection. Calls come from one thread, `interrupt` from any."""

    mode: str = "driver"
    """How rows travel: `arrow`, as a `file` that the server reads, by `insert`, by `copy_text`."""

    def send(self, batch: RowBatch, mark: Callable[[int], None] | None = None) -> None:
        """Put a batch into the database in one transaction; raises one of the library's errors.

        `mark`, of a long transaction, is told how many rows are in, every `mark_rows`.
        """
        raise NotImplementedError

    def query(self, sql: str) -> Any:
        """Run a query and return its whole answer; one with an Arrow stream is digested by the core."""
        raise NotImplementedError

    @abstractmethod
    def interrupt(self) -> None:
        """Make the call that another thread is in fail."""

    @abstractmethod
    def close(self) -> None:
        """End it."""


class Library(ABC):
    """A database as clients connect to it."""

    errors: tuple[type[Exception], ...] = ()
    """What clients raise when the database is in trouble; anything else ends the drive, and is raised."""

    @abstractmethod
    def connect(self, number: int) -> Client:
        """Open the connection of client `number`; what it raises is raised where the drive is awaited."""

    def describe(self, error: BaseException) -> tuple[str, str]:
        """Return an error's SQLSTATE, or the kind of error in the library's own words, and its message."""
        return str(getattr(error, "sqlstate", None) or type(error).__name__), str(error).strip()

    def is_retriable(self, error: BaseException) -> bool:
        """Return whether the same transaction may succeed when it is tried again.

        Here: a serialization failure, as the SQL standard numbers it. Override it where the codes are others.
        """
        return getattr(error, "sqlstate", None) == _SERIALIZATION_FAILURE

    def finish(self) -> None:  # noqa: B027 - most have nothing to do
        """Bring what is loaded to its resting place: the last part of a load, inside its clock."""


Clients: TypeAlias = "Library | NativeLibrary"
"""What clients of a drive connect through."""

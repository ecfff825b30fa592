"""The base of every engine behind a client library, in this process or over the network.

The core drives it through the library's calls: see `engine/library.py`.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from loadstone.engine import Engine, not_one_value
from loadstone.engine.answers import Observation
from loadstone.engine.control import CONTROL_CONNECTIONS
from loadstone.engine.library.deadlines import Deadlines
from loadstone.engine.observe.storage import DataFiles
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from loadstone.engine.answers import Identity
    from loadstone.engine.control import Control
    from loadstone.model import Connection

_DEADLINES = Deadlines()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a database is that a client library opens; nothing is touched yet."""

    id: str
    """A word for it that may become a folder name."""
    label: str
    """Where it is, in words: `a private file`."""
    url: str
    """Without password."""
    needs_folder: bool = False
    """Whether a folder is to be made for it, which is removed with all that it holds."""
    serves_as_user: bool = False
    """Whether that folder belongs to the user that private servers run as, and not to us."""
    private: bool = False
    """Whether the database goes away at the end."""
    path: Path | None = None
    """The user's own file or folder."""
    server: Connection | None = None
    """How the user's own server is reached, where there is one."""


class Database(Protocol):
    """A database that is open: as many control connections as are wanted, from any thread."""

    @property
    def data_directory(self) -> Path | None:
        """Where its files lie; None when it has none, or none on this machine."""

    def connect(self, name: str) -> Control:
        """Open a control connection of this name; unqualified names mean what is in our schema.

        Raises LoadstoneError when that is not possible.
        """

    def close(self) -> None:
        """End all connections and close it; may be called again."""


class Named(Protocol):
    """The connections to a database, which have names."""

    def named(self, name: str) -> Sequence[Interruptible]:
        """Return the open control connections of this name."""


class Interruptible(Protocol):
    """A control connection whose work another thread can end."""

    @property
    def database(self) -> Named:
        """Where it goes to."""

    def interrupt(self) -> None:
        """Make the statement that another thread runs here fail."""


class LibraryEngine(Engine):
    """An engine behind a client library."""

    sets_sessions = False
    """Whether settings hold for our connections alone, and so can be given where the database is not ours."""
    no_counters = "{title} does not count what it has done so far"
    """Why `counters` has none, where an engine does not override it."""
    no_waits = "{title} does not show what its threads wait for"
    """Why `waits` has none, likewise."""

    @property
    def library(self) -> Self:
        """Itself."""
        return self

    @abstractmethod
    def control(self, connection: Control) -> Interruptible:
        """Return a control connection as what this engine opens; another's is a TypeError."""

    @abstractmethod
    def place(self, text: str) -> Place:
        """Understand what follows `scheme:` in a target; refuse what cannot be, and touch nothing."""

    @abstractmethod
    def open(self, place: Place, folder: Path | None, settings: Mapping[str, str]) -> Database:
        """Open a database; `folder` was made for it if the place needs one. `settings` are for private ones.

        Raises LoadstoneError with what is wrong and how to mend it.
        """

    @abstractmethod
    def answer(self, connection: Control, sql: str) -> pa.Table:
        """Run a query and return its whole answer, in the types that the engine gives its columns."""

    def data_files(self, connection: Control, ours: Path | None = None) -> DataFiles:
        """Return the folder that is ours to know; a driver shows no other."""
        del connection
        return DataFiles(ours, "" if ours else "the files of the database cannot be seen from here")

    def counters(self, connection: Control) -> Observation:
        """Say why there are none."""
        del connection
        return Observation(None, self.no_counters.format(title=self.title))

    def waits(self, connection: Control) -> Observation:
        """Say why there are none."""
        del connection
        return Observation(None, self.no_waits.format(title=self.title))

    def cancel(self, connection: Control, application_name: str) -> int:
        """Interrupt the connections of this name."""
        found = self.control(connection).database.named(application_name)
        for control in found:
            control.interrupt()
        return len(found)

    def capabilities(self, connection: Control) -> frozenset[str]:
        """Return what scenarios may require; time series are not among it."""
        words = {"sql", "load", "query", *(f"load:{method}" for method in self.tables.methods)}
        return frozenset(words | self.tables.offers(connection))

    def checkpoint(self, connection: Control) -> str | None:
        """Do nothing: what is answered is in the tables' files, unless an engine overrides this."""
        del connection
        return None

    def explain(self, connection: Control, sql: str) -> str | None:
        """Return the plan without running the query."""
        rows = connection.execute(f"explain {sql}").fetchall()
        return "\n".join(str(next(iter(row.values()))) for row in rows)

    @contextmanager
    def at_most(self, connection: Control, limit_s: float) -> Iterator[None]:
        """Interrupt what the connection does after a while."""
        with _DEADLINES.within(limit_s, self.control(connection).interrupt):
            yield

    def refuse_above(self, most: int, clients: int, counted: str, hint: str) -> None:
        """Raise LoadstoneError when clients and our control connections are more than a limit; 0 is none."""
        if 0 < most < clients + CONTROL_CONNECTIONS:
            raise LoadstoneError(
                f"{clients} clients and {CONTROL_CONNECTIONS} control connections are needed, but "
                f"{self.title} allows {most} {counted}",
                hint,
            )

    def farewell(self, place: Place, database: Database) -> str:
        """Say where a kept database lies and how to remove it."""
        del place
        folder = database.data_directory
        return f"The database was kept in {folder}.\nRemove:   rm -r {folder}"

    def postgres_version(self, identity: Identity) -> str | None:
        """Scenarios ask for versions of PostgreSQL, of which this engine has none."""
        del identity
        return None


def only_value(found: pa.Table, sql: str) -> str | None:
    """Return the one value of an answer as text, None for null; RunFailedError where it has not just one."""
    if (found.num_rows, found.num_columns) != (1, 1):
        raise not_one_value(found.num_rows, found.num_columns, sql)
    value = found.column(0)[0].as_py()
    return None if value is None else str(value)

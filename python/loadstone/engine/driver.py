"""The base of every engine that only a Python driver reaches, in this process or over the network.

The Rust driver has no part in it: what runs on such an engine is timed by threads around the Python driver.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from loadstone.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pyarrow as pa

    from loadstone.engine.answers import Identity
    from loadstone.engine.control import Control
    from loadstone.model import Connection


@dataclass(frozen=True, slots=True)
class Place:
    """Where a database is that a Python driver opens; nothing is touched yet."""

    id: str
    """A word for it that may become a folder name."""
    label: str
    """Where it is, in words: `a private file`."""
    url: str
    """Without password."""
    needs_folder: bool = False
    """Whether a folder is to be made for it, which is removed with all that it holds."""
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
        """Open a control connection of this name; unqualified names mean what lies in our schema.

        Raises LoadstoneError when that is not possible.
        """

    def close(self) -> None:
        """End all connections and close it; may be called again."""


class DriverEngine(Engine):
    """An engine that only a Python driver reaches."""

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

    def farewell(self, place: Place, database: Database) -> str:
        """Say where a kept database lies and how to remove it."""
        del place
        folder = database.data_directory
        return f"The database stays in {folder}.\nRemove:   rm -r {folder}"

    def postgres_version(self, identity: Identity) -> str | None:
        """Scenarios ask for versions of PostgreSQL, of which this engine has none."""
        del identity
        return None

"""The base of every engine whose clients speak a protocol that the core has.

A family of engines with a protocol of its own is a subclass; `target/` opens its servers by these methods.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import closing
from typing import TYPE_CHECKING, Protocol, Self

from loadstone.engine import SCHEMA, Engine
from loadstone.engine.library.engine import Database
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from loadstone.engine.control import Control
    from loadstone.engine.library.engine import Place
    from loadstone.model import Connection


class WireDatabase(Database, Protocol):
    """A private server that an engine has started for a `Place`."""

    @property
    def connection(self) -> Connection:
        """How it is reached; the same after it was started again."""

    def connect_as_user(self) -> Control:
        """Open a control connection that begins in the database of `connection`."""


class WireEngine(Engine):
    """An engine reached by a wire protocol."""

    build_sign = ""
    """What `version()` of its servers contains and the family's own does not: finds the engine of a build."""

    @property
    def wire(self) -> Self:
        """Itself."""
        return self

    def open(self, place: Place, folder: Path, settings: Mapping[str, str], clients: int) -> WireDatabase:
        """Start a private server in a folder that was made for it. Raises LoadstoneError.

        Only of an engine whose `place` knows private servers.
        """
        del place, folder, settings, clients
        raise LoadstoneError(f"Loadstone cannot start a private {self.title}", "Use a server of your own.")

    def farewell(self, place: Place, database: Database) -> str:
        """Say where a kept database lies and how to remove it."""
        del place
        folder = database.data_directory
        return f"The database was kept in {folder}.\nRemove:   rm -r {folder}"

    @abstractmethod
    def resolve(self, text: str) -> tuple[Connection, tuple[str, ...]]:
        """Return how to connect, and notes for the user. Raises LoadstoneError.

        `text` is what follows the scheme of a URL, from its `//` on, or parameters as the family writes them.
        """

    @abstractmethod
    def address(self, connection: Connection) -> str:
        """Name the server in a sentence: socket file or host and port."""

    @abstractmethod
    def shown_url(self, connection: Connection) -> str:
        """Return the URL of a database without its password and without parameters."""

    @abstractmethod
    def target_url(self, connection: Connection) -> str:
        """Return a URL that names the same target wherever it is given, but for its secrets."""

    @abstractmethod
    def connect(self, connection: Connection) -> Control:
        """Open a control connection. Raises LoadstoneError with what is wrong and how to mend it."""

    def create_database(self, connection: Connection, admin: str) -> bool:
        """Create the connection's database, from the database `admin` or else the user's own.

        False when it is there, or the server cannot be reached at all. Raises LoadstoneError.
        """
        del connection, admin
        return False

    @abstractmethod
    def with_schema(self, connection: Connection, schema: str = SCHEMA) -> Connection:
        """Return the connection whose unqualified names lead to the schema first."""

    @abstractmethod
    def with_settings(self, connection: Connection, settings: Mapping[str, str]) -> Connection:
        """Return the connection with settings that every session of ours has; refuse what cannot be set."""

    def with_functions(self, connection: Control) -> Self:
        """Return the engine as it is at this server."""
        del connection
        return self

    def of_build(self, connection: Connection, others: Iterable[Engine]) -> WireEngine:
        """Return the engine of an installed build: this one, or one of the others whose sign it has."""
        with closing(self.connect(connection)) as control:
            text = self.version(control)["version_text"].lower()
        relatives = (other.wire for other in others)
        return next((one for one in relatives if one and one.build_sign and one.build_sign in text), self)

"""The base of every engine whose clients speak a protocol that the core has.

A family of engines with a protocol of its own is a subclass; `target/` opens its servers by these methods.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import closing
from typing import TYPE_CHECKING, Self

from loadstone.engine import SCHEMA, Engine

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from loadstone.engine.control import Control
    from loadstone.model import Connection


class WireEngine(Engine):
    """An engine reached by a wire protocol."""

    build_sign = ""
    """What `version()` of its servers contains and the family's own does not: finds the engine of a build."""

    @property
    def wire(self) -> Self:
        """Itself."""
        return self

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

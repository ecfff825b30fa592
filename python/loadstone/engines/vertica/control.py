"""A control connection to Vertica: connections of its Python driver, which come and go behind it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

import vertica_python

from loadstone.engine import SCHEMA
from loadstone.engine.control import WholeResult
from loadstone.engine.library.links import LinkControl, LinkDatabase
from loadstone.engines.vertica.errors import VerticaError
from loadstone.errors import LoadstoneError
from loadstone.sqltext import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from loadstone.engine.control import Control
    from loadstone.model import Connection

T = TypeVar("T")
_HAS_SCHEMA = "select 1 as one from v_catalog.schemata where schema_name = {name}"
_TLS = {"disable": "disable", "require": "require", "verify-full": "verify-full"}


class VerticaDatabase(LinkDatabase["VerticaControl"]):
    """A server, and the connections to it."""

    def __init__(self, server: Connection) -> None:
        """Open nothing yet."""
        super().__init__()
        self.server = server

    @property
    def data_directory(self) -> Path | None:
        """None: the files are the server's."""
        return None

    def connect(self, name: str) -> VerticaControl:
        """Open a control connection. Raises LoadstoneError when that is not possible."""
        control = VerticaControl(self, name)
        try:
            control.call(lambda _: None)
        except VerticaError as error:
            place = f"{self.server.host}:{self.server.port}"
            raise LoadstoneError(
                f"no Vertica server accepts a connection at {place}: {error}",
                "Check that the server is running. Write vertica://user@host:5433/database, with the "
                "password there or in VERTICA_PASSWORD.",
            ) from error
        return self.enlist(control)

    def dial(self, label: str) -> Any:
        """Open a connection of the driver's. Raises VerticaError."""
        server = self.server
        options = {
            "host": server.host,
            "port": server.port,
            "user": server.user,
            "password": server.password or "",
            "database": server.database,
            "autocommit": True,
            "session_label": label,
            "connection_timeout": server.connect_timeout_s,
            "tlsmode": _TLS[server.sslmode],
            **({"tls_cafile": server.sslrootcert} if server.sslrootcert else {}),
        }
        return told(lambda: vertica_python.connect(**options))

    def claim_workspace(self, schema: str) -> bool:
        """Take our schema for this target; False when another target of this process has it."""
        return self.claim((self.server.host, self.server.port, f"{self.server.database}.{schema}"))


class VerticaControl(LinkControl[Any]):
    """A control connection; its link is one of the driver's."""

    title = "Vertica"
    errors = VerticaError
    interrupt_s = 5.0
    says_goodbye = True

    def __init__(self, database: VerticaDatabase, name: str) -> None:
        super().__init__(name)
        self.database = database

    def execute(self, query: str, params: Mapping[str, Any] | None = None, /) -> WholeResult:
        """Run one statement to its end; values are written into its text."""
        names, rows = self.rows(self._plain(query, params))
        return WholeResult([dict(zip(names, _lists(names, row), strict=True)) for row in rows])

    def rows(self, text: str) -> tuple[list[str], list[list[Any]]]:
        """Run one statement and return the names of its columns, and its rows."""

        def work(link: Any) -> tuple[list[str], list[list[Any]]]:
            with link.cursor() as cursor:
                cursor.execute(text)
                if cursor.description is None:
                    return [], []
                return [column.name for column in cursor.description], cursor.fetchall()

        return self.call(work)

    def copy(self, statement: str, payload: bytes) -> None:
        """Send rows to a COPY from standard input."""

        def work(link: Any) -> None:
            with link.cursor() as cursor:
                cursor.copy(statement, payload)

        self.call(work)

    def call(self, work: Callable[[Any], T]) -> T:
        """Do something with the driver's connection. Raises VerticaError."""
        return super().call(lambda link: told(lambda: work(link)))

    def dial(self) -> Any:
        """Open a connection, in our schema if it is there. Raises VerticaError."""
        link = self.database.dial(self.name)
        try:
            with link.cursor() as cursor:
                told(lambda: cursor.execute(_HAS_SCHEMA.format(name=literal(SCHEMA))))
                if told(cursor.fetchone) is not None:
                    told(lambda: cursor.execute(f"set search_path to {quoted(SCHEMA)}"))
        except BaseException:
            link.close_socket()
            raise
        link.socket.settimeout(None)  # the limit for connecting would hold for every answer too
        return link

    def tell(self, link: Any, limit_s: float) -> None:
        """Cancel what the connection does."""
        del limit_s
        told(link.cancel)

    def probe(self) -> None:
        """Open and close another connection."""
        self.database.dial(self.name).close_socket()

    def cut(self, link: Any) -> None:
        """End the connection's socket."""
        link.close_socket()

    def hang_up(self, link: Any) -> None:
        """Close the connection."""
        try:
            told(link.close)
        except VerticaError:
            link.close_socket()

    def lost(self, words: str) -> VerticaError:
        """Return the error of a connection that is gone."""
        return VerticaError(words, lost=True)

    def spoilt(self, link: Any, error: BaseException) -> bool:
        """Refusing a statement leaves the session as it was; anything else is in the middle of one."""
        del link
        return not isinstance(error, VerticaError) or error.lost


def vertica(connection: Control) -> VerticaControl:
    """Return a control connection as Vertica's, for what only it can do."""
    if not isinstance(connection, VerticaControl):
        raise TypeError(f"Vertica was given a {type(connection).__name__} for a connection")
    return connection


def told(work: Callable[[], T]) -> T:
    """Do something, and tell what the driver raises in our own words."""
    try:
        return work()
    except vertica_python.errors.QueryError as error:
        raise VerticaError(_words(error), sqlstate=error.sqlstate) from error
    except (vertica_python.errors.Error, OSError) as error:
        raise VerticaError(str(error).strip() or type(error).__name__, lost=True) from error


def _words(error: Any) -> str:
    """Return what the server said, without the statement that it said it of."""
    return str(error.message or error).strip()


def _lists(names: Sequence[str], row: Sequence[Any]) -> list[Any]:
    """Return a row with arrays as lists: an older protocol writes them as JSON."""
    return [
        json.loads(value) if name == "nulls" and isinstance(value, str) else value
        for name, value in zip(names, row, strict=True)
    ]

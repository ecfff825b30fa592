"""A control connection to Vertica: connections of its Python driver, which come and go behind it."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, TypeVar

import vertica_python

from loadstone.engine import SCHEMA
from loadstone.engine.control import WholeResult
from loadstone.engine.series import literal, quoted
from loadstone.engines.vertica.errors import VerticaError
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from loadstone.engine.control import Control
    from loadstone.model import Connection

T = TypeVar("T")
_INTERRUPT_S = 5.0
"""How long a query that was told to end may go on before its connection is cut."""
_HAS_SCHEMA = "select 1 as one from v_catalog.schemata where schema_name = {name}"
_TLS = {"disable": "disable", "require": "require", "verify-full": "verify-full"}


class VerticaDatabase:
    """A server, and the connections to it."""

    _claimed: set[tuple[str, int, str]] = set()  # noqa: RUF012 - one process, whichever target names it
    _guard = threading.Lock()

    def __init__(self, server: Connection) -> None:
        """Open nothing yet."""
        self.server = server
        self._controls: list[VerticaControl] = []
        self._mine = False

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
                f"no Vertica server lets us in at {place}: {error}",
                "Write vertica://user@host:5433/database, with the password there or in VERTICA_PASSWORD.",
            ) from error
        with self._guard:
            self._controls = [known for known in self._controls if not known.closed] + [control]
        return control

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
        link = told(lambda: vertica_python.connect(**options))
        link.socket.settimeout(None)  # else it would hold for every answer too
        return link

    def named(self, name: str) -> Sequence[VerticaControl]:
        """Return the open control connections of this name."""
        with self._guard:
            return [control for control in self._controls if control.name == name and not control.closed]

    def claim(self, schema: str) -> bool:
        """Take our schema for this target; False when another target of this process has it."""
        place = (self.server.host, self.server.port, f"{self.server.database}.{schema}")
        with self._guard:
            if not self._mine and place in self._claimed:
                return False
            self._claimed.add(place)
            self._mine = True
        return True

    def close(self) -> None:
        """End all connections; may be called again."""
        for control in list(self._controls):
            control.close()
        with self._guard:
            if self._mine:
                ours = (self.server.host, self.server.port)
                self._claimed.difference_update([p for p in self._claimed if p[:2] == ours])
            self._mine = False


class VerticaControl:
    """A control connection; it is opened when it is first needed, and anew when it was lost."""

    def __init__(self, database: VerticaDatabase, name: str) -> None:
        self.database = database
        self.name = name
        self._closed = False
        self._link: Any = None
        self._busy = threading.Lock()

    @property
    def closed(self) -> bool:
        """Whether it can no longer be used."""
        return self._closed

    def execute(self, query: str | bytes, params: Mapping[str, Any] | None = None, /) -> WholeResult:
        """Run one statement to its end; values are written into its text."""
        if params:
            raise TypeError("statements for Vertica carry their values in their text")
        text = query.decode() if isinstance(query, bytes) else query
        names, rows = self.rows(text)
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
        if self._closed:
            raise VerticaError("the connection is closed", lost=True)
        with self._busy:
            try:
                link = self._link or self._open()
                return told(lambda: work(link))
            except BaseException as error:
                # Refusing a statement leaves the session as it was; anything else is in the middle of one.
                if not isinstance(error, VerticaError) or error.lost:
                    self._drop()
                raise

    def interrupt(self, limit_s: float = _INTERRUPT_S) -> None:
        """Make the statement that another thread runs here fail: cancelled first, then cut off."""
        link = self._link
        if link is None or not self._busy.locked():
            return
        try:
            told(link.cancel)
        except VerticaError:
            link.close_socket()
            return
        if self._busy.acquire(timeout=limit_s):
            self._busy.release()
        elif self._link is link:
            link.close_socket()

    def close(self) -> None:
        """End it; may be called again."""
        self._closed = True
        link = self._link
        if link is not None and self._busy.locked():
            link.close_socket()  # in the middle of a statement there is no saying goodbye
        self._drop()

    def _open(self) -> Any:
        link = self.database.dial(self.name)
        try:
            with link.cursor() as cursor:
                told(lambda: cursor.execute(_HAS_SCHEMA.format(name=literal(SCHEMA))))
                if told(cursor.fetchone) is not None:
                    told(lambda: cursor.execute(f"set search_path to {quoted(SCHEMA)}, public"))
        except BaseException:
            link.close_socket()
            raise
        self._link = link
        return link

    def _drop(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            try:
                told(link.close)
            except VerticaError:
                link.close_socket()


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

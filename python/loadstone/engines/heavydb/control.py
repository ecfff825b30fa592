"""A control connection to HeavyDB: sessions of a server that come and go behind it."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from loadstone.engine.control import WholeResult
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from loadstone.engine.control import Control, Row
    from loadstone.model import Connection

T = TypeVar("T")
_INTERRUPT_S = 5.0
"""How long a query that was told to end may go on before its connection is cut."""


class HeavyError(Exception):
    """What HeavyDB said when it refused a statement, or that it is gone."""

    def __init__(self, message: str, *, lost: bool = False) -> None:
        super().__init__(message)
        self.lost = lost

    @property
    def sqlstate(self) -> str:
        """A word for the error: HeavyDB has neither SQLSTATEs nor numbers."""
        return "lost" if self.lost else "refused"


class Link(Protocol):
    """One session; what it does raises HeavyError."""

    session: str

    def ask(self, sql: str) -> list[Row]:
        """Run one statement and return its rows."""

    def table(self, sql: str) -> pa.Table:
        """Run a query and return its answer."""

    def put(self, table: str, rows: pa.RecordBatch) -> None:
        """Append rows to a table, named as it is."""

    def version(self) -> str:
        """Return the server's version."""

    def databases(self) -> list[str]:
        """Return the names of the databases that the user may see."""

    def use(self, database: str) -> None:
        """Make unqualified names mean what lies in a database."""

    def hardware(self) -> tuple[int, int]:
        """Return how many GPUs the server works with, and how many CPU threads it sees."""

    def memory(self, level: str) -> tuple[int, int]:
        """Return the bytes that the buffer pools of `cpu` or `gpu` have taken, and those in use."""

    def interrupt(self, session: str) -> None:
        """Make the statement that another session runs fail."""

    def cut(self) -> None:
        """End the connection at once, whichever thread waits at it."""

    def close(self) -> None:
        """End the session."""


class HeavyDatabase:
    """A server, our database on it, and the connections to it."""

    _claimed: set[tuple[str, int, str]] = set()  # noqa: RUF012 - one process, whichever target names it
    _guard = threading.Lock()

    def __init__(
        self,
        server: Connection,
        workspace: str,
        device: str | None,
        dial: Callable[[Connection, str], Link],
    ) -> None:
        """Open nothing yet; `device` is what every session is told to use, None: the server's own choice."""
        self.server = server
        self.workspace = workspace
        self.device = device
        self._dial = dial
        self._controls: list[HeavyControl] = []
        self._mine = False

    @property
    def data_directory(self) -> Path | None:
        """None: the files are the server's."""
        return None

    def connect(self, name: str) -> HeavyControl:
        """Open a control connection. Raises LoadstoneError when that is not possible."""
        control = HeavyControl(self, name)
        try:
            control.call(lambda link: link.version())
        except HeavyError as error:
            raise _unreachable(self.server, error) from error
        with self._guard:
            self._controls = [known for known in self._controls if not known.closed] + [control]
        return control

    def link(self) -> Link:
        """Open a session, in our database if it is there, else in the user's. Raises HeavyError."""
        link = self._dial(self.server, self.server.database)
        try:
            if self.device is not None:
                link.ask(f"ALTER SESSION SET EXECUTOR_DEVICE='{self.device}'")
            if self.workspace in link.databases():
                link.use(self.workspace)
        except BaseException:
            link.close()
            raise
        return link

    def elsewhere(self, database: str) -> Link:
        """Open a session in another database. Raises HeavyError."""
        return self._dial(self.server, database)

    def named(self, name: str) -> Sequence[HeavyControl]:
        """Return the open control connections of this name."""
        with self._guard:
            return [control for control in self._controls if control.name == name and not control.closed]

    def claim(self) -> bool:
        """Take our database for this target; False when another target of this process has it."""
        place = (self.server.host, self.server.port, self.workspace)
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
                self._claimed.discard((self.server.host, self.server.port, self.workspace))
            self._mine = False


class HeavyControl:
    """A control connection; its session is begun when it is first needed, and anew when it was lost."""

    def __init__(self, database: HeavyDatabase, name: str) -> None:
        self.database = database
        self.name = name
        self._closed = False
        self._link: Link | None = None
        self._busy = threading.Lock()

    @property
    def closed(self) -> bool:
        """Whether it can no longer be used."""
        return self._closed

    def execute(self, query: str | bytes, params: Mapping[str, Any] | None = None, /) -> WholeResult:
        """Run one statement to its end; values are written into its text."""
        if params:
            raise TypeError("statements for HeavyDB carry their values in their text")
        text = query.decode() if isinstance(query, bytes) else query
        return WholeResult(self.call(lambda link: link.ask(text.strip())))

    def call(self, work: Callable[[Link], T]) -> T:
        """Do something with the session. Raises HeavyError."""
        if self._closed:
            raise HeavyError("the connection is closed", lost=True)
        with self._busy:
            try:
                if self._link is None:
                    self._link = self.database.link()
                return work(self._link)
            except BaseException as error:
                # Refusing a statement leaves the session as it was; anything else is in the middle of one.
                if not isinstance(error, HeavyError) or error.lost:
                    self._drop()
                raise

    def interrupt(self, limit_s: float = _INTERRUPT_S) -> None:
        """Make the statement that another thread runs here fail: told to end first, then cut off."""
        link = self._link
        if link is None or not self._busy.locked():
            return
        try:
            with closing(self.database.elsewhere(self.database.server.database)) as other:
                other.interrupt(link.session)
        except HeavyError:
            link.cut()
            return
        if self._busy.acquire(timeout=limit_s):
            self._busy.release()
        elif self._link is link:
            link.cut()

    def close(self) -> None:
        """End it; may be called again."""
        self._closed = True
        link = self._link
        if link is not None and self._busy.locked():
            link.cut()  # in the middle of a call there is no saying goodbye
        self._drop()

    def _drop(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()


def heavy(connection: Control) -> HeavyControl:
    """Return a control connection as HeavyDB's, for what only it can do."""
    if not isinstance(connection, HeavyControl):
        raise TypeError(f"HeavyDB was given a {type(connection).__name__} for a connection")
    return connection


def _unreachable(server: Connection, error: HeavyError) -> LoadstoneError:
    place = f"{server.host}:{server.port}"
    if error.lost:
        return LoadstoneError(
            f"no HeavyDB server can be reached at {place}: {error}",
            "Start it, and name the port of its binary Thrift protocol (6274 unless it was told otherwise).",
        )
    return LoadstoneError(
        f'HeavyDB at {place} refuses the user "{server.user}" in the database "{server.database}": {error}',
        "Write heavydb://user@host:6274/database, with the password there or in HEAVYDB_PASSWORD.",
    )

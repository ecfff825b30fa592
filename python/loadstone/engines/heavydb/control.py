"""A control connection to HeavyDB: sessions of a server that come and go behind it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol

from loadstone.engine.control import WholeResult
from loadstone.engine.library.links import LinkControl, LinkDatabase
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pyarrow as pa

    from loadstone.engine.control import Control, Row
    from loadstone.model import Connection


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
        """Make unqualified names mean what is in a database."""

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


class HeavyDatabase(LinkDatabase["HeavyControl"]):
    """A server, our database on it, and the connections to it."""

    def __init__(
        self,
        server: Connection,
        workspace: str,
        device: str | None,
        dial: Callable[[Connection, str], Link],
    ) -> None:
        """Open nothing yet; `device` is what every session is told to use, None: the server's own choice."""
        super().__init__()
        self.server = server
        self.workspace = workspace
        self.device = device
        self.made = False
        """Whether our database is there, so that a session in any other is not what is wanted."""
        self._dial = dial

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
        return self.enlist(control)

    def link(self) -> Link:
        """Open a session, in our database if it is there, else in the user's. Raises HeavyError.

        Statements cannot name a database: once ours was made, none may run in the user's.
        """
        link = self._dial(self.server, self.server.database)
        try:
            if self.device is not None:
                link.ask(f"ALTER SESSION SET EXECUTOR_DEVICE='{self.device}'")
            self._enter(link)
        except BaseException:
            link.close()
            raise
        return link

    def _enter(self, link: Link) -> None:
        if self.workspace in link.databases():
            link.use(self.workspace)
        elif self.made:
            raise HeavyError(f"the database '{self.workspace}' is gone: somebody dropped it", lost=True)

    def elsewhere(self, database: str) -> Link:
        """Open a session in another database. Raises HeavyError."""
        return self._dial(self.server, database)

    def claim_workspace(self) -> bool:
        """Take our database for this target; False when another target of this process has it."""
        return self.claim((self.server.host, self.server.port, self.workspace))


class HeavyControl(LinkControl[Link]):
    """A control connection; its link is a session."""

    title = "HeavyDB"
    errors = HeavyError
    interrupt_s = 5.0
    says_goodbye = True

    def __init__(self, database: HeavyDatabase, name: str) -> None:
        super().__init__(name)
        self.database = database

    def execute(self, query: str, params: Mapping[str, Any] | None = None, /) -> WholeResult:
        """Run one statement to its end; values are written into its text."""
        text = self._plain(query, params)
        return WholeResult(self.call(lambda link: link.ask(text.strip())))

    def dial(self) -> Link:
        """Begin a session."""
        return self.database.link()

    def tell(self, link: Link, limit_s: float) -> None:
        """Interrupt the session by another one."""
        del limit_s
        with closing(self.database.elsewhere(self.database.server.database)) as other:
            other.interrupt(link.session)

    def probe(self) -> None:
        """Begin and end another session."""
        self.database.elsewhere(self.database.server.database).close()

    def cut(self, link: Link) -> None:
        """End the session's socket."""
        link.cut()

    def hang_up(self, link: Link) -> None:
        """End the session."""
        link.close()

    def lost(self, words: str) -> HeavyError:
        """Return the error of a session that is gone."""
        return HeavyError(words, lost=True)

    def spoilt(self, link: Link, error: BaseException) -> bool:
        """Refusing a statement leaves the session as it was; anything else is in the middle of one."""
        del link
        return not isinstance(error, HeavyError) or error.lost


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
            "Start it, and use the port of its binary Thrift protocol (6274 by default).",
        )
    return LoadstoneError(
        f"HeavyDB at {place} refuses the user '{server.user}' in the database '{server.database}': {error}",
        "Write heavydb://user@host:6274/database, with the password there or in HEAVYDB_PASSWORD.",
    )

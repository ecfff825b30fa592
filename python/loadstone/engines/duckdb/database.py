"""A DuckDB database that is open in this process, and its connections."""

from __future__ import annotations

import json
import re
import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import pyarrow as pa

from loadstone.engine import SCHEMA
from loadstone.engine.control import WholeResult
from loadstone.engines.duckdb.library import opened
from loadstone.errors import LoadstoneError
from loadstone.private_server.page_cache import forget
from loadstone.sqltext import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from loadstone import _core
    from loadstone.engine.control import Control

PINNED = {
    # What is measured must not depend on what happens to be installed, or on a network.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
_POLL_S = 0.05
_Found = TypeVar("_Found")
_HOLDER = re.compile(r"Conflicting lock is held in (\S+) \(PID (\d+)\)")
SCHEMAS = """
select count(*) as n from duckdb_schemas() where schema_name = $schema and database_name = current_database()
"""


class DuckControl:
    """A control connection: rows as dictionaries, or as Arrow."""

    def __init__(self, database: DuckDatabase, name: str) -> None:
        self.database = database
        self.name = name
        self._closed = False
        self._connection: _core.DuckConnection | None = None

    @property
    def closed(self) -> bool:
        """Whether it can no longer be used."""
        return self._closed or self.database.closed

    @property
    def connection(self) -> _core.DuckConnection:
        """DuckDB's own connection; made again when the database was opened again."""
        self._refuse_closed()
        if self._connection is None:
            self._connection = self.database.connection()
        return self._connection

    def execute(self, query: str, params: Mapping[str, Any] | None = None, /) -> WholeResult:
        """Run one statement to its end; parameters are written `$name`."""
        found = self.answer(query, params)
        return WholeResult(found.to_pylist())

    def answer(self, text: str, params: Mapping[str, Any] | None = None) -> pa.Table:
        """Run one statement to its end and return its whole answer; without columns where it has none."""
        self._refuse_closed()
        values = dict(params) if params else None
        return self._aside(lambda: pa.table(self.connection.query(text, values)))

    def _aside(self, work: Callable[[], _Found]) -> _Found:
        """Work in another thread: a signal is not handled before the main thread comes back to Python."""
        if threading.current_thread() is not threading.main_thread():
            return work()
        # Made before it is passed on: a signal may come while it is, and must not leave it running.
        done: Future[_Found] = Future()
        try:
            self.database.helper.submit(_settle, done, work)
            return done.result()
        finally:
            while not (done.cancel() or done.done()):
                self.interrupt()
                wait([done], _POLL_S)

    def another(self, name: str) -> DuckControl:
        """Open another connection to the same database."""
        return self.database.connect(name)

    def interrupt(self) -> None:
        """Make the statement that another thread runs here fail."""
        connection = self._connection
        if connection is not None:
            connection.interrupt()

    def _refuse_closed(self) -> None:
        if self.closed:
            raise duckdb.ConnectionException("the connection is closed")

    def forget(self) -> None:
        """Let go of DuckDB's connection: the database is being closed."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """End it; may be called again."""
        self._closed = True
        self.forget()


def _settle(done: Future[_Found], work: Callable[[], _Found]) -> None:
    """Work, unless it was called off before it began, and say how it ended."""
    if not done.set_running_or_notify_cancel():
        return
    try:
        done.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised again where the result is awaited
        done.set_exception(error)


class DuckDatabase:
    """A database that is open in this process, and its connections."""

    _open: set[Path] = set()  # noqa: RUF012 - of all databases of this process
    _guard = threading.Lock()

    def __init__(self, path: Path | None, folder: Path | None, settings: Mapping[str, str]) -> None:
        """Open the file `path`, or keep all in memory; `folder` is a private file's."""
        self.path = path.resolve() if path is not None else None
        self.settings = dict(settings)
        self._folder = folder
        self._controls: weakref.WeakSet[DuckControl] = weakref.WeakSet()
        self._opened: _core.DuckDatabase | None = None
        self.helper = ThreadPoolExecutor(1, "loadstone-duckdb")
        """Runs what the main thread wants of DuckDB."""
        self._claim()
        try:
            self._opened = self._open_it()
        except BaseException:
            self._release()
            raise

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._opened is None

    @property
    def data_directory(self) -> Path | None:
        """Where its file lies; None when it is in memory."""
        return self._folder or (self.path.parent if self.path is not None else None)

    @property
    def wal(self) -> Path | None:
        """Where the write-ahead log lies while there is one."""
        return self.path.with_name(f"{self.path.name}.wal") if self.path is not None else None

    def connect(self, name: str) -> DuckControl:
        """Open a control connection."""
        control = DuckControl(self, name)
        self._controls.add(control)
        try:
            control.execute("select 1")
        except duckdb.Error as error:
            raise LoadstoneError(
                f"the database '{self.path}' cannot be used: {error}", "Run again."
            ) from error
        return control

    def connection(self) -> _core.DuckConnection:
        """Make a connection of DuckDB's own; unqualified names mean what is in our schema, if it is there."""
        if self._opened is None:
            raise duckdb.ConnectionException("the database is closed")
        connection = self._opened.connect()
        if run(connection, SCHEMAS, {"schema": SCHEMA}) != [{"n": 0}]:
            use(connection, SCHEMA)
        return connection

    def clients(self, load: Mapping[str, Any] | None = None) -> _core.NativeLibrary:
        """Return what the core's clients connect through, to ask and to `load`; see `load_spec`."""
        if self._opened is None:
            raise duckdb.ConnectionException("the database is closed")
        probe = self._opened.connect()
        ours = run(probe, SCHEMAS, {"schema": SCHEMA}) != [{"n": 0}]
        probe.close()
        begin = [_use(SCHEMA)] if ours else []
        return self._opened.clients(json.dumps({"begin": begin, "load": load}))

    def named(self, name: str) -> list[DuckControl]:
        """Return the connections of this name that are open."""
        return [control for control in list(self._controls) if control.name == name and not control.closed]

    def reopen(self) -> None:
        """Close and open it, with the operating system's pages of the file forgotten; connections live on."""
        self._shut()
        if self.path is not None:
            forget(self.path)
        self._opened = self._open_it()

    def close(self) -> None:
        """End all connections and close it; DuckDB then writes what is only in the WAL into the file."""
        self._shut()
        self.helper.shutdown()
        self._release()

    def _shut(self) -> None:
        for control in list(self._controls):
            control.interrupt()
            control.forget()
        database, self._opened = self._opened, None
        if database is not None:
            database.close()

    def _open_it(self) -> _core.DuckDatabase:
        try:
            database = opened(self.path, PINNED | self.settings)
            connection = database.connect()
            run(connection, "set global TimeZone = 'UTC'")
            connection.close()
            return database  # noqa: TRY300 - each line may be refused
        except duckdb.Error as error:
            raise self._explain(error) from error

    def _explain(self, error: duckdb.Error) -> LoadstoneError:
        said = str(error).strip()
        held = _HOLDER.search(said)
        if held:
            return LoadstoneError(
                f"the file '{self.path}' is in use by process {held.group(2)} ({held.group(1)})",
                "End that process, or use another file: DuckDB allows only one process per file at a time.",
            )
        if "not a valid DuckDB database" in said:
            return LoadstoneError(f"the file '{self.path}' is not a DuckDB database", "Use another file.")
        if self.settings and isinstance(error, duckdb.InvalidInputException):
            given = ", ".join(f"{name}={value}" for name, value in self.settings.items())
            return LoadstoneError(f"DuckDB refuses a setting ({given}): {said}", "Check --setting.")
        hint = "Use another file."
        if "Permission denied" in said or "Read-only file system" in said:
            hint = (
                "Loadstone measures writes: make the file writable for this user (chmod u+w), or use "
                "another one."
            )
        return LoadstoneError(f"DuckDB cannot open {self.path or 'a database'}: {said}", hint)

    def _claim(self) -> None:
        with self._guard:
            if self.path in self._open:
                raise LoadstoneError(
                    f"the file '{self.path}' is already in use by this run",
                    "A run can have each database as a target only once.",
                )
            if self.path is not None:
                self._open.add(self.path)

    def _release(self) -> None:
        with self._guard:
            if self.path is not None:
                self._open.discard(self.path)


def use(connection: _core.DuckConnection, schema: str) -> None:
    """Make unqualified names of a connection mean the schema's objects; DuckDB looks into `main` last."""
    run(connection, _use(schema))


def _use(schema: str) -> str:
    return f"set search_path = {literal(quoted(schema))}"


def refuse_ambiguous(connection: Control, schema: str) -> None:
    """Raise LoadstoneError when the database is called as the schema: "a"."t" could then mean either."""
    row = connection.execute("select current_database() as name").fetchone() or {}
    if str(row["name"]).lower() == schema.lower():
        raise LoadstoneError(
            f"DuckDB names a database after its file: this one is named '{schema}', like the schema "
            "that Loadstone uses in it",
            "Rename the file, or use another one.",
        )


def run(
    connection: _core.DuckConnection, text: str, params: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Run a statement to its end and return its rows."""
    rows: list[dict[str, Any]] = pa.table(connection.query(text, params)).to_pylist()
    return rows


def duck(connection: Control) -> DuckControl:
    """Return a control connection as DuckDB's, for what only it can do."""
    if not isinstance(connection, DuckControl):
        raise TypeError(f"DuckDB was given a {type(connection).__name__} for a connection")
    return connection

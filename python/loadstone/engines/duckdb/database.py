"""A DuckDB database that is open in this process, and its connections."""

from __future__ import annotations

import contextlib
import re
import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from loadstone.engine import SCHEMA
from loadstone.engine.control import WholeResult
from loadstone.errors import LoadstoneError
from loadstone.private_server.page_cache import forget
from loadstone.sqltext import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pyarrow as pa

    from loadstone.engine.control import Control

PINNED = {
    # What is measured must not depend on what happens to be installed, or on a network.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # An unknown table is an error, never a variable of ours that happens to have its name.
    "python_enable_replacements": "false",
}
_POLL_S = 0.05
_BATCH_ROWS = 1_000_000
"""Most rows of a piece of an answer; the package's own default."""
_Found = TypeVar("_Found")
_HOLDER = re.compile(r"Conflicting lock is held in (\S+) \(PID (\d+)\)")
SCHEMAS = """
select count(*) as n from duckdb_schemas() where schema_name = $schema and database_name = current_database()
"""


class DuckControl:
    """A control connection: one of DuckDB's cursors, with rows as dictionaries."""

    def __init__(self, database: DuckDatabase, name: str) -> None:
        self.database = database
        self.name = name
        self._closed = False
        self._cursor: duckdb.DuckDBPyConnection | None = None

    @property
    def closed(self) -> bool:
        """Whether it can no longer be used."""
        return self._closed or self.database.closed

    @property
    def cursor(self) -> duckdb.DuckDBPyConnection:
        """DuckDB's own cursor, for what only it can do; made anew when the database was opened anew."""
        self._refuse_closed()
        if self._cursor is None:
            self._cursor = self.database.cursor()
        return self._cursor

    def execute(self, query: str, params: Mapping[str, Any] | None = None, /) -> WholeResult:
        """Run one statement to its end; parameters are written `$name`."""
        found = self.table(query, params)
        return WholeResult(found.to_pylist() if found is not None else [])

    def table(self, text: str, params: Mapping[str, Any] | None = None) -> pa.Table | None:
        """Run one statement to its end and return its whole answer; None when it has none."""
        self._refuse_closed()
        values = dict(params) if params else None

        def work() -> pa.Table | None:
            relation: duckdb.DuckDBPyRelation | None = self.cursor.sql(text, params=values)
            return relation.to_arrow_table() if relation is not None else None

        return self._aside(work)

    def answer(self, text: str) -> pa.Table:
        """Run one statement to its end, by the least work around it, and return its whole answer.

        A relation parses and binds its text when it is made, and once more when it is run; this is how it
        is run, and does so once. The package offers it under no other name.
        """
        self._refuse_closed()
        return self._aside(
            lambda: self.cursor._submit(text, None, "arrow", _BATCH_ROWS).arrow_table()  # noqa: SLF001
        )

    def _aside(self, work: Callable[[], _Found]) -> _Found:
        """Work in another thread: DuckDB replaces what a signal's handler raises by an error of its own."""
        if threading.current_thread() is not threading.main_thread():
            return work()
        # Made before it is handed over: a signal may come while it is, and must not leave it running.
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
        if self._cursor is not None:
            self._cursor.interrupt()

    def _refuse_closed(self) -> None:
        if self.closed:
            raise duckdb.ConnectionException("the connection is closed")

    def forget(self) -> None:
        """Let go of the cursor: the database is being closed."""
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            with contextlib.suppress(duckdb.Error):
                cursor.close()

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

    _open: set[Path] = set()  # noqa: RUF012 - DuckDB itself has one instance a file in a process
    _guard = threading.Lock()

    def __init__(self, path: Path | None, folder: Path | None, settings: Mapping[str, str]) -> None:
        """Open the file `path`, or keep all in memory; `folder` is a private file's."""
        self.path = path.resolve() if path is not None else None
        self.settings = dict(settings)
        self._folder = folder
        self._controls: weakref.WeakSet[DuckControl] = weakref.WeakSet()
        self._root: duckdb.DuckDBPyConnection | None = None
        self.helper = ThreadPoolExecutor(1, "loadstone-duckdb")
        """Runs what the main thread wants of DuckDB."""
        self._claim()
        try:
            self._root = self._connect()
        except BaseException:
            self._release()
            raise

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._root is None

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
            raise LoadstoneError(f"the database {self.path} cannot be used: {error}", "Run again.") from error
        return control

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Make a cursor of DuckDB's own; unqualified names mean what lies in our schema, if it is there."""
        if self._root is None:
            raise duckdb.ConnectionException("the database is closed")
        cursor = self._root.cursor()
        if run(cursor, SCHEMAS, {"schema": SCHEMA}) != [(0,)]:
            use(cursor, SCHEMA)
        return cursor

    def named(self, name: str) -> list[DuckControl]:
        """Return the connections of this name that are open."""
        return [control for control in list(self._controls) if control.name == name and not control.closed]

    def reopen(self) -> None:
        """Close and open it, with the operating system's pages of the file forgotten; connections live on."""
        self._shut()
        if self.path is not None:
            forget(self.path)
        self._root = self._connect()

    def close(self) -> None:
        """End all connections and close it; DuckDB then writes what is only in the WAL into the file."""
        self._shut()
        self.helper.shutdown()
        self._release()

    def _shut(self) -> None:
        for control in list(self._controls):
            control.interrupt()
            control.forget()
        root, self._root = self._root, None
        if root is not None:
            root.close()

    def _connect(self) -> duckdb.DuckDBPyConnection:
        try:
            root = duckdb.connect(str(self.path or ":memory:"), config=dict(PINNED | self.settings))
            run(root, "set global TimeZone = 'UTC'")
            return root  # noqa: TRY300 - both lines may be refused
        except duckdb.Error as error:
            raise self._explain(error) from error

    def _explain(self, error: duckdb.Error) -> LoadstoneError:
        said = str(error).strip()
        held = _HOLDER.search(said)
        if held:
            return LoadstoneError(
                f"the file {self.path} is in use by process {held.group(2)} ({held.group(1)})",
                "End that process, or name another file: DuckDB lets one process have a file at a time.",
            )
        if "not a valid DuckDB database" in said:
            return LoadstoneError(f"the file {self.path} is no DuckDB database", "Name another file.")
        if self.settings and isinstance(error, duckdb.InvalidInputException):
            given = ", ".join(f"{name}={value}" for name, value in self.settings.items())
            return LoadstoneError(f"DuckDB refuses a setting ({given}): {said}", "Check --setting.")
        hint = "Name another file."
        if "Permission denied" in said or "Read-only file system" in said:
            hint = "Measuring writes: allow this user to write the file (chmod u+w), or name another."
        return LoadstoneError(f"DuckDB cannot open {self.path or 'a database'}: {said}", hint)

    def _claim(self) -> None:
        with self._guard:
            if self.path in self._open:
                raise LoadstoneError(
                    f"the file {self.path} is in use by this very run",
                    "A run can have each database as a target once.",
                )
            if self.path is not None:
                self._open.add(self.path)

    def _release(self) -> None:
        with self._guard:
            if self.path is not None:
                self._open.discard(self.path)


def use(cursor: duckdb.DuckDBPyConnection, schema: str) -> None:
    """Make unqualified names of a cursor mean the schema's objects; DuckDB itself looks into `main` last."""
    run(cursor, f"set search_path = {literal(quoted(schema))}")


def refuse_ambiguous(connection: Control, schema: str) -> None:
    """Raise LoadstoneError when the database is called as the schema: "a"."t" could then mean either."""
    row = connection.execute("select current_database() as name").fetchone() or {}
    if str(row["name"]).lower() == schema.lower():
        raise LoadstoneError(
            f"DuckDB names a database after its file: this one is named {schema}, as the schema "
            "in it that Loadstone would use",
            "Rename the file, or name another.",
        )


def run(
    cursor: duckdb.DuckDBPyConnection, text: str, params: Mapping[str, Any] | None = None
) -> list[tuple[Any, ...]]:
    """Run a statement to its end: a cursor serves no other while an answer is not fetched whole."""
    return cursor.execute(text, params).fetchall()


def duck(connection: Control) -> DuckControl:
    """Return a control connection as DuckDB's, for what only it can do."""
    if not isinstance(connection, DuckControl):
        raise TypeError(f"DuckDB was given a {type(connection).__name__} for a connection")
    return connection

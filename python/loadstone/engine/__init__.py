"""The idea of an engine: what Loadstone asks a database while planning and between phases.

`Engine` is the interface. It has two bases: `wire.WireEngine` for engines with a wire protocol
(`postgres.family.PostgresFamily` has PostgreSQL's), and `library.engine.LibraryEngine` for engines behind a
client library, in this process or elsewhere. An engine subclasses one of them, overrides what differs, and is
a file of `loadstone/engines/` that names its instance `ENGINE`; nothing else needs to change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from loadstone.engine.answers import (
    Caches,
    Durability,
    EnginePart,
    Identity,
    Observation,
    Observed,
    RelationSize,
    ServerProcesses,
    Setting,
    Sizes,
)
from loadstone.engine.dialect.names import SCHEMA
from loadstone.engine.dialect.tables import TableDialect
from loadstone.engine.dialect.timeseries import TimeSeriesDialect
from loadstone.errors import LoadstoneError, RunFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    import pyarrow as pa

    from loadstone._core import NativeLibrary
    from loadstone.engine.control import Control
    from loadstone.engine.library.engine import LibraryEngine, Place
    from loadstone.engine.observe.remote import RemoteMachine
    from loadstone.engine.observe.storage import DataFiles, Storage
    from loadstone.engine.wire import WireEngine
    from loadstone.model import Connection

__all__ = [
    "SCHEMA",
    "Caches",
    "Durability",
    "Engine",
    "EnginePart",
    "Identity",
    "Observation",
    "Observed",
    "RelationSize",
    "ServerProcesses",
    "Setting",
    "Sizes",
    "not_one_value",
    "one",
]


MARK = "made by Loadstone, which drops it with everything in it"
"""What the mark of a schema begins with."""


class Engine(ABC):
    """The queries that every engine answers."""

    name: str
    title: str
    schemes: tuple[str, ...]
    """URL schemes that mean this engine."""
    embedded_prefix: str | None = None
    """Short names of private servers begin with it (`pg`, `pg17`, `pg:/path/to/bin`); None: it has none."""
    short_names: tuple[str, ...] = ()
    """Targets without a colon that mean a private server, which `place` knows by empty text."""
    sql_dialect = ""
    """Whose files of scenarios it runs where there are some (scenario/dialects.py); empty: PostgreSQL's."""
    status = "not yet run"
    """`verified against …` or `not yet run`, printed by `loadstone engines`."""
    in_process = False
    process_names: tuple[str, ...] = ()
    """Names of the server's processes, as its machine shows them: the first 15 bytes."""
    """Whether the engine is a library in our own process, so that its CPU time is ours."""
    reaches_beyond_schema = False
    """Whether a name without a schema may mean an object elsewhere, whatever the session's search path is."""
    errors: tuple[type[Exception], ...] = ()
    """What its control connections raise: trouble of the database, not a bug of ours."""
    needs = ""
    """What must be there before it can be measured, and how to get it, in words; empty: nothing more."""
    has_heap = False
    """Whether plain tables are PostgreSQL's heap with its B-trees and WAL, whose sizes can be estimated."""
    reset_limit_s = 0.0
    """Longest wait of `await_reset`."""
    series: TimeSeriesDialect = TimeSeriesDialect()
    """How it keeps time series."""
    tables: TableDialect = TableDialect()
    """How it keeps plain tables."""

    @property
    def wire(self) -> WireEngine | None:
        """Itself, where its clients speak a wire protocol."""
        return None

    @property
    def library(self) -> LibraryEngine | None:
        """Itself, where its clients go through a library."""
        return None

    def place(self, text: str) -> Place | None:
        """Understand what follows `scheme:` in a target that is opened by `open`; None: it is not one."""
        del text
        return None

    def workspace_mark(self, run: str, clients: str) -> str:
        """Return what tells a run's schema from another run's; `clients` is the name of its sessions."""
        return f"{MARK} (run {run}, clients {clients})"

    @property
    @abstractmethod
    def target_forms(self) -> tuple[str, ...]:
        """How `--target` may name it, for the user's eyes."""

    @abstractmethod
    def version(self, connection: Control) -> Identity:
        """Ask the server what it is."""

    def identify(self, connection: Control) -> Identity:
        """Ask the server what it is, and refuse it when it is not this engine or cannot be loaded."""
        return self.version(connection)

    @abstractmethod
    def postgres_version(self, identity: Identity) -> str | None:
        """Return the version of PostgreSQL whose features it has; None when that means nothing."""

    def label(self, identity: Identity) -> str:
        """Name engine and version in a report's words."""
        return f"{self.title} {identity['version']}"

    def client_connection(self, connection: Connection, schema: str | None = SCHEMA) -> Connection | None:
        """Return how the driver's clients connect by the wire protocol; None: they go through a library.

        `connection` is the user's own. Unqualified names lead to `schema` first; None: where they do there.
        """
        del connection, schema
        return None

    def for_texts(self, control: Control, connection: Connection) -> Connection:
        """Return how clients connect that read values as texts: in forms that the core knows."""
        del control
        return connection

    def answer(self, connection: Control, sql: str) -> pa.Table:
        """Run a query and return its whole answer, of an engine whose clients go through a library."""
        del connection, sql
        raise LoadstoneError(f"{self.title} is not reached through a client library")

    def query_clients(self, connection: Control) -> NativeLibrary | None:
        """Return clients that query without Python's lock; None where Python objects do (`answer`)."""
        del connection
        return None

    @abstractmethod
    def claim_workspace(self, connection: Control, schema: str = SCHEMA, mark: str = "") -> bool:
        """Take the schema for this run; False when another run has it, or LoadstoneError that says which.

        `mark` is what tells the run's schema from another run's; may be called again.
        """

    def keeps_workspace(self, connection: Control, schema: str, mark: str) -> bool:
        """Return whether the schema is still this run's after a connection was lost, and claim it again."""
        return self.claim_workspace(connection, schema, mark)

    @property
    def troubles(self) -> tuple[type[Exception], ...]:
        """What goes wrong with a server: what its connections raise, and what we say of it."""
        return (LoadstoneError, *self.errors)

    def await_reset(self, connection: Control, application_name: str, lost: Control | None = None) -> None:
        """Wait until a server that lost sessions of this name, or `lost`, has ended or kept all others.

        Raises one of `errors` when it ends `connection` too.
        """
        del connection, application_name, lost

    def release_workspace(self, connection: Control) -> None:
        """Let go of what would keep others from the schema, where the connection's end may not do it."""
        del connection

    @abstractmethod
    def has_workspace(self, connection: Control, schema: str = SCHEMA) -> bool:
        """Return whether the schema is there and marked as ours, with what an earlier run has left in it."""

    @abstractmethod
    def create_workspace(self, connection: Control, schema: str = SCHEMA, *, replace: bool = False) -> None:
        """Make the schema, empty and marked as ours; refuse one with somebody else's objects in it."""

    @abstractmethod
    def drop_workspace(
        self, connection: Control, schema: str = SCHEMA, *, lock_wait_s: float | None = None
    ) -> None:
        """Drop the schema with everything in it, if it is ours; wait no longer than that for others."""

    @abstractmethod
    def settings(self, connection: Control) -> list[Setting]:
        """Read the settings that are not at their defaults, and those worth recording anyway."""

    @abstractmethod
    def durability(self, connection: Control, schema: str = SCHEMA) -> list[Durability]:
        """Judge the settings that decide whether a committed transaction survives a crash."""

    @abstractmethod
    def sizes(self, connection: Control, schema: str = SCHEMA) -> Sizes:
        """Read sizes on disk and the WAL's position."""

    @abstractmethod
    def data_files(self, connection: Control, ours: Path | None = None) -> DataFiles:
        """Return where the database's files really are; `ours` is its folder when it is ours to know."""

    @abstractmethod
    def storage(
        self,
        connection: Control,
        tables: Sequence[str],
        data_directory: Path | None = None,
        schema: str = SCHEMA,
    ) -> Storage:
        """Account for every byte of tables in the schema, once all of them are written to the disk.

        `data_directory` is where the database's files are, when it is ours to know.
        """

    @abstractmethod
    def counters(self, connection: Control) -> Observation:
        """Read the cumulative counters of monitor.jsonl, as they are."""

    @abstractmethod
    def gauges(self, connection: Control, schema: str = SCHEMA) -> Observation:
        """Read the momentary figures of monitor.jsonl."""

    @abstractmethod
    def waits(self, connection: Control) -> Observation:
        """Count the active sessions by what they wait for (`LWLock:WALWrite`)."""

    def observe(self, connection: Control, schema: str = SCHEMA) -> Observed:
        """Read counters, gauges and waits: the object `engine` of one line of monitor.jsonl."""
        counters, gauges, waits = (
            self.counters(connection),
            self.gauges(connection, schema),
            self.waits(connection),
        )
        part: EnginePart = {"counters": counters.values, "gauges": gauges.values, "waits": waits.values}
        return Observed(part, [seen.reason for seen in (counters, gauges, waits) if seen.reason])

    def remote_machine(self, connection: Control) -> RemoteMachine | None:
        """Return what tells by SQL how the server's machine fares; None when that is this one, or nothing."""
        del connection
        return None

    @abstractmethod
    def server_pids(self, connection: Control) -> ServerProcesses:
        """Find the server's first process when the server is on this machine; its children are the rest."""

    def backend_pid(self, connection: Control) -> int | None:
        """Return the process that serves this session, as the server numbers it; None where none does."""
        del connection
        return None

    @abstractmethod
    def cancel(self, connection: Control, application_name: str) -> int:
        """End what our user's sessions of this name still do; returns how many there were."""

    @abstractmethod
    def capabilities(self, connection: Control) -> frozenset[str]:
        """Return what scenarios may require: plain words, and `extension:NAME` for each on the server."""

    def missing(self, connection: Control, requirements: frozenset[str]) -> dict[str, str]:
        """Say of each requirement that is not met why, in words."""
        found = self.capabilities(connection)
        return {word: _why_missing(word, self.title) for word in sorted(requirements - found)}

    @abstractmethod
    def checkpoint(self, connection: Control) -> str | None:
        """Have all changed pages written; returns why it could not be done, or None."""

    @abstractmethod
    def flush_caches(self, connection: Control) -> Caches:
        """Empty the server's caches as far as that can be done, and say how far that is."""

    @abstractmethod
    def refuse_too_many_clients(self, connection: Control, clients: int) -> None:
        """Raise LoadstoneError when the server has no room for that many more connections.

        The connection that asks is counted as used; the run needs that one and another for watching.
        """

    def refuse_read_only(self, connection: Control) -> None:
        """Raise LoadstoneError when such connections can write nothing, with how to change that."""
        del connection

    def refuse_encoding(self, connection: Control) -> None:
        """Raise LoadstoneError when the database cannot keep UTF-8 texts as they are."""
        del connection

    @abstractmethod
    def text_value(self, connection: Control, sql: str) -> str | None:
        """Run a statement that gives one value; returns it as the server writes it, None for null.

        Raises RunFailedError when there is not exactly one value.
        """

    def translate(self, sql: str) -> str:
        """Put a query in plain SQL, whose tables have no schema, into the engine's own words."""
        return sql

    def explain(self, connection: Control, sql: str) -> str | None:
        """Return the plan by which a query in the engine's words would run; None when it tells none."""
        del connection, sql
        return None

    def used_gpu(self, plan: str | None) -> bool | None:
        """Return whether a GPU runs a query, by its plan; None for an engine that knows no GPU."""
        del plan
        return None

    @abstractmethod
    def at_most(self, connection: Control, limit_s: float) -> AbstractContextManager[None]:
        """Make what the connection does inside the context fail after a while, whatever the server does."""


def one(
    connection: Control,
    statement: str,
    values: Mapping[str, object] | None = None,
    *,
    column: bool = False,
) -> Any:
    """Run a statement that answers with one row; return the row, or its first column."""
    row = connection.execute(statement, values).fetchone()
    if row is None:
        raise LoadstoneError(
            "the server returned no rows for a query that always returns some", statement.strip()
        )
    return next(iter(row.values())) if column else row


def not_one_value(rows: int, columns: int, sql: str) -> RunFailedError:
    """Say that a check's statement gave something else than one value."""
    return RunFailedError(
        f"a check's statement returned {rows} rows of {columns} columns: {sql}",
        "Write it so that it returns exactly one value.",
    )


def _why_missing(word: str, title: str) -> str:
    kind, _, name = word.partition(":")
    if kind == "extension" and name:
        return f"the server does not have the extension '{name}'"
    return f"{title} does not support '{word}' here"

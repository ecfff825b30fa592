"""The server of a run with `--report`: its settings, sizes and counters, as far as it shows them.

Whatever it does not show costs that part of the report, never the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from loadstone.engine.observe.counters import CounterReader
from loadstone.errors import UNREADABLE, words_of
from loadstone.host.monitor import Monitor, Watched
from loadstone.results.labels import name_document
from loadstone.target import is_local

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.engine.answers import Durability, Identity, Setting
    from loadstone.engine.control import Control
    from loadstone.engine.wire import WireEngine
    from loadstone.model import Connection
    from loadstone.results.folder import RunFolder, TargetFolder
    from loadstone.target import Target
    from loadstone.watch.watchers import Watcher

    T = TypeVar("T")

ANSWER_S = 10.0
"""Longest wait for the answer to one of our questions."""


class Address(Protocol):
    """Where a server is, and how it is asked."""

    @property
    def connection(self) -> Connection:
        """How its clients reach it."""

    def engine(self) -> WireEngine:
        """Return the engine that knows its answers."""

    def dial(self, name: str) -> Control:
        """Open a connection of our own, of that name, for questions that need no session that lasts."""

    def schema(self, control: Control) -> str:
        """Return where tables are made that are named without a schema."""


class ReportedServer:
    """The server, seen on two connections of our own: one before and after the drive, one during it."""

    def __init__(
        self, address: Address, target: Target, run: RunFolder, watchers: Sequence[Watcher] = ()
    ) -> None:
        """Connect; where that fails, nothing is known of the server, and an event says why.

        `watchers` are those of its machine.
        """
        self.folder: TargetFolder = run.target(target.id)
        self._address = address
        self._engine = address.engine()
        self._target = target
        self._run = run
        self._watchers = watchers
        self._control: Control | None = self._dial_or_note()
        self._schema = self._ask("the schema", address.schema, "public")
        self._counters = CounterReader(
            self._engine,
            lambda: address.dial("loadstone monitor"),
            self._schema,
            lambda reason: self._tell("info", reason, ""),
            is_watched=bool(watchers),
        )
        self._lines = self.folder.monitor()
        self.monitor = self._make_monitor()

    def describe(self) -> dict[str, Any]:
        """Return target.json as docs/run-folder.md has it."""
        nobody: Identity = {"version": "", "version_text": "", "version_number": 0, "standby": False}
        identity = self._ask("the server's version", self._engine.version, nobody)
        settings: list[Setting] = []
        watched = [watcher.describe() for watcher in self._watchers]
        durability: list[Durability] = []
        title = self._engine.label(identity) if identity["version"] else self._engine.title
        return {
            "id": self._target.id,
            "label": f"{title} at {self._target.label}",
            "name": name_document(self._target.name(title)),
            "engine": self._engine.name,
            "url": self._target.url,
            "local": is_local(self._address.connection.host),
            "version": identity["version"] or None,
            "version_text": identity["version_text"] or None,
            "build": None,
            "embedded": False,
            "in_process": False,
            "data_directory": None,
            "memory_limit_bytes": None,
            "settings": self._ask("the server's settings", self._engine.settings, settings),
            "durability": self._ask(
                "what becomes of commits in a crash",
                lambda c: self._engine.durability(c, self._schema),
                durability,
            ),
            **({"watched_by": watched} if watched else {}),
        }

    def sizes(self) -> dict[str, Any] | None:
        """Return the sizes of the database, and of the relations where unqualified tables are made."""
        return self._ask("sizes", lambda control: dict(self._engine.sizes(control, self._schema)), None)

    def close(self) -> None:
        """Stop watching and disconnect."""
        self.monitor.stop()
        self._lines.close()
        if self._control is not None:
            self._control.close()
        self._counters.close()

    def _dial_or_note(self) -> Control | None:
        try:
            return self._address.dial("loadstone")
        except self._engine.troubles as error:
            self._tell("warning", f"settings and sizes of the server are not recorded: {words_of(error)}", "")
            return None

    def _ask(self, what: str, read: Callable[[Control], T], otherwise: T) -> T:
        if self._control is None or self._control.closed:
            return otherwise
        try:
            with self._engine.at_most(self._control, ANSWER_S):
                return read(self._control)
        except self._engine.troubles as error:
            self._tell("info", f"{what} could not be read: {words_of(error)}", "")
            return otherwise
        except UNREADABLE as error:
            self._tell("info", f"{what} could not be read: the server answered oddly ({error!r})", "")
            return otherwise

    def _make_monitor(self) -> Monitor:
        pid = self._ask("the server's processes", self._server_pid, None)
        if self._watchers:
            backend = self._ask("the server's process", self._engine.backend_pid, None)
            for watcher in self._watchers:
                watcher.served_by(backend)
        sources = {watcher.shown: watcher.ask for watcher in self._watchers}
        watched = Watched(pid, (self._run.path,), self._counters.read, sources)
        return Monitor(watched, self._lines.write, self._tell)

    def _server_pid(self, control: Control) -> int | None:
        processes = self._engine.server_pids(control)
        if processes.pid is None and processes.reason and not self._watchers:
            self._tell("info", f"the server's processes are not watched: {processes.reason}", "")
        return processes.pid

    def _tell(self, level: Any, message: str, hint: str) -> None:
        self._run.event(level, "note", message, hint=hint or None, target=self._target.id)

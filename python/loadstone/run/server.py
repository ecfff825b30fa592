"""One target while it is being measured: its engine, its control connection, its folder, its watchers."""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loadstone.engine import SCHEMA
from loadstone.engine.observe.counters import CounterReader
from loadstone.engine.patience import Patience
from loadstone.errors import LoadstoneError, RunFailedError, words_of
from loadstone.host.monitor import Monitor, Watched
from loadstone.results.labels import name_document
from loadstone.run.cold_cache import restart_cold

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.engine import Caches, Engine
    from loadstone.engine.control import Control
    from loadstone.model import Connection
    from loadstone.private_server import EmbeddedServer
    from loadstone.results.folder import RunFolder, TargetFolder
    from loadstone.results.json_files import JsonLines
    from loadstone.target import OpenTarget
    from loadstone.watch.watchers import Watcher

_RECONNECT_S = 30.0
_ANSWER_S = 10.0
"""Longest wait for the answer to a query that costs the server nothing."""
_DROP_S = 120.0
_RELEASE_S = 2.0


class Server:
    """A target that is open. All SQL of the run goes through `control`, in the schema of the scenario."""

    def __init__(self, opened: OpenTarget, folder: RunFolder, watchers: Sequence[Watcher] = ()) -> None:
        """Connect; raises LoadstoneError when that is not possible. `watchers` are those of its machine."""
        self.opened = opened
        self.id = opened.id
        self.engine: Engine = opened.engine
        self.schema = SCHEMA
        self.control: Control = opened.connect("loadstone")
        self.identity = self.engine.identify(self.control)
        self.folder: TargetFolder = folder.target(self.id)
        self.gone: str | None = None
        """Why nothing more can be measured here; None while it can."""
        self.kept = False
        """Whether what an earlier run, which goes on, has made is still there."""
        self.counted: dict[str, int] = {}
        """Rows of tables, as far as they were counted and nothing has changed them since."""
        self._run = folder
        self._mark = self.engine.workspace_mark(secrets.token_hex(8), self.client_name)
        self._evicted = False
        self._lines: JsonLines = self.folder.monitor()
        self._watchers = watchers
        self._counters = CounterReader(
            self.engine,
            lambda: self.opened.connect("loadstone monitor"),
            self.schema,
            lambda reason: self._tell("info", reason, ""),
            is_watched=bool(watchers),
        )
        self._monitor = self._make_monitor()

    def describe(self) -> dict[str, Any]:
        """Return target.json as docs/run-folder.md has it."""
        data = self.opened.data_directory
        watched = [watcher.describe() for watcher in self._watchers]
        return {
            "id": self.id,
            "label": self.opened.label,
            "name": name_document(self.opened.name),
            "engine": self.engine.name,
            "url": self.opened.url,
            "local": self.opened.local,
            "version": self.identity["version"],
            "version_text": self.identity["version_text"],
            "build": self.opened.build,
            "embedded": self.opened.private,
            "in_process": self.engine.in_process,
            "data_directory": str(data) if data is not None else None,
            "memory_limit_bytes": self.opened.memory_limit_bytes,
            "settings": self.engine.settings(self.control),
            "durability": self.engine.durability(self.control, self.schema),
            **({"watched_by": watched} if watched else {}),
        }

    def claim(self) -> None:
        """Make sure that nobody else uses the scenario's schema; raises LoadstoneError when somebody does."""
        if not self.engine.claim_workspace(self.control, self.schema, self._mark):
            raise LoadstoneError(
                f"another run of Loadstone uses the schema '{self.schema}' of {self.opened.url}",
                "Wait until it ends, or use another database; a run can have each database as a target "
                "only once.",
            )
        connection = self.opened.connection
        if connection is not None:
            # Later sessions look for the mark. A private server, which may lose it, is ours anyway.
            claimed = None if self.opened.private else (self.schema, self._mark)
            named = replace(connection, application_name=self.client_name, claimed=claimed)
            self.opened = replace(self.opened, connection=named)

    def drop_workspace(self) -> str | None:
        """Drop the schema that we made; returns why that was not possible, None when it was."""
        if self._evicted:
            return None  # what is there is another run's
        troubles = self.engine.troubles
        try:
            if self.control.closed and self.gone is None:
                # It was lost in the last phase; the server may be there all the same.
                self.control = self.opened.connect("loadstone")
                if not self._keeps_claim():
                    return None
            with self.engine.at_most(self.control, _DROP_S):
                self.engine.drop_workspace(self.control, self.schema, lock_wait_s=_DROP_S / 2)
        except troubles as error:
            return str(error).strip()
        return None

    def watch(self) -> Monitor:
        """Return the monitor of this target; it runs while one of its phases does."""
        return self._monitor

    def sizes(self, *, after_failure: bool = False) -> dict[str, Any] | None:
        """Sizes of the scenario's relations; None, and a warning, when the server does not say.

        Raises one of the engine's errors when the connection is lost: later ones would only say that it is.
        After a failure, which has a reason of its own, a lost connection is a warning too.
        """
        try:
            return dict(self.engine.sizes(self.control, self.schema))
        except self.engine.errors as error:
            if self.control.closed and not after_failure:
                raise
            self._tell("warning", f"sizes could not be read: {error}", "")
            return None

    def count(self, sql: str) -> int:
        """Run a statement that gives one integer."""
        text = self.value(sql)
        try:
            return int(text)
        except ValueError:
            raise RunFailedError(
                f"a check's statement returned {text!r}, but a count of rows is needed: {sql}",
                "Write it so that it returns one whole number.",
            ) from None

    def value(self, sql: str) -> str:
        """Run a statement that gives one value; returns it as the server writes it, `null` for a null.

        Raises RunFailedError when there is not exactly one value.
        """
        value = self.engine.text_value(self.control, sql)
        return "null" if value is None else value

    def revive(self, *, lost: bool = False) -> None:
        """Make the control connection work again after the server was lost; raises when it stays away.

        `lost`: a client's connection was lost. If its process crashed, the server ends all sessions a moment
        later, which is waited for.
        """
        if self._evicted:
            self._evict()
        if not self._is_alive() or (lost and not self._outlives_reset()):
            self._reconnect()

    def recover(self) -> None:
        """Revive after clients failed: end what they left running, and wait until that is over."""
        self.revive()
        self.cancel_clients()
        self.revive(lost=True)

    def _reconnect(self) -> None:
        lost = self.control
        lost.close()
        self._restart_dead()
        patience = Patience(_RECONNECT_S)
        troubles = self.engine.troubles
        kept = False
        while True:
            try:
                self.control = self.opened.connect("loadstone")
                self.engine.await_reset(self.control, self.client_name, lost)
                kept = self._keeps_claim()
                self._watch_anew()
            except troubles as error:
                # It may die, or be seen to be dead, only after we have looked.
                if self._restart_dead():
                    patience = Patience(_RECONNECT_S)
                elif not patience.pause(error):
                    self.gone = f"the server was not available again within {_RECONNECT_S:.0f} s"
                    said = words_of(error)
                    raise RunFailedError(self.gone, said) from error
            else:
                break
        if not kept:
            self._evict()

    def _keeps_claim(self) -> bool:
        """Return whether the schema is still ours, and lock it again: the lock went with the session."""
        if self.opened.private:
            return self.engine.claim_workspace(self.control, self.schema, self._mark)
        return self.engine.keeps_workspace(self.control, self.schema, self._mark)

    def _evict(self) -> None:
        """End the use of this target: whatever we did there now, we would do to another run."""
        self._evicted = True
        self.control.close()
        self.gone = f"the schema '{self.schema}' was dropped, or replaced by another run of Loadstone"
        raise RunFailedError(
            f"{self.gone}, while the connection to the server was lost",
            "Make sure that only one run at a time uses a database, and that nothing else drops its tables.",
        )

    def cool(self) -> Caches:
        """Empty the caches as far as that can be done; what is in the way is only said."""
        troubles: tuple[type[Exception], ...] = (OSError, *self.engine.troubles)
        try:
            self.revive()
            with self._monitor.paused():
                if self.opened.server is not None:
                    return self._restart_cold(self.opened.server)
                caches = self.engine.flush_caches(self.control)
                # Emptying may have let go of what the session held, and started the server again.
                self.revive()
                if not self._keeps_claim():
                    self._evict()
                self._watch_anew()
                return caches
        except troubles as error:
            words = words_of(error)
            return {"emptied": False, "note": f"the caches could not be emptied: {words}"}

    def _watch_anew(self) -> None:
        """Watch the process that the server has now."""
        found = self.engine.server_pids(self.control)
        if found.pid is not None:
            self._monitor.watch_server(found.pid)

    def _restart_cold(self, server: EmbeddedServer) -> Caches:
        self.engine.checkpoint(self.control)
        self.control.close()
        self._counters.close()
        caches = restart_cold(server)
        self.revive()
        self._monitor.watch_server(server.pid)
        return caches

    def cancel_clients(self) -> None:
        """End what our clients left running on the server, by the name they gave themselves."""
        try:
            with self.engine.at_most(self.control, _ANSWER_S):
                self.engine.cancel(self.control, self.client_name)
        except self.engine.errors as error:
            self._tell("warning", f"running statements could not be cancelled: {error}", "")

    @property
    def client_name(self) -> str:
        """The application_name of the driver's connections."""
        return f"loadstone-{self._run.run.get('pid', 0)}"

    def clients_connection(self) -> Connection:
        """How the driver's clients connect."""
        connection = self.opened.client_connection(self.schema)
        if connection is None:
            raise RunFailedError(
                f"{self.engine.title} does not use PostgreSQL's wire protocol",
                "Scripts of pgbench need a server of PostgreSQL's family.",
            )
        return connection

    def close(self) -> None:
        """Stop watching and disconnect."""
        self._monitor.stop()
        self._lines.close()
        if not self.control.closed:
            with contextlib.suppress(*self.engine.errors), self.engine.at_most(self.control, _RELEASE_S):
                self.engine.release_workspace(self.control)
        self.control.close()
        self._counters.close()

    def _is_dead(self) -> bool:
        """Return whether it is a private server whose process has ended."""
        return self.opened.server is not None and not self.opened.server.is_running()

    def _is_alive(self) -> bool:
        if self._is_dead():
            return False
        try:
            with self.engine.at_most(self.control, _ANSWER_S):
                self.control.execute("select 1")
        except self.engine.errors:
            return False
        # A session may live on for a moment without the server's first process, and even answer.
        return not self._is_dead()

    def _outlives_reset(self) -> bool:
        """Wait for the reset of a server that lost a process; False when it ended our session too."""
        try:
            with self.engine.at_most(self.control, self.engine.reset_limit_s + _ANSWER_S):
                self.engine.await_reset(self.control, self.client_name)
        except self.engine.errors:
            return False
        return not self._is_dead()

    def _restart_dead(self) -> bool:
        """Start a private server that has died; False when it has not."""
        server = self.opened.server
        if server is None or server.is_running():
            return False
        self._tell("warning", "the server had died: it is started again to check which rows it has", "")
        try:
            server.restart()
        except LoadstoneError as error:
            self.gone = error.message
            raise
        self._monitor.watch_server(server.pid)
        return True

    def _make_monitor(self) -> Monitor:
        processes = self.engine.server_pids(self.control)
        if processes.pid is None and processes.reason and not self._watchers:
            self._tell("info", f"the server's processes are not observed: {processes.reason}", "")
        paths: list[Path] = [self._run.path]
        if self.opened.data_directory is not None:
            paths.insert(0, self.opened.data_directory)
        backend = self.engine.backend_pid(self.control) if self._watchers else None
        for watcher in self._watchers:
            watcher.served_by(backend)
        sources = {watcher.shown: watcher.ask for watcher in self._watchers}
        watched = Watched(processes.pid, tuple(paths), self._counters.read, sources)
        return Monitor(watched, self._lines.write, self._tell)

    def _tell(self, level: Any, message: str, hint: str) -> None:
        self._run.event(level, "note", message, hint=hint or None, target=self.id)

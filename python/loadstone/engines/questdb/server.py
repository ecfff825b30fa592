"""A private QuestDB: started in a folder of ours, on loopback, with a password made for it; and any other."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from loadstone.engine.library.links import LinkDatabase
from loadstone.engines.questdb.control import QuestControl, quest
from loadstone.engines.questdb.java import find_jar, find_java
from loadstone.errors import LoadstoneError
from loadstone.model import Connection
from loadstone.private_server import launch
from loadstone.private_server.os_user import environment
from loadstone.private_server.page_cache import evict
from loadstone.private_server.process_exit import has_ended
from loadstone.private_server.server import free_port
from loadstone.results.redact import remember

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.engine.control import Control

USER, DATABASE, LOOPBACK = "loadstone", "qdb", "127.0.0.1"
PINNED = {
    "telemetry.enabled": "false",
    "http.min.enabled": "false",
    "line.tcp.enabled": "false",
    "line.udp.enabled": "false",
    # A commit is answered once it is on the disk; without this nothing is forced there.
    "cairo.commit.mode": "sync",
    # It is Loadstone that ends what takes too long.
    "query.timeout": "86400000",
    # Files have 16 MiB a column to spare while they are open for writing: closed soon, their size is that of
    # the rows. No import rests so long between two batches.
    "cairo.inactive.writer.ttl": "3000",
    "cairo.idle.check.interval": "500",
    "pg.user": USER,
}
"""What a private server is set to; the user's own settings beat it, but for what we hold it by."""
_OURS = ("bind.to", "pg.user", "pg.password", "http.user", "http.password", "cairo.root", "copy.root")
_START_S = 300.0
_STOP_S = 20.0
_POLL_S = 0.05
_PORT_ATTEMPTS = 5
_LOG_LINES = 15


class QuestDatabase(LinkDatabase[QuestControl]):
    """A QuestDB server and the connections to it; `folder` is a private one's."""

    def __init__(self, server: Connection | None, folder: Path | None, settings: Mapping[str, str]) -> None:
        """Start a private server in `folder`, or reach one. Raises LoadstoneError."""
        super().__init__()
        self.settings = _checked(settings)
        self.folder = folder
        self._password = secrets.token_urlsafe(24)
        remember(self._password)
        self._process: subprocess.Popen[bytes] | None = None
        # The system stops the server when the thread that started it ends: this one lives as long as we do.
        self._starter = ThreadPoolExecutor(1, "loadstone-questdb")
        self._guard = threading.RLock()
        self._closed = False
        self.server = server or Connection(LOOPBACK, 0, USER, DATABASE, self._password, sslmode="disable")
        try:
            if server is None:
                self._start_first()
        except BaseException:
            self.close()
            raise

    @property
    def data_directory(self) -> Path | None:
        """A private server's folder."""
        return self.folder

    @property
    def pid(self) -> int | None:
        """A private server's process."""
        return self._process.pid if self._process is not None else None

    @property
    def incoming(self) -> Path | None:
        """Where a private server reads files; None where we cannot put any."""
        return self.folder / "incoming" if self.folder is not None else None

    def connect(self, name: str) -> QuestControl:
        """Open a control connection. Raises LoadstoneError when that is not possible."""
        self._revive()
        control = QuestControl(self, name)
        try:
            try:
                control.execute("select 1")
            except psycopg.Error:
                process = self._process
                if process is None or not has_ended(process):
                    raise
                self._revive()
                control.execute("select 1")
        except psycopg.Error as error:
            control.close()
            where = f"{self.server.host}:{self.server.port} (user {self.server.user})"
            raise LoadstoneError(
                f"cannot connect to {where}: {' '.join(str(error).split())}",
                "Check that QuestDB is running with PostgreSQL's protocol on that port, and that the "
                "password is right.",
            ) from error
        return self.enlist(control)

    def restart(self) -> bool:
        """Stop a private server and start it on the same data, connections live on; False for any other."""
        if self.folder is None:
            return False
        with self._guard:
            for control in self.controls():
                control.drop()
            self._end()
            evict(self._root())
            self._launch()
            self._wait_ready()
        return True

    def close(self) -> None:
        """End all connections and a private server; may be called again."""
        with self._guard:
            self._closed = True
            super().close()
            self._end()
            self._starter.shutdown()

    def _revive(self) -> None:
        with self._guard:
            dead = self._process is not None and self._process.poll() is not None
            if dead and not self._closed:
                self._launch()
                self._wait_ready()

    def _start_first(self) -> None:
        root = self._root()
        for folder in (root / "conf", self._there() / "incoming"):
            folder.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            self._choose_ports(root)
            self._launch()
            try:
                self._wait_ready()
            except LoadstoneError as error:
                # Somebody may have taken a port between our look and the server's.
                if "could not bind" not in error.hint or attempt == _PORT_ATTEMPTS:
                    raise
                self._end()
            else:
                return

    def _choose_ports(self, root: Path) -> None:
        pg, http = free_port(), free_port()
        self.server = Connection(LOOPBACK, pg, USER, DATABASE, self._password, sslmode="disable")
        values = (
            PINNED
            | self.settings
            | {
                "http.bind.to": f"{LOOPBACK}:{http}",
                "http.user": USER,
                "http.password": self._password,
                "pg.net.bind.to": f"{LOOPBACK}:{pg}",
                "pg.password": self._password,
                "cairo.sql.copy.root": str(self._there() / "incoming"),
            }
        )
        path = root / "conf" / "server.conf"
        path.touch(0o600)
        path.write_text("".join(f"{name}={value}\n" for name, value in values.items()))

    def _launch(self) -> None:
        self._process = self._starter.submit(self._popen).result()

    def _popen(self) -> subprocess.Popen[bytes]:
        folder = self._there()
        command = [sys.executable, "-I", "-S", str(Path(launch.__file__)), "-1", "-1", str(os.getpid()), ""]
        command += [str(find_java()), "-XX:+UseParallelGC", "-XX:ErrorFile=" + str(folder / "crash.log")]
        command += ["-p", str(find_jar()), "-m", "io.questdb/io.questdb.ServerMain", "-d", str(self._root())]
        with (folder / "server.log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=folder,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _wait_ready(self) -> None:
        end = time.monotonic() + _START_S
        while time.monotonic() < end:
            if self._process is None or self._process.poll() is not None:
                raise self._trouble("the private QuestDB does not start")
            probe = QuestControl(self, "loadstone start")
            try:
                probe.execute("select 1")
            except psycopg.Error:
                time.sleep(_POLL_S)
            else:
                return
            finally:
                probe.close()
        raise self._trouble(f"the private QuestDB was not ready within {_START_S:g} seconds")

    def _trouble(self, problem: str) -> LoadstoneError:
        self._end()
        try:
            text = (self._there() / "server.log").read_text(errors="replace")
        except OSError:
            text = ""
        said = "\n".join(text.splitlines()[-_LOG_LINES:]) or "It printed nothing."
        own = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        return LoadstoneError(problem, said + (f"\nYour own settings: {own}." if own else ""))

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_STOP_S)

    def _root(self) -> Path:
        return self._there() / "root"

    def _there(self) -> Path:
        if self.folder is None:
            raise TypeError("only a private server has a folder")
        return self.folder


def reached(connection: Control) -> QuestDatabase:
    """Return the database that a control connection goes to."""
    database = quest(connection).database
    if not isinstance(database, QuestDatabase):
        raise TypeError(f"a connection to QuestDB goes to a {type(database).__name__}")
    return database


def _checked(settings: Mapping[str, str]) -> dict[str, str]:
    for name, value in settings.items():
        if any(part in name for part in _OURS):
            raise LoadstoneError(
                f"Loadstone itself sets '{name}' of a private QuestDB",
                "Start your own server and use questdb://host:port.",
            )
        if "." not in name or "\n" in f"{name}{value}":
            raise LoadstoneError(
                f"'{name}' is not a setting of QuestDB",
                "Write names as in its server.conf: cairo.commit.mode.",
            )
    return dict(settings)

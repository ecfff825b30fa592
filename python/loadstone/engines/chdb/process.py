"""chDB in a process of its own, and the connections to it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from typing import TYPE_CHECKING

from loadstone.engine.library.links import LinkDatabase
from loadstone.engine.library.packages import install
from loadstone.engines.chdb import messages
from loadstone.engines.clickhouse.control import ClickControl, ClickError
from loadstone.errors import LoadstoneError
from loadstone.private_server.page_cache import evict
from loadstone.private_server.process_exit import has_ended

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any, BinaryIO

    import pyarrow as pa

    from loadstone.sqltext import Qualified

PACKAGE = "chdb"
_START_S = 300.0
_STOP_S = 10.0
_ROWS = "rows"
"""What the process calls the rows of an insert."""


class ChdbLine:
    """One connection: a socket to the process that holds chDB."""

    def __init__(self, way: socket.socket) -> None:
        self.way = way

    def ask(self, sql: str) -> pa.Table | None:
        """Run one statement to its end and return its whole answer, None when it has none."""
        with self._errors_translated():
            messages.send(self.way, b"q", sql.encode())
            return self._answer()

    def put(self, table: Qualified, columns: Sequence[str], rows: pa.Table) -> None:
        """Insert rows, which travel as an Arrow stream."""
        listed = ", ".join(columns)
        text = f"insert into {table} ({listed}) select {listed} from Python({_ROWS})"  # noqa: S608 - quoted
        with self._errors_translated():
            messages.send(self.way, b"p", text.encode())
            messages.send(self.way, b"r", messages.as_stream(rows))
            self._answer()

    def close(self) -> None:
        """End it; the process ends what it was doing for us when it next looks."""
        self.way.close()

    def _answer(self) -> pa.Table | None:
        message = messages.receive(self.way)
        if message is None:
            raise ClickError(_GONE)
        kind, content = message
        if kind == b"e":
            told = json.loads(bytes(content))
            raise ClickError(told["message"], told["code"])
        return messages.of_stream(content) if kind == b"t" else None

    @contextlib.contextmanager
    def _errors_translated(self) -> Any:
        try:
            yield
        except OSError as error:
            raise ClickError(f"{_GONE}: {error.strerror or error}") from error


_GONE = "the process that runs chDB has ended"


class ChdbDatabase(LinkDatabase[ClickControl]):
    """A folder that a process of ours has open; the process is started again when it is gone."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        """Open the folder. Raises LoadstoneError when that is not possible."""
        super().__init__()
        self.folder = folder.resolve()
        self.settings = dict(settings)
        self._starting = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._door: socket.socket | None = None
        self._said: BinaryIO | None = None
        self._closed = False
        if not self.claim(self.folder):
            raise LoadstoneError(
                f"the folder '{self.folder}' is already in use by this run",
                "A run can have each database as a target only once.",
            )
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    @property
    def data_directory(self) -> Path | None:
        """Where its files lie."""
        return self.folder

    @property
    def pid(self) -> int | None:
        """The process that holds chDB."""
        return self._process.pid if self._process is not None else None

    def connect(self, name: str) -> ClickControl:
        """Open a control connection. Raises LoadstoneError when that is not possible."""
        control = ClickControl(self, name)
        try:
            try:
                control.execute("select 1")
            except ClickError as error:
                if error.code is not None or not self._has_ended():
                    raise
                control.execute("select 1")
        except ClickError as error:
            raise LoadstoneError(f"chDB in '{self.folder}' cannot be used: {error}", "Run again.") from error
        return self.enlist(control)

    def line(self) -> ChdbLine:
        """Open a connection, to a new process if the one before is gone."""
        with self._starting:
            if self._closed:
                raise ClickError("the database is closed")
            if self._process is None or self._process.poll() is not None:
                self._end()
                try:
                    self._start()
                except LoadstoneError as error:
                    raise ClickError(error.message) from error
            ours, theirs = socket.socketpair()
            with theirs:
                try:
                    socket.send_fds(self._there(), [b"l"], [theirs.fileno()])
                except OSError as error:
                    ours.close()
                    raise ClickError(f"{_GONE}: {error.strerror}") from error
            return ChdbLine(ours)

    def probe(self) -> None:
        """Do nothing: the process is ours, and its end closes the line."""

    def hang_up(self, line: object) -> None:
        """End the process: chDB has no other way to end a statement that does not look whether it should."""
        del line
        process = self._process
        if process is not None:
            process.kill()
            process.wait(_STOP_S)

    def forget_pages(self) -> None:
        """Ask the operating system to drop its pages of the database's files."""
        evict(self.folder)

    def close(self) -> None:
        """End all connections and the process; may be called again."""
        with self._starting:
            self._closed = True
            self.end_controls()
            self._end()
            self._hush()
            super().close()

    def _start(self) -> None:
        door, theirs = socket.socketpair()
        self._hush()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - read when the process fails
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "loadstone.engines.chdb.server",
                str(self.folder),
                str(theirs.fileno()),
            ],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=subprocess.STDOUT,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )
        theirs.close()
        self._door = door
        door.settimeout(_START_S)
        try:
            ready = door.recv(1) == messages.READY
        except TimeoutError:
            ready = False
        door.settimeout(None)
        if not ready:
            raise self._trouble()

    def _has_ended(self) -> bool:
        process = self._process
        return has_ended(process) if process is not None else not self._closed

    def _trouble(self) -> LoadstoneError:
        self._end()
        said = b""
        if self._said is not None:
            self._said.seek(0)
            said = self._said.read()
        text = said.decode(errors="replace").strip()
        last = next((line for line in reversed(text.splitlines()) if line.strip()), "it printed nothing")
        if "Cannot lock file" in text:
            return LoadstoneError(
                f"the folder '{self.folder}' is in use by another process of ClickHouse",
                "End that process, or use another folder: only one process can use a folder at a time.",
            )
        return LoadstoneError(f"chDB cannot open '{self.folder}': {last}", "Use another folder.")

    def _end(self) -> None:
        """End the process: in order, for it writes what is running; else at once."""
        door, self._door = self._door, None
        if door is not None:
            door.close()
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(_STOP_S)

    def _hush(self) -> None:
        said, self._said = self._said, None
        if said is not None:
            said.close()

    def _there(self) -> socket.socket:
        if self._door is None:
            raise ClickError(_GONE)
        return self._door


def refuse_missing() -> None:
    """Raise LoadstoneError when the library is not installed; it is not loaded here."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise LoadstoneError(
            "chDB is not installed: the Python package chdb is missing",
            f"Install it (180 MB, 850 MB on disk): {install('chdb')}",
        )

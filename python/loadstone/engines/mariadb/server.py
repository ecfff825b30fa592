"""A private MariaDB: the installed one, in a folder of ours, at a socket only for its user and root."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.engine import SCHEMA
from loadstone.engines.mariadb.control import connect, connect_where_possible
from loadstone.engines.mariadb.session import as_ours
from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.model import Connection
from loadstone.private_server import launch
from loadstone.private_server.os_user import environment, server_account
from loadstone.private_server.page_cache import evict
from loadstone.private_server.sizing import GB, MB, RESERVE_CONNECTIONS, memory_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loadstone.engines.mariadb.control import MariaControl

PACKAGE = "mariadb-server"
_PATH = (*os.environ.get("PATH", os.defpath).split(os.pathsep), "/usr/sbin", "/usr/local/sbin")
_OURS = (
    "datadir",
    "tmpdir",
    "socket",
    "port",
    "pid_file",
    "log_error",
    "defaults",
    "skip_networking",
    "user",
    "bind_address",
)
_NAME = re.compile(r"[a-z][a-z0-9_.-]*", re.IGNORECASE)
_INSTALL_S = 120.0
_START_S = 120.0
_STOP_S = 60.0
_END_S = 5.0
"""Longest time between the moment at which a killed server refuses connections and the end of its process."""
_POLL_S = 0.05
_LOG_LINES = 15
_SOCKET_PATH_MAX = 107


class PrivateMaria:
    """A private server, which `close` ends; connections live on when it is started again."""

    def __init__(self, folder: Path, settings: Mapping[str, str], clients: int) -> None:
        """Make its data in `folder`, unless a killed run has, and start it. Raises LoadstoneError."""
        self.folder = folder
        self._own = _checked(settings)
        self.settings = {**_sized(folder, clients), **self._own}
        self._daemon = find_program("mariadbd", "mysqld")
        self._account = server_account()
        self._process: subprocess.Popen[bytes] | None = None
        # The system stops the server when the thread that started it ends: this one lives as long as we do.
        self._starter = ThreadPoolExecutor(1, "loadstone-mariadb")
        self._guard = threading.RLock()
        self._closed = False
        self._controls: list[MariaControl] = []
        self._socket = _socket_in(folder)
        self.connection = Connection(str(self._socket), 0, "root", "", sslmode="disable", protocol="mysql")
        try:
            if not (self.data / "mysql").is_dir():
                self._install()
            self._launch()
        except BaseException:
            self.close()
            raise

    @property
    def data(self) -> Path:
        """Where its files are."""
        return self.folder / "data"

    @property
    def data_directory(self) -> Path | None:
        """The folder that was made for it."""
        return self.folder

    @property
    def pid(self) -> int | None:
        """Its process."""
        return self._process.pid if self._process is not None else None

    def connect(self, name: str) -> MariaControl:
        """Open a control connection of this name; unqualified names mean what is in our database."""
        there = replace(as_ours(self.connection, SCHEMA), application_name=name)
        return self._enlisted(self._reached(connect_where_possible, there))

    def connect_as_user(self) -> MariaControl:
        """Open a control connection in no database."""
        return self._enlisted(self._reached(connect, self.connection))

    def restart(self) -> None:
        """Stop it and start it on the same data, with the system's pages of its files forgotten."""
        with self._guard:
            for control in self._controls:
                control.close()
            self._end(signal.SIGTERM)
            evict(self.data)
            self._launch()

    def stop(self) -> None:
        """End it in order and leave its data."""
        with self._guard:
            self._end(signal.SIGTERM)

    def close(self) -> None:
        """End it; may be called again. Its data are then those of a server that has crashed."""
        with self._guard:
            self._closed = True
            self._end(signal.SIGKILL)
            self._starter.shutdown()

    def _enlisted(self, control: MariaControl) -> MariaControl:
        control.server = self
        with self._guard:
            self._controls = [known for known in self._controls if not known.closed] + [control]
        return control

    def _reached(self, connecting: Callable[[Connection], MariaControl], there: Connection) -> MariaControl:
        """Connect; a killed server refuses or resets connections until its process has ended."""
        self._revive()
        try:
            return connecting(there)
        except LoadstoneError:
            if not self._ends():
                raise
        self._revive()
        return connecting(there)

    def _ends(self) -> bool:
        try:
            return self._process is not None and self._process.wait(_END_S) is not None
        except subprocess.TimeoutExpired:
            return False

    def _revive(self) -> None:
        with self._guard:
            dead = self._process is not None and self._process.poll() is not None
            if dead and not self._closed:
                self._launch()

    def _install(self) -> None:
        program = find_program("mariadb-install-db", "mysql_install_db")
        arguments = [str(program), "--no-defaults", f"--datadir={self.data}", "--skip-test-db"]
        arguments += ["--auth-root-authentication-method=normal", "--skip-name-resolve"]
        try:
            ended = self._account.run(arguments, self.folder, _INSTALL_S)
        except subprocess.TimeoutExpired:
            raise LoadstoneError(f"{program.name} did not end within {_INSTALL_S:g} seconds") from None
        if ended.returncode != 0:
            raise self._trouble(f"{program.name} could not create the data folder", ended.stdout)

    def _launch(self) -> None:
        self._process = self._starter.submit(self._popen).result()
        self._await_ready(self._process)

    def _popen(self) -> subprocess.Popen[bytes]:
        account = self._account
        who = (account.uid, account.gid) if account.switched else (-1, -1)
        ending = f"{os.getpid()}:{signal.SIGKILL.value}"
        command = [sys.executable, "-I", "-S", str(Path(launch.__file__)), *map(str, who), ending, ""]
        command += [str(self._daemon), "--no-defaults", f"--datadir={self.data}", f"--socket={self._socket}"]
        command += ["--skip-networking", f"--pid-file={self.folder / 'pid'}", f"--tmpdir={self.folder}"]
        command += [f"--{name.replace('_', '-')}={value}" for name, value in self.settings.items()]
        log = self._log()
        with log.open("ab") as out:
            account.own(log)
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + _START_S
        while time.monotonic() < end:
            if process.poll() is not None:
                raise self._trouble("the private MariaDB does not start", self._log_tail())
            if self._socket.exists() and self._answers():
                return
            threading.Event().wait(_POLL_S)
        raise self._trouble(
            f"the private MariaDB was not ready within {_START_S:g} seconds", self._log_tail()
        )

    def _answers(self) -> bool:
        try:
            connect(self.connection).close()
        except LoadstoneError:
            return False
        return True

    def _end(self, first: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        try:
            process.send_signal(first)
            process.wait(_STOP_S)
        finally:
            process.kill()  # does nothing to one that has ended
            process.wait(_STOP_S)

    def _trouble(self, problem: str, said: str) -> LoadstoneError:
        if "No space left" in said or "errno: 28" in said:
            return RunFailedError(
                f"{problem}: the disk is full", "Use a folder with more space with --storage."
            )
        hint = "Output of the server:\n" + said.strip() if said.strip() else "It printed nothing."
        if self._own:
            hint += f"\nYour own settings: {', '.join(f'{k}={v}' for k, v in self._own.items())}."
        return LoadstoneError(problem, hint)

    def _log(self) -> Path:
        return self.folder / "server.log"

    def _log_tail(self) -> str:
        try:
            text = self._log().read_text(errors="replace")
        except OSError:
            return ""
        errors = [line for line in text.splitlines() if "[ERROR]" in line]
        return "\n".join((errors or text.splitlines())[-_LOG_LINES:])


def find_program(*names: str) -> Path:
    """Return where a program of the package is. Raises LoadstoneError that names it."""
    found = next(filter(None, (shutil.which(name, path=os.pathsep.join(_PATH)) for name in names)), None)
    if found is None:
        raise LoadstoneError(
            f"MariaDB is not installed here: there is no {names[0]}",
            f"Install it (apt-get install {PACKAGE}), or use a server of your own: mariadb://user@host/database.",
        )
    return Path(found)


def _sized(folder: Path, clients: int) -> dict[str, str]:
    """Return the settings for so many clients: like those of a private PostgreSQL."""
    free = shutil.disk_usage(folder).free
    return {
        "character_set_server": "utf8mb4",
        "collation_server": "utf8mb4_bin",
        "default_time_zone": "+00:00",
        "max_connections": str(max(clients + RESERVE_CONNECTIONS, 30)),
        "innodb_buffer_pool_size": str(min(max(memory_bytes() // 4, 128 * MB), 8 * GB)),
        "innodb_log_file_size": str(min(max(1 << (max(free // 40, 1).bit_length() - 1), 96 * MB), GB)),
        "innodb_flush_log_at_trx_commit": "1",
        "innodb_doublewrite": "ON",
        "max_allowed_packet": str(256 * MB),
        "local_infile": "ON",
        "performance_schema": "OFF",
        "skip_name_resolve": "ON",
        "table_open_cache": str(max(2000, 4 * clients)),
    }


def _socket_in(folder: Path) -> Path:
    socket = folder / "mariadb.sock"
    if len(os.fsencode(socket)) > _SOCKET_PATH_MAX:
        raise LoadstoneError(
            f"the path of the private MariaDB's socket is too long: {socket}",
            "Use a folder with a shorter path: --storage, or TMPDIR.",
        )
    return socket


def _checked(settings: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for name, value in settings.items():
        plain = name.replace("-", "_").lower()
        if not _NAME.fullmatch(name) or "\n" in value:
            raise LoadstoneError(f"'{name}' is not a setting of MariaDB", "Write names as in SHOW VARIABLES.")
        if plain.startswith(_OURS):
            raise LoadstoneError(
                f"Loadstone itself sets '{name}' of a private MariaDB",
                "Start your own server and use mariadb://user@host/database.",
            )
        found[plain] = value
    return found

"""A private PostgreSQL server: made, started, stopped and removed without a trace."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Self, TypeVar

import psycopg
from psycopg import sql

from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.model import Connection
from loadstone.private_server import launch, sizing
from loadstone.private_server.builds import cache_root, find_build, make_folders
from loadstone.private_server.data_folder import make_place, space_words
from loadstone.private_server.memory_limit import choose_groups
from loadstone.private_server.os_user import environment, server_account
from loadstone.private_server.page_cache import evict
from loadstone.private_server.provision import EMPTY, Provision, copy_data, move_data
from loadstone.private_server.registry import Registry, end_processes_in
from loadstone.results.redact import remember
from loadstone.signals import completed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from loadstone.private_server.adoption import Adoption
    from loadstone.private_server.builds import Build
    from loadstone.private_server.data_folder import DataFolder
    from loadstone.private_server.registry import Record

USER = DATABASE = "loadstone"
LOOPBACK = "127.0.0.1"
_DATABASES = b"select 1 from pg_database where datname = 'loadstone'"
_CREATE_DATABASE = b'create database "loadstone"'
_LOCALES = ("C.UTF-8", "C")
_PORT_ATTEMPTS = 5
_POLL_S = 0.02
_KILL_WAIT_S = 10.0
_LOG_LINES = 15
_DISK_FULL = "No space left on device"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """How long each step may take before it is given up, in seconds."""

    initdb_s: float = 120.0
    start_s: float = 60.0
    recovery_s: float = 600.0
    fast_stop_s: float = 20.0
    immediate_stop_s: float = 10.0


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """What kind of server is wanted.

    `settings` override what is sized to the machine; `keep` leaves server and data behind at the end.
    """

    name: str = "pg"
    clients: int = 10
    storage: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    keep: bool = False
    limits: Limits = Limits()
    memory_bytes: int | None = None
    """Limit of the memory of the server and of the page cache of its files together, where one can be set."""
    wished: Mapping[str, str] = field(default_factory=dict)
    """What a scenario wants for; `settings` beat it."""
    adopt: Adoption | None = None
    """A killed run's data to go on with; then `storage`, `memory_bytes` and all settings are as they were."""
    provision: Provision = EMPTY


class EmbeddedServer:
    """One private server, as a context manager.

    Start it from a thread that lives on: the system stops the server when the thread that started it ends.
    Raises LoadstoneError for what the user can mend.
    """

    def __init__(self, order: ServerSpec) -> None:
        self.order = order
        self.account = server_account()
        self._own_settings = sizing.checked(order.wished) | sizing.checked(order.settings)
        self._process: subprocess.Popen[bytes] | None = None
        self._place: DataFolder | None = None
        self._record: Record | None = None
        self._build: Build | None = None
        self._registry = Registry(cache_root(self.account) / "servers")
        self._password = secrets.token_urlsafe(24)
        remember(self._password)
        self.settings: dict[str, str] = {}
        """What was set, by us and by the user."""
        self.sized: dict[str, str] = {}
        """Those of the settings that were sized to the machine."""
        self.port = 0
        self.reaped: list[str] = []
        """What earlier runs had left and this start removed, in words."""
        self.notes: list[str] = []
        """What is otherwise than ordered, in words."""
        self.memory_limit_bytes: int | None = None
        """The limit of the server's control group; None when it has none."""
        self._doors: tuple[Path, ...] = ()

    def __enter__(self) -> Self:
        """Start."""
        try:
            self.start()
        except KeyboardInterrupt:  # also of a signal that comes when all is started
            self._end(remove=self.order.adopt is None)
            raise
        else:
            return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop and remove, or with `keep` leave it running."""
        self.close()

    @property
    def installation(self) -> Build:
        """Version and place of what runs."""
        return _there(self._build)

    @property
    def build(self) -> str:
        """What reports must say of the build that runs."""
        return self.installation.note

    @property
    def data_directory(self) -> Path:
        """The server's data directory."""
        return _there(self._place).data

    @property
    def log_file(self) -> Path:
        """The server's log."""
        return _there(self._place).log

    @property
    def pid(self) -> int:
        """The server's first process."""
        return _there(self._process).pid

    def is_running(self) -> bool:
        """Whether the server's first process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def connection(self) -> Connection:
        """How to reach it by its unix socket, which only its user and root can enter."""
        host = str(_there(self._place).socket)
        return Connection(host, self.port, USER, DATABASE, sslmode="disable")

    @property
    def tcp_connection(self) -> Connection:
        """How to reach it by TCP, on loopback, with a password made for this server."""
        return Connection(LOOPBACK, self.port, USER, DATABASE, self._password, sslmode="disable")

    def start(self) -> None:
        """Fetch the build if need be, make the data folder, start, make the database."""
        self.reaped = self._registry.reap()
        self._build = find_build(self.order.name, self.account)
        if self.order.adopt is not None:
            self._start_adopted(self.order.adopt)
            return
        self._place = make_place(self.account, self.order.storage)
        try:
            make_folders(self._registry.folder)
            server_id = self._place.home.name
            self._record = self._registry.new(server_id, self._place.folders, self._place.data)
            self._limit_memory(self.order.memory_bytes)
            self.settings = self._sized(self._place.storage)
            sizing.refuse_too_little(self.memory_limit_bytes, self.settings)
            if self.order.provision.copy_of is not None:
                copy_data(self.order.provision.copy_of, self._place.data)
            else:
                self._initdb()
            self._configure()
            self._start_on_free_port(self.order.limits.start_s)
            self._create_database()
        except BaseException:
            self._end(remove=True)
            raise

    def _start_adopted(self, adoption: Adoption) -> None:
        """Start on a killed run's data; when that fails they stay, for another try."""
        limits = self.order.limits
        adoption.clear(limits.fast_stop_s, self.installation.major)
        self._place, self._record = adoption.place, adoption.record
        self.settings = dict(adoption.record.settings)
        try:
            self._limit_memory(adoption.record.memory_bytes)
            self._start_on_free_port(limits.recovery_s)
            self._create_database()
        except BaseException:
            self._end(remove=False)
            raise

    def close(self) -> None:
        """Stop the server and remove its data; with `keep` leave both, out of our hands."""
        if self.order.keep and self.is_running():
            # Popen would warn that its process still runs, which is what was requested.
            _there(self._process).returncode = 0
            self._process = None
            return
        self._end(remove=True)

    def stop(self) -> None:
        """Stop the server and leave its data, for `restart`."""
        self._end(remove=False)

    def kill(self) -> None:
        """End all the server's processes at once, as a crash does."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait(_KILL_WAIT_S)
        # Its children notice only when they next wait for something.
        end_processes_in(self.data_directory)

    def restart(self) -> None:
        """Stop the server if it runs, and start it on the same data and port; it recovers after a `kill`."""
        self.stop()
        self._launch()
        self._wait_ready(self.order.limits.recovery_s)

    def farewell(self) -> str:
        """Say how to connect to a kept server, and how to stop and remove it."""
        place = _there(self._place)
        folders = " ".join(str(folder) for folder in place.folders)
        return (
            f"The server keeps running as process {self._record_pid()}, with its data in {place.data}.\n"
            f"Connect:  psql -h {place.socket} -p {self.port} -U {USER} {DATABASE}   (as {self._who()})\n"
            f"Stop:     kill -INT {self._record_pid()}\n"
            f"Remove:   rm -r {folders}"
        )

    def log_tail(self, lines: int = _LOG_LINES) -> str:
        """Return the last lines of the server's log."""
        try:
            text = self.log_file.read_text(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def _who(self) -> str:
        return f"root or {self.account.name}" if self.account.switched else self.account.name

    def _record_pid(self) -> int:
        server = _there(self._record).server
        return server.pid if server else self.pid

    def _limit_memory(self, memory_bytes: int | None) -> None:
        """Make a control group with that limit, or say why there is none."""
        record = _there(self._record)
        if memory_bytes is None:
            return
        groups = choose_groups(record.id)
        if isinstance(groups, str):
            reason = groups
        else:
            # Recorded first: what is made is removed, whatever happens to us.
            folders = tuple(map(str, groups.folders))
            self._record = replace(record, groups=folders, memory_bytes=memory_bytes)
            self._registry.write(self._record)
            try:
                groups.make(memory_bytes)
            except OSError as error:
                reason = f"{error.filename}: {error.strerror}"
            else:
                self.memory_limit_bytes, self._doors = memory_bytes, groups.doors
                return
        self.notes.append(
            f"the private server's memory is not limited to {memory_bytes:,} bytes as requested: "
            f"{reason}. Run as root, or from a session with its own control group (systemd-run --user "
            "--scope)"
        )

    def _sized(self, storage: Path) -> dict[str, str]:
        sized = dict(self.order.provision.sized) or sizing.sized_settings(
            self.order.clients, storage, self.memory_limit_bytes
        )
        self.sized = sized
        return sized | self._own_settings

    def _initdb(self) -> None:
        place = _there(self._place)
        password_file = place.home / "password"
        password_file.touch(0o600)
        self.account.own(password_file)
        password_file.write_text(self._password)
        try:
            said = ""
            for locale in _LOCALES:
                done, said = self._run_initdb(locale, password_file)
                if done:
                    return
                if "locale" not in said:
                    break
                shutil.rmtree(place.data, ignore_errors=True)
        finally:
            password_file.unlink(missing_ok=True)
        raise self._trouble("initdb could not create the data folder", said)

    def _run_initdb(self, locale: str, password_file: Path) -> tuple[bool, str]:
        place = _there(self._place)
        arguments = [str(self.installation.bin / "initdb"), "-D", str(place.data), "-U", USER, "-E", "UTF8"]
        arguments += [f"--locale={locale}", "--auth-local=trust", "--auth-host=scram-sha-256"]
        arguments += [f"--pwfile={password_file}"]
        try:
            ended = self.account.run(arguments, place.home, self.order.limits.initdb_s)
        except subprocess.TimeoutExpired:
            limit_s = self.order.limits.initdb_s
            raise self._trouble(f"initdb did not end within {limit_s:g} seconds", "") from None
        return ended.returncode == 0, ended.stdout

    def _configure(self) -> None:
        place = _there(self._place)
        segment_bytes = _segment_bytes(place.data)
        self.settings = sizing.with_segments(self.settings, segment_bytes, self._own_settings)
        fixed = {
            "listen_addresses": LOOPBACK,
            "unix_socket_directories": str(place.socket),
            "unix_socket_permissions": "0700",
        }
        with (place.data / "postgresql.conf").open("a") as file:
            file.write(sizing.as_file(fixed | self.settings))
        self._record = replace(_there(self._record), settings=self.settings)

    def _start_on_free_port(self, limit_s: float) -> None:
        if self._doors:
            evict(self.data_directory)  # pages are charged to the group that read them first
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            wanted = self.order.provision.port if attempt == 1 else 0
            self.port = wanted or free_port()
            self._launch()
            try:
                self._wait_ready(limit_s)
            except LoadstoneError:
                # Somebody may have taken the port between our look and the server's.
                taken = re.search(r"could not bind|Address already in use", self.log_tail(40))
                if not taken or attempt == _PORT_ATTEMPTS:
                    raise
            else:
                return

    def _launch(self) -> None:
        place = _there(self._place)
        account = self.account
        who = (account.uid, account.gid) if account.switched else (-1, -1)
        parent = 0 if self.order.keep else os.getpid()
        command = [sys.executable, "-I", "-S", str(Path(launch.__file__)), *map(str, (*who, parent))]
        command += [os.pathsep.join(map(str, self._doors))]
        command += [str(self.installation.bin / "postgres"), "-D", str(place.data), "-p", str(self.port)]
        with place.log.open("ab") as log:
            account.own(place.log)
            self._process = subprocess.Popen(
                command,
                cwd=place.home,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._record = self._registry.started(_there(self._record), self._process.pid, keep=self.order.keep)

    def _wait_ready(self, limit_s: float) -> None:
        process = _there(self._process)
        status = self.data_directory / "postmaster.pid"
        end = monotonic() + limit_s
        while monotonic() < end:
            if process.poll() is not None:
                raise self._trouble("the private server does not start", self.log_tail())
            if _says_ready(status, process.pid):
                return
            threading.Event().wait(_POLL_S)
        self.kill()
        raise self._trouble(f"the private server was not ready within {limit_s:g} seconds", self.log_tail())

    def _create_database(self) -> None:
        # Nothing of the user's PG* variables may lead elsewhere.
        with psycopg.connect(
            host=str(_there(self._place).socket),
            hostaddr="",
            port=self.port,
            user=USER,
            dbname="postgres",
            options="",
            sslmode="disable",
            connect_timeout=10,
            autocommit=True,
        ) as control:
            if control.execute(_DATABASES).fetchone() is None:
                control.execute(_CREATE_DATABASE)
            if self.order.adopt is not None or self.order.provision.copy_of is not None:
                # As a verifier: no log may ever show the password.
                made = control.pgconn.encrypt_password(
                    self._password.encode(), USER.encode(), b"scram-sha-256"
                )
                control.execute(
                    sql.SQL("alter role {} password {}").format(sql.Identifier(USER), made.decode())
                )

    def _end(self, *, remove: bool) -> None:
        completed(lambda: self._end_once(remove=remove))

    def _end_once(self, *, remove: bool) -> None:
        in_order = False
        try:
            self._stop_process()
            in_order = self._process is not None and self._process.poll() == 0
        finally:
            # Also when Ctrl-C ends the waiting.
            self.kill()
            self._process = None
            if remove and self._place is not None:
                if in_order and self.order.provision.save_to is not None:
                    move_data(self._place.data, self.order.provision.save_to)
                if self._record is not None:
                    self._registry.remove(self._record)
                else:
                    self._place.remove()

    def _stop_process(self) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        limits = self.order.limits
        for number, limit_s in (
            (signal.SIGINT, limits.fast_stop_s),
            (signal.SIGQUIT, limits.immediate_stop_s),
        ):
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(limit_s)
                return

    def _trouble(self, problem: str, said: str) -> LoadstoneError:
        place = _there(self._place)
        if _DISK_FULL in said:
            return RunFailedError(
                f"{problem}: {space_words(place.storage)}",
                "Free some space, or use a folder with more space with --storage.",
            )
        hint = "Output of the server:\n" + said.strip() if said.strip() else "It printed nothing."
        if self._own_settings:
            hint += f"\nYour own settings: {', '.join(f'{k}={v}' for k, v in self._own_settings.items())}."
        return LoadstoneError(problem, hint)


def reap_orphans() -> list[str]:
    """Stop and remove the private servers that killed runs left; returns one line of words for each."""
    return Registry(cache_root(server_account()) / "servers").reap()


def _there(value: T | None) -> T:
    if value is None:
        raise LoadstoneError("the private server is not running", "Start it first.")
    return value


def _segment_bytes(data: Path) -> int:
    """Return the size of one WAL file as initdb made it: 16 MB, or what the build's makers have chosen."""
    return max(file.stat().st_size for file in (data / "pg_wal").iterdir() if file.is_file())


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _says_ready(status: Path, pid: int) -> bool:
    """Read the server's own status file: its process on the first line, its state on the eighth."""
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return False
    return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"  # noqa: PLR2004 - see above

"""A MariaDB of our own, as an ordinary user starts it: Debian's, on a unix socket and a loopback port."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from support.sandbox import NOBODY, make_base

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PATH = f"{os.environ['PATH']}:/usr/sbin"
MARIADBD = shutil.which("mariadbd", path=_PATH)
INSTALL = shutil.which("mariadb-install-db", path=_PATH)
CLIENT = shutil.which("mariadb", path=_PATH)
START_S = 200.0
_OPTIONS = (
    "--skip-log-bin",
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=16M",
    "--innodb-flush-log-at-trx-commit=0",
    "--bind-address=127.0.0.1",
    "--character-set-server=utf8mb4",
    "--plugin-load-add=auth_ed25519",
    "--max-allowed-packet=64M",
    "--performance-schema=OFF",
)
_CLIENT_OPTIONS = ("--no-defaults", "--user=root", "--batch", "--skip-column-names")
_INSTALL_OPTIONS = ("--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")


@dataclass
class MariaDB:
    """A server; its superuser is `root` with no password, over the socket only."""

    folder: Path
    port: int
    options: tuple[str, ...] = ()
    _process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> str:
        return str(self.folder / "m.sock")

    def client(self, *options: str) -> list[str]:
        assert CLIENT is not None
        return [CLIENT, *_CLIENT_OPTIONS, f"--socket={self.socket}", *options]

    def sql(self, text: str, database: str = "") -> str:
        """Run statements; their rows, a line each, fields separated by tabs."""
        ran = subprocess.run(self.client(database), input=text, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    def connection(self, **more: Any) -> dict[str, Any]:
        """Return the connection of a drive: the superuser over the socket, or as said."""
        there = {
            "protocol": "mysql",
            "host": self.socket,
            "port": self.port,
            "user": "root",
            "database": "test",
        }
        return there | more

    def start(self) -> None:
        """Serve the data folder, also after a kill; returns when it is ready."""
        assert MARIADBD is not None
        ready_at, log = self.folder / "ready", self.folder / "log"
        ready_at.unlink(missing_ok=True)
        # It says by a datagram when it is ready, as systemd asks for.
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            ready.bind(str(ready_at))
            ready_at.chmod(0o777)
            ready.settimeout(START_S)
            self._process = subprocess.Popen(
                [*_become(), MARIADBD, "--no-defaults", f"--datadir={self.folder / 'data'}",
                 f"--socket={self.socket}", f"--port={self.port}", f"--tmpdir={self.folder}",
                 f"--pid-file={self.folder / 'pid'}", f"--log-error={log}", *_OPTIONS, *self.options],
                cwd=self.folder, env=os.environ | {"NOTIFY_SOCKET": str(ready_at)},
            )  # fmt: skip
            _wait_ready(ready, self._process, log)

    def kill(self) -> None:
        """End it by SIGKILL: what its clients wait for never comes; the data folder stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _become() -> list[str]:
    """Return what runs a command as the user of its folder: it refuses to serve root."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def _wait_ready(ready: socket.socket, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server says that it serves; one that ended instead is shown with its log."""
    ended = os.pidfd_open(process.pid)
    watched: list[int | socket.socket] = [ready, ended]
    try:
        while ended not in (awake := select.select(watched, [], [], START_S)[0]):
            assert awake, f"MariaDB was not ready within {START_S} s\n{log.read_text()}"
            if b"READY=1" in ready.recv(4096):
                return
        raise AssertionError(f"MariaDB ended as it started\n{log.read_text()}")
    finally:
        os.close(ended)


@contextlib.contextmanager
def certificate() -> Iterator[tuple[str, ...]]:
    """Make a certificate in a folder that the server's user may enter; yield the server's options."""
    folder = make_base()
    chain, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-keyout", key, "-out", chain],
        check=True, capture_output=True,
    )  # fmt: skip
    key.chmod(0o644)
    yield f"--ssl-cert={chain}", f"--ssl-key={key}"
    shutil.rmtree(folder)


@contextlib.contextmanager
def mariadb(*more: str) -> Iterator[MariaDB]:
    """Start one, and remove it at the end; the test is skipped where it is not installed."""
    if MARIADBD is None or INSTALL is None or CLIENT is None:
        pytest.skip("MariaDB is not installed: Debian's package is mariadb-server")
    folder = make_base()
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    server = MariaDB(folder, _free_port(), more)
    install = [*_become(), INSTALL, "--no-defaults", f"--datadir={folder / 'data'}", *_INSTALL_OPTIONS]
    made = subprocess.run(install, capture_output=True, text=True, check=False, cwd=folder)
    assert made.returncode == 0, made.stdout + made.stderr
    try:
        server.start()
        server.sql("create database test")
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder)

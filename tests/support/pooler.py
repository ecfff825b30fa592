"""pgbouncer in front of the tests' server, as an ordinary user starts it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import psycopg
import pytest

from loadstone.model import Connection
from support.sandbox import NOBODY, make_base, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadstone.private_server import EmbeddedServer

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
_PORT = 6432
_CONFIGURATION = """
[databases]
* = host={host} port={port} user={user} password={password}

[pgbouncer]
unix_socket_dir = {folder}
listen_port = {listens}
auth_type = any
pool_mode = {mode}
ignore_startup_parameters = options,extra_float_digits
logfile = {folder}/log
"""


@dataclass(frozen=True)
class Pooler:
    """A pgbouncer that drops start-up options, as it is often told to."""

    folder: Path
    user: str

    def connection(self, database: str, **more: str) -> Connection:
        """Return how a database is reached through it, with these start-up parameters."""
        return Connection(str(self.folder), _PORT, self.user, database, parameters=more)

    def url(self, database: str) -> str:
        return f"postgres://{self.user}@/{database}?host={quote(str(self.folder), safe='')}&port={_PORT}"

    def answers(self) -> bool:
        with contextlib.suppress(psycopg.Error):
            psycopg.connect(host=str(self.folder), port=_PORT, user=self.user, dbname="postgres").close()
            return True
        return False


@contextlib.contextmanager
def pooler(server: EmbeddedServer, mode: str) -> Iterator[Pooler]:
    """Start one; the test is skipped where it is not installed, as those of pgbench are without pgbench."""
    if PGBOUNCER is None:
        pytest.skip("pgbouncer is not installed: no pooler to stand between")
    folder, there = make_base(), server.tcp_connection
    text = _CONFIGURATION.format(
        host=there.host, port=there.port, user=there.user, password=there.password, folder=folder, mode=mode,
        listens=_PORT,
    )  # fmt: skip
    (folder / "pgbouncer.ini").write_text(text)
    command = [PGBOUNCER, "--quiet", str(folder / "pgbouncer.ini")]
    if os.geteuid() == 0:  # it refuses to serve root
        os.chown(folder, NOBODY, NOBODY)
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        found = Pooler(folder, there.user)
        wait_until(found.answers, "pgbouncer answers")
        yield found
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)

"""Runs on one database, as different processes have them: opened, claimed, their connections lost."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import psycopg

from loadstone.engine import SCHEMA
from loadstone.results.folder import RunFolder
from loadstone.run.server import Server
from loadstone.target import open_target, parse_target

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.sandbox import Database


class Runs:
    """Runs on one database, as different processes have them."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.folder = folder

    @contextmanager
    def server(self, pid: int) -> Iterator[Server]:
        """Open the target as a run does, and claim nothing yet."""
        with closing(RunFolder.create(self.folder / str(pid), "run")) as folder:
            folder.run["pid"] = pid
            target = parse_target(self.database.socket_url)
            with open_target(target, clients=2) as opened, closing(Server(opened, folder)) as server:
                yield server

    def client(self, server: Server) -> psycopg.Connection:
        there = self.database.server.connection
        return psycopg.connect(
            host=there.host, port=there.port, user=there.user, dbname=self.database.name,
            application_name=server.client_name, autocommit=True,
        )  # fmt: skip


def begin(server: Server) -> None:
    """Do what a run does first."""
    server.claim()
    server.engine.create_workspace(server.control, SCHEMA)
    server.claim()
    server.control.execute("create table loadstone.t as select 1 as id")


def lose(server: Server, runs: Runs) -> None:
    """End the session of the control connection, as a firewall or an administrator does."""
    row = server.control.execute("select pg_backend_pid() as pid").fetchone()
    assert row is not None
    runs.database.execute(f"select pg_terminate_backend({row['pid']}, 60000)")

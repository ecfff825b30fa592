"""The control connection of a load whose server is lost and takes its time to recover."""

from __future__ import annotations

import math
import socket
import struct
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from loadstone.engine import patience
from loadstone.engine.postgres import connections
from loadstone.errors import LoadstoneError, ServerStartingError
from loadstone.model import Connection
from loadstone.target import open_target, parse_target
from loadstone.workload.load import reconnecting_control

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.sandbox import Database

    from loadstone.engine.control import Control


class Recovering:
    """Listens where a server was, and says what one says that is not ready yet."""

    def __init__(self, words: str) -> None:
        fields = f"SFATAL\0VFATAL\0C57P03\0M{words}\0\0".encode()
        self.answer = b"E" + struct.pack("!i", 4 + len(fields)) + fields
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def serve(self) -> None:
        while True:
            line, _ = self.listener.accept()
            with line:
                if line.recv(1000) == b"":
                    return
                line.sendall(self.answer)

    def close(self) -> None:
        socket.create_connection(("127.0.0.1", self.port)).close()
        self.thread.join()
        self.listener.close()


@pytest.fixture(
    params=["starting up", "in recovery mode", "not yet accepting connections"],
    ids=["starts", "crash", "wal"],
)
def recovering(request: pytest.FixtureRequest) -> Iterator[Recovering]:
    server = Recovering(f"the database system is {request.param}")
    yield server
    server.close()


def test_a_server_that_is_on_its_way_says_so(recovering: Recovering) -> None:
    connection = Connection("127.0.0.1", recovering.port, "u", "d", sslmode="disable")
    with pytest.raises(ServerStartingError, match="still starting"):
        connections.connect(connection)


@pytest.mark.parametrize("on_its_way", [True, False])
def test_a_load_waits_longer_for_a_server_that_recovers(
    database: Database, monkeypatch: pytest.MonkeyPatch, *, on_its_way: bool
) -> None:
    """The log of a large import takes longer to read again than a server may be away."""
    monkeypatch.setattr(reconnecting_control, "_AWAY_S", 0.2)
    monkeypatch.setattr(patience, "_PAUSE_S", 0.05)
    refused = ServerStartingError("in recovery") if on_its_way else LoadstoneError("refused")
    back_s = 0.0
    with open_target(parse_target(database.socket_url), clients=2) as opened:

        def connect(name: str) -> Control:
            if time.monotonic() < back_s:
                raise refused
            return opened.connect(name)

        with reconnecting_control.ReconnectingControl(replace(opened, connect=connect), "loadstone") as kept:
            kept.control().close()
            back_s = time.monotonic() + 1.0 if on_its_way else math.inf
            if on_its_way:
                kept.control().execute("select 1")
            else:
                with pytest.raises(LoadstoneError, match="refused"):
                    kept.control()

"""Where no server listens: said once, in few words, and without a line of a client library's."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from loadstone.engines.clickhouse.server import ClickServer
from loadstone.errors import LoadstoneError
from loadstone.model import Connection

pytestmark = pytest.mark.slow

SCRIPT = """
from loadstone.errors import LoadstoneError
from loadstone.target import open_target, parse_target
try:
    open_target(parse_target({url!r}), 1).__enter__()
except LoadstoneError as error:
    print(error.message, error.hint, sep="\\n")
"""


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return int(closed.getsockname()[1])


def said(url: str) -> list[str]:
    """Open a target in a process of its own, which has set up no logging; returns message and hint."""
    program = [sys.executable, "-c", SCRIPT.format(url=url)]
    ended = subprocess.run(program, capture_output=True, text=True, check=True, timeout=300)
    assert ended.stderr == ""
    return ended.stdout.splitlines()


def test_clickhouse(port: int) -> None:
    message, hint = said(f"clickhouse://me:secret@127.0.0.1:{port}")
    assert message == f"cannot connect to 127.0.0.1:{port} (user me): Connection refused"
    assert hint.startswith("Check that the server is running")


def test_a_host_that_clickhouse_cannot_be_on() -> None:
    message, _ = said("clickhouse://me:secret@no-such-host.invalid")
    assert message.startswith("cannot connect to no-such-host.invalid:8123 (user me): ")
    assert len(message) < 140
    assert "Max retries" not in message


def test_heavydb(port: int) -> None:
    message, hint = said(f"heavydb://127.0.0.1:{port}")
    assert message.startswith(f"no HeavyDB server can be reached at 127.0.0.1:{port}")
    assert hint.startswith("Start it, ")


def test_vertica(port: int) -> None:
    message, hint = said(f"vertica://127.0.0.1:{port}")
    assert message.startswith(f"no Vertica server accepts a connection at 127.0.0.1:{port}: ")
    assert hint.startswith("Check that the server")


def test_clickhouse_that_takes_connections_and_is_silent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = Connection("127.0.0.1", port, "me", "d", sslmode="disable", connect_timeout_s=0.2)
        with pytest.raises(LoadstoneError, match="no answer within"):
            ClickServer(server)

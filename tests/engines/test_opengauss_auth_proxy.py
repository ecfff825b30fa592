"""The proxy logs in as openGauss wants it, and then stands aside: a real PostgreSQL answers behind it."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from loadstone.engines import engine
from loadstone.engines.opengauss import OpenGauss, auth_proxy
from loadstone.engines.opengauss.auth_proxy import OpenGaussAuthProxy, answer
from loadstone.errors import LoadstoneError
from loadstone.model import Connection
from loadstone.personalities import pgbench

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.sandbox import Database

OPENGAUSS = engine("opengauss")
PASSWORD = "correct horse"
SALT = "a0b1c2d3e4f5061728394a5b6c7d8e9f00112233445566778899aabbccddeeff"
TOKEN = "deadbeef"
# The same vector as in crates/wire: made by Python's hashlib and hmac, written down once.
ANSWER = "b2cb9e83c32e18c0daabbfe70cceb292edf2e90d4994d21945223160d06603b4"
SIGNATURE = "a6c1001df815a924cd4901e87ff97808e0f72d84b663058d589014d8dd8291ba"


def challenge(*parts: str, kept: int = 2) -> bytes:
    return struct.pack("!I", kept) + "".join(parts).encode()


def exactly(line: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count and (piece := line.recv(count - len(found))):
        found += piece
    return found


class Gate:
    """Stands before a PostgreSQL and lets in who knows the password, as openGauss would."""

    def __init__(self, database: Database, data: bytes) -> None:
        self.database = database
        self.data = data
        self.door = socket.create_server(("127.0.0.1", 0))
        self.asked_for_tls = 0
        threading.Thread(target=self.serve, daemon=True).start()

    @property
    def connection(self) -> Connection:
        there = self.database.server.connection
        port = self.door.getsockname()[1]
        return Connection("127.0.0.1", port, there.user, self.database.name, password=PASSWORD)

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.door.accept()
                threading.Thread(target=self.let_in, args=(client,), daemon=True).start()

    def let_in(self, client: socket.socket) -> None:
        with client, suppress(OSError, struct.error), ExitStack() as stack:
            begin = exactly(client, 8)
            length, code = struct.unpack("!II", begin)
            while code != 196608:
                self.asked_for_tls += 1
                client.sendall(b"N")
                begin = exactly(client, 8)
                length, code = struct.unpack("!II", begin)
            begin += exactly(client, length - 8)
            client.sendall(b"R" + struct.pack("!II", 8 + len(self.data), 10) + self.data)
            kind, length = struct.unpack("!cI", exactly(client, 5))
            if (kind, exactly(client, length - 4)) != (b"p", ANSWER.encode() + b"\0"):
                return
            there = self.database.server.connection
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.connect(f"{there.host}/.s.PGSQL.{there.port}")
            server.sendall(begin)
            auth_proxy._pass_on(client, server)


@contextmanager
def gate(database: Database, data: bytes = challenge(SALT, TOKEN, SIGNATURE)) -> Iterator[Gate]:
    found = Gate(database, data)
    yield found
    found.door.close()


def test_answers_are_those_of_another_implementation() -> None:
    for parts in ((SALT, TOKEN), (SALT, TOKEN, SIGNATURE)):
        for kept in (0, 2):
            assert answer(PASSWORD, challenge(*parts, kept=kept)).decode() == ANSWER


@pytest.mark.parametrize(
    ("password", "data", "words"),
    [
        ("guess", challenge(SALT, TOKEN, SIGNATURE), "the password is wrong, or the user does not exist"),
        (PASSWORD, challenge(SALT, TOKEN, kept=3), "not that of a password stored as SHA-256"),
        (PASSWORD, challenge(SALT), "not that of a password"),
        (PASSWORD, challenge("x" * 64, TOKEN), "cannot be read"),
        (PASSWORD, b"", "not that of a password"),
    ],
)
def test_what_is_no_challenge_of_this_kind_is_refused(password: str, data: bytes, words: str) -> None:
    with pytest.raises(LoadstoneError, match=words):
        answer(password, data)


def test_a_control_connection_works_behind_the_proxy(database: Database) -> None:
    assert isinstance(OPENGAUSS, OpenGauss)
    with gate(database) as front, OPENGAUSS.connect(front.connection) as control:
        assert control.execute("select repeat('x', 1000000) as text").fetchone() == {"text": "x" * 1_000_000}
        assert front.asked_for_tls >= 1
        # A connection that is stuck can be cut from here, as one without a proxy.
        with pytest.raises(OPENGAUSS.errors), OPENGAUSS.at_most(control, 0.2):
            control.execute("select pg_sleep(60)")


def test_the_doorman_leaves_no_socket_behind(database: Database) -> None:
    with gate(database) as front:
        door = OpenGaussAuthProxy(front.connection)
        folder = door.connection.host
        assert door.connection.password is None
        door.close()
        with pytest.raises(FileNotFoundError), socket.socket(socket.AF_UNIX) as line:
            line.connect(f"{folder}/.s.PGSQL.{door.connection.port}")


def test_who_is_not_let_in_is_told_why(database: Database) -> None:
    assert isinstance(OPENGAUSS, OpenGauss)
    with gate(database) as front:
        for changed, words in (
            ({"password": "guess"}, "the password is wrong"),
            ({"sslmode": "require"}, "the server does not support TLS|server does not support SSL"),
        ):
            with pytest.raises(LoadstoneError, match=words):
                OPENGAUSS.connect(replace(front.connection, **changed))  # type: ignore[arg-type]
    with (
        gate(database, challenge(SALT, TOKEN, kept=3)) as front,
        pytest.raises(LoadstoneError, match="SHA-256"),
    ):
        OPENGAUSS.connect(front.connection)


def test_certificates_are_checked_as_sslmode_says() -> None:
    plain = Connection("127.0.0.1", 1, "u", "d")
    assert auth_proxy._context(plain).verify_mode == ssl.CERT_NONE
    checked = auth_proxy._context(replace(plain, sslmode="verify-ca"))
    assert (checked.verify_mode, checked.check_hostname) == (ssl.CERT_REQUIRED, False)
    assert auth_proxy._context(replace(plain, sslmode="verify-full")).check_hostname


def test_pgbench_logs_in_as_the_engine_wants_it(database: Database, tmp_path: Path) -> None:
    script = tmp_path / "one.sql"
    script.write_text("select 1;\n")
    with gate(database) as front:
        there = front.connection
        url = f"opengauss://{there.user}:correct%20horse@{there.host}:{there.port}/{there.database}"
        out: list[str] = []
        err: list[str] = []
        code = pgbench.main(["-v", "-f", str(script), "-t", "3", url], out.append, err.append)
    assert code == 0, err
    assert "actually processed: 3/3" in "".join(out)

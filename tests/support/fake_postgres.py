"""A stand-in for a server of PostgreSQL's family whose answers are told: poolers and relatives answer oddly.

It lets everybody in, and has done whatever it does not know, without rows.
"""

from __future__ import annotations

import contextlib
import socketserver
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone.model import Connection
from support.serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

PORT = 5432
PROCESS = 4242
TEXT, INT4 = 25, 23
_VERSION_3 = 196608
_READY = b"Z\0\0\0\5I"


@dataclass(frozen=True)
class Answer:
    """Names of columns, rows of as many values, and the columns' type."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str | None]]
    type: int = TEXT


PID = Answer(["pid"], [[str(PROCESS)]])
"""Without it the session looks like that of a pooler."""


@dataclass
class FakePostgres:
    """Where it listens, and what it answers: the first of `answers` whose words are in the statement."""

    folder: Path
    answers: Mapping[str, Answer]
    statements: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"postgres://tester@/base?host={self.folder}&port={PORT}"

    @property
    def connection(self) -> Connection:
        return Connection(str(self.folder), PORT, "tester", "base")

    def reply(self, statement: str) -> bytes:
        self.statements.append(statement)
        found = next((answer for words, answer in self.answers.items() if words in statement), None)
        told = b"" if found is None else _columns(found) + b"".join(_row(row) for row in found.rows)
        return told + _message(b"C", b"DONE\0") + _READY


@contextlib.contextmanager
def fake_postgres(folder: Path, answers: Mapping[str, Answer]) -> Iterator[FakePostgres]:
    """Serve at a socket in the folder."""
    fake = FakePostgres(folder, {**answers, "pg_backend_pid": answers.get("pg_backend_pid", PID)})

    class Session(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError, struct.error):
                _serve(self, fake)

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True
        block_on_close = False

    with Server(f"{folder}/.s.PGSQL.{PORT}", Session) as server, serving(server):
        yield fake


def _serve(session: socketserver.StreamRequestHandler, fake: FakePostgres) -> None:
    length, code = struct.unpack("!II", session.rfile.read(8))
    session.rfile.read(length - 8)
    if code != _VERSION_3:
        return  # a request to cancel
    session.wfile.write(_welcome())
    while True:
        kind, length = struct.unpack("!cI", session.rfile.read(5))
        body = session.rfile.read(length - 4)
        if kind == b"Q":
            session.wfile.write(fake.reply(body[:-1].decode()))
        elif kind == b"P":
            session.wfile.write(_message(b"E", b"SERROR\0C0A000\0Mno statements with parameters here\0\0"))
        elif kind == b"S":
            session.wfile.write(_READY)
        elif kind == b"X":
            return


def _welcome() -> bytes:
    parameters = {"server_version": "17.0", "client_encoding": "UTF8", "standard_conforming_strings": "on"}
    told = (_message(b"S", f"{name}\0{value}\0".encode()) for name, value in parameters.items())
    key = _message(b"K", struct.pack("!II", PROCESS, 1))
    return _message(b"R", struct.pack("!I", 0)) + b"".join(told) + key + _READY


def _columns(answer: Answer) -> bytes:
    described = (
        name.encode() + b"\0" + struct.pack("!IhIhih", 0, 0, answer.type, -1, -1, 0)
        for name in answer.columns
    )
    return _message(b"T", struct.pack("!H", len(answer.columns)) + b"".join(described))


def _row(values: Sequence[str | None]) -> bytes:
    return _message(b"D", struct.pack("!H", len(values)) + b"".join(map(_value, values)))


def _value(value: str | None) -> bytes:
    if value is None:
        return struct.pack("!i", -1)
    return struct.pack("!i", len(value.encode())) + value.encode()


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body

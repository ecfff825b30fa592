"""A stand-in for a Vertica server: its protocol as its Python driver speaks it, over rows that DuckDB keeps.

It proves what is sent, how rows are written for COPY, and how answers are read. That Vertica itself
understands the SQL it cannot prove: a few macros and replacements make DuckDB understand it.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any

import duckdb

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CANCEL = 80877102
_NOTHING: tuple[list[str], list[Sequence[Any]]] = ([], [])
_BOOL, _INT, _FLOAT, _VARCHAR = 5, 6, 7, 9
_MACROS = """
create macro hex_to_integer(x) as ('0x' || x)::bigint;
create macro octet_length(x) as strlen(x);
create macro timestampdiff(part, a, b) as epoch_us(b) - epoch_us(a);
"""
_SPEECH = (
    (r"\bint\b", "bigint"),
    (r"\bfloat\b", "double"),
    (r"long varchar\(\d+\)", "varchar"),
    (r"current_schema\(\)", "'loadstone'"),
)


class FakeVertica:
    """What the server answers."""

    def __init__(self, version: str = "Vertica Analytic Database v12.0.4-0") -> None:
        self.version = version
        self.database = duckdb.connect()
        self.database.execute(_MACROS)
        self.comment: str | None = None
        self.statements: list[str] = []
        self.labels: list[str] = []
        self.interrupted = threading.Event()
        self.lock = threading.RLock()

    def answer(self, sql: str) -> tuple[list[str], list[Sequence[Any]]]:
        """Return names of columns and rows; raises RefusedError."""
        self.statements.append(sql)
        lowered = " ".join(sql.lower().split())
        if "hang" in lowered:
            self.interrupted.wait(60)
            raise RefusedError("57014", "Execution canceled by operator")
        if lowered.startswith("comment on schema"):
            self.comment = sql.rpartition(" is ")[2].strip("'")
            return [], []
        with self.lock:
            for words, names, rows in self._known(sql):
                if words in lowered:
                    return names, rows
            return self._ask(sql)

    def _known(self, sql: str) -> list[tuple[str, list[str], list[Sequence[Any]]]]:
        """Return what is answered to statements in which these words stand."""
        tables: list[Sequence[Any]] = [
            row for row in self.database.execute("show tables").fetchall() if repr(row[0]) in sql
        ]
        plan = [
            "Access Path:",
            "+-GROUPBY NOTHING",
            "------",
            "PLAN: BASE QUERY PLAN (GraphViz Format)",
            "digraph",
        ]
        return [
            ("select version()", ["version"], [(self.version,)]),
            ("explain ", ["QUERY PLAN"], [(line,) for line in plan]),
            ("current_fault_tolerance", ["k"], [(0,)]),
            ("clear_caches()", ["clear_caches"], [("Cleared",)]),
            ("set search_path", [], []),
            ("maxclientsessions') as most", ["most", "used"], [(50, 40)]),
            ("default_value from v_monitor.", ["name", "value", "default_value"], [("Compress", "1", "0")]),
            ("memory_inuse_kb", ["connections", "memory_bytes"], [(3, 4096)]),
            ("select do_tm_task(", ["do_tm_task"], [("Task: mergeout",)]),
            ("select analyze_statistics(", ["analyze_statistics"], [(0,)]),
            ("sum(used_bytes), 0) as bytes", ["bytes"], [(12345,)]),
            ("v_catalog.comments", ["schemas", "objects", "comment"], [self._schema()]),
            ("max(row_count)", ["name", "bytes", "row_count"], [("t", 12345, 7)]),
            ("v_catalog.schemata", ["one"], [(1,)] if self._schema()[0] else []),
            ("v_catalog.tables", ["table_name"], tables),
        ]

    def _schema(self) -> tuple[int, int, str | None]:
        found = self.database.execute(
            "select count(*) from duckdb_schemas() "
            "where schema_name = 'loadstone' and database_name = 'memory'"
        ).fetchone()
        tables = self.database.execute(
            "select count(*) from duckdb_tables() where schema_name = 'loadstone'"
        ).fetchone()
        assert found is not None
        assert tables is not None
        return found[0], tables[0], self.comment if found[0] else None

    def _ask(self, sql: str) -> tuple[list[str], list[Sequence[Any]]]:
        text = sql
        for pattern, word in _SPEECH:
            text = re.sub(pattern, word, text)
        try:
            done = self.database.execute(text)
            names = [column[0] for column in done.description or []]
            rows = [list(row) for row in done.fetchall()]
        except duckdb.Error as error:
            raise RefusedError("42601", str(error)) from error
        if text.lower().startswith(("create", "drop")):
            self._prefer_ours()
            return [], []
        return names, [[json.dumps(v) if isinstance(v, list) else v for v in row] for row in rows]

    def _prefer_ours(self) -> None:
        if self._schema()[0]:
            self.database.execute("set search_path = 'loadstone,main'")

    def copy(self, sql: str, data: bytes) -> None:
        """Read rows as COPY does: a backslash makes the character after it a plain one."""
        self.statements.append(sql)
        matched = re.fullmatch(
            r"copy (\S+) \((.*)\) from stdin delimiter E'\\t' null E'\\001' escape as E'\\\\' "
            r"enforcelength abort on error",
            sql,
        )
        assert matched is not None, sql
        rows = list(_fields(data.decode()))
        with self.lock:
            try:
                marks = ", ".join("?" * len(rows[0]))
                self.database.executemany(f"insert into {matched[1]} ({matched[2]}) values ({marks})", rows)
            except duckdb.Error as error:
                raise RefusedError("22V04", f"COPY: Input record 1 has been rejected ({error})") from error


class RefusedError(Exception):
    """An ErrorResponse."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


def _fields(text: str) -> Iterator[list[str | None]]:
    row: list[str | None] = []
    field, null, at = "", False, 0
    while at < len(text):
        character = text[at]
        if character == "\\":
            at += 1
            field += text[at]
        elif character == "\x01":
            null = True
        elif character in "\t\n":
            row.append(None if null and not field else field)
            field, null = "", False
            if character == "\n":
                yield row
                row = []
        else:
            field += character
        at += 1
    assert not row, "the last line has no end"


class _Session:
    def __init__(self, server: FakeVertica, client: socket.socket) -> None:
        self.server, self.client = server, client

    def serve(self) -> None:
        body = self._exactly(self._number() - 4)
        if struct.unpack("!I", body[:4])[0] == _CANCEL:
            self.server.interrupted.set()
            return
        pairs = body[4:].split(b"\0")
        known = dict(zip(pairs[::2], pairs[1::2], strict=False))
        self.server.labels.append(known[b"client_label"].decode())
        self._send(b"R", struct.pack("!I", 0))
        self._send(b"K", struct.pack("!II", 1, 2))
        self._ready()
        while (kind := self.client.recv(1)) not in (b"", b"X"):
            body = self._exactly(self._number() - 4)
            if kind == b"Q":
                self._query(body.rstrip(b"\0").decode())

    def _query(self, sql: str) -> None:
        try:
            if sql.startswith("copy "):
                self._send(b"G", struct.pack("!BH", 0, 0))
                self.server.copy(sql, self._copied())
                names, rows = _NOTHING
            else:
                names, rows = self.server.answer(sql)
        except RefusedError as error:
            fields = {b"S": b"ERROR", b"C": error.sqlstate.encode(), b"M": str(error).encode()}
            self._send(b"E", b"".join(key + value + b"\0" for key, value in fields.items()) + b"\0")
        else:
            self._rows(names, rows)
        self._ready()

    def _copied(self) -> bytes:
        data = b""
        while (kind := self._exactly(1)) == b"d":
            data += self._exactly(self._number() - 4)
        assert kind == b"c"
        self._exactly(self._number() - 4)
        return data

    def _rows(self, names: list[str], rows: list[Sequence[Any]]) -> None:
        if names:
            described = struct.pack("!HI", len(names), 0)
            for place, name in enumerate(names):
                kind = _oid([row[place] for row in rows])
                described += name.encode() + b"\0" + struct.pack("!QH", 0, place + 1)
                described += struct.pack("!BIhHHiH", 0, kind, -1, 1, 0, -1, 0)
            self._send(b"T", described)
            for row in rows:
                self._send(b"D", struct.pack("!H", len(row)) + b"".join(map(_value, row)))
        self._send(b"C", b"DONE\0")

    def _ready(self) -> None:
        self._send(b"Z", b"I")

    def _send(self, kind: bytes, body: bytes) -> None:
        self.client.sendall(kind + struct.pack("!I", len(body) + 4) + body)

    def _number(self) -> int:
        found: int = struct.unpack("!I", self._exactly(4))[0]
        return found

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.client.recv(count - len(data))
            if not more:
                raise ConnectionResetError
            data += more
        return data


def _oid(values: Sequence[Any]) -> int:
    known = next((value for value in values if value is not None), None)
    if isinstance(known, bool):
        return _BOOL
    return _INT if isinstance(known, int) else _FLOAT if isinstance(known, float) else _VARCHAR


def _value(value: Any) -> bytes:
    if value is None:
        return struct.pack("!i", -1)
    text = {True: "t", False: "f"}[value] if isinstance(value, bool) else str(value)
    return struct.pack("!i", len(text.encode())) + text.encode()


@contextlib.contextmanager
def listening(server: FakeVertica) -> Iterator[int]:
    """Serve on a free port of 127.0.0.1, and say which."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def serve(client: socket.socket) -> None:
            with client, contextlib.suppress(OSError):
                _Session(server, client).serve()

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = door.accept()
                    threading.Thread(target=serve, args=(client,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield door.getsockname()[1]
        finally:
            server.interrupted.set()
            with contextlib.suppress(OSError):
                door.shutdown(socket.SHUT_RDWR)
            thread.join(5)

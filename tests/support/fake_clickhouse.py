"""As much of ClickHouse's HTTP interface as its driver needs, in front of chDB.

`python -m support.fake_clickhouse FOLDER`, in the folder of the tests.
The engine is the real one and the driver is the real one; what stands between them is made here, because no
registry has a server of ClickHouse's. Runs as a process of its own, for chDB takes over signals; tells its
port on standard output, and ends with its standard input.
"""

from __future__ import annotations

import re
import sys
import tempfile
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import chdb

from support.serving import serving

INSERT = re.compile(r"\s*insert\s+into\s+(.*?)\s+format\s+(\w+)\s*", re.IGNORECASE | re.DOTALL)
FORMAT = re.compile(r"\s+format\s+(\w+)\s*\Z", re.IGNORECASE)
NOT_SETTINGS = {"query", "database", "session_id", "query_id", "compress", "wait_end_of_query", "role"}


class Front(BaseHTTPRequestHandler):
    """Statements, settings, a database, a body of rows."""

    protocol_version = "HTTP/1.1"
    folder = ""

    def do_POST(self) -> None:
        asked = {name: values[-1] for name, values in parse_qs(urlsplit(self.path).query).items()}
        body = self.body()
        sql = asked.pop("query", None)
        rows = body if sql is not None else b""
        text = sql if sql is not None else body.decode()
        if self.headers.get("Authorization") is None:
            self.answer(401, b"Code: 516. DB::Exception: no password")
            return
        try:
            self.answer(200, self.run_statement(text, rows, asked))
        except Exception as error:  # noqa: BLE001 - as the server does
            self.answer(500, str(error).encode())

    do_GET = do_POST  # noqa: N815 - the name that http.server looks for

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def run_statement(self, text: str, rows: bytes, asked: dict[str, str]) -> bytes:
        with closing(chdb.connect(self.folder)) as connection:
            for name, value in asked.items():
                if name not in NOT_SETTINGS:
                    connection.query(f"set {name} = '{value}'")
            if "database" in asked:
                connection.query(f'use "{asked["database"]}"')
            found = INSERT.fullmatch(text)
            if found is None:
                shown = FORMAT.search(text)
                kind = shown.group(1) if shown else "TabSeparated"
                return bytes(connection.query(text[: shown.start()] if shown else text, kind).bytes() or b"")
            with tempfile.NamedTemporaryFile(suffix=".arrow") as file:
                file.write(rows)
                file.flush()
                connection.query(
                    f"insert into {found.group(1)} select * from file('{file.name}', {found.group(2)})"
                )
            return b""

    def answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


def main(folder: str) -> None:
    Front.folder = folder
    keep = chdb.connect(folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), Front) as server, serving(server):
        print(server.server_port, flush=True)
        sys.stdin.read()
    keep.close()


if __name__ == "__main__":
    main(sys.argv[1])

"""`--live`: one page on this machine's own address, which shows the run while it goes on.

The browser gets the page once, and then events of a second each on one connection (server-sent events), the
last of which says that the run has ended.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from loadstone import __version__
from loadstone.errors import LoadstoneError
from loadstone.live.figures import as_document
from loadstone.report.charts import config
from loadstone.report.charts.drawings import bundle
from loadstone.report.page import FOLDER as REPORT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.live.figures import LiveFigures

FOLDER = Path(__file__).parent
LOOPBACK = "127.0.0.1"
STREAMS_MAX = 16
"""Browsers that are served at once."""
_PULSE_S = 10.0
"""After so long without news a comment is sent: a browser that is gone is noticed."""
_LAST_S = 3.0
"""How long browsers have at the end to take the last word; on a busy machine they come to it late."""
_SECURITY = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}


@contextlib.contextmanager
def serving(port: int, figures: LiveFigures) -> Iterator[str]:
    """Serve the page inside the context; yields its URL. Raises LoadstoneError where the port is taken."""
    text = page().encode()
    try:
        server = _Server((LOOPBACK, port), figures, text)
    except OSError as error:
        raise LoadstoneError(
            f"--live-port {port}: {error.strerror}", "Choose another port, or none for any that is free."
        ) from error
    thread = threading.Thread(target=server.serve_forever, args=(0.2,), name="loadstone-live", daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}/"
    finally:
        server.leave()
        server.shutdown()
        server.server_close()
        thread.join()


def page() -> str:
    """Return the page: self-contained, in the style of the report. Raises LoadstoneError without charts."""
    templates = Environment(
        loader=FileSystemLoader(FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return templates.get_template("page.html.j2").render(
        version=__version__,
        # These are files of ours or a library's; nothing in them comes from a run.
        style=Markup((REPORT / "style.css").read_text(encoding="utf-8")),  # noqa: S704 - see above
        library=Markup(bundle()),  # noqa: S704 - see above
        script=Markup((FOLDER / "page.js").read_text(encoding="utf-8")),  # noqa: S704 - see above
        chart_config=config(),
        chart=json.loads((FOLDER / "chart.json").read_text(encoding="utf-8")),
    )


class _Server(ThreadingHTTPServer):
    """Knows the figures, and how many browsers follow them."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], figures: LiveFigures, text: bytes) -> None:
        self.figures = figures
        self.text = text
        self.streams = 0
        self.leaving = False
        super().__init__(address, _Handler)

    def leave(self) -> None:
        """Give every browser the last word; those that do not take it at once are left."""
        until_s = time.monotonic() + _LAST_S
        with self.figures.changed:
            self.leaving = True
            self.figures.changed.notify_all()
            while self.streams and (left_s := until_s - time.monotonic()) > 0:
                self.figures.changed.wait(left_s)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of browsers that have gone away."""


class _Handler(BaseHTTPRequestHandler):
    """One request of a browser."""

    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        """Answer with the page or its events."""
        # A page of another site may find this port by a name of its own: it must not read the figures.
        own = {f"{name}:{self.server.server_port}" for name in (LOOPBACK, "localhost")}
        if self.headers.get("Host") not in own:
            self.send_error(403)
        elif self.path == "/":
            self._answer("text/html; charset=utf-8", self.server.text)
        elif self.path == "/events":
            self._follow()
        else:
            self.send_error(404)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class calls it so
        """Say nothing: the terminal is the run's."""

    def _answer(self, kind: str, content: bytes) -> None:
        self.send_response(200)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **_SECURITY}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _follow(self) -> None:
        server, figures = self.server, self.server.figures
        with figures.changed:
            if server.streams >= STREAMS_MAX:
                self.send_error(503)
                return
            server.streams += 1
        try:
            self.close_connection = True
            self.send_response(200)
            for name, value in {"Content-Type": "text/event-stream", **_SECURITY}.items():
                self.send_header(name, value)
            self.end_headers()
            self._send_events()
        finally:
            with figures.changed:
                server.streams -= 1
                figures.changed.notify_all()

    def _send_events(self) -> None:
        seen, version, ended = 0, -1, False
        while not ended:
            text, seen, version, ended = self._next(seen, version)
            self.wfile.write(text)
            self.wfile.flush()

    def _next(self, seen: int, version: int) -> tuple[bytes, int, int, bool]:
        """Return the next event, and the numbers of what the browser knows then."""
        figures, server = self.server.figures, self.server
        with figures.changed:
            figures.changed.wait_for(lambda: figures.version != version or server.leaving, _PULSE_S)
            now, ended = figures.now(), server.leaving
            if figures.version == version and not ended:
                return b": still here\n\n", seen, version, False
            fresh = [as_document(one) for one in figures.intervals if one.number > seen]
            version = figures.version
            total = figures.phase.document()
        document = {"now": asdict(now), "fresh": fresh, "first": seen == 0, "total": total}
        seen = fresh[-1]["number"] if fresh else seen
        kind = "ended" if ended else "figures"
        return f"event: {kind}\ndata: {json.dumps(document)}\n\n".encode(), seen, version, ended

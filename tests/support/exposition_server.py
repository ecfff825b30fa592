"""A server of metrics for tests: it answers what it is told, over HTTP or HTTPS."""

from __future__ import annotations

import contextlib
import ssl
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from support.serving import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NODE = """# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{{cpu="0",mode="idle"}} {idle}
node_cpu_seconds_total{{cpu="0",mode="user"}} {user}
node_cpu_seconds_total{{cpu="0",mode="iowait"}} 1
# TYPE node_disk_read_bytes_total counter
node_disk_read_bytes_total{{device="sda"}} 4096
node_disk_read_bytes_total{{device="dm-0"}} 4096
node_memory_MemTotal_bytes 1000
node_memory_MemAvailable_bytes 400
node_network_receive_bytes_total{{device="eth0"}} 7
node_network_receive_bytes_total{{device="lo"}} 70
node_network_receive_bytes_total{{device="veth12"}} 700
node_boot_time_seconds {boot}
node_time_seconds {time}
node_exporter_build_info{{version="1.5.0"}} 1
node_uname_info{{nodename="db1",release="6.1"}} 1
"""


def node_text(idle: float = 100, user: float = 50, boot: float = 1e9, time: float = 2e9) -> str:
    """Return what a node_exporter serves, as far as it matters."""
    return NODE.format(idle=idle, user=user, boot=boot, time=time)


@dataclass
class Reply:
    """What is answered."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class ExpositionServer:
    """A running server; `replies` may be exchanged at any time."""

    url: str
    replies: Callable[[], Reply]
    asked: list[dict[str, str]] = field(default_factory=list)
    """The headers of every request."""
    changed: threading.Condition = field(default_factory=threading.Condition)

    def wait_for_requests(self, count: int) -> None:
        """Wait until it was asked so often."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.asked) >= count, 60)


@contextlib.contextmanager
def exposition(reply: Reply | str, certificate: Path | None = None) -> Iterator[ExpositionServer]:
    """Serve on a free port of loopback; `certificate` holds a key and a chain (PEM)."""
    first = Reply(body=reply.encode()) if isinstance(reply, str) else reply

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found = served.replies()
            with served.changed:
                served.asked.append({"path": self.path, **dict(self.headers.items())})
                served.changed.notify_all()
            self.send_response(found.status)
            for name, value in {"Content-Length": str(len(found.body)), **found.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(found.body)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass  # a client that does not trust the certificate

    with Server(("127.0.0.1", 0), Handler) as server:
        scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
            scheme = "https"
        served = ExpositionServer(f"{scheme}://127.0.0.1:{server.server_address[1]}/metrics", lambda: first)
        with serving(server):
            yield served

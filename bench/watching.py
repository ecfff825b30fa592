"""What it costs to watch: CPU of this process for each second of a run, of all that asks and serves.

Exporters answer with a recorded kind of text (no server of metrics is needed); over ssh, a shell on this
machine stands in for the other one, and the cost of both ends is shown. CPU time is counted, not wall time,
so a busy machine changes little.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import psutil

from loadstone.live import openmetrics, page
from loadstone.live.figures import LiveFigures
from loadstone.target import parse_targets
from loadstone.watch.exporter import Exporter
from loadstone.watch.spec import specs_of
from loadstone.watch.ssh import OverSsh

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.watch.spec import Spec

SAMPLES = 100
POLLS = 10
"""Times a second that a listener is called."""
NODES_LINES = 1500
SERVE = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", str(len(TEXT))); self.end_headers()
        self.wfile.write(TEXT)
    def log_message(self, *_): pass
TEXT = sys.stdin.buffer.read()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def run() -> None:
    """Print the table."""
    print("| what | CPU of a core, here | there |\n|---|---:|---:|")
    for name, measure in {
        "--watch http://… (node_exporter)": _exporter,
        "--watch ssh://…": _ssh,
        "--live, one browser": _live,
        "--openmetrics, asked once a second": _openmetrics,
    }.items():
        here_s, there_s = measure()
        there = "" if there_s is None else f"{there_s:.3%}"
        print(f"| {name} | {here_s:.3%} | {there} |")


def _spec(url: str) -> Spec:
    return specs_of([url], ["pg18"], parse_targets(["pg18"]), {})[0]


def _text() -> bytes:
    cores = os.cpu_count() or 1
    modes = ("idle", "iowait", "irq", "nice", "softirq", "steal", "system", "user")
    lines = [f'node_cpu_seconds_total{{cpu="{n}",mode="{mode}"}} 1.5' for n in range(cores) for mode in modes]
    lines += [f'node_other_total{{device="d{n}"}} {n}' for n in range(NODES_LINES)]
    return ("\n".join(lines) + "\n").encode()


def _each(work: Callable[[], object]) -> float:
    work()
    begin_s = time.process_time()
    for _ in range(SAMPLES):
        work()
    return (time.process_time() - begin_s) / SAMPLES


def _exporter() -> tuple[float, float | None]:
    command = [sys.executable, "-c", SERVE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(_text())
        server.stdin.close()
        source = Exporter(_spec(f"http://127.0.0.1:{int(server.stdout.readline())}"), None, None)
        source.check()
        spent_s = _each(source.ask)
        source.close()
        server.terminate()
    return spent_s, None


def _ssh() -> tuple[float, float | None]:
    with tempfile.TemporaryDirectory(prefix="loadstone-bench-") as folder:
        path = Path(folder) / "ssh"
        path.write_text('#!/bin/sh\nfor last; do :; done\neval "$last"\n')
        path.chmod(0o755)
        source = OverSsh(_spec("ssh://127.0.0.1"), ["postgres"], {"LOADSTONE_SSH": str(path)})
        source.check()
        other = psutil.Process().children()[0]
        before = other.cpu_times()
        spent_s = _each(source.ask)
        after = other.cpu_times()
        source.close()
    theirs_s = after.user + after.system - before.user - before.system
    return spent_s, theirs_s / SAMPLES


class _Phase:
    scenario, id, title = "bench", "insert", "Insert"
    variant: dict[str, str] = {}  # noqa: RUF012 - stands for a plan's phase


def _second(figures: LiveFigures, at: int) -> None:
    response = {"count": 9, "mean_ns": 2e6, "p50_ns": 1e6, "p95_ns": 3e6, "p99_ns": 4e6, "max_ns": 5e6}
    latest: dict[str, Any] = {"start_ns": at * 10**9, "end_ns": (at + 1) * 10**9, "done": 9, "failed": 0}
    latest |= {"warmup": False, "connected": 4, "response": response}
    phase: Any = _Phase()
    for _ in range(POLLS):
        figures.progressed("pg18", phase, {"latest": latest})


def _begun() -> LiveFigures:
    figures, phase = LiveFigures(), _Phase()
    figures.began("pg18", phase)  # type: ignore[arg-type] # stands for a plan's phase
    return figures


def _live() -> tuple[float, float | None]:
    figures = _begun()
    with page.serving(0, figures) as url:
        # The reader is another process: its CPU is the browser's.
        loop = f"for line in urlopen('{url}events'): print('got', flush=True)"
        reader = f"from urllib.request import urlopen\n{loop}"
        with subprocess.Popen([sys.executable, "-c", reader], stdout=subprocess.PIPE) as browser:
            assert browser.stdout is not None
            browser.stdout.readline()
            begin_s = time.process_time()
            for at in range(1, SAMPLES + 1):
                _second(figures, at)
                browser.stdout.readline()
            spent_s = (time.process_time() - begin_s) / SAMPLES
            browser.kill()
    return spent_s, None


def _openmetrics() -> tuple[float, float | None]:
    figures = _begun()
    numbers = iter(range(1, 10**6))

    def ask() -> None:
        _second(figures, next(numbers))
        thread = threading.Thread(target=lambda: urlopen(url, timeout=10).read())
        thread.start()
        thread.join()

    with openmetrics.serving("0", figures) as url:
        return _each(ask), None

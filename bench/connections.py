"""What ten thousand connections cost: memory of our process, against the built-in server in another one."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from loadstone import model
from loadstone.workload.drive import drive_document, perform

CLIENTS = 10_000
LIMIT_BYTES = 200 * 1024 * 1024
_SERVER = """
import sys
from loadstone import _core
server = _core.NullServer(sys.argv[1])
print(server.port, flush=True)
sys.stdin.read()
server.stop()
"""


def run() -> None:
    """Print the figure; the server must be in another process, or its memory would count as ours."""
    print(f"### {CLIENTS:,} connections\n")
    _raise_open_files()
    with tempfile.TemporaryDirectory(prefix="loadstone-bench-") as folder:
        spec = json.dumps({"directory": folder, "clients_max": CLIENTS + 10})
        command = [sys.executable, "-c", _SERVER, spec]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            connection = model.Connection(
                host=folder, port=port, user="null", database="null", connect_timeout_s=60
            )
            _measure(connection)
            server.communicate()


def _measure(connection: model.Connection) -> None:
    script = model.Script("sleepy", "\\set x random(1, 1000000)\nselect :x;\n\\sleep 100 ms\n")
    drive = model.Drive(scripts=(script,), clients=CLIENTS, threads=1, duration_s=5.0)
    peak = 0
    before = _rss_bytes()

    def look(_: object) -> None:
        nonlocal peak
        peak = max(peak, _rss_bytes())

    account = perform(drive_document(drive, connection, None), None, look)
    grown = peak - before
    wall_s = account["connect"]["wall_ns"] / 1e9
    print(
        f"connected in {wall_s:.2f} s, {account['counts']['done']:,} transactions, "
        f"{account['counts']['failed']} failed"
    )
    print(
        f"memory: {peak / 2**20:.0f} MiB in all ({before / 2**20:.0f} before), "
        f"{grown / CLIENTS / 1024:.1f} KiB a connection; aim: under {LIMIT_BYTES / 2**20:.0f} MiB\n"
    )


def _rss_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _raise_open_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * CLIENTS + 1000), hard))

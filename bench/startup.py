"""What it costs to start: CPU of short commands and of a bare interpreter, in turns, with warm byte code."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.private_server import EmbeddedServer, ServerSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.model import Connection

OURS = str(Path(sys.executable).with_name("loadstone"))
DATA = (
    "tsbs generate-data --use-case=cpu-only --scale=1 --format=timescaledb --log-interval=10s "
    "--timestamp-start=2016-01-01T00:00:00Z --timestamp-end=2016-01-01T00:01:00Z --overwrite"
)
BARE = "python -c pass"


def run(target: str, rounds: int) -> None:
    """Print the table."""
    with (
        EmbeddedServer(ServerSpec(name=target, clients=20)) as server,
        tempfile.TemporaryDirectory(prefix="loadstone-bench-") as folder,
    ):
        commands = _commands(server.connection, Path(folder))
        measured: dict[str, list[float]] = {name: [] for name in commands}
        for number in range(rounds + 1):
            for name, command in commands.items():
                cpu_s = _cpu_s(command)
                if number:  # the first round makes the byte code
                    measured[name].append(cpu_s)
    bare_s = statistics.median(measured[BARE])
    print(f"### Starting, {rounds} rounds in turns\n")
    print("| command | CPU ms | range | beyond a bare interpreter |")
    print("|---|---:|---|---:|")
    for name, figures in measured.items():
        middle_s = statistics.median(figures)
        spread = f"{min(figures) * 1e3:.0f}–{max(figures) * 1e3:.0f}"
        print(f"| {name} | {middle_s * 1e3:.0f} | {spread} | {(middle_s - bare_s) * 1e3:.0f} |")
    print()


def _commands(where: Connection, folder: Path) -> dict[str, list[str]]:
    script = folder / "one.sql"
    script.write_text("select 1;\n")
    there = f"host={where.host} port={where.port} user={where.user} dbname={where.database}"
    sysbench = ("--db-driver=pgsql", f"--pgsql-host={where.host}", f"--pgsql-port={where.port}")
    more = (f"--pgsql-user={where.user}", f"--pgsql-db={where.database}", "--events=1", "--time=0")
    one = folder / "one.lua"
    one.write_text("function event() sysbench.sql.driver():connect():query('select 1') end\n")
    commands = {
        BARE: [sys.executable, "-c", "pass"],
        "import loadstone._core": [sys.executable, "-c", "import loadstone._core"],
        "loadstone tsbs generate-data": [OURS, *DATA.split(), f"--file={folder / 'data'}"],
        "loadstone pgbench -t 1": [OURS, "pgbench", "-n", "-t", "1", "-f", str(script), there],
        "loadstone sysbench --events=1": [OURS, "sysbench", *sysbench, *more, str(one), "run"],
        "loadstone pgbench -i -I d": [OURS, "pgbench", "-i", "-I", "d", there],
    }
    for name in ("--version", "--help", "scenarios", "pgbench --version", "sysbench --version"):
        commands[f"loadstone {name}"] = [OURS, *name.split()]
    return commands


def _cpu_s(command: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed: {done.stderr}")
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)

"""What Loadstone, pgbench and sysbench measure of a case."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from loadstone import model
from loadstone.errors import RunFailedError
from loadstone.summary.histograms import Histogram, read_log
from loadstone.temporary import temporary_folder
from loadstone.workload.calibrate import null_server
from loadstone.workload.drive import drive_document, perform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from loadstone.signals import Signals
    from loadstone.truth.cases import Case

_SCRIPT = "select 1;\n"
_LUA = """
function thread_init()
    con = sysbench.sql.driver():connect()
end
function event()
    con:query("select 1")
end
"""
_BUCKET = re.compile(r"^\s*([0-9.]+) \|[* ]*\s([0-9]+)$", re.MULTILINE)
_GRACE_S = 60.0

Measured = dict[tuple[str, float], float]
"""By `response`, `service` or `lag` and percentile: milliseconds."""


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that measures a case, on a server that is there for it alone."""

    name: str
    measure: Callable[[Case, model.Connection, Signals | None], Measured]


def tools(*, peers: bool) -> list[Tool]:
    """Return ourselves, and with `peers` those of pgbench and sysbench that are installed."""
    others = [Tool("pgbench", _pgbench), Tool("sysbench", _sysbench)] if peers else []
    return [Tool("loadstone", _ours), *(tool for tool in others if shutil.which(tool.name))]


def measure(case: Case, tool: Tool, signals: Signals | None = None) -> Measured:
    """Run a case; raises RunFailedError where the tool fails and InterruptedRun when a signal came."""
    with null_server(case.clients + 8, service=dict(case.service)) as (_, connection):
        return tool.measure(case, connection, signals)


def _ours(case: Case, connection: model.Connection, signals: Signals | None) -> Measured:
    pace = model.Pace("fixed", case.rate_per_s) if case.rate_per_s else model.Pace()
    drive = model.Drive(
        scripts=(model.Script("truth", _SCRIPT),), mode="simple",
        clients=case.clients, duration_s=case.seconds, pace=pace,
    )  # fmt: skip
    with temporary_folder("loadstone-truth-") as folder:
        document = drive_document(drive, connection, folder) | {"messages": {"counts": True}}
        account = perform(document, signals)
        found = _percentiles_of(_histograms(folder / "latency.hlog"), case.percentiles)
    if signals is not None:
        signals.check()
    lags = account["details"]["lag_ns"] if case.rate_per_s else {}
    return found | {
        ("lag", float(p)): value / 1e6 for p, value in lags.items() if float(p) in case.percentiles
    }


def _histograms(path: Path) -> dict[str, Histogram]:
    found: dict[str, Histogram] = {}
    for line in read_log(path):
        found.setdefault(line.tag, Histogram()).add(line.first, line.counts)
    return found


def _percentiles_of(found: Mapping[str, Histogram], percentiles: Iterable[float]) -> Measured:
    wanted = [(kind, p) for kind in ("response", "service") if kind in found for p in percentiles]
    return {
        (kind, p): (found[kind].percentile_ns(p) or 0) / 1e6 for kind, p in wanted if found[kind].supports(p)
    }


def _pgbench(case: Case, connection: model.Connection, signals: Signals | None) -> Measured:
    """Return percentiles of pgbench's own log of transactions: microseconds, with the lag under a rate."""
    with temporary_folder("loadstone-truth-") as folder:
        script = folder / "truth.sql"
        script.write_text(_SCRIPT)
        rate = ["--rate", f"{case.rate_per_s:g}"] if case.rate_per_s else []
        _run(
            ["pgbench", "-n", "-f", script.name, "-c", f"{case.clients}", "-T", f"{case.seconds:g}",
             "-l", "-h", connection.host, "-p", f"{connection.port}", "-U", connection.user, *rate,
             connection.database],
            folder, case, signals,
        )  # fmt: skip
        logs = [np.loadtxt(log, ndmin=2) for log in folder.glob("pgbench_log.*")]
    lines = np.concatenate(logs)
    response = lines[:, 2] / 1e3
    found = _of_samples("response", response, case)
    if case.rate_per_s:
        lag = lines[:, 6] / 1e3
        found |= _of_samples("service", response - lag, case) | _of_samples("lag", lag, case)
    return found


def _of_samples(kind: str, values: np.ndarray[tuple[int], np.dtype[np.float64]], case: Case) -> Measured:
    return {(kind, p): float(np.percentile(values, p, method="inverted_cdf")) for p in case.percentiles}


def _sysbench(case: Case, connection: model.Connection, signals: Signals | None) -> Measured:
    """Return percentiles of sysbench's histogram, whose buckets are 1.8 % wide; its times include the lag."""
    with temporary_folder("loadstone-truth-") as folder:
        (folder / "truth.lua").write_text(_LUA)
        rate = [f"--rate={case.rate_per_s:g}"] if case.rate_per_s else []
        text = _run(
            ["sysbench", "./truth.lua", f"--threads={case.clients}", f"--time={case.seconds:g}",
             "--histogram", "--db-driver=pgsql", f"--pgsql-host={connection.host}",
             f"--pgsql-port={connection.port}", f"--pgsql-user={connection.user}",
             f"--pgsql-db={connection.database}", *rate, "run"],
            folder, case, signals,
        )  # fmt: skip
    buckets = [(float(value), int(count)) for value, count in _BUCKET.findall(text)]
    if not buckets:
        raise RunFailedError("sysbench printed no histogram", text[-500:])
    ends, counts = (np.array(column) for column in zip(*buckets, strict=True))
    reached = np.cumsum(counts)
    return {
        ("response", p): float(ends[np.searchsorted(reached, np.ceil(reached[-1] * p / 100))])
        for p in case.percentiles
    }


def _run(command: Sequence[str], folder: Path, case: Case, signals: Signals | None) -> str:
    ran = subprocess.run(
        command, cwd=folder, env=os.environ | {"PGOPTIONS": ""}, capture_output=True, text=True,
        timeout=case.seconds + _GRACE_S, check=False,
    )  # fmt: skip
    if signals is not None:
        signals.check()
    if ran.returncode:
        raise RunFailedError(
            f"{command[0]} failed on the load '{case.name}'", (ran.stderr or ran.stdout)[-500:]
        )
    return ran.stdout

"""Our own ceiling on this machine: the driver against a server that answers at once."""

from __future__ import annotations

import json
import math
import os
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from loadstone import _core, model
from loadstone.temporary import temporary_folder
from loadstone.workload.drive import drive_document, perform

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadstone.signals import Signals

MODES: tuple[model.QueryMode, ...] = ("simple", "extended", "prepared")
CLIENTS = (1, 8, 32, 128, 512)
SECONDS = 1.0
_WARMUP_S = 0.2
_SCRIPT = model.Script(
    "ceiling", "\\set aid random(1, 1000000)\nselect abalance from pgbench_accounts where aid = :aid;\n"
)


_LONGEST_PARENT = 107 - len("/loadstone-null-12345678/.s.PGSQL.65535")
"""The path of a unix socket has at most 107 bytes (unix(7))."""


def _place_of_sockets() -> str:
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual)) <= _LONGEST_PARENT else "/tmp"  # noqa: S108 - a folder of our own in it


@contextmanager
def null_server(clients_max: int, **behaviour: object) -> Iterator[tuple[_core.NullServer, model.Connection]]:
    """Run the built-in server on a unix socket of its own, in a folder that is removed afterwards."""
    with temporary_folder("loadstone-null-", _place_of_sockets()) as path:
        folder = str(path)
        spec = {"directory": folder, "clients_max": clients_max, **behaviour}
        server = _core.NullServer(json.dumps(spec))
        try:
            yield server, model.Connection(host=folder, port=server.port, user="null", database="null")
        finally:
            server.stop()


USABLE = 0.8
"""Share of a ceiling above which the client may be the limit."""


def hosts_needed(rate_per_s: float, ceiling_tps: float) -> int:
    """Return how many load hosts with this ceiling drive a rate without being its limit.

    >>> hosts_needed(100_000, 50_000)
    3
    """
    return max(1, math.ceil(rate_per_s / (USABLE * ceiling_tps)))


def needed_document(rate_per_s: float, hosts: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Return how many hosts a rate needs, by protocol mode, as many as the slowest of those measured.

    `hosts`: `results` of calibration.json by name. Of each host the best number of clients counts.
    """
    modes: dict[str, Any] = {}
    for mode in dict.fromkeys(row["mode"] for rows in hosts.values() for row in rows):
        best = {
            name: max(row["tps"] or 0.0 for row in rows if row["mode"] == mode)
            for name, rows in hosts.items()
        }
        slowest = min(best.values())
        modes[mode] = {
            "ceilings_tps": best,
            "hosts": hosts_needed(rate_per_s, slowest) if slowest > 0 else None,
        }
    return {"rate_per_s": rate_per_s, "usable_share": USABLE, "modes": modes}


def calibrate_for(
    wanted: Sequence[tuple[model.QueryMode, int]],
    signals: Signals | None = None,
    seconds: float = SECONDS,
    io: model.InOut = "auto",
    threads: int | None = None,
) -> dict[str, Any]:
    """Measure each protocol mode and number of clients in `wanted`; returns calibration.json.

    `results` hold transactions per second, CPU time of ours and of the server per transaction in
    nanoseconds, and the event loop's lag. Both sides share this machine, so the ceiling is a cautious one.
    Raises InterruptedRun when a signal came.
    """
    return {
        "format": 1,
        "clock_ns": round(_core.clock_cost_ns(), 1),
        "record_ns": round(_core.record_cost_ns(), 1),
        "results": [_measure(mode, clients, threads, seconds, signals, io) for mode, clients in wanted],
    }


def _measure(
    mode: model.QueryMode,
    clients: int,
    threads: int | None,
    seconds: float,
    signals: Signals | None,
    io: model.InOut,
) -> dict[str, Any]:
    drive = model.Drive(
        scripts=(_SCRIPT,),
        mode=mode,
        clients=clients,
        threads=threads,
        duration_s=seconds,
        warmup_s=_WARMUP_S,
    )
    with null_server(clients) as (server, connection):
        account = perform(drive_document(drive, connection, None, io), signals)
        served_ns = server.cpu_ns()
    if signals is not None:
        signals.check()
    done = account["counts"]["done"]
    elapsed_s = (account["end_ns"] - account["measure_ns"]) / 1e9
    cpu = account["client_cpu"]
    all_done = done + account["warmup_counts"]["done"]
    return {
        "mode": mode,
        "clients": clients,
        "threads": account["threads"],
        "io": account["io"],
        "transactions": done,
        "tps": round(done / elapsed_s, 1) if elapsed_s > 0 else None,
        "cpu_ns_per_transaction": round((cpu["user_ns"] + cpu["system_ns"]) / done, 1) if done else None,
        "server_cpu_ns_per_transaction": round(served_ns / all_done, 1) if all_done else None,
        "loop_lag_p99_ns": account["loop"]["lag_p99_ns"],
        "loop_lag_max_ns": account["loop"]["lag"]["max_ns"],
    }

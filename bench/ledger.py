"""What booking each commit costs the driver: the same statements with and without the ledger, in turns."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from loadstone.crash.ledger import INSERT
from loadstone.model import Drive, Script
from loadstone.workload.calibrate import null_server
from loadstone.workload.drive import drive_document, perform

CLIENTS = 8
_SEED_VARIABLES = {"loadstone_client": 3, "loadstone_seq": 12345, "loadstone_crc": 3735928559}
_BEGIN, _WORK, _COMMIT = "begin;\n", "update t set a = a + 1 where id = 3;\n", "commit;\n"


def run(rounds: int, seconds: float) -> None:
    """Print the table."""
    print("### The ledger of commits\n")
    print(f"{rounds} rounds of {seconds:g} s in turns, {CLIENTS} clients, prepared, built-in server\n")
    sides: dict[str, list[tuple[float, float]]] = {"without": [], "with": []}
    for _ in range(rounds):
        for name, found in sides.items():
            found.append(_measure(seconds, is_booked=name == "with"))
    print("| ledger | transactions/s | our CPU, ns/transaction |")
    print("|---|---:|---:|")
    for name, found in sides.items():
        tps, cpu = (statistics.median(one) for one in zip(*found, strict=True))
        print(f"| {name} | {tps:,.0f} | {cpu:,.0f} |")
    pairs = list(zip(sides["without"], sides["with"], strict=True))
    more = statistics.median(one[1] - none[1] for none, one in pairs)
    rate = statistics.median(one[0] / none[0] for none, one in pairs)
    print(f"\nCPU {more:+.0f} ns/transaction (aim: under 100), rate × {rate:.3f} (aim: over 0.97)\n")


def _measure(seconds: float, *, is_booked: bool) -> tuple[float, float]:
    """Return transactions per second and nanoseconds of our CPU for each."""
    text = _BEGIN + _WORK + ("" if is_booked else f"{INSERT};\n") + _COMMIT
    variables = {} if is_booked else _SEED_VARIABLES
    drive = Drive(
        (Script("s", text),), clients=CLIENTS, duration_s=seconds, warmup_s=0.2, variables=variables
    )
    with null_server(CLIENTS) as (_, connection), tempfile.TemporaryDirectory() as folder:
        document = drive_document(drive, connection, None)
        if is_booked:
            document["ledger"] = {"folder": str(Path(folder)), "run": 1, "insert": INSERT}
        return _figures(perform(document, None))


def _figures(account: dict[str, Any]) -> tuple[float, float]:
    done, cpu = account["counts"]["done"], account["client_cpu"]
    seconds = (account["end_ns"] - account["measure_ns"]) / 1e9
    return done / seconds, (cpu["user_ns"] + cpu["system_ns"]) / done

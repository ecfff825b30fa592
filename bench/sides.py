"""The two sides of a comparison: pgbench and our driver, the same script on the same server."""

from __future__ import annotations

import os
import re
import resource
import statistics
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone import model
from loadstone.workload.drive import drive_document, perform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


@dataclass(frozen=True, slots=True)
class Case:
    """What both sides do."""

    script: str
    clients: int
    mode: model.QueryMode = "prepared"
    threads: int = 1
    transactions: int | None = None
    """Of each client; None: as long as the run lasts."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where both sides connect, and for how long they run."""

    connection: model.Connection
    seconds: float
    pgbench: str
    scale: int


@dataclass(frozen=True, slots=True)
class Figures:
    """One run of one side."""

    tps: float
    cpu_s: float
    """Of the whole client process while it drives, its connecting included; pgbench's from start to end."""
    transactions: int

    @property
    def cpu_us(self) -> float:
        """Client CPU per transaction."""
        return self.cpu_s / self.transactions * 1e6


Side = tuple[list[Figures], list[Figures]]
"""The runs of pgbench, and ours."""


def in_turns(case: Case, place: Place, rounds: int) -> Side:
    """Run both sides, ABBA: neither is always the first of its pair."""
    theirs: list[Figures] = []
    ours: list[Figures] = []
    for mine in _turns(rounds):
        (ours if mine else theirs).append((loadstone if mine else pgbench)(case, place))
    return theirs, ours


def _turns(rounds: int) -> Iterator[bool]:
    for number in range(rounds):
        yield from (False, True) if number % 2 == 0 else (True, False)


def median(figures: Iterable[Figures], of: Callable[[Figures], float]) -> float:
    """Return the median of one figure over the runs."""
    return statistics.median(of(figure) for figure in figures)


def pgbench(case: Case, place: Place) -> Figures:
    """Run pgbench; ends the program where that fails."""
    command = [place.pgbench, "-n", "-M", case.mode, "-f", "-", "-c", str(case.clients)]
    command += ["-j", str(case.threads), "-D", f"scale={place.scale}"]
    command += ["-t", str(case.transactions)] if case.transactions else ["-T", f"{place.seconds:.0f}"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*command, place.connection.database],
        input=case.script,
        capture_output=True,
        text=True,
        env=libpq_environment(place.connection),
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"pgbench failed: {done.stderr}")
    tps = float(_found(r"tps = ([\d.]+) \(without", done.stdout))
    return Figures(tps, cpu_s(before, after), int(_found(r"actually processed: (\d+)", done.stdout)))


def loadstone(case: Case, place: Place) -> Figures:
    """Run our driver in this process; ends the program where that fails."""
    drive = model.Drive(
        scripts=(model.Script("bench", case.script),),
        mode=case.mode,
        clients=case.clients,
        threads=case.threads,
        duration_s=None if case.transactions else place.seconds,
        transactions_per_client=case.transactions,
        variables={"scale": place.scale},
    )
    before = resource.getrusage(resource.RUSAGE_SELF)
    account = perform(drive_document(drive, place.connection, None), None)
    after = resource.getrusage(resource.RUSAGE_SELF)
    done = account["counts"]["done"]
    if account["state"] != "complete" or account["counts"]["failed"]:
        sys.exit(f"our run failed: {account['reason']} {account['errors']}")
    elapsed_s = (account["end_ns"] - account["measure_ns"]) / 1e9
    return Figures(done / elapsed_s, cpu_s(before, after), done)


def libpq_environment(where: model.Connection) -> dict[str, str]:
    """Return the environment from which libpq takes where to connect."""
    return os.environ | {
        "PGHOST": where.host,
        "PGPORT": str(where.port),
        "PGUSER": where.user,
        "PGDATABASE": where.database,
        "PGPASSWORD": where.password or "",
    }


def cpu_s(before: resource.struct_rusage, after: resource.struct_rusage) -> float:
    """Return user and system time between two readings."""
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        sys.exit(f"pgbench's output is not understood:\n{text}")
    return match.group(1)

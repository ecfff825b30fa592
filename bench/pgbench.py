"""The scripts of pgbench in every mode, on our driver and on the installed pgbench: throughput, CPU, lag.

Both sides take turns on one private server. The CPU of a cell is that of its transactions: what a run of
one transaction a client takes, which is start and connecting, is measured apart and taken off.
"""

from __future__ import annotations

import itertools
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.sides import Case, Figures, Place, in_turns, libpq_environment, median
from loadstone import _core
from loadstone.private_server import EmbeddedServer, ServerSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.model import Connection, QueryMode

SCALE = 20
ROUNDS = 3
SECONDS = 1.0
QUICK = ("1t", "1c", "32c", "prepared", "simple", "select-only", "tpcb-like", "lag")
"""The words of `--quick`."""
BUILTINS = ("tpcb-like", "simple-update", "select-only")
SELECT = "select abalance from pgbench_accounts where aid = :aid;\n"
PIPELINE = "\\set aid random(1, 100000 * :scale)\n\\startpipeline\n" + 5 * SELECT + "\\endpipeline\n"
MODES: tuple[QueryMode, ...] = ("simple", "extended", "prepared")
CLIENTS = (1, 8, 32, 128)
THREADS = (1, 2)
RATES = (500, 2000)
LAG_CLIENTS = 8
LAG_S = 3
OURS = Path(sys.executable).with_name("loadstone")
KINDS = (
    (*BUILTINS, "pipeline", "lag"),
    MODES,
    tuple(f"{count}c" for count in CLIENTS),
    tuple(f"{count}t" for count in THREADS),
)
"""The words of `--pick`, by kind."""
CPU_AIM = 0.6
AIM_CLIENTS = 32


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of the table."""

    name: str
    case: Case

    def words(self) -> tuple[str, ...]:
        """Return what `--pick` can name it by, one word of each kind."""
        return self.name, self.case.mode, f"{self.case.clients}c", f"{self.case.threads}t"


def words() -> list[str]:
    """Return all that `--pick` knows."""
    return [word for kind in KINDS for word in kind]


def run(target: str, rounds: int | None, seconds: float | None, pick: Sequence[str]) -> None:
    """Print both tables, of the cells that `pick` names: of each kind of word all, where it has none."""
    pgbench = shutil.which("pgbench")
    if pgbench is None:
        print("pgbench is not installed: the comparison is left out (Debian: postgresql-client)\n")
        return
    rounds = rounds or ROUNDS
    with EmbeddedServer(ServerSpec(name=target, clients=2 * max(CLIENTS))) as server:
        place = Place(server.connection, max(1.0, seconds or SECONDS), pgbench, SCALE)
        _initialize(place)
        cells = [cell for cell in _cells() if _is_picked(cell.words(), pick)]
        if cells:
            print(f"### pgbench's scripts at scale {SCALE}, server: {server.build}\n")
            _print_cells(cells, place, rounds)
        if "lag" in pick or not pick:
            _print_lag(place, rounds)


def _cells() -> Iterator[Cell]:
    texts = {name: _core.builtin_script(name)[2] for name in BUILTINS} | {"pipeline": PIPELINE}
    for (name, text), mode, clients, threads in itertools.product(texts.items(), MODES, CLIENTS, THREADS):
        if threads > clients or (name == "pipeline" and (mode == "simple" or threads > 1)):
            continue  # pgbench has one thread a client at most, and no pipeline of simple queries
        yield Cell(name, Case(text, clients, mode, threads))


def _is_picked(words: Sequence[str], pick: Sequence[str]) -> bool:
    wanted = ([word for word in kind if word in pick] for kind in KINDS)
    return all(not some or word in some for word, some in zip(words, wanted, strict=True))


def _initialize(place: Place) -> None:
    command = [place.pgbench, "-i", "-q", "-s", str(SCALE)]
    environment = libpq_environment(place.connection)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"pgbench -i failed: {done.stderr}")


def _print_cells(cells: Sequence[Cell], place: Place, rounds: int) -> None:
    print(f"{rounds} rounds in turns of {place.seconds:g} s, medians; ratio = ours / pgbench\n")
    print(
        "| script | mode | clients | threads | pgbench tps | ours tps | ratio "
        "| pgbench CPU µs/tx | ours CPU µs/tx | ratio | range |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|")
    starts: dict[tuple[int, int], tuple[Figures, Figures]] = {}
    slower, dearer = 0, []
    for cell in cells:
        size = (cell.case.clients, cell.case.threads)
        if size not in starts:
            starts[size] = _starts(*size, place)
        theirs, ours = in_turns(cell.case, place, rounds)
        tps = median(ours, lambda f: f.tps) / median(theirs, lambda f: f.tps)
        cpu = [
            [_cpu_us(run, start) for run in runs]
            for runs, start in zip((theirs, ours), starts[size], strict=True)
        ]
        ratio = statistics.median(cpu[1]) / statistics.median(cpu[0])
        print(_row(cell, theirs, ours, cpu), flush=True)
        slower += tps < 1
        dearer += [ratio] if cell.case.clients >= AIM_CLIENTS else []
    print(f"\nthroughput below pgbench's: {slower} of {len(cells)} rows")
    if dearer:
        over = sum(ratio > CPU_AIM for ratio in dearer)
        print(f"CPU over {CPU_AIM}×, {AIM_CLIENTS} clients and more: {over} of {len(dearer)} rows")
    print()


def _starts(clients: int, threads: int, place: Place) -> tuple[Figures, Figures]:
    """Return a run of one transaction a client of each side, the one of median CPU."""
    sides = in_turns(Case(SELECT.replace(":aid", "1"), clients, "simple", threads, 1), place, 3)
    theirs, ours = (sorted(side, key=lambda f: f.cpu_s)[1] for side in sides)
    return theirs, ours


def _cpu_us(run: Figures, start: Figures) -> float:
    """Return the CPU of a transaction, in microseconds, without that of start and connecting."""
    return max(run.cpu_s - start.cpu_s, 0) / max(run.transactions - start.transactions, 1) * 1e6


def _row(cell: Cell, theirs: list[Figures], ours: list[Figures], cpu: list[list[float]]) -> str:
    tps = [median(side, lambda f: f.tps) for side in (theirs, ours)]
    us = [statistics.median(side) for side in cpu]
    ratios = sorted(mine / other for other, mine in zip(*cpu, strict=True))
    cells = (
        cell.name,
        cell.case.mode,
        str(cell.case.clients),
        str(cell.case.threads),
        f"{tps[0]:,.0f}",
        f"{tps[1]:,.0f}",
        f"{tps[1] / tps[0]:.2f}",
        f"{us[0]:.2f}",
        f"{us[1]:.2f}",
        f"{us[1] / us[0]:.2f}",
        f"{ratios[0]:.2f}–{ratios[-1]:.2f}",
    )
    return f"| {' | '.join(cells)} |"


def _print_lag(place: Place, rounds: int) -> None:
    print(f"### Lag of `-R`, select-only, {LAG_CLIENTS} clients, {rounds} runs of {LAG_S} s, medians\n")
    print("| rate /s | pgbench lag µs | its p99 | ours lag µs | our p99 |")
    print("|---:|---:|---:|---:|---:|")
    for rate in RATES:
        sides = [(place.pgbench,), (str(OURS), "pgbench")]
        runs: list[list[list[float]]] = [[], []]
        for number in range(rounds):
            for side in (0, 1) if number % 2 == 0 else (1, 0):
                runs[side].append(_lags(sides[side], rate, place.connection))
        figures = (
            f"{statistics.median(statistics.quantiles(run, n=100)[percent - 1] for run in side):.0f}"
            for side in runs
            for percent in (50, 99)
        )
        print(f"| {rate} | {' | '.join(figures)} |")
    print()


def _lags(program: Sequence[str], rate: int, where: Connection) -> list[float]:
    """Return the lag of each transaction behind its schedule, in µs, from the log that both write."""
    options = f"-n -b select-only -M prepared -c {LAG_CLIENTS} -j 1 -T {LAG_S} -R {rate} -l".split()
    with tempfile.TemporaryDirectory(prefix="loadstone-bench-") as folder:
        command = [*program, *options, "--log-prefix", f"{folder}/log"]
        done = subprocess.run(
            command, env=libpq_environment(where), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed: {done.stderr}")
        lines = [line for log in Path(folder).iterdir() for line in log.read_text().splitlines()]
    return [float(line.split()[6]) for line in lines]

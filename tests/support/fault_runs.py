"""Runs of Loadstone through a proxy that mistreats its bytes, and a judge of what comes of each.

`python tests/support/fault_runs.py 0-499` performs the plans of these seeds, two at a time, against a private
PostgreSQL, and prints a line for each; `--jobs`, `--keep-bad` and `--show` are explained by `--help`.
The judge asks the server itself, past the proxy.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg

from loadstone.cli import group, run  # noqa: F401 - imported before the fork
from loadstone.engine import patience, waits
from loadstone.engines import all_engines
from loadstone.host import bandwidth
from loadstone.personalities.pgbench import run as pgbench_run
from loadstone.private_server import EmbeddedServer, ServerSpec
from loadstone.report import page, terminal  # noqa: F401 - as above
from loadstone.report.charts.drawings import Drawings
from loadstone.run import server as run_server
from loadstone.workload.load import reconnecting_control
from support.fault_proxy import ALTERING, Fault, FaultProxy, plan_of
from support.fault_workloads import WITNESS, WORKLOADS, Look, Pgbench, Ran, Workload
from support.sandbox import comes_about

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from loadstone.model import Connection

CONNECT_S = 2
SHORT = (
    (run_server, "_RECONNECT_S", 3.0),
    (run_server, "_ANSWER_S", 2.0),
    (run_server, "_DROP_S", 4.0),
    (reconnecting_control, "_AWAY_S", 2.0),
    (patience, "_PAUSE_S", 0.1),
    (waits, "SAY_S", 0.5),
    (waits, "LOOK_S", 0.5),
    (waits, "ASK_S", 1.0),
    (waits, "SILENCE_S", 3.0),
    (waits, "LOCK_S", 5.0),
    (pgbench_run, "LONGEST_S", 3.0),
    (bandwidth, "SPARE", 1e9),
    (bandwidth, "REPEATS", 1),
    (page, "draw", lambda found: Drawings("", {chart.id: "" for chart in found})),
)
"""Limits that are made for people's patience, and what costs seconds and has nothing to do with bytes."""
SESSIONS = b"""
select count(*) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
"""
CLAIMS = """
select count(*) from pg_locks l join pg_database d on d.oid = l.database
where l.locktype = 'advisory' and d.datname = current_database()
"""
PUBLIC = "select string_agg(relname, ', ') from pg_class where relnamespace = 'public'::regnamespace"
LIMIT_S = 200.0
"""Far more than all limits of one run together."""


@dataclass
class Judged:
    """What came of one seed."""

    seed: int
    workload: str
    code: int | None
    seconds: float
    done: list[str]
    """What was done to connections, in words."""
    faults: list[str] = field(default_factory=list)
    """What Loadstone did wrong, in words."""
    reason: str = ""

    def __str__(self) -> str:
        words = "; ".join(self.faults) if self.faults else f"well: {self.reason}"
        state = "BAD" if self.faults else "ok"
        return (
            f"{self.seed:>5} {state:<3} {self.workload:<24} exit {self.code!s:<4} {self.seconds:5.1f} s "
            f"[{', '.join(self.done) or 'nothing happened'}] {words}"
        )


def all_imported() -> None:
    """Import before a fork what each run would import for itself."""
    all_engines()


def perform(
    seed: int,
    server: Connection,
    *,
    keep_bad: bool = False,
    show: bool = False,
    faults: str = "",
    limit_s: float = LIMIT_S,
) -> Judged:
    """Run the workload and the plan of a seed against a database of its own, and judge."""
    workload = WORKLOADS[seed % len(WORKLOADS)](np.random.default_rng([seed, 1]))
    plan = [parsed(text) for text in faults.split(",")] if faults else plan_of(seed, workload.reach)
    name = f"fault_{seed}_{os.getpid()}"
    folder = Path(tempfile.mkdtemp(prefix=f"fault-{seed}-"))
    there: dict[str, Any] = {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
    }
    with psycopg.connect(**there, dbname=server.database, autocommit=True) as admin:
        admin.execute(f"create database {name}".encode())
        try:
            with psycopg.connect(**there, dbname=name, autocommit=True) as own:
                own.execute(WITNESS.encode())
                proxy = FaultProxy(plan, server.host, server.port)
                url = (
                    f"postgres://{server.user}:{server.password}@127.0.0.1:{proxy.port}/{name}"
                    f"?sslmode=disable&connect_timeout={CONNECT_S}"
                )
                ran = run_through(proxy, workload.arguments(folder, url), folder, limit_s)
                if show:
                    print(*proxy.lines, ran.err, (folder / "stdout").read_text(), sep="\n", flush=True)
                settle(own)
                judged = judge(seed, workload, proxy, ran, Look(own))
        finally:
            admin.execute(f"drop database {name} with (force)".encode())
    if judged.faults and keep_bad:
        judged.faults.append(f"left in {folder}")
    else:
        shutil.rmtree(folder)
    return judged


def parsed(text: str) -> Fault:
    """Read a fault as it is printed."""
    action, amount, _, _, connection, direction, _, offset = text.split()
    return Fault(int(connection), direction, int(offset), action, int(amount))  # type: ignore[arg-type]


def settle(own: psycopg.Connection) -> None:
    """Wait until the server has ended the sessions whose connections the proxy has cut."""
    comes_about(lambda: own.execute(SESSIONS).fetchone() == (0,), 20)


def run_through(proxy: FaultProxy, arguments: list[str], folder: Path, limit_s: float) -> Ran:
    """Run the command in a process of its own while the proxy serves it."""
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        be_the_command(arguments, folder)
    handle = os.pidfd_open(pid)
    in_time = asyncio.run(proxy.serve(ends_in_time(handle, pid, limit_s)))
    os.close(handle)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return Ran(code if in_time else None, time.monotonic() - begun, folder)


async def ends_in_time(handle: int, pid: int, limit_s: float) -> bool:
    """Wait for a process; one that does not end in time is killed, and says where it was."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(handle, ended.set)
    try:
        async with asyncio.timeout(limit_s):
            await ended.wait()
    except TimeoutError:
        os.kill(pid, signal.SIGABRT)  # faulthandler prints its threads
        await ended.wait()
        return False
    finally:
        asyncio.get_running_loop().remove_reader(handle)
    return True


def be_the_command(arguments: list[str], folder: Path) -> None:
    """Become `loadstone` with these arguments: what a fork saves is the second of its imports."""
    code = 70
    try:
        import faulthandler  # noqa: PLC0415

        os.setsid()
        os.chdir(folder)
        os.environ |= {"HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
        for number, name in ((1, "stdout"), (2, "err")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdout, sys.stderr = (open(n, "w", buffering=1, closefd=False) for n in (1, 2))  # noqa: SIM115
        faulthandler.enable()
        for module, name, seconds in SHORT:
            assert hasattr(module, name), f"{module.__name__} has no {name}"
            setattr(module, name, seconds)
        sys.argv = ["loadstone", *arguments]
        group.loadstone(arguments)
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:  # noqa: BLE001 - the judge finds it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def judge(seed: int, workload: Workload, proxy: FaultProxy, ran: Ran, value: Look) -> Judged:
    """Hold what the command said against what the server has."""
    done = list(proxy.done())
    words = [f"{fault} ({line.name})" for line, fault in done]
    judged = Judged(seed, workload.name, ran.code, ran.seconds, words)
    altered = any(fault.action in ALTERING for _, fault in done)
    # No protocol without checksums can tell that a count was altered on its way to the check.
    blind = any(
        fault.action in ALTERING and fault.direction == "down" and not is_client(line.name)
        for line, fault in done
    )
    if ran.code is None:
        judged.faults.append("it did not end in time")
    elif ran.code not in ((0, 1, 2) if isinstance(workload, Pgbench) else (0, 1, 2, 3)):
        judged.faults.append("an exit code that docs/exit-codes.md does not have")
    if "Traceback" in ran.err or "internal error" in ran.err:
        judged.faults.append("a traceback")
    if ran.code == 3 and not altered:
        judged.faults.append("a check failed though no byte was altered")
    judged.faults += explained(workload, ran, judged)
    if ran.code is not None:
        judged.faults += workload.judge(ran, value, altered=altered, blind=blind)
        judged.faults += left_over(workload, ran, value, altered=altered)
    if not done and ran.code != 0:
        judged.faults.append("nothing was done to it and it failed")
    return judged


def is_client(name: str) -> bool:
    """Tell a connection of the driver's from one that controls."""
    return name.startswith("loadstone-") or name == "pgbench"


def explained(workload: Workload, ran: Ran, judged: Judged) -> Iterator[str]:
    """Yield what is missing of a reason."""
    lines = ran.err.strip().splitlines()
    if ran.code == 0 or ran.code is None:
        judged.reason = "complete"
        return
    told = [line for line in lines if line.startswith(("loadstone: ", "pgbench: error: "))]
    judged.reason = " ".join(told) or " ".join(lines[-2:])
    if not judged.reason:
        yield "it said nothing"
    if isinstance(workload, Pgbench):
        return
    if (ran.folder / "out" / "run.json").exists():
        run = ran.json("run.json")
        if run["state"] != "failed" or not run["reason"]:
            yield f"run.json says {run['state']}: {run['reason']}"
        if not (ran.folder / "out" / "report.html").exists():
            yield "there is no report"
    elif ran.code != 1:
        yield "there is no run folder"


def left_over(workload: Workload, ran: Ran, value: Look, *, altered: bool) -> Iterator[str]:
    """Yield what was left on the server silently."""
    there = value("select to_regnamespace('loadstone') is not null")
    if there and not workload.keeps and not altered and "could not be dropped" not in ran.err:
        yield "the schema was left without a word"
    if locks := value(CLAIMS):
        yield f"{locks} advisory locks are left"
    if tables := value(PUBLIC):
        yield f"{tables} were made in public"


def seeds_of(texts: Iterable[str]) -> Iterator[int]:
    """Read `3 7-9` as 3, 7, 8, 9."""
    for text in texts:
        first, _, last = text.partition("-")
        yield from range(int(first), int(last or first) + 1)


def all_judged(seeds: Iterable[int], jobs: int, server: Connection, **how: Any) -> Iterator[Judged]:
    """Judge these seeds, so many at a time, on databases of one server."""
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), all_imported) as pool:
        yield from pool.map(partial(perform, server=server, **how), seeds)


def main() -> int:
    """Judge the seeds of the command line; exits 1 when one is bad."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="+", help="seeds, or ranges such as 0-499")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--keep-bad", action="store_true", help="keep what bad runs have written")
    parser.add_argument("--show", action="store_true", help="print what it said, and each connection")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds that a run may take (200)")
    parser.add_argument("--faults", default="", help="this plan in place of the seed's, as it is printed")
    given = parser.parse_args()
    bad = 0
    how = {"keep_bad": given.keep_bad, "show": given.show, "faults": given.faults, "limit_s": given.limit}
    with EmbeddedServer(ServerSpec("pg", clients=20 * given.jobs, settings={"fsync": "off"})) as server:
        for judged in all_judged(seeds_of(given.seeds), given.jobs, server.tcp_connection, **how):
            print(judged, flush=True)
            bad += bool(judged.faults)
    print(f"{bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

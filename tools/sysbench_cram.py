"""Runs sysbench's own tests (cram files of 1.0.20), with Loadstone or another program as `sysbench`.

The tests are not part of Loadstone: name a checkout of sysbench's repository at the tag 1.0.20. Prints which
files pass, fail and are skipped. Exit status: 0, 1 when one fails that must pass, 77 when the tests cannot
be run here (the last line says why).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.private_server import EmbeddedServer, ServerSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

CANNOT = 77
DATABASE = "sbtest"
PEER = "peer"
ALIKE = "fails alike"
LIMIT_S = 300
WORDING = ("help_drv_mysql", "help_drv_pgsql", "opt_help")
"""They compare every word of the help, which is ours."""
MACHINE = (
    "cmdline",
    "opt_rate",
    "opt_report_checkpoints",
    "opt_report_interval",
    "test_cpu",
    "test_fileio",
    "test_memory",
    "test_mutex",
    "test_threads",
    "tests",
)
"""They run tests of the machine, which are built into sysbench."""


class CannotError(Exception):
    """Something that the tests need is not here; the text says what."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What cram said of one file."""

    name: str
    state: str
    """`passes`, `fails`, `skipped`, or that it fails with sysbench itself in the same way."""
    said: str


def main() -> int:
    """Run what the arguments ask for."""
    arguments = _arguments()
    try:
        with ExitStack() as stack:
            environment = _environment(arguments, stack)
            outcomes = [_tried(test, arguments, environment) for test in _tests(arguments)]
    except CannotError as reason:
        print(f"sysbench's tests were not run: {reason}")
        return CANNOT
    return _report(outcomes)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sources", type=Path, help="sysbench's repository at 1.0.20")
    parser.add_argument("names", nargs="*", help="files of tests, without .t (all)")
    parser.add_argument("--sysbench", type=Path, default=Path(sys.executable).with_name("loadstone"))
    parser.add_argument(
        "--peer", type=Path, help="sysbench itself: what fails with it in the same way is told apart"
    )
    parser.add_argument("--pgsql", default="pg", help="PostgreSQL to start, as --target names it (pg)")
    parser.add_argument(
        "--mysql-socket", type=Path, help="socket of a MySQL or MariaDB with a root of no password"
    )
    parser.add_argument("--show", action="store_true", help="show what differs")
    return parser.parse_args()


def _name(folder: Path, program: Path) -> None:
    """Have a program called `sysbench`."""
    (folder / "sysbench").symlink_to(program.absolute())


def _tests(arguments: argparse.Namespace) -> list[Path]:
    found = sorted((arguments.sources / "tests" / "t").glob("*.t"))
    if not found:
        raise CannotError(f"there are no tests in {arguments.sources / 'tests' / 't'}")
    return [test for test in found if not arguments.names or test.stem in arguments.names]


def _environment(arguments: argparse.Namespace, stack: ExitStack) -> dict[str, str]:
    """Return the environment of the tests, with the program as `sysbench` first on PATH."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sysbench-cram-")))
    _name(folder, arguments.sysbench)
    if arguments.peer is not None:
        (folder / PEER).mkdir()
        _name(folder / PEER, arguments.peer)
    tests, scripts = arguments.sources.resolve() / "tests", arguments.sources.resolve() / "src" / "lua"
    folders = (scripts, tests / "include")
    config = folder / "config.sh"
    config.write_text(
        'export SBTEST_VERSION_STRING="sysbench 1.0.20"\nexport SBTEST_VERSION="1.0.20"\n'
        "export SBTEST_HAS_MYSQL=1\nexport SBTEST_HAS_PGSQL=1\n",
        encoding="utf-8",
    )
    environment = os.environ | {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(arguments.sources.resolve() / "third_party" / "cram"),
        "SBTEST_ROOTDIR": str(tests),
        "SBTEST_SCRIPTDIR": str(scripts),
        "SBTEST_SUITEDIR": str(tests / "t"),
        "SBTEST_CONFIG": str(config),
        "SBTEST_INCDIR": str(tests / "include"),
        "SBTEST_VERSION_STRING": "sysbench 1.0.20",
        "SBTEST_VERSION": "1.0.20",
        "SBTEST_HAS_MYSQL": "1",
        "SBTEST_HAS_PGSQL": "1",
        "LUA_PATH": "".join(f"{place}/?;{place}/?.lua;" for place in folders),
    }
    environment |= stack.enter_context(_pgsql(arguments.pgsql))
    return environment | _mysql(arguments.mysql_socket, folder)


@contextmanager
def _pgsql(name: str) -> Iterator[dict[str, str]]:
    if shutil.which("psql") is None:
        raise CannotError("there is no psql")
    with EmbeddedServer(ServerSpec(name, clients=50)) as server:
        there = server.connection
        place = {"PGHOST": there.host, "PGPORT": str(there.port), "PGUSER": there.user}
        options = f"--pgsql-host={there.host} --pgsql-port={there.port} --pgsql-user={there.user}"
        yield place | {"SBTEST_PGSQL_ARGS": f"{options} --pgsql-db={DATABASE}"}


def _mysql(socket: Path | None, folder: Path) -> dict[str, str]:
    if socket is None:
        return {}
    client = shutil.which("mariadb") or shutil.which("mysql")
    if client is None:
        raise CannotError("there is no client of MySQL or MariaDB")
    # The tests call `mysql` with no address, and a Debian configures another than that of the environment.
    place = folder / "mysql"
    place.write_text(f'#!/bin/sh\nexec {client} --socket={socket} "$@"\n', encoding="utf-8")
    place.chmod(0o755)
    if subprocess.run([str(place), "-uroot", "-e", "select 1"], check=False, capture_output=True).returncode:
        raise CannotError(f"there is no server at {socket}, or its root has a password")
    return {
        "SBTEST_MYSQL_ARGS": f"--mysql-socket={socket} --mysql-user=root --mysql-db={DATABASE}",
    }


def _tried(test: Path, arguments: argparse.Namespace, environment: dict[str, str]) -> Outcome:
    """Run one file, and where it fails again with sysbench itself."""
    outcome = _run(test, arguments, environment)
    if outcome.state == "fails" and arguments.peer is not None:
        first, _, rest = environment["PATH"].partition(":")
        theirs = _run(test, arguments, environment | {"PATH": f"{first}/{PEER}:{first}:{rest}"})
        if difference(theirs.said) == difference(outcome.said):
            outcome = replace(outcome, state=ALIKE)
    print(f"{outcome.state:12} {outcome.name}", flush=True)
    if arguments.show and outcome.state in ("fails", ALIKE):
        print(outcome.said)
    return outcome


def difference(said: str) -> list[str]:
    """Return the lines that differ from what a file expects, apart from numbers, folders and the program."""
    said = re.sub(r"\(.*LuaJIT.*\)", "()", said)
    lines = (line for line in said.splitlines() if line.startswith(("+ ", "- ")))
    return [re.sub(r"[0-9]+", "N", re.sub(r"/\S*cramtests-[^/]*/", "", line)) for line in lines]


def _empty(environment: dict[str, str]) -> None:
    """Begin with databases that have no tables."""
    again = (f"drop database if exists {DATABASE}", f"create database {DATABASE}")
    for statement in again:
        subprocess.run(
            ["psql", "--dbname=postgres", "--command", statement],
            env=environment,
            check=True,
            capture_output=True,
        )
    if "SBTEST_MYSQL_ARGS" in environment:
        subprocess.run(
            ["mysql", "-uroot", "-e", "; ".join(again)], env=environment, check=True, capture_output=True
        )


def _run(test: Path, arguments: argparse.Namespace, environment: dict[str, str]) -> Outcome:
    _empty(environment)
    script = arguments.sources.resolve() / "third_party" / "cram" / "scripts" / "cram"
    command = [sys.executable, str(script), "--shell=/bin/bash", "--verbose", str(test)]
    try:
        ran = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        return Outcome(test.stem, "fails", f"not over after {LIMIT_S} s")
    return Outcome(test.stem, state_of(ran.returncode, ran.stdout), ran.stdout + ran.stderr)


def state_of(code: int, said: str) -> str:
    """Return what became of one file: cram's exit status is 0 for a skipped one, too."""
    if re.search(r"# Ran 1 tests, 1 skipped", said):
        return "skipped"
    return "passes" if code == 0 else "fails"


def _report(outcomes: list[Outcome]) -> int:
    counts = Counter(outcome.state for outcome in outcomes)
    print(
        f"{counts['passes']} pass, {counts['fails']} fail, {counts['skipped']} are skipped, "
        f"{counts[ALIKE]} fail with sysbench itself in the same way"
    )
    excused = {*WORDING, *MACHINE}
    failed = [outcome.name for outcome in outcomes if outcome.state == "fails"]
    print(f"of those that fail, {len(excused & set(failed))} compare the help or test the machine")
    return int(bool(set(failed) - excused))


if __name__ == "__main__":
    sys.exit(main())

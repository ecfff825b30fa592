"""PostgreSQL's data directory on a power disk, and the loss of power under it."""

from __future__ import annotations

import signal
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import psycopg
import pytest

from loadstone.power_disk import PowerDisk, available
from loadstone.private_server import find_build
from loadstone.private_server.os_user import environment, server_account

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.private_server.os_user import OsUser

_REASON = available()
pytestmark = [
    pytest.mark.slow,  # each test starts a server
    pytest.mark.skipif(_REASON is not None, reason=f"no power disk here: {_REASON}"),
]

ROWS = 40


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    """A new data directory, which every test copies."""
    with folder_of(server_account()) as folder:
        program = find_build("pg", server_account()).bin / "initdb"
        command = [str(program), "-D", str(folder / "data"), "-A", "trust", "--no-sync"]
        made = server_account().run([*command, "-U", server_account().name], cwd=folder, timeout_s=240)
        assert made.returncode == 0, made.stdout
        yield folder / "data"


@pytest.fixture
def base(cluster: Path) -> Iterator[Path]:
    """A folder with `backing`, which has the cluster's files, and the empty `mount`."""
    with folder_of(server_account()) as folder:
        for part in ("backing", "mount"):
            (folder / part).mkdir()
            server_account().own(folder / part)
        subprocess.run(["cp", "-a", cluster, folder / "backing"], check=True)
        yield folder


@contextmanager
def folder_of(account: OsUser) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="loadstone-", dir="/tmp") as name:  # short: a socket is in it
        account.own(Path(name))
        yield Path(name)


@contextmanager
def serving(base: Path, *settings: str) -> Iterator[psycopg.Connection]:
    """Run the server until the end of the context, then kill all its processes at once."""
    account = server_account()
    data = base / "mount" / "data"
    options = ["-c", f"unix_socket_directories={base}", "-c", "listen_addresses="]
    for setting in settings:
        options += ["-c", setting]
    process = subprocess.Popen(
        [find_build("pg", account).bin / "postgres", "-D", data, *options],
        env=environment(), cwd="/", stderr=subprocess.PIPE, text=True,
        user=account.uid, group=account.gid, extra_groups=[],
    )  # fmt: skip
    try:
        wait_until_ready(process)
        text = f"host={base} dbname=postgres user={account.name}"
        with psycopg.connect(text, autocommit=True) as connected:
            yield connected
    finally:
        kill(process)


def wait_until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if "ready to accept connections" in line:
            return
    raise AssertionError("".join(said))


def kill(process: subprocess.Popen[str]) -> None:
    """Kill the server with all its processes; a postmaster that is stopped neither ends nor starts any."""
    family = []
    if process.poll() is None:
        process.send_signal(signal.SIGSTOP)
        family = psutil.Process(process.pid).children(recursive=True)
    for member in family:
        with suppress(psutil.NoSuchProcess):
            member.kill()
    process.kill()
    process.wait()
    psutil.wait_procs(family, timeout=60)
    assert process.stderr is not None
    process.stderr.close()


def fill(connected: psycopg.Connection) -> None:
    """Commit rows before and after a checkpoint, in tables that are new, old, and of a new database."""
    connected.execute("create table before (i int primary key)")
    for number in range(ROWS):
        connected.execute("insert into before values (%s)", (number,))
    connected.execute("create database other")
    connected.execute("create table between (i int)")
    connected.execute("insert into between select generate_series(1, 5000)")
    connected.execute("checkpoint")
    connected.execute("create table after (i int)")
    for number in range(ROWS):
        connected.execute("insert into before values (%s)", (-1 - number,))
        connected.execute("insert into after values (%s)", (number,))


def counts(connected: psycopg.Connection) -> list[int]:
    tables = ("before", "between", "after")
    rows = [connected.execute(f"select count(*) from {name}").fetchone() for name in tables]
    connected.execute("select pg_database_size('other')")
    return [row[0] for row in rows if row]


@pytest.mark.parametrize("method", ["fdatasync", "open_datasync"])
def test_commits_survive_a_loss(base: Path, method: str) -> None:
    with PowerDisk(base / "backing", base / "mount") as disk:
        with serving(base, f"wal_sync_method={method}") as connected:
            fill(connected)
        assert disk.lose().bytes > 0
        with serving(base) as connected:
            assert counts(connected) == [2 * ROWS, 5000, ROWS]
        assert disk.counters().broken == ""


def test_commits_are_lost_without_fsync(base: Path) -> None:
    with PowerDisk(base / "backing", base / "mount") as disk:
        with serving(base, "fsync=off") as connected:
            fill(connected)
        lost = disk.lose()
        assert lost.bytes > 1 << 20
        with serving(base) as connected, pytest.raises(psycopg.errors.UndefinedTable):
            counts(connected)

"""What a killed run left of a private server: taken over by the run that goes on, and by nobody else."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from loadstone.errors import LoadstoneError
from loadstone.private_server import (
    NEWEST,
    Adoption,
    EmbeddedServer,
    PrivateFolder,
    ServerSpec,
    adopt,
    reap_orphans,
)
from loadstone.private_server.builds import cache_root
from loadstone.private_server.os_user import server_account
from loadstone.private_server.registry import MARK_FILE, Process, Registry

if TYPE_CHECKING:
    from collections.abc import Iterator


INSERTS = """
import sys
import psycopg
from loadstone.private_server import EmbeddedServer, ServerSpec
embedded = EmbeddedServer(ServerSpec(clients=5, settings={"shared_buffers": "17MB"}))
embedded.start()
where = embedded.connection
connection = psycopg.connect(host=where.host, port=where.port, user=where.user, dbname=where.database)
connection.execute("create table kept (i int)")
connection.commit()
print(embedded.data_directory, flush=True)
for i in range(10**9):
    connection.execute("insert into kept values (%s)", (i,))
    connection.commit()
    print(i, flush=True)
"""


def registry() -> Registry:
    return Registry(cache_root(server_account()) / "servers")


def value(running: EmbeddedServer, statement: str, password: str | None = None) -> Any:
    """Run a statement: by TCP with that password, by the socket without one."""
    where = running.connection if password is None else running.tcp_connection
    with psycopg.connect(
        host=where.host, port=where.port, user=where.user, dbname=where.database, password=password
    ) as connection:
        row = connection.execute(statement.encode()).fetchone()
        return row[0] if row else None


@dataclass
class Killed:
    """A Loadstone that was killed in the middle of inserts."""

    pid: int
    process: str
    """As run.json names it."""
    data: Path
    acknowledged: int

    def adopt(self) -> Adoption:
        return adopt(self.data, self.pid, self.process)


def identity(pid: int) -> str:
    process = Process.of(pid)
    assert process is not None
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}/{process.start_ticks}"


@pytest.fixture
def killed(own_registry: None) -> Iterator[Killed]:
    del own_registry
    child = subprocess.Popen([sys.executable, "-c", INSERTS], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        data = Path(child.stdout.readline().strip())
        process = identity(child.pid)
        for _ in range(50):
            child.stdout.readline()
        with pytest.raises(LoadstoneError, match=f"still in use by process {child.pid}"):
            adopt(data, child.pid, process)
    finally:
        child.kill()
        said = child.stdout.read().split()
        child.wait()
        child.stdout.close()
    yield Killed(child.pid, process, data, int(said[-1]) + 1 if said else 50)
    forget_owners()
    reap_orphans()


def forget_owners() -> None:
    """Make what this process has claimed look like a killed run's again."""
    for record in registry().records():
        if len(record.owners) > 1 and record.owner.pid == os.getpid():
            registry().write(replace(record, owner=Process(os.getpid(), 1)))


def test_a_killed_runs_server_is_adopted_with_every_committed_row(killed: Killed) -> None:
    adoption = killed.adopt()
    assert not any(str(killed.data) in line for line in reap_orphans()), "nobody removes what is adopted"
    with EmbeddedServer(ServerSpec(clients=5, adopt=adoption)) as running:
        assert running.data_directory == killed.data
        rows = value(running, "select count(*) from kept", password=running.tcp_connection.password)
        # What was in flight when we died may be committed or not; what was acknowledged must be there.
        assert killed.acknowledged <= rows <= killed.acknowledged + 1
        assert value(running, "select max(i) + 1 from kept") == rows
        assert value(running, "show shared_buffers") == "17MB" == running.settings["shared_buffers"]
        password = running.tcp_connection.password or "-"
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            value(running, "select 1", password="wrong")
        assert password not in running.log_file.read_text()
        running.kill()
        running.restart()
        assert value(running, "select count(*) from kept") == rows
    assert not killed.data.parent.exists()
    assert killed.data.parent.name not in [record.id for record in registry().records()]


def test_an_adopted_server_can_be_adopted_again_under_either_name(killed: Killed) -> None:
    first = killed.adopt()
    forget_owners()
    second = killed.adopt()
    forget_owners()
    third = adopt(killed.data, os.getpid(), identity(os.getpid()))
    assert first.record.id == second.record.id == third.record.id
    with EmbeddedServer(ServerSpec(clients=5, adopt=third)) as running:
        assert value(running, "select count(*) from kept") >= killed.acknowledged


def test_another_runs_data_are_not_adopted(killed: Killed) -> None:
    with pytest.raises(LoadstoneError, match="belong to another run"):
        adopt(killed.data, killed.pid + 1, killed.process)
    with pytest.raises(LoadstoneError, match="belong to another run"):
        adopt(killed.data, killed.pid, "another-boot/1")
    (killed.data.parent / MARK_FILE).write_text("another-server")
    try:
        with pytest.raises(LoadstoneError, match="belong partly to somebody else"):
            killed.adopt()
    finally:
        (killed.data.parent / MARK_FILE).write_text(killed.data.parent.name)


def test_data_whose_removal_has_begun_are_not_adopted(killed: Killed) -> None:
    record = next(record for record in registry().records() if Path(record.data_directory) == killed.data)
    registry().write(replace(record, ending=True))
    try:
        with pytest.raises(LoadstoneError, match="are gone"):
            killed.adopt()
    finally:
        registry().write(record)


def test_data_that_are_gone_are_named() -> None:
    with pytest.raises(LoadstoneError, match="no longer exist"):
        adopt(Path("/var/tmp/loadstone-nowhere/data"), 1, "boot/1")


def test_what_cannot_be_started_on_stays_as_it_was(killed: Killed) -> None:
    adoption = killed.adopt()
    with pytest.raises(LoadstoneError, match=f"are of PostgreSQL {NEWEST}, not 17"):
        EmbeddedServer(ServerSpec("pg17", adopt=adoption)).start()
    control = killed.data / "global" / "pg_control"
    whole = control.read_bytes()
    control.write_bytes(b"torn")
    with pytest.raises(LoadstoneError, match="does not start"):
        EmbeddedServer(ServerSpec(adopt=adoption)).start()
    control.write_bytes(whole)
    with EmbeddedServer(ServerSpec(adopt=adoption)) as running:
        assert value(running, "select count(*) from kept") >= killed.acknowledged


FOLDER = """
import sys, time
from loadstone.private_server import PrivateFolder
with PrivateFolder() as folder:
    (folder.path / "private.duckdb").write_text("mine")
    print(folder.path, flush=True)
    time.sleep(600)  # until it is killed
"""


@pytest.mark.usefixtures("own_registry")
def test_a_killed_runs_folder_is_adopted_too() -> None:
    with subprocess.Popen([sys.executable, "-c", FOLDER], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        path = Path(child.stdout.readline().strip())
        process = identity(child.pid)
        child.kill()
    adoption = adopt(path, child.pid, process)
    with PrivateFolder():
        assert path.exists(), "another folder's opening removes nothing that is adopted"
    with PrivateFolder(adopt=adoption) as folder:
        assert (folder.path / "private.duckdb").read_text() == "mine"
    assert not path.exists()

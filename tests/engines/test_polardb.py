"""PolarDB in shared-storage mode: where its files are, and what follows from that.

The server is a stand-in that answers as PolarDB 15 does: `pg_relation_filepath` begins with polar_datadir.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from support.timeseries_data import control_of

from loadstone.engine.answers import ServerProcesses
from loadstone.engine.control import WholeResult
from loadstone.engine.observe.written import WriteAccount
from loadstone.engine.postgres import statements
from loadstone.engine.postgres.family import PostgresFamily
from loadstone.engines import all_engines, polardb
from loadstone.engines.postgres import ENGINE as POSTGRES
from loadstone.errors import LoadstoneError
from loadstone.host import machine
from loadstone.plan.model import Plan, PlannedTarget
from loadstone.private_server import EmbeddedServer, ServerSpec, builds, sizing
from loadstone.private_server.os_user import server_account
from loadstone.run.resume import as_asked
from loadstone.target import parse_target
from loadstone.workload.load import disk_space

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.sandbox import Database

    from loadstone.engine.control import Control, Row

TEXT = "PostgreSQL 15.8 (PolarDB 15.8.2.0 build f2d9a7e6) on x86_64-linux-gnu"
RELATION = {
    "oid": 5, "part": "heap", "chunk": None, "name": "t", "kind": "r", "parent": None, "main": 8192,
    "maps": 0, "init": 0,
}  # fmt: skip


class Polar:
    """A control connection to a PolarDB whose own folder is `node`; `prefix` begins its files' paths."""

    closed = False

    def __init__(self, node: Path, prefix: str = "", **settings: str | None) -> None:
        self.prefix = prefix
        self.settings: Mapping[str, str | None] = {"full_page_writes": "off", **settings}
        self.answers: dict[str, list[Row]] = {
            polardb._CATALOG: [{"file": f"{prefix}global/1262"}],
            statements.BACKEND: [{"pid": 1, "by_socket": True, "data_directory": str(node)}],
            statements.IDENTITY: [
                {"version": "15.8", "version_text": TEXT, "number": 150008, "standby": False}
            ],
            statements.UNLOGGED: [{"count": 0}],
        }

    def execute(self, query: str | bytes, params: Mapping[str, Any] | None = None, /) -> WholeResult:
        text = query.decode() if isinstance(query, bytes) else query
        if text == polardb._PARTIAL and self.settings.get("polar_has_partial_write") == "hidden":
            raise psycopg.errors.InsufficientPrivilege("must be superuser")
        if text == polardb._PARTIAL:
            return WholeResult([{"value": self.settings.get("polar_has_partial_write")}])
        if text == polardb._LOOK:
            return WholeResult([{"version": self.settings.get("polardb_version"), "settings": 162}])
        if text == statements.SETTINGS:
            rows = [{"name": name, "value": value, "source": ""} for name, value in self.settings.items()]
            return WholeResult(rows)
        if params and "table" in params:
            return WholeResult([{**RELATION, "file": f"{self.prefix}base/5/16384"}])
        if "wal_lsn" in text:
            raise psycopg.OperationalError("not asked here")
        return WholeResult(self.answers.get(text, []))

    def close(self) -> None:
        """Do nothing."""


class Here(polardb.PolarDB):
    """A PolarDB whose first process is this one."""

    def server_pids(self, connection: Control) -> ServerProcesses:
        del connection
        return ServerProcesses(os.getpid())


class Elsewhere(polardb.PolarDB):
    """A PolarDB on another machine."""

    def server_pids(self, connection: Control) -> ServerProcesses:
        del connection
        return ServerProcesses(None, "the server is reached at 192.0.2.7, not on this machine")


@pytest.fixture
def node(tmp_path: Path) -> Path:
    own = tmp_path / "node"
    for folder in (own / "base/5", tmp_path / "shared/base/5", tmp_path / "shared/global", own / "global"):
        folder.mkdir(parents=True)
    for folder in (own, tmp_path / "shared"):
        (folder / "pg_wal").mkdir()
    (own / "postmaster.pid").write_text(f"{os.getpid()}\n")
    (tmp_path / "shared/base/5/16384").write_bytes(b"x" * 40960)
    return own


@pytest.mark.parametrize(
    ("prefix", "shared", "direct"),
    [
        ("", False, False),
        ("file-dio://{shared}/", True, True),
        ("file-dio://{shared}//", True, True),
        ("file://{shared}/", True, False),
        ("file-dio://./../shared/", True, True),
    ],
)
def test_the_files_are_where_the_server_says_that_they_are(
    node: Path, prefix: str, *, shared: bool, direct: bool
) -> None:
    found = Here().data_files(Polar(node, prefix.format(shared=node.parent / "shared")))
    assert found.folder is not None
    assert found.folder.resolve() == (node.parent / "shared" if shared else node)
    assert found.direct is direct
    if shared:
        ours = Here().data_files(Polar(node, prefix.format(shared=node.parent / "shared")), node)
        assert ours == found, "a private server's own folder is not that of its files either"


@pytest.mark.parametrize(
    ("engine", "prefix", "words"),
    [
        (Here(), "/nvme1n1/shared_data/", "they are in /nvme1n1/shared_data/ of PolarDB's shared storage"),
        (Here(), "pfsd:///nvme1n1/shared_data/", "not a folder of this machine"),
        (Here(), "file-dio:///no/such/folder/", "cannot be read from here: No such file"),
        (Elsewhere(), "file-dio:///no/such/folder/", "not on this machine"),
    ],
)
def test_files_that_cannot_be_seen_are_not_known(
    node: Path, engine: polardb.PolarDB, prefix: str, words: str
) -> None:
    control = Polar(node, prefix)
    found = engine.data_files(control)
    assert found.folder is None
    assert words in found.why
    assert found.direct
    assert any(words in note for note in WriteAccount(engine, control).notes)
    stored = engine.storage(control, ["t"])
    assert stored.tables[0]["allocated_bytes"] is None
    assert any(words in note for note in stored.notes)
    opened: Any = SimpleNamespace(engine=engine, data_directory=None)
    assert words in str(disk_space._places(opened, control, None))


def test_bytes_and_room_are_those_of_the_shared_storage(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = node.parent / "shared"
    looked: list[Path] = []
    control = Polar(node, f"file-dio://{shared}/")

    def mount_of(path: Path) -> None:
        looked.append(path)

    monkeypatch.setattr(machine, "mount_of", mount_of)
    WriteAccount(Here(), control)
    assert looked == [shared]
    (table,) = Here().storage(control, ["t"]).tables
    assert table["allocated_bytes"] == (shared / "base/5/16384").stat().st_blocks * 512 > 0
    opened: Any = SimpleNamespace(engine=Here(), data_directory=None)
    assert disk_space._places(opened, control, None) == (shared, shared, shared / "pg_wal")


def test_a_cache_of_the_system_is_claimed_only_where_there_is_one(node: Path) -> None:
    shared = node.parent / "shared"
    for prefix, direct in (("", False), (f"file://{shared}/", False), (f"file-dio://{shared}/", True)):
        caches = Here().flush_caches(Polar(node, prefix))
        assert ("the operating system keeps its own cache" in caches["note"]) is not direct
        assert ("with O_DIRECT" in caches["note"]) is direct


def test_tablespaces_are_not_offered_on_shared_storage(node: Path) -> None:
    tables = Here().tables
    plain, shared = Polar(node), Polar(node, f"file-dio://{node.parent / 'shared'}/")
    assert "tablespace" in tables.offers(plain)
    assert "tablespace" not in tables.offers(shared)
    assert tables.offers(plain) - tables.offers(shared) == {"tablespace"}
    with pytest.raises(LoadstoneError, match="in shared-storage mode has no tablespaces"):
        tables.refuse_tablespace(shared, "fast")


@pytest.mark.parametrize(
    ("prefix", "partial", "durable"),
    [
        ("file-dio:///shared/", "off", True),
        ("file-dio:///shared/", None, True),
        ("file-dio:///shared/", "on", False),
        ("file-dio:///shared/", "hidden", False),
        ("", "off", False),
    ],
)
def test_full_pages_in_the_wal_are_not_missed_where_pages_are_never_torn(
    node: Path, prefix: str, partial: str | None, *, durable: bool
) -> None:
    control = Polar(node, prefix, polar_has_partial_write=partial)
    (judged,) = (line for line in Here().durability(control) if line["setting"] == "full_page_writes")
    assert judged["durable"] is durable
    assert ("writes whole pages" in judged["why"]) is durable


@pytest.mark.parametrize(
    ("shown", "version"),
    [
        (None, "15.8.2.0"),
        ("", "15.8.2.0"),
        ("PolarDB V15.8.2.1 (open)", "15.8.2.1"),
        ("2.0.15.12.4.0", "2.0.15.12.4.0"),
    ],
)
def test_the_version_is_the_releases_own(node: Path, shown: str | None, version: str) -> None:
    found = Here().identify(Polar(node, polardb_version=shown))
    assert found["version"] == f"{version} on PostgreSQL 15.8"
    assert Here().postgres_version(found) == "15.8"


def test_an_installed_build_of_polardb_is_measured_as_polardb(monkeypatch: pytest.MonkeyPatch) -> None:
    def engine_of(text: str) -> str:
        nowhere: Any = None
        monkeypatch.setattr(PostgresFamily, "connect", lambda *_: SimpleNamespace(close=lambda: None))
        monkeypatch.setattr(PostgresFamily, "version", lambda *_: {"version_text": text})
        return PostgresFamily().of_build(nowhere, all_engines().values()).name

    assert engine_of(TEXT) == "polardb"
    assert engine_of("PostgreSQL 15.8 (Debian 15.8-1) on x86_64-linux-gnu") == "postgres"


def test_a_run_on_such_a_build_can_be_resumed() -> None:
    def plan(*targets: tuple[str, str]) -> Plan:
        planned = tuple(PlannedTarget(name, engine, "", ()) for name, engine in targets)
        return Plan("tiny", 1, 1, (), planned)

    old = plan(("pg-opt-polar-bin", "polardb"), ("elsewhere", "polardb"))
    build = replace(parse_target("pg:/opt/polar/bin"), id="pg-opt-polar-bin")
    server = replace(parse_target("polardb://somewhere"), id="elsewhere")
    expected = plan(("pg-opt-polar-bin", "postgres"), ("elsewhere", "polardb"))
    assert as_asked(old, (build, server)) == expected


# Private servers whose builds make large WAL segments


def test_wal_has_room_for_two_segments() -> None:
    sized = {"min_wal_size": "80MB", "max_wal_size": "128MB", "fsync": "on"}
    assert sizing.with_segments(sized, 16 << 20, {}) == sized
    large = {"min_wal_size": "2048MB", "max_wal_size": "2048MB", "fsync": "on"}
    assert sizing.with_segments(sized, 1 << 30, {}) == large
    own = {"min_wal_size": "3GB"}
    assert sizing.with_segments(sized | own, 1 << 30, own) == large | own


def test_a_build_of_large_segments_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """PolarDB's initdb makes segments of 1 GB; 64 MB do as well where the server is given 80 MB of WAL."""
    programs = builds.find_build("pg:system", server_account()).bin
    sized = sizing.sized_settings
    small = {"min_wal_size": "80MB", "max_wal_size": "128MB"}
    monkeypatch.setattr(sizing, "sized_settings", lambda *given: sized(*given) | small)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)  # the server's user is another
        for name, more in (("initdb", "--wal-segsize=64"), ("postgres", "")):
            (folder / name).write_text(f'#!/bin/sh\nexec {programs / name} "$@" {more}\n')
            (folder / name).chmod(0o755)
        running = stack.enter_context(EmbeddedServer(ServerSpec(f"pg:{folder}")))
        assert running.settings["min_wal_size"] == "128MB"
        with POSTGRES.connect(running.connection) as control:
            assert POSTGRES.text_value(control, "show wal_segment_size") == "64MB"


# What a plain server answers to PolarDB's queries


def test_the_queries_are_understood_by_a_plain_server(database: Database) -> None:
    engine = polardb.PolarDB()
    with control_of(database) as control:
        assert engine.data_files(control) == POSTGRES.data_files(control)
        assert not engine.writes_whole_pages(control)
        assert control.execute(polardb._PARTIAL).fetchone() == {"value": None}
        assert control.execute(polardb._LOOK).fetchone() == {"version": None, "settings": 0}
        assert "tablespace" in engine.tables.offers(control)

"""Every byte of a table is accounted for: by the server's kinds, and as the file system holds it."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from loadstone.engine.observe import storage
from loadstone.engine.observe.storage import BLOCK_BYTES
from loadstone.engine.observe.written import WriteAccount
from loadstone.engines.duckdb import ENGINE as DUCKDB
from loadstone.engines.opengauss import ENGINE as OPENGAUSS
from loadstone.engines.postgres import ENGINE as POSTGRES
from loadstone.engines.timescaledb import ENGINE as TIMESCALE
from loadstone.errors import LoadstoneError
from loadstone.private_server import EmbeddedServer, ServerSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.engine.observe.storage import TableStorage
    from loadstone.engine.postgres.connections import PostgresControl as Control

TALLY = """
with recursive t(oid) as (select '{table}'::regclass::oid union
    select inhrelid from t join pg_inherits on inhparent = oid)
select coalesce(sum(pg_total_relation_size(oid)), 0)::bigint as bytes from t
"""


@pytest.fixture(scope="module", params=["pg10", "pg:system", "pg18"])
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(ServerSpec(request.param, settings={"autovacuum": "off"})) as running:
        yield running


@pytest.fixture
def control(server: EmbeddedServer) -> Iterator[Control]:
    with POSTGRES.connect(POSTGRES.with_schema(server.connection)) as connection:
        POSTGRES.create_workspace(connection)
        yield connection
        POSTGRES.drop_workspace(connection)


def value(control: Control, sql: str) -> str:
    return POSTGRES.text_value(control, sql) or ""


def total(control: Control, table: str) -> int:
    """Sum up what the server says of a table and its partitions."""
    return int(value(control, TALLY.format(table=table)))


def files_of(data: Path, control: Control, relation: str) -> int:
    """Sum up the blocks of a relation's own files, the slow and simple way."""
    first = data / value(control, f"select pg_relation_filepath('{relation}')")
    same = [p for p in first.parent.iterdir() if p.name.split(".")[0].split("_")[0] == first.name]
    return sum(path.stat().st_blocks for path in same) * BLOCK_BYTES


def look(control: Control, table: str, data: Path | None = None) -> TableStorage:
    found = POSTGRES.storage(control, [table], data)
    assert found.notes == []
    (entry,) = found.tables
    assert entry["name"] == table
    kinds = (entry["heap_bytes"], entry["toast_bytes"], entry["index_bytes"] or 0, entry["map_bytes"])
    assert sum(kinds) == total(control, table)
    assert sum(index["bytes"] or 0 for index in entry["indexes"]) == entry["index_bytes"]
    return entry


def test_the_kinds_add_up_to_what_the_server_says(server: EmbeddedServer, control: Control) -> None:
    control.execute("create table t (id int primary key, data text)")
    control.execute("alter table t alter data set storage external")
    control.execute("create index on t (data) where length(data) < 100")
    control.execute("insert into t select i, repeat(i::text, 1500) from generate_series(1, 2000) i")
    control.execute("vacuum t")
    found = look(control, "t")
    assert found["toast_bytes"] > 2000 * 4000
    assert found["map_bytes"] > 0
    assert [index["name"] for index in found["indexes"]] == ["t_data_idx", "t_pkey"]
    assert look(control, "t", server.data_directory) == found


def test_allocated_bytes_are_those_of_all_segments_and_forks(
    server: EmbeddedServer, control: Control
) -> None:
    control.execute("create table t (id int, data text)")
    control.execute("create index i on t (id)")
    control.execute("insert into t select i, 'x' from generate_series(1, 100000) i")
    control.execute("vacuum t")
    data = server.data_directory
    found = look(control, "t", data)
    toast = "pg_toast.pg_toast_" + value(control, "select 't'::regclass::oid")
    parts = ("t", "i", toast, toast + "_index")
    assert found["allocated_bytes"] == sum(files_of(data, control, part) for part in parts)
    assert found["indexes"][0]["allocated_bytes"] == files_of(data, control, "i")
    assert (found["allocated_bytes"] or 0) >= total(control, "t")


def test_what_the_file_system_does_not_hold_is_not_allocated(
    server: EmbeddedServer, control: Control
) -> None:
    """A hole stands in for a file system that compresses."""
    control.execute("create table t as select i, repeat('x', 900) as data from generate_series(1, 20000) i")
    before = look(control, "t", server.data_directory)
    row = value(control, "select pg_relation_filepath('t')")
    os.truncate(server.data_directory / row, before["heap_bytes"] + (8 << 20))
    after = POSTGRES.storage(control, ["t"], server.data_directory).tables[0]
    assert after["heap_bytes"] == before["heap_bytes"] + (8 << 20)
    assert after["allocated_bytes"] == before["allocated_bytes"]
    os.truncate(server.data_directory / row, before["heap_bytes"])


def test_segments_beyond_the_first_gigabyte_belong_to_their_relation(tmp_path: Path) -> None:
    names = ("16384", "16384.1", "16384.10", "16384_fsm", "16384_vm", "16384_init", "16385", "t3_16384.1")
    for name in (*names, "PG_VERSION", "16384.old", "pg_filenode.map"):
        (tmp_path / name).write_bytes(b"x" * 4096)
    sizes = storage._folder(tmp_path)
    assert set(sizes) == {"16384", "16385", "t3_16384"}
    assert sizes["16384"] == sum((tmp_path / name).stat().st_blocks for name in names[:6]) * BLOCK_BYTES


def test_partitions_and_tablespaces_are_counted_with_their_table(
    server: EmbeddedServer, control: Control
) -> None:
    if server.installation.major < 11:
        indexes = "create index on p1 (id); create index on p2 (id)"
    else:
        indexes = "create index by_id on t (id)"
    with own_folder(server) as elsewhere:
        control.execute(f"create tablespace apart location '{elsewhere}'".encode())
        control.execute("create table t (id int, data text) partition by range (id)")
        control.execute("create table p1 partition of t for values from (0) to (50000)")
        control.execute("create table p2 partition of t for values from (50000) to (200000) tablespace apart")
        control.execute(indexes.encode())
        control.execute("insert into t select i, 'x' from generate_series(0, 150000) i")
        found = look(control, "t", server.data_directory)
        assert len(found["indexes"]) == (2 if server.installation.major < 11 else 1)
        assert (found["allocated_bytes"] or 0) >= total(control, "t")
        control.execute("drop table t")
        control.execute("drop tablespace apart")


@contextlib.contextmanager
def own_folder(server: EmbeddedServer) -> Iterator[Path]:
    """A folder that belongs to the server's user."""
    folder = Path(tempfile.mkdtemp(prefix="space-", dir="/var/tmp"))
    server.account.own(folder)
    yield folder
    shutil.rmtree(folder)


def test_what_was_deleted_is_free_once_vacuum_has_said_so(control: Control) -> None:
    control.execute("create table t as select i, repeat('x', 900) as data from generate_series(1, 8000) i")
    control.execute("vacuum t")
    full = look(control, "t")["free_bytes"] or 0
    control.execute("delete from t where i % 2 = 0")
    control.execute("vacuum t")
    found = look(control, "t")
    assert (found["free_bytes"] or 0) - full == pytest.approx(found["heap_bytes"] / 2, rel=0.15)
    assert value(control, "select count(*) from pg_extension where extname = 'pg_freespacemap'") == "1"


def test_what_a_user_may_not_see_is_null_with_the_reason(server: EmbeddedServer, control: Control) -> None:
    control.execute("create table t as select generate_series(1, 1000) as i")
    control.execute("create role visitor login")
    control.execute("grant usage on schema loadstone to visitor")
    with POSTGRES.connect(replace(server.connection, user="visitor")) as visitor:
        found = POSTGRES.storage(visitor, ["t"])
    (entry,) = found.tables
    assert entry["heap_bytes"] == total(control, "t") - entry["map_bytes"]
    assert (entry["free_bytes"], entry["allocated_bytes"]) == (None, None)
    assert "a checkpoint failed" in found.notes[0]
    assert any("pg_freespacemap is refused: " in note for note in found.notes)
    assert any("pg_read_all_settings" in note for note in found.notes)
    control.execute("drop owned by visitor")
    control.execute("drop role visitor")


def test_a_table_that_is_not_there_is_the_servers_own_trouble(control: Control) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable):
        POSTGRES.storage(control, ["nowhere"])


def test_opengausss_statements_are_understood_and_add_up(control: Control) -> None:
    """Its functions are PostgreSQL's, so that this server can answer them too."""
    control.execute("create table t (id int primary key, data text)")
    control.execute("insert into t select i, repeat('x', 100) from generate_series(1, 5000) i")
    (found,) = OPENGAUSS.storage(control, ["t"]).tables
    kinds = (found["heap_bytes"], found["toast_bytes"], found["index_bytes"] or 0)
    assert sum(kinds) == total(control, "t")
    assert [index["name"] for index in found["indexes"]] == ["t_pkey"]


def test_writes_are_accounted_for(server: EmbeddedServer, control: Control) -> None:
    account = WriteAccount(POSTGRES, control, server.data_directory)
    control.execute("create table t as select i, repeat('x', 900) as data from generate_series(1, 30000) i")
    found = look(control, "t", server.data_directory)
    written = account.written(control, logical_bytes=30000 * 904)
    assert account.notes == []
    assert 30000 * 904 < (written["wal_bytes"] or 0) < 30000 * 904 * 1.3
    assert (written["server_bytes"] or 0) > found["heap_bytes"] + (written["wal_bytes"] or 0) * 0.9
    assert (written["device_bytes"] or 0) > found["heap_bytes"]
    assert written["amplification"] == (written["device_bytes"] or 0) / (30000 * 904)
    assert "all writes to the disk " in written["of"]
    assert "by any process" in written["of"]


def test_writes_of_a_database_in_memory_are_not_known() -> None:
    with contextlib.closing(DUCKDB.open(DUCKDB.place(":memory:"), None, {})) as database:
        control = database.connect("loadstone")
        account = WriteAccount(DUCKDB, control)
        written = account.written(control, 1)
        assert DUCKDB.storage(control, ["t"]).notes == ["an in-memory database has no bytes on disk"]
    assert set(written.values()) == {None, "not observed"}
    assert len(account.notes) == 2


def test_duckdb_accounts_for_its_file(tmp_path: Path) -> None:
    file = tmp_path / "own.duckdb"
    with contextlib.closing(DUCKDB.open(DUCKDB.place(str(file)), None, {})) as database:
        control = database.connect("loadstone")
        DUCKDB.create_workspace(control)
        account = WriteAccount(DUCKDB, control, database.data_directory)
        control.execute("create table t (i bigint, x double)")
        control.execute("insert into t select i, random() from range(500000) r(i)")
        control.execute("create index by_i on t (i)")
        (table,) = DUCKDB.storage(control, ["t"]).tables
        written = account.written(control, 500000 * 16)
        assert table["heap_bytes"] % 4096 == 0
        assert 500000 * 4 < table["heap_bytes"] < (table["allocated_bytes"] or 0)
        assert table["indexes"] == [{"name": "by_i", "bytes": None, "allocated_bytes": None}]
        assert table["shared_file"]
        control.execute("create table u (i bigint)")
        both = DUCKDB.storage(control, ["t", "u"])
    assert (table["allocated_bytes"] or 0) <= file.stat().st_blocks * BLOCK_BYTES
    assert (written["device_bytes"] or 0) > 0
    assert (written["server_bytes"], written["wal_bytes"]) == (None, None)
    assert [entry["allocated_bytes"] for entry in both.tables] == [None, None]
    assert "all tables share one file" in both.notes[-1]


HYPERTABLE = (
    "create extension timescaledb",
    "create table m (time timestamptz not null, dev int, v float, note text)",
    "select create_hypertable('m', by_range('time', interval '1 day'))",
    "create index on m (dev, time)",
    """insert into m select '2026-01-01'::timestamptz + i * interval '1 minute', i % 10, i, repeat('x', 100)
       from generate_series(1, 20000) i""",
)


@pytest.fixture(scope="module")
def timescale() -> Iterator[EmbeddedServer]:
    """An installed server with TimescaleDB where that is installed too."""
    with EmbeddedServer(ServerSpec("pg:system")) as plain, POSTGRES.connect(plain.connection) as control:
        there = "extension:timescaledb" in POSTGRES.capabilities(control)
    loader = {"shared_preload_libraries": "timescaledb", "timescaledb.telemetry_level": "off"}
    with EmbeddedServer(ServerSpec("pg:system", settings=loader if there else {})) as running:
        yield running


def test_timescaledbs_own_sum_agrees_before_and_after_compression(timescale: EmbeddedServer) -> None:
    with TIMESCALE.connect(TIMESCALE.with_schema(timescale.connection)) as control:
        if "extension:timescaledb" not in POSTGRES.capabilities(control):
            with pytest.raises(LoadstoneError, match="the server does not have TimescaleDB"):
                TIMESCALE.identify(control)
            return
        TIMESCALE.create_workspace(control)
        for statement in HYPERTABLE:
            control.execute(statement.encode())
        plain = compare_with_timescaledb(control, timescale)
        control.execute("alter table m set (timescaledb.enable_columnstore, timescaledb.segmentby='dev')")
        for row in control.execute("select show_chunks('m')::text as name").fetchall():
            control.execute(f"call convert_to_columnstore('{row['name']}'::regclass)".encode())
        packed = compare_with_timescaledb(control, timescale)
    assert {"m_dev_time_idx", "m_time_idx"} == {index["name"] for index in plain["indexes"]}
    assert len(packed["indexes"]) == 3
    assert packed["heap_bytes"] < plain["heap_bytes"] / 10


def compare_with_timescaledb(control: Control, server: EmbeddedServer) -> TableStorage:
    (found,) = TIMESCALE.storage(control, ["m"], server.data_directory).tables
    row = control.execute("select * from hypertable_detailed_size('m')").fetchone() or {}
    assert found["index_bytes"] == row["index_bytes"]
    assert found["toast_bytes"] == row["toast_bytes"]
    assert found["heap_bytes"] + found["map_bytes"] == row["table_bytes"]
    assert (found["allocated_bytes"] or 0) >= row["total_bytes"]
    return found

"""What a server tells of its own machine by SQL: extensions with the functions of the real ones stand in."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from loadstone.engine.observe.remote import RemoteMachine
from loadstone.engines.postgres import ENGINE as POSTGRES
from loadstone.private_server import EmbeddedServer, ServerSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.engine.postgres.connections import PostgresControl as Control

# As the functions of pg_proctab 0.0.10, system_stats 4.0 and pg_stat_kcache 2.2 are declared.
SCRIPTS = {
    "pg_proctab": """
create function pg_cputime(out "user" bigint, out nice bigint, out system bigint, out idle bigint,
    out iowait bigint) returns setof record language sql immutable as 'values (1000, 0, 200, 3000, 50)';
create function pg_memusage(out memused bigint, out memfree bigint, out memshared bigint,
    out membuffers bigint, out memcached bigint, out swapused bigint, out swapfree bigint,
    out swapcached bigint) returns setof record language sql as 'values (6000, 2000, 0, 500, 3500, 0, 0, 0)';
create function pg_diskusage(out major smallint, out minor smallint, out devname text,
    out reads_completed bigint, out reads_merged bigint, out sectors_read bigint, out readtime bigint,
    out writes_completed bigint, out writes_merged bigint, out sectors_written bigint)
    returns setof record language sql as $$values
    (8::smallint, 0::smallint, 'sda ', 10, 0, 80, 0, 20, 0, 160),
    (8, 1, 'sda1', 10, 0, 80, 0, 20, 0, 160), (259, 0, 'nvme0n1', 1, 0, 8, 0, 2, 0, 16),
    (259, 1, 'nvme0n1p1', 1, 0, 8, 0, 2, 0, 16), (253, 0, 'dm-0', 99, 0, 99, 0, 99, 0, 99),
    (7, 0, 'loop0', 99, 0, 99, 0, 99, 0, 99)$$;
""",
    "system_stats": """
create function pg_sys_memory_info(out total_memory int8, out used_memory int8, out free_memory int8,
    out swap_total int8, out swap_used int8, out swap_free int8, out cache_total int8)
    returns setof record language sql as 'values (8000, 6000, 2000, 0, 0, 0, 3500)';
create function pg_sys_cpu_usage_info(out usermode_normal_process_percent float4,
    out idle_mode_percent float4, out io_completion_percent float4) returns setof record language sql
    as 'values (20::float4, 70::float4, 5::float4)';
create function pg_sys_io_analysis_info(out device_name text, out total_reads int8, out total_writes int8,
    out read_bytes int8, out write_bytes int8) returns setof record language sql
    as $$values ('vda', 10, 20, 40960, 81920), ('vda2', 10, 20, 40960, 81920)$$;
revoke all on function pg_sys_memory_info() from public;
""",
    "pg_stat_kcache": """
create function pg_stat_kcache(out queryid bigint, out top bool,
    out plan_reads bigint, out plan_writes bigint,
    out plan_user_time float8, out plan_system_time float8, out exec_reads bigint, out exec_writes bigint,
    out exec_user_time float8, out exec_system_time float8) returns setof record language sql
    as 'values (1, true, 1, 2, 0.5::float8, 0.25::float8, 10, 20, 1::float8, 2::float8),
        (2, false, 1, 2, 9, 9, 10, 20, 9, 9), (3, true, 0, 0, 0, 0, 100, 200, 1, 1)';
""",
}
WATCH = "; `--watch` shows them without it"
NOT_OBSERVED = "CPU, memory and IOPS of the server's machine are not observed: it is another machine, and "
DISK = {"read_ops": 11, "write_ops": 22, "read_bytes": 88 * 512, "write_bytes": 176 * 512}


@pytest.fixture(scope="module")
def extensions() -> Iterator[Path]:
    """A folder of extensions written in SQL alone."""
    base = Path(tempfile.mkdtemp(prefix="extensions-", dir="/var/tmp"))
    (base / "extension").mkdir()
    for name, script in SCRIPTS.items():
        (base / "extension" / f"{name}.control").write_text("default_version = '1'\nrelocatable = true\n")
        (base / "extension" / f"{name}--1.sql").write_text(script)
    for path in (base, *base.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    yield base
    shutil.rmtree(base)


@pytest.fixture(scope="module")
def server(extensions: Path) -> Iterator[EmbeddedServer]:
    settings = {"extension_control_path": f"{extensions}:$system"}
    with EmbeddedServer(ServerSpec("pg18", settings=settings)) as running:
        yield running


@pytest.fixture
def control(server: EmbeddedServer) -> Iterator[Control]:
    with POSTGRES.connect(server.connection) as connection:
        yield connection
        for name in SCRIPTS:
            connection.execute(f"drop extension if exists {name}".encode())


def machine(control: Control, *extensions: str) -> tuple[Any, list[str]]:
    for name in extensions:
        control.execute(f"create extension {name}".encode())
    found = RemoteMachine(control)
    return found.sample(control), found.notes


def test_without_an_extension_it_is_said_once_what_is_not_observed_and_what_would_help(
    control: Control,
) -> None:
    assert machine(control) == (None, [NOT_OBSERVED + "create extension pg_proctab would show them" + WATCH])


def test_a_server_that_has_none_of_them_is_told_their_names(postgres: EmbeddedServer) -> None:
    words = "the server has none of the extensions that would show them (pg_proctab, system_stats)" + WATCH
    with POSTGRES.connect(postgres.connection) as control:
        assert machine(control) == (None, [NOT_OBSERVED + words])


def test_pg_proctab_tells_cpu_memory_and_whole_disks(control: Control) -> None:
    sample, notes = machine(control, "pg_proctab")
    assert notes == []
    assert sample == {
        "cpu_s": {"user": 10.0, "nice": 0.0, "system": 2.0, "idle": 30.0, "iowait": 0.5},
        "cpu_busy": None,
        "memory_total_bytes": 8000 * 1024,
        "memory_used_bytes": 2000 * 1024,
        "disk": DISK,
        "statements": None,
        "sources": ["pg_proctab"],
    }


def test_system_stats_tells_how_busy_it_is(control: Control) -> None:
    sample, notes = machine(control, "system_stats")
    assert notes == []
    assert sample["cpu_busy"] == pytest.approx(0.25)
    assert (sample["memory_total_bytes"], sample["memory_used_bytes"]) == (8000, 2500)
    assert sample["disk"] == {"read_ops": 10, "write_ops": 20, "read_bytes": 40960, "write_bytes": 81920}
    assert sample["sources"] == ["system_stats"]


def test_one_tells_of_the_machine_and_pg_stat_kcache_of_statements(control: Control) -> None:
    sample, notes = machine(control, *SCRIPTS)
    assert notes == []
    assert sample["sources"] == ["pg_proctab", "pg_stat_kcache"]
    assert sample["statements"] == {
        "cpu_user_s": 2.5,
        "cpu_system_s": 3.25,
        "read_bytes": 111,
        "write_bytes": 222,
    }


def test_statements_alone_are_not_the_machine(control: Control) -> None:
    sample, notes = machine(control, "pg_stat_kcache")
    assert sample["statements"]["read_bytes"] == 111
    assert notes == [NOT_OBSERVED + "create extension pg_proctab would show them" + WATCH]


def test_what_is_refused_is_told_and_not_asked_again(server: EmbeddedServer, control: Control) -> None:
    control.execute("create role visitor login")
    control.execute("create extension system_stats")
    with POSTGRES.connect(replace(server.connection, user="visitor")) as visitor:
        found = RemoteMachine(visitor)
        assert [found.sample(visitor), found.sample(visitor)] == [None, None]
    assert found.notes == [
        "system_stats cannot be queried: permission denied for function pg_sys_memory_info",
        NOT_OBSERVED + "create extension pg_proctab would show them" + WATCH,
    ]
    control.execute("drop role visitor")


def test_trouble_that_passes_is_the_monitors(server: EmbeddedServer, control: Control) -> None:
    control.execute("create extension pg_proctab")
    with POSTGRES.connect(server.connection) as other:
        found = RemoteMachine(other)
        control.execute(f"select pg_terminate_backend({other.info.backend_pid})".encode())
        with pytest.raises(psycopg.OperationalError):
            found.sample(other)
    assert found.notes == []
    assert found.sample(control) is not None


def test_a_server_on_this_machine_is_not_asked(control: Control) -> None:
    assert POSTGRES.remote_machine(control) is None

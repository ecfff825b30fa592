"""Private servers, real ones: what they are while they live, and that nothing is left of them afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import psutil
import psycopg
import pytest
from support.sandbox import wait_until

from loadstone.errors import LoadstoneError
from loadstone.fetch.errors import MIRROR_VARIABLE
from loadstone.private_server import (
    NEWEST,
    PINNED,
    EmbeddedServer,
    Limits,
    ServerSpec,
    builds,
    check_short_name,
    data_folder,
    find_build,
    reap_orphans,
    server,
    sizing,
)
from loadstone.private_server.data_folder import make_folder, make_place
from loadstone.private_server.os_user import server_account
from loadstone.private_server.registry import MARK_FILE, Process, Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    StartChild = Callable[..., tuple[subprocess.Popen[str], int, Path, int]]

CHILD = """
import sys, time
from loadstone.private_server import EmbeddedServer, ServerSpec
embedded = EmbeddedServer(ServerSpec(keep="keep" in sys.argv))
embedded.start()
print(embedded.pid, embedded.data_directory, embedded.port, flush=True)
if "keep" in sys.argv:
    embedded.close()
else:
    time.sleep(600)  # until it is killed
"""


def query(
    embedded: EmbeddedServer, statement: bytes, *, tcp: bool = False, password: str | None = None
) -> Any:
    where = embedded.tcp_connection if tcp else embedded.connection
    with psycopg.connect(
        host=where.host,
        port=where.port,
        user=where.user,
        dbname=where.database,
        password=password or where.password,
        autocommit=True,
    ) as connection:
        cursor = connection.execute(statement)
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def records() -> list[str]:
    return [record.id for record in Registry(builds.cache_root(server_account()) / "servers").records()]


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(ServerSpec(clients=30, settings={"work_mem": "5MB"})) as running:
        yield running


@pytest.fixture
def child(own_registry: None) -> Iterator[StartChild]:
    """Start servers in processes of their own, in a registry that no other test's start reads."""
    del own_registry
    children: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> tuple[subprocess.Popen[str], int, Path, int]:
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD, *arguments], stdout=subprocess.PIPE, text=True
        )
        children.append(process)
        assert process.stdout is not None
        pid, data, port = process.stdout.readline().split()
        return process, int(pid), Path(data), int(port)

    yield start
    for process in children:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()
    reap_orphans()


def test_the_newest_build_runs_and_its_report_says_which_build_it_is(embedded: EmbeddedServer) -> None:
    assert query(embedded, b"show server_version") == embedded.installation.version
    assert embedded.installation.major == NEWEST
    assert f"zonky {PINNED[NEWEST][0]}" in embedded.build


def test_only_this_machine_and_only_the_servers_user_can_reach_it(embedded: EmbeddedServer) -> None:
    listening = {
        (entry.laddr.ip, entry.laddr.port)
        for entry in psutil.Process(embedded.pid).net_connections("tcp")
        if entry.status == psutil.CONN_LISTEN
    }
    assert listening == {("127.0.0.1", embedded.port)}
    folder = Path(embedded.connection.host)
    assert folder.stat().st_mode & 0o077 == 0
    assert len(str(folder / ".s.PGSQL.65535")) <= 107


def test_tcp_asks_for_the_password(embedded: EmbeddedServer) -> None:
    assert query(embedded, b"select 1", tcp=True) == 1
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        query(embedded, b"select 1", tcp=True, password="wrong")


def test_the_password_is_in_no_file_no_title_and_no_repr(embedded: EmbeddedServer) -> None:
    password = embedded.tcp_connection.password
    assert password
    assert password not in repr(embedded.tcp_connection)
    assert password not in " ".join(psutil.Process(embedded.pid).cmdline())
    home = embedded.log_file.parent
    files = [path for path in home.rglob("*") if path.is_file()]
    assert len(files) > 100
    assert not [path for path in files if password.encode() in path.read_bytes()]


def test_the_server_never_runs_as_root(embedded: EmbeddedServer) -> None:
    assert psutil.Process(embedded.pid).uids().real != 0
    assert embedded.data_directory.stat().st_uid == psutil.Process(embedded.pid).uids().real


def test_it_is_durable_and_sized_to_the_clients(embedded: EmbeddedServer) -> None:
    shown = {name: query(embedded, f"show {name}".encode()) for name in ("fsync", "full_page_writes")}
    assert shown == {"fsync": "on", "full_page_writes": "on"}
    assert query(embedded, b"show synchronous_commit") == "on"
    assert int(query(embedded, b"show max_connections")) == 30 + sizing.RESERVE_CONNECTIONS
    assert query(embedded, b"show server_encoding") == "UTF8"


def test_every_setting_it_tells_of_is_what_the_server_has(embedded: EmbeddedServer) -> None:
    spellings = {"timezone": "TimeZone"}
    for key, value in embedded.settings.items():
        name = spellings.get(key, key)
        same = f"select setting::text from pg_settings where name = '{name}'"
        unit = f"select unit from pg_settings where name = '{name}'"
        shown, of_unit = query(embedded, same.encode()), query(embedded, unit.encode())
        scale = {"8kB": 8, "kB": 1, "MB": 1024}.get(of_unit)
        if scale:
            assert int(value.removesuffix("MB")) * 1024 == int(shown) * scale, name
        else:
            assert shown.lower() == value.lower(), name
    assert embedded.settings["work_mem"] == "5MB"


@pytest.mark.parametrize("name", ["pg10", "pg:system"])
def test_start_and_stop_leave_nothing(name: str) -> None:
    with EmbeddedServer(ServerSpec(name)) as running:
        process, data = psutil.Process(running.pid), running.data_directory
        folders = [data.parent, Path(running.connection.host)]
        assert query(running, b"select 1") == 1
        assert data.parent.name in records()
    assert not _alive(process.pid)
    assert not any(folder.exists() for folder in folders)
    assert data.parent.name not in records()


def test_a_setting_the_server_does_not_know_is_answered_in_its_own_words() -> None:
    running = EmbeddedServer(ServerSpec(settings={"no_such_setting": "1"}))
    with pytest.raises(LoadstoneError, match="does not start") as refused:
        running.start()
    assert 'unrecognized configuration parameter "no_such_setting"' in refused.value.hint
    assert "no_such_setting=1" in refused.value.hint
    assert not running.data_directory.exists()
    assert not running.is_running()


def test_a_users_setting_wins_whatever_it_holds() -> None:
    with EmbeddedServer(ServerSpec(settings={"fsync": "off", "cluster_name": "it's a \\ name"})) as running:
        assert query(running, b"show fsync") == "off"
        assert query(running, b"show cluster_name") == "it's a \\ name"
        assert running.settings["fsync"] == "off"


@pytest.mark.parametrize("name", ["port", "listen_addresses", "Data_Directory", "a b", "x = 1\nfsync", ""])
def test_settings_that_are_not_the_users_are_refused(name: str) -> None:
    with pytest.raises(LoadstoneError):
        EmbeddedServer(ServerSpec(settings={name: "1"}))


@pytest.mark.parametrize("name", ["pg9", "pg19", "pg:relative/path", "pg:", "pg:/nonexistent"])
def test_a_short_name_that_means_nothing_is_refused(name: str) -> None:
    with pytest.raises(LoadstoneError) as refused:
        find_build(name, server_account())
    assert refused.value.hint


def test_every_pinned_build_has_its_short_name() -> None:
    assert set(builds.short_names()) == {"pg", *(f"pg{major}" for major in PINNED)}
    for name in builds.short_names():
        check_short_name(name)
        assert builds.is_short_name(name)


def test_storage_takes_the_data_and_is_left_as_it_was() -> None:
    storage = _storage()
    try:
        (storage / "lost+found").mkdir()
        with EmbeddedServer(ServerSpec(storage=storage)) as running:
            assert running.data_directory.is_relative_to(storage)
            assert query(running, b"select 1") == 1
            with EmbeddedServer(ServerSpec("pg17", storage=storage)) as second:
                assert query(second, b"select 1") == 1
        assert [entry.name for entry in storage.iterdir()] == ["lost+found"]
    finally:
        _remove(storage)


@pytest.mark.parametrize("killed", [False, True])
def test_what_a_server_kept_in_a_tablespace_goes_with_it(child: StartChild, *, killed: bool) -> None:
    space = _storage()
    try:
        server_account().own(space)
        statements = (
            f"create tablespace apart location '{space}'",
            "create table t (i int) tablespace apart",
        )
        if killed:
            process, pid, data, port = child()
            with psycopg.connect(
                host=str(data.parent), port=port, user="loadstone", dbname="loadstone", autocommit=True
            ) as connection:
                for statement in statements:
                    connection.execute(statement.encode())
            assert len(list(space.iterdir())) == 1
            process.kill()
            process.wait()
            wait_until(lambda: not _alive(pid), "the server has ended")
            reap_orphans()
        else:
            with EmbeddedServer(ServerSpec()) as running:
                for statement in statements:
                    query(running, statement.encode())
                (space / "notes.txt").write_text("the user's own")
            (space / "notes.txt").unlink()
        wait_until(lambda: list(space.iterdir()) == [], "the tablespace is empty")
    finally:
        _remove(space)


def test_storage_that_cannot_serve_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(LoadstoneError, match="does not exist"):
        EmbeddedServer(ServerSpec(storage=tmp_path / "missing")).start()
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(LoadstoneError, match="is not a folder"):
        EmbeddedServer(ServerSpec(storage=tmp_path / "thesis.txt")).start()
    with pytest.raises(LoadstoneError, match=r"not empty: it contains thesis\.txt"):
        EmbeddedServer(ServerSpec(storage=tmp_path)).start()
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_a_relative_storage_is_known_by_its_whole_path(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = _storage()
    try:
        monkeypatch.chdir(storage)
        place = make_place(server_account(), Path())
        assert place.data.is_relative_to(storage)
        assert make_folder(server_account(), Path()).is_relative_to(storage)
        place.remove()
        with pytest.raises(LoadstoneError, match="File name too long"):
            make_place(server_account(), storage / ("a" * 300))
    finally:
        monkeypatch.undo()
        _remove(storage)


def test_storage_that_the_server_may_not_write_is_refused() -> None:
    storage = _storage()
    inside = storage / "inside"
    inside.mkdir()
    storage.chmod(0o000 if os.geteuid() else 0o700)
    try:
        with pytest.raises(LoadstoneError, match="storage"):
            EmbeddedServer(ServerSpec(storage=inside)).start()
    finally:
        storage.chmod(0o700)
        _remove(storage)


def test_too_little_space_is_told_in_bytes_before_anything_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_folder, "SPACE_MIN_BYTES", 1 << 60)
    before = records()
    with pytest.raises(LoadstoneError, match="too little space") as refused:
        EmbeddedServer(ServerSpec()).start()
    assert "1,152,921,504,606,846,976" in refused.value.message
    assert records() == before


def test_a_taken_port_is_left_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    find = server.free_port
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = [taken.getsockname()[1], taken.getsockname()[1], find()]
        free = ports[-1]
        monkeypatch.setattr(server, "free_port", lambda: ports.pop(0))
        with EmbeddedServer(ServerSpec()) as running:
            assert running.port == free
            assert query(running, b"select 1") == 1


def test_a_server_that_is_never_ready_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_says_ready", lambda *_: False)
    running = EmbeddedServer(ServerSpec(limits=Limits(start_s=0.2)))
    with pytest.raises(LoadstoneError, match=r"not ready within 0\.2 seconds"):
        running.start()
    assert not running.data_directory.exists()
    assert not running.is_running()


def test_what_was_committed_survives_a_kill() -> None:
    with EmbeddedServer(ServerSpec()) as running:
        query(running, b"create table kept as select generate_series(1, 100) as i")
        pid, family = running.pid, psutil.Process(running.pid).children()
        running.kill()
        assert not running.is_running()
        wait_until(lambda: not any(_alive(process.pid) for process in family), "its children have ended")
        running.restart()
        assert running.pid != pid
        assert query(running, b"select count(*) from kept") == 100
        assert "automatic recovery" in running.log_tail(40)


def test_a_postmaster_killed_by_somebody_else_can_be_started_again() -> None:
    with EmbeddedServer(ServerSpec()) as running:
        os.kill(running.pid, signal.SIGKILL)
        wait_until(lambda: not running.is_running(), "it has ended")
        running.restart()
        assert query(running, b"select 1") == 1


def test_ctrl_c_in_the_terminal_does_not_reach_the_server(embedded: EmbeddedServer) -> None:
    assert os.getpgid(embedded.pid) != os.getpgid(0)
    assert os.getsid(embedded.pid) != os.getsid(0)


def test_our_own_death_stops_the_server_and_the_next_start_removes_its_data(child: StartChild) -> None:
    process, pid, data, _ = child()
    process.kill()
    process.wait()
    wait_until(lambda: not _alive(pid), "the server has ended")
    assert data.exists()
    assert any(str(data) in line for line in reap_orphans())
    assert not data.parent.exists()
    assert data.parent.name not in records()


def test_the_next_start_stops_a_server_that_outlived_its_owner(child: StartChild) -> None:
    """A kept server, made to look like one that was not to be kept: the last resort must work too."""
    _, pid, data, _ = child("keep")
    registry = Registry(builds.cache_root(server_account()) / "servers")
    record = next(record for record in registry.records() if record.id == data.parent.name)
    assert reap_orphans() == []
    registry.write(replace(record, keep=False))
    wait_until(lambda: not record.owner.alive, "its owner has ended")
    assert any("a running server" in line for line in reap_orphans())
    assert not _alive(pid)
    assert not data.parent.exists()


def test_a_kept_server_outlives_us_and_is_stopped_as_we_said(child: StartChild) -> None:
    process, pid, data, port = child("keep")
    assert process.wait(120) == 0
    assert _alive(pid)
    with psycopg.connect(
        host=str(data.parent), port=port, user="loadstone", dbname="loadstone"
    ) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
    os.kill(pid, signal.SIGINT)
    wait_until(lambda: not _alive(pid), "the server has ended")
    subprocess.run(["rm", "-r", data.parent], check=True)
    reap_orphans()
    assert data.parent.name not in records()


def test_the_farewell_says_how_to_connect_and_to_stop() -> None:
    running = EmbeddedServer(ServerSpec(keep=True))
    running.start()
    pid = running.pid
    try:
        running.close()
        words = running.farewell()
        assert f"kill -INT {pid}" in words
        assert f"-p {running.port}" in words
        assert str(running.data_directory) in words
        assert _alive(pid)
    finally:
        os.kill(pid, signal.SIGINT)
        os.waitpid(pid, 0)
        _remove(running.data_directory.parent)
        reap_orphans()


def test_reaping_touches_neither_the_living_nor_what_is_not_ours(
    embedded: EmbeddedServer, tmp_path: Path
) -> None:
    registry = Registry(tmp_path / "servers")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("mine")
    gone = Process(pid=os.getpid(), start_ticks=1)
    record = registry.new("some-server", [mine], mine / "data")
    assert registry.reap() == [], "the owner lives"
    registry.write(replace(record, owner=gone, host="another-host"))
    assert registry.reap() == [], "another host's processes cannot be judged from here"
    (mine / MARK_FILE).write_text("another-server")
    registry.write(replace(record, owner=gone, server=gone))
    registry.reap()
    assert (mine / "thesis.txt").exists()
    assert registry.records() == []
    assert embedded.is_running()


def test_what_a_signal_kept_from_being_removed_is_removed_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry(tmp_path / "servers")
    mine = tmp_path / "mine"
    (mine / "data").mkdir(parents=True)
    (mine / "data" / "PG_VERSION").write_text("18")
    (mine / "server.log").touch()
    record = registry.new("some-server", [mine], mine / "data")

    def cut_short(folder: Path, **_: bool) -> None:
        for file in folder.iterdir():
            if file.is_file():
                file.unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", cut_short)
        with pytest.raises(KeyboardInterrupt):
            registry.remove(record)
    (left,) = registry.records()
    assert left.ending
    registry.write(replace(left, owner=Process(pid=os.getpid(), start_ticks=1)))
    registry.reap()
    assert not mine.exists()
    assert registry.records() == []


def test_a_broken_record_hinders_nobody(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "strange.json").write_text('{"server": null, "owner": {}, "folders": 3}')
    assert registry.reap() == []


def test_a_process_number_used_again_is_another_process() -> None:
    me = Process.of(os.getpid())
    assert me is not None
    assert me.alive
    assert not replace(me, start_ticks=me.start_ticks + 1).alive
    assert Process.of(2**22 + 1) is None


def test_the_environment_cannot_lead_the_server_or_us_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PGHOST": "192.0.2.1",
        "PGHOSTADDR": "192.0.2.1",
        "PGPORT": "1",
        "PGDATA": "/nonexistent",
        "PGOPTIONS": "-c work_mem=nonsense",
        "PGUSER": "nobody-there",
        "PGDATABASE": "none",
    }.items():
        monkeypatch.setenv(name, value)
    with EmbeddedServer(ServerSpec()) as running:
        assert running.is_running()


def test_a_long_temporary_folder_leaves_room_for_the_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = _storage()
    try:
        long = storage / ("x" * 90)
        long.mkdir()
        for folder in (storage, long):
            folder.chmod(0o755)
        monkeypatch.setenv("TMPDIR", str(long))
        with EmbeddedServer(ServerSpec()) as running:
            assert running.data_directory.is_relative_to(long)
            assert query(running, b"select 1") == 1
            elsewhere = Path(running.connection.host)
        assert list(long.iterdir()) == []
        assert not elsewhere.exists()
    finally:
        _remove(storage)


def test_without_network_a_cached_build_serves_and_a_missing_one_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(MIRROR_VARIABLE, "/nonexistent/mirror")
    assert find_build("pg", server_account()).major == NEWEST
    cache = _storage()
    try:
        cache.chmod(0o755)
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
        with pytest.raises(LoadstoneError, match="is missing") as refused:
            find_build("pg18", server_account())
        assert f"{PINNED[18][0]}.jar" in str(refused.value)
        assert "/nonexistent/mirror" in str(refused.value)
    finally:
        _remove(cache)


def test_memory_is_shared_out_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for memory, shared in (
        (512 * sizing.MB, "128MB"),
        (16 * sizing.GB, "4096MB"),
        (2048 * sizing.GB, "8192MB"),
    ):
        monkeypatch.setattr(sizing, "memory_bytes", lambda memory=memory: memory)
        assert sizing.sized_settings(8, tmp_path)["shared_buffers"] == shared


def test_servers_of_one_run_have_the_same_room_for_wal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first server has used some of the disk before the second is sized."""

    def sized(free: int) -> list[str]:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
        found = sizing.sized_settings(8, tmp_path)
        return [found["max_wal_size"], found["min_wal_size"]]

    for free in (15 * sizing.GB, 30 * sizing.GB, 70 * sizing.GB):
        assert sized(free) == sized(free - 300 * sizing.MB)
    assert sized(100 * sizing.GB) == ["4096MB", "1024MB"]
    assert sized(1) == ["128MB", "80MB"]


def _alive(pid: int) -> bool:
    return Process.of(pid) is not None


def _storage() -> Path:
    """A folder that the server's user can reach, which pytest's own are not when we are root."""
    folder = Path(tempfile.mkdtemp(prefix="storage-", dir="/var/tmp"))
    if os.geteuid() == 0:
        folder.chmod(0o755)
    return folder


def _remove(folder: Path) -> None:
    shutil.rmtree(folder)


def test_an_interrupted_program_leaves_none_of_its_children(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The children would go on writing into the folder that is being removed."""

    length = f"60.{os.getpid()}"

    def children() -> list[list[str]]:
        return [process.info["cmdline"] for process in psutil.process_iter(["cmdline"])]

    def interrupt(*_: object, **__: object) -> None:
        wait_until(lambda: ["sleep", length] in children(), "its child runs")
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupt)
    with pytest.raises(KeyboardInterrupt):
        server_account().run(["sh", "-c", f"sleep {length} & wait"], Path("/"), 30)
    monkeypatch.undo()
    assert ["sleep", length] not in children()

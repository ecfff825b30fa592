"""Control groups: read as the kernel writes them, made where the system lets us, and a real server in one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from support.sandbox import wait_until

from loadstone.errors import LoadstoneError
from loadstone.host.cgroup import ControlGroup
from loadstone.private_server import EmbeddedServer, ServerSpec, memory_limit, reap_orphans, server, sizing
from loadstone.private_server.memory_limit import Groups, choose_groups, remove_groups

if TYPE_CHECKING:
    from collections.abc import Mapping

MB = 1 << 20
V2 = "31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n"
V1 = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
34 31 0:31 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio
"""
UNIFIED = {
    "memory.current": "300000000",
    "memory.max": "400000000",
    "memory.stat": "anon 90000000\nfile 150000000\nshmem 50000000\n",
    "memory.events": "low 0\nhigh 0\nmax 7\noom 2\noom_kill 1\n",
    "io.stat": "8:0 rbytes=1000 wbytes=2000 rios=3 wios=4 dbytes=0\n8:16 rbytes=1 wbytes=2 rios=1 wios=1\n",
    "cpu.stat": "usage_usec 2500000\nuser_usec 2000000\n",
}


def tree(root: Path, mounts: str, groups: Mapping[str, str], files: Mapping[str, str]) -> Path:
    """Write what the kernel would show: the mounts, the groups of processes, the groups' files."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text(mounts)
    for process, lines in groups.items():
        (root / "proc" / process).mkdir(exist_ok=True)
        (root / "proc" / process / "cgroup").write_text(lines)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def unified(root: Path, theirs: str = "/system.slice/postgresql.service", ours: str = "/user.slice") -> Path:
    files = {f"system.slice/postgresql.service/{name}": text for name, text in UNIFIED.items()}
    files |= {"system.slice/memory.max": "350000000", "user.slice/cgroup.procs": ""}
    return tree(root, V2, {"self": f"0::{ours}\n", "77": f"0::{theirs}\n"}, files)


def test_version_2_tells_memory_cache_bytes_and_time(tmp_path: Path) -> None:
    group = ControlGroup.of(77, unified(tmp_path))
    assert group is not None
    assert group.counts_device_bytes
    assert group.sample() == {
        "memory_bytes": 300000000,
        "cache_bytes": 100000000,  # PostgreSQL's buffers are shared memory, and no cache of files
        "limit_bytes": 350000000,  # that of the slice above is narrower
        "oom_kills": 1,
        "read_bytes": 1001,
        "write_bytes": 2002,
        "read_ops": 4,
        "write_ops": 5,
        "cpu_s": 2.5,
    }


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("/", "/user.slice"),
        ("/user.slice", "/user.slice"),
        ("/system.slice", "/system.slice/postgresql.service"),
        ("/gone.service", "/user.slice"),
    ],
)
def test_a_group_that_holds_us_or_all_says_nothing_of_the_server(
    tmp_path: Path, theirs: str, ours: str
) -> None:
    assert ControlGroup.of(77, unified(tmp_path, theirs, ours)) is None


def test_a_group_that_is_gone_leaves_no_sample(tmp_path: Path) -> None:
    group = ControlGroup.of(77, unified(tmp_path))
    assert group is not None
    for path in (tmp_path / "sys/fs/cgroup/system.slice/postgresql.service").iterdir():
        path.unlink()
    (tmp_path / "sys/fs/cgroup/system.slice/memory.max").unlink()
    assert group.sample() is None


def version_1(root: Path, devices: str) -> Path:
    theirs = "4:memory:/pg\n3:cpuacct:/pg\n2:blkio:/pg\n0::/\n"
    files = {
        "memory/pg/memory.usage_in_bytes": "300000000\n",
        "memory/pg/memory.limit_in_bytes": "400000000\n",
        "memory/memory.limit_in_bytes": "9223372036854771712\n",
        "memory/pg/memory.stat": "cache 1\ntotal_cache 150000000\ntotal_shmem 50000000\n",
        "memory/pg/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
        "cpuacct/pg/cpuacct.usage": "2500000000\n",
        "blkio/pg/blkio.throttle.io_service_bytes_recursive": devices,
        "blkio/pg/blkio.throttle.io_serviced_recursive": "8:0 Read 3\n8:0 Write 4\nTotal 7\n",
    }
    ours = "4:memory:/\n3:cpuacct:/\n2:blkio:/\n0::/\n"
    return tree(root, V1, {"self": ours, "77": theirs}, files)


def test_version_1_tells_the_same(tmp_path: Path) -> None:
    devices = "8:0 Read 1000\n8:0 Write 2000\n8:0 Total 3000\n8:16 Write 2\nTotal 3002\n"
    group = ControlGroup.of(77, version_1(tmp_path, devices))
    assert group is not None
    assert not group.counts_device_bytes
    assert group.sample() == {
        "memory_bytes": 300000000,
        "cache_bytes": 100000000,
        "limit_bytes": 400000000,
        "oom_kills": 3,
        "read_bytes": 1000,
        "write_bytes": 2002,
        "read_ops": 3,
        "write_ops": 4,
        "cpu_s": 2.5,
    }


def test_a_kernel_that_does_not_count_bytes_has_counted_no_nothing(tmp_path: Path) -> None:
    group = ControlGroup.of(77, version_1(tmp_path, "Total 0\n"))
    assert group is not None
    sample = group.sample() or {}
    assert (sample["read_bytes"], sample["write_bytes"]) == (None, None)


def delegated(root: Path, files: Mapping[str, str]) -> Path:
    procs = {f"{folder}cgroup.procs": "" for folder in ("", "user/", "user/session/")}
    return tree(root, V2, {"self": "0::/user/session\n"}, {**procs, **files})


def test_a_group_is_made_as_high_as_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"cgroup.subtree_control": "cpu memory", "user/cgroup.subtree_control": "memory pids"}
    root = delegated(tmp_path, files)
    assert choose_groups("mine", root) == Groups((root / "sys/fs/cgroup/mine",), unified=True)
    allowed = str(root / "sys/fs/cgroup/user")
    monkeypatch.setattr(os, "access", lambda path, _: str(path).startswith(allowed))
    assert choose_groups("mine", root) == Groups((root / "sys/fs/cgroup/user/mine",), unified=True)


def test_no_limit_that_we_are_under_is_escaped(tmp_path: Path) -> None:
    files = {
        "cgroup.subtree_control": "memory",
        "user/cgroup.subtree_control": "memory",
        "user/cpu.max": "50000 100000",
        "user/memory.max": "max",
    }
    root = delegated(tmp_path, files)
    assert choose_groups("mine", root) == Groups((root / "sys/fs/cgroup/user/mine",), unified=True)


def test_where_none_can_be_made_words_say_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = delegated(tmp_path / "plain", {"cgroup.subtree_control": "cpu pids"})
    assert "passes the memory controller on" in str(choose_groups("mine", plain))
    closed = delegated(tmp_path / "closed", {"cgroup.subtree_control": "memory"})
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert choose_groups("mine", closed) == "this user may not create a control group below its own"


def test_version_1_is_used_where_2_has_no_memory(tmp_path: Path) -> None:
    root = version_1(tmp_path, "")
    for name in ("memory", "cpuacct"):
        (root / "sys/fs/cgroup" / name / "cgroup.procs").write_text("")
    found = choose_groups("mine", root)
    folders = tuple(root / "sys/fs/cgroup" / name / "mine" for name in ("memory", "cpuacct"))
    assert found == Groups(folders, unified=False)
    assert found.doors == tuple(folder / "cgroup.procs" for folder in folders)


def test_only_groups_of_the_name_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limit, "_REMOVE_WAIT_S", 0.1)
    for name in ("mine", "yours"):
        (tmp_path / name).mkdir()
    assert remove_groups((str(tmp_path / "mine"), str(tmp_path / "yours")), "mine")
    assert [path.name for path in tmp_path.iterdir()] == ["yours"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("a folder of another kind")
    assert not remove_groups((str(tmp_path / "mine"),), "mine")
    assert (tmp_path / "mine" / "file").exists()


def test_the_launcher_writes_to_no_file_but_a_groups_door(tmp_path: Path) -> None:
    file = tmp_path / "program"
    file.write_text("#!/bin/sh")
    launch = Path(memory_limit.__file__).with_name("launch.py")
    command = [sys.executable, "-I", "-S", str(launch), "-1", "-1", "0", str(file), "/bin/true"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "is not the file of a control group" in ended.stderr
    assert file.read_text() == "#!/bin/sh"


def test_settings_are_sized_to_the_limit(tmp_path: Path) -> None:
    sized = sizing.sized_settings(10, tmp_path, 256 * MB)
    assert (sized["shared_buffers"], sized["maintenance_work_mem"]) == ("64MB", "16MB")
    assert sized["effective_cache_size"] == "192MB"
    assert sized["huge_pages"] == "off"
    assert "huge_pages" not in sizing.sized_settings(10, tmp_path)


@pytest.mark.parametrize("buffers", ["16MB", "16384kB", "2048"])
def test_a_limit_in_which_no_server_lives_is_refused_with_the_least(buffers: str) -> None:
    settings = {"shared_buffers": buffers, "max_connections": "30"}
    least = sizing.least_memory(settings)
    sizing.refuse_too_little(None, settings)
    sizing.refuse_too_little(least, settings)
    with pytest.raises(LoadstoneError, match="of memory are too little for a private server") as refused:
        sizing.refuse_too_little(least - 1, settings)
    assert refused.value.hint == "Set the limit to 55MB or more, or lower these settings."


LIMIT = 96 * MB
SMALL = ServerSpec(clients=4, memory_bytes=LIMIT, wished={"shared_buffers": "16MB", "autovacuum": "off"})
ROWS = "create table t as select i, repeat('x', 900) as data from generate_series(1, 200000) i"
"""Twice as many bytes as the server may have memory."""


def execute(running: EmbeddedServer, statement: str) -> None:
    where = running.connection
    with psycopg.connect(
        host=where.host, port=where.port, user=where.user, dbname=where.database, autocommit=True
    ) as connection:
        connection.execute(statement.encode())


def test_a_real_server_lives_within_its_limit_and_its_groups_go_with_it() -> None:
    with EmbeddedServer(SMALL) as running:
        execute(running, ROWS)
        if running.memory_limit_bytes is None:
            # Nothing can be made here: then words must say so, and the server runs all the same.
            assert "is not limited to 100,663,296 bytes as requested" in running.notes[0]
            return
        group = ControlGroup.of(running.pid)
        assert group is not None
        folders = [folders[0] for folders in group.ancestries.values()]
        sample = group.sample() or {}
        assert sample["limit_bytes"] == LIMIT
        assert 0.5 * LIMIT < sample["memory_bytes"] <= LIMIT
        assert 10 * MB < sample["cache_bytes"] < LIMIT - 30 * MB
        assert sample["oom_kills"] == 0
        assert sample["cpu_s"] > 0
        assert running.settings["shared_buffers"] == "16MB"
        running.restart()
        assert ControlGroup.of(running.pid) is not None
    assert not any(folder.exists() for folder in folders)


def test_a_limit_too_small_is_refused_and_leaves_nothing() -> None:
    order = ServerSpec(clients=4, memory_bytes=20 * MB)
    running = EmbeddedServer(order)
    if isinstance(choose_groups("probe"), str):
        running.start()
        assert running.memory_limit_bytes is None
        running.close()
        return
    with pytest.raises(LoadstoneError, match="20,971,520 bytes of memory are too little"):
        running.start()
    assert not running.data_directory.exists()
    assert running._record is not None
    assert running._record.groups
    assert not any(Path(folder).exists() for folder in running._record.groups)


def test_the_users_settings_beat_the_scenarios() -> None:
    order = ServerSpec(wished={"work_mem": "5MB", "shared_buffers": "32MB"}, settings={"work_mem": "6MB"})
    assert EmbeddedServer(order)._own_settings == {"work_mem": "6MB", "shared_buffers": "32MB"}
    with pytest.raises(LoadstoneError, match="Loadstone itself sets"):
        EmbeddedServer(ServerSpec(wished={"port": "1"}))


def test_a_group_that_the_system_refuses_is_a_note(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nowhere = Groups((tmp_path / "missing" / "group",), unified=True)
    monkeypatch.setattr(server, "choose_groups", lambda _: nowhere)
    with EmbeddedServer(ServerSpec(clients=4, memory_bytes=LIMIT)) as running:
        assert running.memory_limit_bytes is None
        assert running.notes[0].startswith(
            "the private server's memory is not limited to 100,663,296 bytes as requested: "
        )
        execute(running, "select 1")


CHILD = """
import time
from loadstone.private_server import EmbeddedServer, ServerSpec
embedded = EmbeddedServer(ServerSpec(clients=4, memory_bytes=100 << 20, wished={"shared_buffers": "16MB"}))
embedded.start()
print(embedded.data_directory, *embedded._doors, flush=True)
time.sleep(600)  # until it is killed
"""


@pytest.mark.usefixtures("own_registry")
def test_groups_of_a_killed_loadstone_are_removed_by_the_next_start() -> None:
    with subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        data, *doors = map(Path, child.stdout.readline().split())
        child.kill()
    assert bool(doors) == (not isinstance(choose_groups("probe"), str))
    assert all(door.exists() for door in doors)

    def reaped() -> bool:
        reap_orphans()
        return not data.exists()

    wait_until(reaped, "the data of the killed one is removed")
    assert not any(door.parent.exists() for door in doors)

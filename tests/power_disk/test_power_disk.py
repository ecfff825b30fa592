"""The power disk, mounted: what programs see, what is there after a loss, and how it goes away."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import select
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.sandbox import NOBODY, make_base

from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.power_disk import PowerDisk, available, reap
from loadstone.power_disk.mounts import detach, mounts
from loadstone.private_server.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator

STORE = ".loadstone-power-disk"
_REASON = available()
pytestmark = pytest.mark.skipif(_REASON is not None, reason=f"no power disk here: {_REASON}")


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    backing, mount = tmp_path / "backing", tmp_path / "a mount\nwith ä"
    backing.mkdir()
    mount.mkdir()
    return backing, mount


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PowerDisk]:
    base = tmp_path_factory.mktemp("disk")
    (base / "backing").mkdir()
    (base / "mount").mkdir()
    with PowerDisk(base / "backing", base / "mount") as disk:
        yield disk
    assert not os.path.ismount(base / "mount")


@pytest.fixture
def disk(shared: PowerDisk) -> Iterator[PowerDisk]:
    """An empty disk; one process serves those of all tests."""
    yield shared
    shutil.rmtree(shared.mount, ignore_errors=True)
    shared.sync()
    counters = shared.counters()
    assert (counters.unsynced_bytes, counters.unsynced_names, counters.broken) == (0, 0, "")
    assert [path.name for path in shared.backing.iterdir()] == [STORE]


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_synced(path: Path, data: bytes, flags: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o600)
    os.write(handle, data)
    os.close(handle)


def test_loses_what_was_not_synced_and_keeps_what_was(disk: PowerDisk) -> None:
    (disk.mount / "synced").write_bytes(b"1" * 10_000)
    sync(disk.mount / "synced")
    (disk.mount / "new").write_bytes(b"2" * 10_000)
    with (disk.mount / "synced").open("r+b") as file:
        file.seek(5000)
        file.write(b"3")
        file.truncate(9_000)
    assert disk.counters().unsynced_bytes == 4 * 4096
    lost = disk.lose()
    assert (lost.bytes, lost.files, lost.names) == (4 * 4096, 1, 1)
    assert lost.examples == ("new",)
    assert os.listdir(disk.mount) == ["synced"]  # noqa: PTH208
    assert (disk.mount / "synced").read_bytes() == b"1" * 10_000
    assert disk.counters().unsynced_bytes == 0


def test_names_are_durable_when_the_directory_was_synced(folders: tuple[Path, Path]) -> None:
    with PowerDisk(*folders, strict=True) as disk:
        for name in "ab":
            (disk.mount / name).write_text(name)
            sync(disk.mount / name)
        disk.lose()
        assert not list(disk.mount.iterdir())
        (disk.mount / "a").write_text("a")
        sync(disk.mount / "a")
        sync(disk.mount)
        (disk.mount / "a").rename(disk.mount / "b")
        disk.lose()
        assert [path.name for path in disk.mount.iterdir()] == ["a"]
        (disk.mount / "a").rename(disk.mount / "b")
        sync(disk.mount)
        (disk.mount / "b").unlink()
        disk.lose()
        assert (disk.mount / "b").read_text() == "a"


def test_a_replaced_file_is_the_old_or_the_new_one(disk: PowerDisk) -> None:
    file, new = disk.mount / "file", disk.mount / "file.tmp"
    file.write_text("old")
    sync(file)
    new.write_text("new")
    sync(new)
    new.rename(file)
    disk.lose()
    assert (file.read_text(), new.read_text()) == ("old", "new")
    new.rename(file)
    sync(file)
    disk.lose()
    assert [path.name for path in disk.mount.iterdir()] == ["file"]
    assert file.read_text() == "new"


@pytest.mark.parametrize("flag", ["O_SYNC", "O_DSYNC"])
def test_synchronous_writes_are_durable(disk: PowerDisk, flag: str) -> None:
    write_synced(disk.mount / "file", b"x" * 8192, getattr(os, flag))
    disk.lose()
    assert (disk.mount / "file").read_bytes() == b"x" * 8192


def test_direct_writes_alone_are_not_durable(disk: PowerDisk) -> None:
    with mmap.mmap(-1, 8192) as aligned:
        handle = os.open(disk.mount / "file", os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o600)
        os.write(handle, aligned)
        os.close(handle)
    assert disk.lose().bytes == 8192
    assert not (disk.mount / "file").exists()


def test_sync_file_range_and_syncfs_give_nothing(disk: PowerDisk) -> None:
    (disk.mount / "file").write_bytes(b"x")
    subprocess.run(["sync", "--file-system", disk.mount], check=True)
    disk.lose()
    assert not (disk.mount / "file").exists()


def test_sync_makes_everything_durable(disk: PowerDisk) -> None:
    (disk.mount / "folder").mkdir(mode=0o700)
    (disk.mount / "folder" / "file").write_bytes(b"x")
    disk.sync()
    disk.lose()
    assert (disk.backing / "folder" / "file").read_bytes() == b"x"
    assert (disk.mount / "folder").stat().st_mode & 0o777 == 0o700


def test_a_shared_mapping_writes_to_the_file(disk: PowerDisk) -> None:
    (disk.mount / "file").write_bytes(bytes(8192))
    with (disk.mount / "file").open("r+b") as file:
        with mmap.mmap(file.fileno(), 8192) as mapped:
            mapped[5000] = 7
            mapped.flush()
            mapped[6000] = 8
        os.fsync(file.fileno())
    disk.lose()
    data = (disk.mount / "file").read_bytes()
    assert (data[5000], data[6000]) == (7, 8)


def test_links_permissions_holes_and_locks(disk: PowerDisk) -> None:
    file, link, target = (disk.mount / name for name in ("file", "link", "target"))
    file.touch(mode=0o640)
    os.truncate(file, 1 << 40)
    with file.open("r+b") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.posix_fallocate(handle.fileno(), 1 << 40, 10)
        handle.seek((1 << 40) - 1)
        handle.write(b"x")
    os.chown(file, 1234, 1234)
    link.hardlink_to(file)
    target.symlink_to("file")
    disk.sync()
    disk.lose()
    found = link.stat()
    assert (found.st_nlink, found.st_ino) == (2, file.stat().st_ino)
    assert (found.st_size, found.st_mode & 0o777) == ((1 << 40) + 10, 0o640)
    assert (found.st_uid, found.st_gid) == (1234, 1234)
    assert target.readlink() == Path("file")
    with target.open("rb") as handle:
        handle.seek((1 << 40) - 2)
        assert handle.read(3) == b"\0x\0"
    assert (disk.backing / "file").stat().st_blocks < 1000
    assert os.statvfs(disk.mount).f_bavail > 0


def make(folder: Path, names: set[str]) -> None:
    for name in names:
        os.close(os.open(folder / name, os.O_CREAT))


def test_hostile_names_are_durable(disk: PowerDisk) -> None:
    names = {os.fsdecode(b"a\n\xff\xfe"), "ä" * 127, "-rf", "x" * 255}
    make(disk.mount, names)
    sync(disk.mount)
    disk.lose()
    assert set(os.listdir(disk.mount)) == names  # noqa: PTH208
    assert set(os.listdir(disk.backing)) == names | {STORE}  # noqa: PTH208


@pytest.mark.slow
def test_ten_thousand_files_are_listed_and_lost(disk: PowerDisk) -> None:
    names = {f"file {number}" for number in range(10_000)}
    make(disk.mount, names)
    assert set(os.listdir(disk.mount)) == names  # noqa: PTH208
    assert disk.lose().names == 10_000
    assert not os.listdir(disk.mount)  # noqa: PTH208


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a small file system")
def test_a_full_disk_fails_the_sync_and_takes_nothing_that_is_durable(folders: tuple[Path, Path]) -> None:
    backing, mount = folders
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", backing], check=True)
    try:
        with PowerDisk(backing, mount) as disk:
            (mount / "small").write_bytes(b"x" * (1 << 20))
            sync(mount / "small")
            (mount / "large").write_bytes(b"y" * (3 << 20))
            with pytest.raises(OSError, match="No space left"):
                sync(mount / "large")
            assert (mount / "large").read_bytes() == b"y" * (3 << 20)
            with pytest.raises(RunFailedError, match="No space left"):
                disk.sync()
            disk.lose()
            assert (mount / "small").read_bytes() == b"x" * (1 << 20)
            sync(mount / "small")
            assert disk.counters().broken == ""
    finally:
        subprocess.run(["umount", backing], check=True)


def test_survivors_are_whole_pages_that_the_seed_decides(disk: PowerDisk) -> None:
    found = []
    for _ in range(2):
        (disk.mount / "file").write_bytes(bytes(64 * 4096))
        sync(disk.mount / "file")
        with (disk.mount / "file").open("r+b") as file:
            file.write(b"x" * 64 * 4096)
        lost = disk.lose(seed=5, keep=0.5)
        assert lost.bytes + lost.survived_bytes == 64 * 4096
        found.append((disk.mount / "file").read_bytes())
    pages = {found[0][at : at + 4096] for at in range(0, 64 * 4096, 4096)}
    assert pages == {bytes(4096), b"x" * 4096}
    assert found[0] == found[1]


def test_the_oldest_is_written_back_above_the_most_unsynced_bytes(folders: tuple[Path, Path]) -> None:
    with PowerDisk(*folders, most_unsynced_bytes=1 << 20) as disk:
        (disk.mount / "file").write_bytes(b"x" * (3 << 20))
        sync(disk.mount)
        (disk.mount / "file").write_bytes(b"y" * (3 << 20))
        counters = disk.counters()
        assert counters.unsynced_bytes <= 1 << 20
        assert counters.written_back_bytes >= 4 << 20
        assert (disk.mount / "file").read_bytes() == b"y" * (3 << 20)


def test_refuses_a_loss_while_files_are_open_unless_forced(disk: PowerDisk) -> None:
    with (disk.mount / "open").open("wb"):
        with pytest.raises(RunFailedError, match="1 files are open on the power disk: open"):
            disk.lose()
        assert disk.lose(force=True).names == 1
    assert not (disk.mount / "open").exists()


def test_goes_away_while_somebody_uses_it_and_names_them(folders: tuple[Path, Path]) -> None:
    with PowerDisk(*folders) as disk:
        (disk.mount / "file").write_bytes(b"x")
        sleeper = subprocess.Popen(["sleep", "60"], cwd=disk.mount)
    try:
        assert disk.used_by == [f"sleep ({sleeper.pid})"]
        assert not os.path.ismount(disk.mount)
        assert (disk.backing / "file").read_bytes() == b"x"
        assert [path.name for path in disk.backing.iterdir()] == ["file"]
    finally:
        sleeper.kill()
        sleeper.wait()


_RUN = """
import sys, time
from pathlib import Path
from loadstone.power_disk import PowerDisk
with PowerDisk(Path(sys.argv[1]), Path(sys.argv[2])) as disk:
    (disk.mount / "synced").write_text("x")
    disk.sync()
    (disk.mount / "file").write_text("x")
    print(disk._process.pid, flush=True)
    time.sleep(60)  # until it is killed
"""


@contextlib.contextmanager
def another(folders: tuple[Path, Path], *before: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Let another Loadstone, which is killed at the end, mount a disk; gives it and its serving process."""
    command = [*before, sys.executable, "-c", _RUN, *map(str, folders)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdout is not None
        yield process, int(process.stdout.readline())
        process.kill()


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def killed(folders: tuple[Path, Path]) -> Iterator[tuple[subprocess.Popen[str], int]]:
    with another(folders) as found:
        yield found


def wait_for_end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        select.select([handle], [], [], 120)
        os.close(handle)


def test_is_unmounted_when_loadstone_is_killed(
    folders: tuple[Path, Path], killed: tuple[subprocess.Popen[str], int]
) -> None:
    process, server = killed
    process.kill()
    wait_for_end(server)
    assert not os.path.ismount(folders[1])
    assert [path.name for path in folders[0].iterdir() if path.name[0] != "."] == ["synced"]


_REAP = """
from loadstone.power_disk import reap
print(*reap(), sep="\\n")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has mounts of its own")
def test_the_next_start_unmounts_what_two_killed_processes_left(folders: tuple[Path, Path]) -> None:
    """In a mount namespace: elsewhere the start of any other test's server may be the next one."""
    with another(folders, "unshare", "--mount") as (process, server):
        os.kill(process.pid, signal.SIGSTOP)
        os.kill(server, signal.SIGKILL)
        wait_for_end(server)
        inside = ["nsenter", f"--mount=/proc/{process.pid}/ns/mnt", sys.executable, "-c", _REAP]
        said = [subprocess.check_output(inside, text=True, env=environment()) for _ in range(2)]
    assert "unmounted the dead file system" in said[0]
    assert "unmounted" not in said[1]


_UNMOUNT_DEAD = """
import os, select, signal, sys
from pathlib import Path
from loadstone.power_disk import PowerDisk, reap
from loadstone.power_disk.mounts import detach, mounts
disk = PowerDisk(Path(sys.argv[1]), Path(sys.argv[2])).__enter__()
(dead,) = (mount for mount in mounts() if mount.path == disk.mount)
handle = os.pidfd_open(dead.pid)
os.kill(dead.pid, signal.SIGKILL)
select.select([handle], [], [], 120)
print(*reap(), sep="\\n")
assert not os.path.ismount(disk.mount)
with PowerDisk(disk.backing, disk.mount) as new:
    assert not detach(dead)
    (new.mount / "file").write_text("x")
"""
# The user may read this interpreter and its modules wherever they are, mount by fusermount3 only, and open
# the device of FUSE, which in some containers only root may open.
_AS_USER = f"""
set -e
mount -t tmpfs none "$1"
mknod "$1/fuse" c 10 229
chmod 666 "$1/fuse"
mount --bind "$1/fuse" /dev/fuse
shift
exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups \\
    --inh-caps=+dac_read_search --ambient-caps=+dac_read_search "$@"
"""


@pytest.fixture
def folders_of_nobody() -> Iterator[tuple[Path, Path]]:
    base = make_base()
    found = base / "backing", base / "a mount\nwith ä"
    for path in found:
        path.mkdir()
        os.chown(path, NOBODY, NOBODY)
    yield found
    shutil.rmtree(base)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(shutil.which("fusermount3") is None, reason="fusermount3 is not installed: package fuse3")
def test_an_ordinary_user_unmounts_what_killed_processes_left(
    folders_of_nobody: tuple[Path, Path], tmp_path: Path
) -> None:
    user = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        _AS_USER,
        "sh",
        str(tmp_path),
        sys.executable,
        "-c",
        _UNMOUNT_DEAD,
    ]
    ran = subprocess.run(
        [*user, *map(str, folders_of_nobody)], capture_output=True, text=True, check=False, env=environment()
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("unmounted the dead file system")


def test_the_disks_of_another_loadstone_stay(
    folders: tuple[Path, Path], killed: tuple[subprocess.Popen[str], int]
) -> None:
    _, server = killed
    os.kill(server, signal.SIGSTOP)  # so busy that it answers nobody
    try:
        said = reap()
        assert any(mount.path == folders[1] for mount in mounts())
        assert not any(str(folders[1]) in line for line in said)
    finally:
        os.kill(server, signal.SIGCONT)
    assert (folders[1] / "synced").read_text() == "x"


def test_a_dead_disk_that_two_unmount_is_gone_once_and_a_new_one_stays(folders: tuple[Path, Path]) -> None:
    disk = PowerDisk(*folders).__enter__()
    (dead,) = (mount for mount in mounts() if mount.path == folders[1])
    os.kill(dead.pid, signal.SIGKILL)
    wait_for_end(dead.pid)
    detach(dead)  # unless the start of another test's server was faster
    assert not detach(dead)
    assert not os.path.ismount(folders[1])
    with pytest.raises(RunFailedError, match="ended with status -9"):
        disk.close()
    with PowerDisk(*folders) as new:
        (new.mount / "file").write_text("x")
        assert not detach(dead)
        assert (new.mount / "file").read_text() == "x"


def test_a_folder_with_a_disk_in_it_is_removed_when_the_disk_has_ended(tmp_path: Path) -> None:
    registry, folder = Registry(tmp_path / "servers"), tmp_path / "folder"
    for name in ("backing", "mount"):
        (folder / name).mkdir(parents=True)
    record = registry.new("1", [folder], folder)
    with PowerDisk(folder / "backing", folder / "mount"):
        registry.remove(record)
        assert registry.records() == [replace(record, ending=True)]
        (folder / "backing").mkdir(exist_ok=True)
    registry.remove(record)
    assert not folder.exists()
    assert registry.records() == []


def test_a_request_that_a_signal_cuts_off_leaves_no_mount(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(*_: object) -> str:
        raise KeyboardInterrupt

    with PowerDisk(*folders) as disk:
        (disk.mount / "file").write_text("x")
        with monkeypatch.context() as patch:
            patch.setattr(PowerDisk, "_line", cut_off)
            with pytest.raises(KeyboardInterrupt):
                disk.lose()
    assert not os.path.ismount(folders[1])


def test_refuses_what_cannot_be_a_disk(folders: tuple[Path, Path], tmp_path: Path) -> None:
    backing, mount = folders
    wrong = {
        "is not a directory": (backing, tmp_path / "missing"),
        "are in each other": (tmp_path, mount),
        "is not empty": (mount, backing),
    }
    (backing / "file").touch()
    for words, (one, other) in wrong.items():
        with pytest.raises(LoadstoneError, match=words), PowerDisk(one, other):
            pass
    (tmp_path / "second").mkdir()
    with PowerDisk(backing, mount), pytest.raises(RunFailedError, match="failed"):
        PowerDisk(backing, tmp_path / "second").__enter__()

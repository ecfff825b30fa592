"""Mounts of power disks on this machine: whether there can be one, and which ones nobody serves any more."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_SOURCE = "loadstone-power-disk"
_DEVICE = Path("/dev/fuse")
_MOUNTS = Path("/proc/self/mountinfo")
_CAP_SYS_ADMIN = 21
_MNT_DETACH = 2


def available() -> str | None:
    """Return why no power disk can be mounted here, None when one can."""
    if not _DEVICE.exists():
        return f"there is no {_DEVICE} (no FUSE in this kernel, or none in this container)"
    try:
        os.close(os.open(_DEVICE, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"{_DEVICE} cannot be opened: {error.strerror}"
    if _may_mount() or _fusermount():
        return None
    if os.geteuid() == 0:
        return "this container does not permit mounts (CAP_SYS_ADMIN is missing)"
    return "only root may mount here: there is no fusermount3"


def _fusermount() -> str | None:
    """Return the program that mounts and unmounts for an ordinary user, where it is installed."""
    return shutil.which("fusermount3") or shutil.which("fusermount")


def _may_mount() -> bool:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _CAP_SYS_ADMIN & 1)
    return False


@dataclass(frozen=True, slots=True)
class Mount:
    """One mounted power disk."""

    number: int
    """The kernel's number of the mount: no other mount has it while this one is there."""
    path: Path
    pid: int
    start_ticks: int

    @property
    def served(self) -> bool:
        """Whether the process that serves it is alive; one that another container serves answers."""
        if _start_ticks(self.pid) == self.start_ticks:
            return True
        try:
            self.path.stat()
        except OSError as error:
            return error.errno != errno.ENOTCONN
        return True


def mounts() -> list[Mount]:
    """Return all mounted power disks, the innermost first."""
    found = []
    for line in _MOUNTS.read_text(errors="surrogateescape").split("\n")[:-1]:
        before, _, after = line.partition(" - ")
        name, *owner = after.split(" ")[1].split(":")
        if name == _SOURCE:
            number, _, _, _, path, *_ = before.split(" ")
            path = path.encode("utf-8", "surrogateescape").decode("unicode_escape")
            path = path.encode("latin-1").decode("utf-8", "surrogateescape")
            found.append(Mount(int(number), Path(path), int(owner[0]), int(owner[1])))
    return found[::-1]


def source(pid: int) -> str:
    """Return what the list of mounts is to show of a power disk that this process serves."""
    return f"{_SOURCE}:{pid}:{_start_ticks(pid)}"


def _start_ticks(pid: int) -> int | None:
    """Return when a process began, in clock ticks since the machine's boot; None when it is not alive."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in {"Z", "X"} else int(fields[18])


def detach(mount: Mount) -> bool:
    """Unmount, for all but those who still use it; returns False where somebody else has done so before.

    Another mount at the same place stays: between the list of mounts and this call, the owner may have
    unmounted a dead disk and mounted a new one there. Raises OSError.

    An ordinary user unmounts by fusermount, which knows mounts by their paths only: a new disk that the owner
    mounts there after we have looked, and before fusermount has, is unmounted in place of the dead one.
    """
    try:
        handle = os.open(mount.path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # The handle keeps the mount, and with it its number, until this is done.
        if _number_of(handle) != mount.number or mount not in mounts():
            return False
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.umount2(f"/proc/self/fd/{handle}".encode(), _MNT_DETACH) == 0:
            return True
        code = ctypes.get_errno()
        if code == errno.EINVAL:  # it is no mount any more
            return False
        if code == errno.EPERM and (program := _fusermount()):
            return _detach_by(program, mount)
        raise OSError(code, os.strerror(code), str(mount.path))
    finally:
        os.close(handle)


def _detach_by(program: str, mount: Mount) -> bool:
    """Unmount by fusermount, which may do so for the user who has mounted; as `detach`."""
    command = [program, "-u", "-z", "--", str(mount.path)]
    ran = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    if mount in mounts():
        why = " ".join(ran.stderr.split()) or f"{program} ended with status {ran.returncode}"
        raise OSError(errno.EPERM, why, str(mount.path))
    return ran.returncode == 0


def _number_of(handle: int) -> int | None:
    """Return the number of the mount that an open file is on."""
    for line in Path(f"/proc/self/fdinfo/{handle}").read_text().splitlines():
        if line.startswith("mnt_id:"):
            return int(line.split()[1])
    return None


def reap() -> list[str]:
    """Unmount the power disks that nobody serves any more; returns one line of words for each.

    The process that serves one unmounts it when Loadstone ends in any way, so this is for those that were
    both killed. Disks that are served stay, whoever mounted them.
    """
    said = []
    for mount in mounts():
        if mount.served:
            continue
        try:
            if detach(mount):
                said.append(f"unmounted the dead file system that an earlier run left at {mount.path}")
        except OSError as error:
            said.append(f"a dead file system is left at {mount.path}: {error.strerror}")
    return said


def users(path: Path) -> list[str]:
    """Return the processes that use a mount: name and number, as far as we may see them."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(_is_inside(link, path) for link in _links(process)):
                name = (process / "comm").read_text().strip()
                found.append(f"{name} ({process.name})")
        except OSError:
            continue
    return found


def _links(process: Path) -> list[Path]:
    return [process / "cwd", process / "root", *(process / "fd").iterdir()]


def _is_inside(link: Path, path: Path) -> bool:
    try:
        target = Path(os.readlink(link))  # noqa: PTH115 - the target may be gone
    except OSError:
        return False
    return target == path or path in target.parents

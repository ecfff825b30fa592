"""Reads what this machine is from /proc, /sys and the system calls; whatever is not there is None.

Every reader takes `root`, the folder that stands for `/`, so that other machines' trees can be read as well.
Sources: the kernel's documentation of procfs, sysfs, cgroup v1 and v2; proc(5).
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Facts = dict[str, Any]

ROOT = Path("/")
_IO_URING_SETUP = 425  # the same number on every architecture that Loadstone runs on
_NO_LIMIT_V1 = 1 << 60  # cgroup v1 says "none" by a figure near 2^63


def read(path: Path) -> str | None:
    """Return a small file's text without the white space around it; None when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def number(text: str | None) -> int | None:
    """Return the text as a whole number, None when it is none."""
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def expand_list(text: str) -> list[int]:
    """Expand the kernel's list format: `0-2,5` is 0, 1, 2, 5."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        found.extend(range(int(low), int(high or low) + 1))
    return found


def cpu(root: Path = ROOT) -> Facts:
    """Return the processor: model, cores by every way of counting, clock governor, NUMA nodes."""
    base = root / "sys/devices/system/cpu"
    cpus = [path for path in base.glob("cpu[0-9]*") if path.name[3:].isdecimal()]
    cores = {
        (read(path / "topology/physical_package_id"), read(path / "topology/core_id"))
        for path in cpus
        if (path / "topology/core_id").exists()
    }
    online = read(base / "online")
    frequency = number(read(base / "cpu0/cpufreq/cpuinfo_max_freq"))
    return {
        "model": _cpu_model(root),
        "architecture": os.uname().machine,
        "cores_physical": len(cores) or None,
        "cores_logical": len(cpus) or os.cpu_count(),
        "cores_online": len(expand_list(online)) if online else os.cpu_count(),
        "cores_usable": len(os.sched_getaffinity(0)),
        "cores_limit": cgroup_limits(root)["cpu_cores"],
        "smt": {"1": True, "0": False}.get(read(base / "smt/active") or ""),
        "numa_nodes": len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None,
        "frequency_max_hz": frequency * 1000 if frequency else None,
        "governors": sorted({text for path in cpus if (text := read(path / "cpufreq/scaling_governor"))}),
        "frequency_driver": read(base / "cpu0/cpufreq/scaling_driver"),
        "turbo": _turbo(base),
    }


def _cpuinfo(root: Path) -> Facts:
    """Return the first processor's entries of /proc/cpuinfo."""
    first = (read(root / "proc/cpuinfo") or "").partition("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _cpu_model(root: Path) -> str | None:
    info = _cpuinfo(root)
    board = (read(root / "proc/device-tree/model") or "").rstrip("\0")
    return info.get("model name") or info.get("Model") or board or info.get("CPU part") or None


def _turbo(base: Path) -> bool | None:
    off, on = read(base / "intel_pstate/no_turbo"), read(base / "cpufreq/boost")
    if off is not None:
        return off == "0"
    return on == "1" if on is not None else None


def memory(root: Path = ROOT) -> Facts:
    """Return main memory, swap and huge pages, in bytes."""
    info = meminfo(root)
    sysctl = root / "proc/sys/vm"
    return {
        "total_bytes": info.get("MemTotal"),
        "available_bytes": info.get("MemAvailable"),
        "limit_bytes": cgroup_limits(root)["memory_bytes"],
        "swap_total_bytes": info.get("SwapTotal"),
        "swap_used_bytes": info.get("SwapTotal", 0) - info.get("SwapFree", 0),
        "huge_pages_total": info.get("HugePages_Total"),
        "huge_pages_free": info.get("HugePages_Free"),
        "huge_page_bytes": info.get("Hugepagesize"),
        "transparent_huge_pages": _chosen(read(root / "sys/kernel/mm/transparent_hugepage/enabled")),
        "swappiness": number(read(sysctl / "swappiness")),
        "overcommit": number(read(sysctl / "overcommit_memory")),
        "dirty_ratio": number(read(sysctl / "dirty_ratio")),
        "dirty_background_ratio": number(read(sysctl / "dirty_background_ratio")),
    }


def meminfo(root: Path = ROOT) -> dict[str, int]:
    """Return /proc/meminfo: sizes in bytes, counts as they are."""
    found = {}
    for line in (read(root / "proc/meminfo") or "").splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdecimal():
            found[name] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return found


def _chosen(text: str | None) -> str | None:
    """Return the choice in brackets: `always [madvise] never`."""
    match = re.search(r"\[([^\]]+)\]", text or "")
    return match.group(1) if match else None


def cgroup_limits(root: Path = ROOT) -> Facts:
    """Return the tightest limits of our control groups and all above them: cores, bytes; None without one."""
    cpu_limits: list[float] = []
    memory_limits: list[int] = []
    for folder in cgroup_folders(root):
        cores = _cpu_quota(folder)
        if cores is not None:
            cpu_limits.append(cores)
        for name in ("memory.max", "memory.limit_in_bytes"):
            limit = number(read(folder / name))
            if limit is not None and limit < _NO_LIMIT_V1:
                memory_limits.append(limit)
    return {"cpu_cores": min(cpu_limits, default=None), "memory_bytes": min(memory_limits, default=None)}


def cores_at_a_time(root: Path = ROOT) -> int:
    """Return how many cores this process may keep busy: those it may run on, or its control groups' quota.

    As the core counts them (Rust's `available_parallelism`): a quota is rounded down, to one at least.
    """
    cores, quota = len(os.sched_getaffinity(0)), cgroup_limits(root)["cpu_cores"]
    return cores if quota is None else max(1, min(cores, int(quota)))


def _cpu_quota(folder: Path) -> float | None:
    quota, _, period = (read(folder / "cpu.max") or "").partition(" ")
    if not period:
        quota = read(folder / "cpu.cfs_quota_us") or ""
        period = read(folder / "cpu.cfs_period_us") or ""
    if not (quota.isdecimal() and period.isdecimal() and int(period)):  # "max" or -1: no limit
        return None
    return int(quota) / int(period)


def cgroup_folders(root: Path) -> list[Path]:
    """Return the folders of our control groups, each with all its ancestors below the mount."""
    return [folder for found in cgroup_ancestries(root).values() for folder in found]


def cgroup_ancestries(root: Path, process: str = "self") -> dict[str, list[Path]]:
    """Return a process's groups by controller, each followed by all that contain it and that we can see.

    The group of version 2 has the name "".
    """
    groups = {}
    for line in (read(root / "proc" / process / "cgroup") or "").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        groups.update(dict.fromkeys(controllers.split(","), path))
    found: dict[str, list[Path]] = {}
    for mount in mounts(root):
        names = [""] if mount.kind == "cgroup2" else mount.super_options.split(",")
        if mount.kind in ("cgroup", "cgroup2"):
            point = root / mount.point.lstrip("/")
            found |= {name: _ancestry(point, mount.root, groups[name]) for name in names if name in groups}
    return found


def control_group(root: Path = ROOT) -> Facts:
    """Return in which control group we are, and which version of them limits memory; None where none does."""
    found = cgroup_ancestries(root)
    own = found.get("", [None])[0]
    unified = own is not None and "memory" in (read(own / "cgroup.controllers") or "").split()
    version = 2 if unified else 1 if "memory" in found else None
    groups = found.get("" if unified else "memory", [])
    path = f"/{groups[0].relative_to(groups[-1])}".removesuffix("/.") or "/" if groups else None
    return {"version": version, "path": path}


def _ancestry(point: Path, mount_root: str, path: str) -> list[Path]:
    # In a container the mount shows a part of the tree only: what lies above its root cannot be seen.
    inside = path.removeprefix(mount_root.rstrip("/")) if path.startswith(mount_root.rstrip("/")) else ""
    folder = point / inside.strip("/")
    return [folder, *(above for above in folder.parents if above == point or point in above.parents)]


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of /proc/self/mountinfo."""

    device: str
    root: str
    point: str
    options: str
    kind: str
    source: str
    super_options: str


def mounts(root: Path = ROOT) -> list[Mount]:
    """Return the mounts that this process sees, in the kernel's order (later ones hide earlier ones)."""
    found = []
    for line in (read(root / "proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        first, last = left.split(" "), right.split(" ")
        if len(first) >= 6 and len(last) >= 3:  # noqa: PLR2004 - proc(5)'s columns
            found.append(
                Mount(first[2], _plain(first[3]), _plain(first[4]), first[5], *map(_plain, last[:3]))
            )
    return found


def _plain(text: str) -> str:
    """Undo mountinfo's octal escapes of white space and backslash."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)


def mount_of(path: Path, root: Path = ROOT) -> Mount | None:
    """Return the mount that holds a path (or, when it does not exist yet, its nearest ancestor)."""
    place = str(path.resolve())
    holding = [m for m in mounts(root) if m.point in ("/", place) or place.startswith(m.point + "/")]
    return max(enumerate(holding), key=lambda pair: (len(pair[1].point), pair[0]))[1] if holding else None


def disk_of(mount: Mount, root: Path = ROOT) -> str | None:
    """Return the whole disk's name as in /proc/diskstats (`sda`, `nvme0n1`, `dm-0`), None without one."""
    device = mount.device
    if device.startswith("0:"):  # btrfs and the like number their own; the source tells the disk
        try:
            status = Path(mount.source).stat()
        except OSError:
            return None
        device = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    try:
        folder = (root / "sys/dev/block" / device).resolve(strict=True)
    except OSError:
        return None
    return folder.parent.name if (folder / "partition").exists() else folder.name


def storage(path: Path, root: Path = ROOT) -> Facts:
    """Return what a path is stored on: filesystem, mount options, disk, space in bytes."""
    place = next((p for p in [path.absolute(), *path.absolute().parents] if p.exists()), ROOT)
    space = os.statvfs(place)
    mount = mount_of(path, root)
    disk = disk_of(mount, root) if mount else None
    queue = root / "sys/block" / (disk or "-") / "queue"
    return {
        "path": str(path),
        "filesystem": mount.kind if mount else None,
        "mount_point": mount.point if mount else None,
        "options": _options(mount) if mount else None,
        "disk": disk,
        "disk_model": read(queue.parent / "device/model"),
        "rotational": {"1": True, "0": False}.get(read(queue / "rotational") or ""),
        "scheduler": _chosen(read(queue / "scheduler")),
        "write_cache": read(queue / "write_cache"),
        "total_bytes": space.f_blocks * space.f_frsize,
        "free_bytes": space.f_bavail * space.f_frsize,
    }


def _options(mount: Mount) -> str:
    """Join the mount's own options and the filesystem's (`nobarrier` and `data=…` stand in the second)."""
    return ",".join(dict.fromkeys(f"{mount.options},{mount.super_options}".split(",")))


_VENDORS = {
    "amazon ec2": "Amazon EC2",
    "google": "Google Compute Engine",
    "microsoft": "Hyper-V",
    "vmware": "VMware",
    "virtualbox": "VirtualBox",
    "innotek": "VirtualBox",
    "xen": "Xen",
    "digitalocean": "DigitalOcean",
    "openstack": "OpenStack",
    "kvm": "KVM",
    "qemu": "QEMU",
    "bochs": "Bochs",
    "parallels": "Parallels",
}


def virtualisation(root: Path = ROOT) -> str | None:
    """Return the name of the hypervisor under us, `unknown hypervisor`, or None on bare metal."""
    dmi = root / "sys/class/dmi/id"
    told = " ".join(read(dmi / name) or "" for name in ("sys_vendor", "product_name", "board_vendor")).lower()
    under = "hypervisor" in _cpuinfo(root).get("flags", "").split()
    clocks = read(root / "sys/devices/system/clocksource/clocksource0/available_clocksource") or ""
    if under:
        told = f"{told} {'kvm' if 'kvm-clock' in clocks else ''} {'microsoft' if 'hyperv' in clocks else ''}"
    told = f"{told} {read(root / 'sys/hypervisor/type') or ''}"
    known = next((name for mark, name in _VENDORS.items() if mark in told), None)
    # A physical server's board may name a cloud's maker: on x86 the processor's flag decides.
    if os.uname().machine == "x86_64" and not under:
        return None
    return known or ("unknown hypervisor" if under else None)


def container(root: Path = ROOT) -> str | None:
    """Return the kind of container we are in (`docker`, `podman`, …), or None."""
    marks = {".dockerenv": "docker", "run/.containerenv": "podman"}
    told = read(root / "run/systemd/container")
    environment = (read(root / "proc/1/environ") or "").split("\0")
    set_by = next((text.partition("=")[2] for text in environment if text.startswith("container=")), None)
    groups = read(root / "proc/1/cgroup") or ""
    by_group = next((kind for kind in ("kubepods", "docker", "lxc") if f"/{kind}" in groups), None)
    found = next((kind for mark, kind in marks.items() if (root / mark).exists()), None)
    return told or set_by or found or by_group


def io_uring() -> Facts:
    """Ask the kernel whether this process may use io_uring; a container's filter may refuse it.

    `sysctl` is kernel.io_uring_disabled: 0 for all, 1 for the privileged, 2 for nobody, None before 6.6.
    """
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall(ctypes.c_long(_IO_URING_SETUP), ctypes.c_uint(1), ctypes.c_void_p(None))
    # The null address is refused only after the permission was given: nothing is ever set up.
    available = ctypes.get_errno() == errno.EFAULT
    reason = None if available else os.strerror(ctypes.get_errno())
    return {
        "available": available,
        "reason": reason,
        "sysctl": number(read(ROOT / "proc/sys/kernel/io_uring_disabled")),
    }


def on_battery(root: Path = ROOT) -> bool:
    """Say whether a battery is being emptied."""
    return any(
        read(supply / "type") == "Battery" and read(supply / "status") == "Discharging"
        for supply in (root / "sys/class/power_supply").glob("*")
    )

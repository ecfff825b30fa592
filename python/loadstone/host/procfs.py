"""Samples the counters of /proc, cheaply enough for once a second: host, a server's processes, ourselves.

Counters are cumulative, as the kernel gives them. Sources: proc(5); the kernel's own documents on
filesystems/proc, admin-guide/iostats, accounting/psi and admin-guide/cgroup-v2.
"""

from __future__ import annotations

import os
import re
import resource
from typing import TYPE_CHECKING, NamedTuple

from loadstone.host import machine
from loadstone.host.machine import ROOT, Facts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SECTOR_BYTES = 512  # the unit of /proc/diskstats, whatever the disk's own sector is
_CPU_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_NOT_DISKS = re.compile(r"(loop|ram|zram|sr|fd|dm-|md)\d+")
"""No disk, or stacked on disks that are counted themselves."""
_DETAILS_PER_SAMPLE = 128
_STAT_WORDS = 20
"""Fields of /proc/PID/stat behind the command's name that are used."""
_HOLD_SAMPLES = 3


class Monotone:
    """Keeps a sum of counters from going backwards when its parts come and go.

    A short dip (a process was read as living and again as waited for) is held; one that stays (children that
    nobody waits for) becomes the new base.
    """

    def __init__(self) -> None:
        """Begin at nothing."""
        self._base = 0.0
        self._last = float("-inf")
        self._dips = 0

    def next(self, raw: float) -> float:
        """Return the next value, never below the last one."""
        value = self._base + raw
        if value >= self._last:
            self._dips, self._last = 0, value
            return value
        self._dips += 1
        if self._dips >= _HOLD_SAMPLES:
            self.rebase(raw)
        return self._last

    def rebase(self, raw: float) -> None:
        """Let `raw` stand for the last value (if there was one): what is counted has begun again."""
        if self._last >= 0:
            self._base, self._dips = self._last - raw, 0


class Host:
    """Counters of the whole machine."""

    def __init__(self, paths: Sequence[Path] = (), root: Path = ROOT) -> None:
        """Watch the disks that hold `paths`; all real disks when none of these can be told."""
        self._proc = root / "proc"
        self._root = root
        self.disks = disks_of(paths, root)
        self._groups = [folder / "cpu.stat" for folder in machine.cgroup_folders(root)]

    def sample(self) -> Facts:
        """Return `host` of monitor.jsonl. Raises OSError where there is no /proc."""
        stat = (self._proc / "stat").read_bytes().splitlines()
        ticks = [int(word) for word in stat[0].split()[1:]]
        memory = machine.meminfo(self._root)
        return {
            "cpu_s": {name: value / _TICKS_PER_S for name, value in zip(_CPU_FIELDS, ticks, strict=False)},
            "cores": sum(1 for line in stat[1:] if line.startswith(b"cpu")),
            "load1": self._load(),
            "memory_total_bytes": memory.get("MemTotal"),
            "memory_available_bytes": memory.get("MemAvailable"),
            "swap_used_bytes": memory.get("SwapTotal", 0) - memory.get("SwapFree", 0),
            "disk": disk_counters(self.disks, self._root),
            "network": self._network(),
            "pressure": self._pressure(),
            "throttled_s": self._throttled(),
        }

    def _load(self) -> float | None:
        words = (machine.read(self._proc / "loadavg") or "").split()
        return float(words[0]) if words else None

    def _network(self) -> Facts | None:
        """Return what left and reached the machine; interfaces built on others would count it twice."""
        text = machine.read(self._proc / "net/dev")
        if text is None:
            return None
        split = (line.partition(":") for line in text.splitlines()[2:])
        rows = {name.strip(): words.split() for name, _, words in split if name.strip() != "lo"}
        real = {name for name in rows if (self._root / "sys/class/net" / name / "device").exists()}
        chosen = [words for name, words in rows.items() if name in real or not real]
        columns = {"rx_bytes": 0, "rx_packets": 1, "tx_bytes": 8, "tx_packets": 9}
        return {name: sum(int(words[column]) for words in chosen) for name, column in columns.items()}

    def _pressure(self) -> Facts | None:
        found = {}
        for kind in ("cpu", "io", "memory"):
            total = re.search(r"^some .*total=(\d+)", machine.read(self._proc / "pressure" / kind) or "")
            if total is None:
                return None
            found[f"{kind}_some_s"] = int(total.group(1)) / 1e6
        return found

    def _throttled(self) -> float | None:
        """Return how long control groups paused us; None without a limit that could."""
        found = []
        for path in self._groups:
            lines = (machine.read(path) or "").splitlines()
            pairs = dict(line.split(" ", 1) for line in lines if " " in line)
            if "throttled_usec" in pairs:
                found.append(int(pairs["throttled_usec"]) / 1e6)
            elif "throttled_time" in pairs:
                found.append(int(pairs["throttled_time"]) / 1e9)
        return max(found, default=None)


def disks_of(paths: Iterable[Path], root: Path = ROOT) -> frozenset[str]:
    """Return the disks, by their names in /proc/diskstats, that hold the paths; all real ones without any."""
    mounts = (machine.mount_of(path, root) for path in paths)
    held = {disk for mount in mounts if mount and (disk := machine.disk_of(mount, root))}
    if held:
        return frozenset(held)
    blocks = (path.name for path in (root / "sys/block").glob("*"))
    return frozenset(name for name in blocks if not _NOT_DISKS.fullmatch(name))


def disk_counters(disks: Collection[str], root: Path = ROOT) -> Facts | None:
    """Return `disk` of monitor.jsonl, of these disks together."""
    text = machine.read(root / "proc/diskstats")
    if text is None:
        return None
    rows = [words for line in text.splitlines() if (words := line.split())[2] in disks]
    reads, read_sectors, writes, write_sectors, busy_ms = (
        sum(int(words[column]) for words in rows) for column in (3, 5, 7, 9, 12)
    )
    return {
        "read_ops": reads,
        "write_ops": writes,
        "read_bytes": read_sectors * _SECTOR_BYTES,
        "write_bytes": write_sectors * _SECTOR_BYTES,
        "busy_s": busy_ms / 1000,
    }


class _Stat(NamedTuple):
    """What is used of /proc/PID/stat; times in ticks, with those of children that were waited for."""

    pid: int
    parent: int
    user: int
    system: int
    started: int
    gone: bool
    name: str


class _Detail(NamedTuple):
    """Memory in pages; read and written bytes are None where we may not look."""

    private: int
    shared: int
    read_bytes: int | None
    write_bytes: int | None


def _read(path: str) -> bytes | None:
    # Plain system calls: with a thousand backends this is called some thousand times a second.
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(handle, 4096)
    except OSError:
        return None
    finally:
        os.close(handle)


def _stat(pid: int) -> _Stat | None:
    text = _read(f"/proc/{pid}/stat")
    return parse_stat(text) if text else None


def parse_stat(text: bytes) -> _Stat | None:
    """Return what a text of /proc/PID/stat says; None for what is none."""
    before, _, after = text.rpartition(b")")  # the command's name may hold anything
    pid, _, name = before.partition(b"(")
    words = after.split()
    if len(words) < _STAT_WORDS or not pid.strip().isdigit():
        return None
    return _Stat(
        pid=int(pid),
        parent=int(words[1]),
        user=int(words[11]) + int(words[13]),
        system=int(words[12]) + int(words[14]),
        started=int(words[19]),
        gone=words[0] in (b"Z", b"X"),
        name=name.decode(errors="replace"),
    )


def family_of(root: _Stat, stats: Iterable[_Stat]) -> list[_Stat]:
    """Return a process and its descendants among `stats`, itself first."""
    children: dict[int, list[_Stat]] = {}
    for stat in stats:
        children.setdefault(stat.parent, []).append(stat)
    found = [root]
    for stat in found:
        found.extend(children.pop(stat.pid, []))
    return found


def _detail(pid: int) -> _Detail | None:
    memory = _read(f"/proc/{pid}/statm")
    if not memory:
        return None
    _, resident, shared = (int(word) for word in memory.split()[:3])
    io = _read(f"/proc/{pid}/io")
    if io is None and _read(f"/proc/{pid}/statm") is None:
        return None  # it ended just now, which is no lack of permission
    pairs = dict(line.split(b": ") for line in io.splitlines()) if io else {}
    read, write = (int(pairs[key]) if key in pairs else None for key in (b"read_bytes", b"write_bytes"))
    return _Detail(resident - shared, shared, read, write)


class ProcessTree:
    """Counters of a server: a process, its descendants, and those of them that have ended.

    A process that ended and was waited for lives on in its parent's counters, so the sum loses nothing. With
    many processes, memory and bytes are read in turns: each at least every (processes / 128) samples.
    """

    def __init__(self, pid: int) -> None:
        """Watch `pid` and what descends from it."""
        self._pid = pid
        self._identity: tuple[int, int] | None = None
        self._details: dict[int, _Detail] = {}
        self._turn: list[int] = []
        self._totals = {name: Monotone() for name in ("user", "system", "read", "write")}

    def watch(self, pid: int) -> None:
        """Go on with another process, the server having been started again; the counters go on as well."""
        self._pid, self._identity = pid, None

    def sample(self) -> Facts | None:
        """Return `server` of monitor.jsonl; None when the process is gone."""
        family = self._family()
        if family is None:
            return None
        details = self._look_closer([stat.pid for stat in family])
        raw: dict[str, float | None] = {
            "user": sum(stat.user for stat in family) / _TICKS_PER_S,
            "system": sum(stat.system for stat in family) / _TICKS_PER_S,
            "read": _sum_or_none(detail.read_bytes for detail in details),
            "write": _sum_or_none(detail.write_bytes for detail in details),
        }
        self._begin_anew_if_restarted(family[0], raw)
        totals = {name: None if (v := raw[name]) is None else self._totals[name].next(v) for name in raw}
        private = sum(detail.private for detail in details)
        shared = max((detail.shared for detail in details), default=0)
        return {
            "processes": sum(not stat.gone for stat in family),
            "cpu_user_s": totals["user"],
            "cpu_system_s": totals["system"],
            "rss_bytes": (private + shared) * _PAGE_BYTES,
            "read_bytes": _whole(totals["read"]),
            "write_bytes": _whole(totals["write"]),
        }

    def _family(self) -> list[_Stat] | None:
        """Return the root and its living descendants, the root first; None when the root is gone."""
        root = _stat(self._pid)
        if root is None or root.gone or self._is_another(root):
            return None
        names = os.listdir("/proc")  # noqa: PTH208 - names are enough, thousands of them
        return family_of(root, (s for name in names if name.isdecimal() and (s := _stat(int(name)))))

    def _is_another(self, root: _Stat) -> bool:
        """Say whether the process id was given away again."""
        return self._identity is not None and self._identity != (root.pid, root.started)

    def _begin_anew_if_restarted(self, root: _Stat, raw: dict[str, float | None]) -> None:
        if self._identity is None:
            self._identity = (root.pid, root.started)
            for name, total in self._totals.items():
                total.rebase(raw[name] or 0)

    def _look_closer(self, pids: list[int]) -> list[_Detail]:
        alive = set(pids)
        new = [pid for pid in pids if pid not in self._details]
        self._turn = [pid for pid in self._turn if pid in alive]
        due, rest = self._turn[:_DETAILS_PER_SAMPLE], self._turn[_DETAILS_PER_SAMPLE:]
        fresh = {pid: detail for pid in {pids[0], *new, *due} if (detail := _detail(pid))}
        kept = {pid: detail for pid, detail in self._details.items() if pid in alive}
        self._details = {pid: detail for pid, detail in (kept | fresh).items() if pid in fresh or pid in rest}
        self._turn = [*rest, *(pid for pid in [*due, *new] if pid in fresh)]
        return list(self._details.values())


def _sum_or_none(values: Iterable[int | None]) -> int | None:
    """Return the sum; None when a part is not known: half a sum would be a wrong figure."""
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


_helpers: dict[int, tuple[float, float]] = {}
"""Of children that drive load for us: CPU in user mode and in the kernel, seconds, as last seen."""


def count_as_ours(pid: int) -> None:
    """Let the CPU of a child that drives load be part of `client`, also when it has ended."""
    _helpers[pid] = (0.0, 0.0)


def _of_helpers() -> tuple[float, float]:
    for pid, seen in list(_helpers.items()):
        stat = _stat(pid)
        now = (stat.user / _TICKS_PER_S, stat.system / _TICKS_PER_S) if stat else seen
        if now >= seen:  # else the number belongs to another process by now
            _helpers[pid] = now
    times = list(_helpers.values())
    return sum(user for user, _ in times), sum(system for _, system in times)


def own_process() -> Facts:
    """Return `client` of monitor.jsonl: this process with its threads, and the children that drive load."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    detail = _detail(os.getpid())
    user_s, system_s = _of_helpers()
    return {
        "cpu_user_s": usage.ru_utime + user_s,
        "cpu_system_s": usage.ru_stime + system_s,
        "rss_bytes": (detail.private + detail.shared) * _PAGE_BYTES if detail else None,
    }

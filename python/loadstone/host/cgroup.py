"""Samples the control group that a server runs in: memory, page cache, device bytes, CPU time.

Only a group that holds the server and neither us nor the whole machine tells something of the server.
Sources: the kernel's documents admin-guide/cgroup-v2 and admin-guide/cgroup-v1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.host import machine
from loadstone.host.machine import ROOT, Facts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_NO_LIMIT_V1 = 1 << 60  # version 1 says "none" by a figure near 2^63


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """The groups of one server, by controller; that of version 2 has the name ""."""

    ancestries: Mapping[str, list[Path]]
    """Each group's folder, followed by those that contain it."""

    @classmethod
    def of(cls, pid: int, root: Path = ROOT) -> ControlGroup | None:
        """Return the groups that hold this process and neither us nor all; None when there is none."""
        ours = machine.cgroup_ancestries(root)
        theirs = machine.cgroup_ancestries(root, str(pid))
        own = {
            name: folders
            for name, folders in theirs.items()
            if len(folders) > 1 and folders[0] not in ours.get(name, []) and folders[0].is_dir()
        }
        return cls(own) if own else None

    @property
    def counts_device_bytes(self) -> bool:
        """Whether all that the group wrote is known: version 1 misses what the kernel writes later."""
        return self._pairs("", "io.stat") is not None

    def sample(self) -> Facts | None:
        """Return `group` of monitor.jsonl; None when the group is gone or shows nothing."""
        found = self._memory() | self._bytes() | {"cpu_s": self._cpu()}
        return found if any(value is not None for value in found.values()) else None

    def _memory(self) -> Facts:
        used = self._number("", "memory.current")
        if used is not None:
            stat, events = self._table("", "memory.stat"), self._table("", "memory.events")
            cache, limits = stat.get("file"), self._limits("", "max")
        else:
            stat, events = self._table("memory", "memory.stat"), self._table("memory", "memory.oom_control")
            used, cache = self._number("memory", "memory.usage_in_bytes"), stat.get("total_cache")
            limits = self._limits("memory", "limit_in_bytes")
        # Shared memory, such as PostgreSQL's buffers, is counted with the pages of files.
        shared = stat.get("shmem", 0) if "file" in stat else stat.get("total_shmem", 0)
        return {
            "memory_bytes": used,
            "cache_bytes": None if cache is None else max(cache - shared, 0),
            "limit_bytes": min(limits, default=None),
            "oom_kills": events.get("oom_kill"),
        }

    def _limits(self, controller: str, name: str) -> list[int]:
        found = (
            machine.number(machine.read(f / f"memory.{name}")) for f in self.ancestries.get(controller, [])
        )
        return [limit for limit in found if limit is not None and limit < _NO_LIMIT_V1]

    def _bytes(self) -> Facts:
        pairs = self._pairs("", "io.stat")
        names = {"read_bytes": "rbytes", "write_bytes": "wbytes", "read_ops": "rios", "write_ops": "wios"}
        if pairs is None:
            pairs = self._service("bytes", "rbytes", "wbytes") | self._service("d", "rios", "wios")
        return {name: pairs.get(key) for name, key in names.items()}

    def _pairs(self, controller: str, name: str) -> dict[str, int] | None:
        """Sum up lines such as `8:0 rbytes=1 wbytes=2` over all devices."""
        text = self._read(controller, name)
        if text is None:
            return None
        found: dict[str, int] = {}
        for word in text.split():
            key, _, value = word.partition("=")
            if value.isdecimal():
                found[key] = found.get(key, 0) + int(value)
        return found or {"rbytes": 0, "wbytes": 0, "rios": 0, "wios": 0}

    def _service(self, kind: str, read: str, write: str) -> dict[str, int]:
        """Sum up version 1's lines such as `8:0 Read 4096` over all devices."""
        text = self._read("blkio", f"blkio.throttle.io_service{'d' if kind == 'd' else '_bytes'}_recursive")
        if text is None:
            return {}
        # Recent kernels list no device unless a limit is set: that is no count of nothing.
        found: dict[str, int] = {}
        for line in text.splitlines():
            words = line.split()
            key = {"Read": read, "Write": write}.get(words[1] if len(words) == 3 else "")  # noqa: PLR2004
            if key is not None:
                found[key] = found.get(key, 0) + int(words[2])
        return found

    def _cpu(self) -> float | None:
        usage = self._table("", "cpu.stat").get("usage_usec")
        if usage is not None:
            return usage / 1e6
        nanoseconds = self._number("cpuacct", "cpuacct.usage")
        return None if nanoseconds is None else nanoseconds / 1e9

    def _read(self, controller: str, name: str) -> str | None:
        folders = self.ancestries.get(controller)
        return machine.read(folders[0] / name) if folders else None

    def _number(self, controller: str, name: str) -> int | None:
        return machine.number(self._read(controller, name))

    def _table(self, controller: str, name: str) -> dict[str, int]:
        """Read lines of a name and a number."""
        lines = (line.split() for line in (self._read(controller, name) or "").splitlines())
        return {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdecimal()}  # noqa: PLR2004

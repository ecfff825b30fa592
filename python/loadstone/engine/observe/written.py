"""What a load made others write: the server's WAL, its processes, the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from loadstone.host import machine
from loadstone.host.cgroup import ControlGroup
from loadstone.host.machine import ROOT
from loadstone.host.procfs import ProcessTree, disk_counters

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from loadstone.engine import Engine
    from loadstone.engine.control import Control
    from loadstone.engine.observe.storage import DataFiles

_LINKS = ("pg_wal", "pg_tblspc")
"""What a server's folder may keep elsewhere."""


class WrittenBytes(TypedDict):
    """STORAGE's `written`: all of it by everybody since the beginning; None where it is not known."""

    wal_bytes: int | None
    device_bytes: int | None
    server_bytes: int | None
    amplification: float | None
    """Device bytes for each logical byte."""
    of: str
    """Whose writes the device bytes are."""


class WriteAccount:
    """Reads the counters at its making, and by what they have grown when asked."""

    def __init__(self, engine: Engine, control: Control, data_directory: Path | None = None) -> None:
        """Begin now; `data_directory` is where the database's files are, when it is ours to know."""
        self._engine = engine
        self.notes: list[str] = []
        """Why something is None."""
        found = engine.server_pids(control)
        self._group = ControlGroup.of(found.pid) if found.pid is not None else None
        self._disks = self._disks_of(engine.data_files(control, data_directory))
        self._tree = ProcessTree(found.pid) if found.pid is not None else None
        if self._tree is None:
            reason = "they are part of Loadstone's process" if engine.in_process else found.reason
            self.notes.append(f"what the server's processes wrote is unknown: {reason}")
        self._begin = self._read(control)

    def written(self, control: Control, logical_bytes: int | None) -> WrittenBytes:
        """Return what was written since the beginning.

        Ask after a checkpoint (`Engine.storage` makes one): before it, much is still in memory.
        """
        now = self._read(control)
        grown = {
            name: None if now[name] is None or was is None else now[name] - was
            for name, was in self._begin.items()
        }
        device = grown["device"]
        return {
            "wal_bytes": grown["wal"],
            "device_bytes": device,
            "server_bytes": grown["server"],
            "amplification": device / logical_bytes if device is not None and logical_bytes else None,
            "of": self._of(),
        }

    def _disks_of(self, files: DataFiles) -> frozenset[str]:
        """Return the disks that hold the files, those of WAL and tablespaces too."""
        if files.folder is None:
            self.notes.append(f"device bytes are unknown: {files.why}")
            return frozenset()
        found = set()
        for path in _places(files.folder):
            mount = machine.mount_of(path)
            disk = machine.disk_of(mount) if mount is not None else None
            if disk is None:
                kind = mount.kind if mount is not None else "nothing"
                self.notes.append(f"device bytes are unknown: '{path}' is not on a disk ({kind})")
                return frozenset()
            found.add(disk)
        return frozenset(found)

    def _read(self, control: Control) -> dict[str, Any]:
        try:
            wal = self._engine.sizes(control)["wal_lsn_bytes"]
        except self._engine.errors:
            wal = None
        sample = self._tree.sample() if self._tree is not None else None
        return {"wal": wal, "device": self._device(), "server": sample and sample["write_bytes"]}

    def _device(self) -> int | None:
        if self._group is not None and self._group.counts_device_bytes:
            sample = self._group.sample()
            return None if sample is None else sample["write_bytes"]
        counters = disk_counters(self._disks, ROOT) if self._disks else None
        return None if counters is None else int(counters["write_bytes"])

    def _of(self) -> str:
        if self._group is not None and self._group.counts_device_bytes:
            return "everything that the server's control group wrote to disks, including the final checkpoint"
        if not self._disks:
            return "not observed"
        disks = ", ".join(sorted(self._disks))
        return f"all writes to the disk {disks}, by any process, including the final checkpoint"


def _places(data_directory: Path) -> Iterable[Path]:
    yield data_directory
    for name in _LINKS:
        folder = data_directory / name
        if folder.is_symlink():
            yield folder.resolve()
        elif folder.is_dir():
            yield from (path.resolve() for path in folder.iterdir() if path.is_symlink())

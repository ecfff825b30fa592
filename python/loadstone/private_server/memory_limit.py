"""A memory limit for a private server: control groups of its own, where the system lets us make them.

What the limit counts is the server's memory and the pages of its files that the kernel keeps for it,
together; there is no swap. Sources: the kernel's documents admin-guide/cgroup-v2 and
admin-guide/cgroup-v1/memory.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING

from loadstone.host import machine
from loadstone.host.machine import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

_NO_LIMIT_V1 = 1 << 60
_LIMITS_V2 = ("memory.max", "memory.high", "cpu.max", "io.max")
_OBSERVED_V1 = ("cpuacct",)
"""Controllers of version 1 in which a group of the server's own shows what only it does. Not blkio: it knows
nothing of what the kernel writes later, and without a limit of its own recent kernels count nothing there."""
_REMOVE_WAIT_S = 5.0
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Groups:
    """The folders of the groups; the first one limits memory."""

    folders: tuple[Path, ...]
    unified: bool
    """Of version 2."""

    @property
    def doors(self) -> tuple[Path, ...]:
        """The files that a process joins the groups by."""
        return tuple(folder / "cgroup.procs" for folder in self.folders)

    def make(self, memory_bytes: int) -> None:
        """Make the groups with this limit; raises OSError when the system refuses."""
        memory = self.folders[0]
        for folder in self.folders:
            folder.mkdir(exist_ok=True)
        (memory / ("memory.max" if self.unified else "memory.limit_in_bytes")).write_text(str(memory_bytes))
        # Swap would stand in for memory; kernels without it have no such file.
        with contextlib.suppress(OSError):
            if self.unified:
                (memory / "memory.swap.max").write_text("0")
            else:
                (memory / "memory.memsw.limit_in_bytes").write_text(str(memory_bytes))


def choose_groups(name: str, root: Path = ROOT) -> Groups | str:
    """Return where groups of this name can be made, or why they cannot."""
    ancestries = machine.cgroup_ancestries(root)
    unified = _highest([f for f in ancestries.get("", []) if _passes_memory_on(f)], _limited_v2)
    if unified is not None:
        return Groups((unified / name,), unified=True)
    memory = _highest(ancestries.get("memory", []), _limited_v1)
    if memory is not None:
        others = (_highest(ancestries.get(controller, []), _limited_v1) for controller in _OBSERVED_V1)
        return Groups((memory / name, *(folder / name for folder in others if folder)), unified=False)
    if not ancestries.get("memory") and not any(map(_passes_memory_on, ancestries.get("", []))):
        return "none of our control groups passes the memory controller on to the groups below it"
    return "this user may not create a control group below its own"


def _highest(ancestry: list[Path], limited: Callable[[Path], bool]) -> Path | None:
    """Return the highest group that we may make one below, without escaping a limit that we are under.

    The higher the better: session managers remove groups when a session ends, and would take ours along.
    """
    found = None
    for folder in ancestry:
        if os.access(folder, os.W_OK | os.X_OK) and os.access(folder / "cgroup.procs", os.W_OK):
            found = folder
        if limited(folder):
            break
    return found


def _passes_memory_on(folder: Path) -> bool:
    return "memory" in (machine.read(folder / "cgroup.subtree_control") or "").split()


def _limited_v2(folder: Path) -> bool:
    texts = (machine.read(folder / name) or "" for name in _LIMITS_V2)
    return any(text and not text.startswith("max") for text in texts)


def _limited_v1(folder: Path) -> bool:
    limit = machine.number(machine.read(folder / "memory.limit_in_bytes"))
    return limit is not None and limit < _NO_LIMIT_V1


def remove_groups(folders: tuple[str, ...], name: str) -> bool:
    """Remove the groups of this name, waiting a while for their last process; says whether all are gone."""
    end = monotonic() + _REMOVE_WAIT_S
    left = [Path(folder) for folder in folders if Path(folder).name == name]
    while left:
        for folder in left:
            # A control group's files are no obstacle; a folder of another kind is removed only when empty.
            with contextlib.suppress(OSError):
                folder.rmdir()
        left = [folder for folder in left if folder.exists()]
        if not left or monotonic() > end:
            break
        Event().wait(_POLL_S)
    return not left

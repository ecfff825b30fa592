"""Crashes as by a loss of power: the server's data are on a file system that forgets what was not synced."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from loadstone.crash.levels import Crashed, kill_all
from loadstone.power_disk import PowerDisk
from loadstone.private_server import PrivateFolder
from loadstone.private_server.os_user import server_account

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from loadstone.crash.documents import LevelName
    from loadstone.private_server import EmbeddedServer

_KEPT = (0.0, 0.5)
"""Shares of the unsynced pages that survive, in turns: a disk may have written some of them already."""


class PowerLevel:
    """All processes are killed, and what they had not synced is gone: bytes, files and names."""

    name: LevelName = "power"

    def __init__(self, storage: Path | None, seed: int) -> None:
        """Keep what is durable in `storage`; `seed` decides which unsynced pages survive."""
        self.storage: Path | None = None
        self._parent = storage
        self._seed = seed
        self._crashes = 0
        self._stack = ExitStack()
        self._disk: PowerDisk

    def __enter__(self) -> Self:
        """Mount the file system. Raises LoadstoneError where that is not possible."""
        account = server_account()
        with self._stack as stack:
            folder = stack.enter_context(PrivateFolder(self._parent, user=account)).path
            backing, mount = folder / "durable", folder / "disk"
            for path in (backing, mount):
                path.mkdir(mode=0o700)
                account.own(path)
            self._disk = stack.enter_context(PowerDisk(backing, mount))
            self._stack = stack.pop_all()
        self.storage = mount
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Unmount it, and remove what it holds."""
        self._stack.close()

    def settle(self, server: EmbeddedServer) -> None:  # noqa: ARG002 - the level's interface
        """Make everything durable: the copy of the data was not synced by the server."""
        self._disk.sync()

    def crash(self, server: EmbeddedServer) -> Crashed:
        """Kill all processes, then forget."""
        killed_ns = kill_all(server)
        keep = _KEPT[self._crashes % len(_KEPT)]
        lost = self._disk.lose(seed=self._seed + self._crashes, keep=keep)
        self._crashes += 1
        return Crashed(
            killed_ns, {"bytes": lost.bytes, "survived_bytes": lost.survived_bytes, "files": lost.files,
                        "names": lost.names},
        )  # fmt: skip

    def counters(self) -> dict[str, int]:
        """Return what the file system has counted."""
        seen = self._disk.counters()
        names = ("reads", "read_bytes", "writes", "written_bytes", "fsyncs", "written_back_bytes", "losses")
        return {name: getattr(seen, name) for name in names}

"""What a load costs: CPU time of both sides, WAL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.host.procfs import ProcessTree, own_process

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.engine import Engine
    from loadstone.engine.control import Control


class Meter:
    """Reads both at the beginning of a load, and what they have grown by when asked."""

    def __init__(self, engine: Engine, control: Control) -> None:
        """Begin now."""
        self._engine = engine
        pid = None if engine.in_process else engine.server_pids(control).pid
        self._tree = ProcessTree(pid) if pid is not None else None
        self._server = self._tree.sample() if self._tree else None
        self._client = own_process()
        self._wal = self._position(control)

    def cpu(self, client_s: float | None = None) -> dict[str, float | bool | None]:
        """Return the CPU seconds of both sides since the beginning, and our share of the two.

        `client_s` are those of our side where it is not this process.
        """
        server = _cpu_s(self._server, self._tree.sample() if self._tree else None)
        client = _cpu_s(self._client, own_process()) if client_s is None else client_s
        both = server + client if server is not None and client is not None else None
        share = client / both if both and client is not None else None
        own = self._engine.in_process
        return {"server_s": server, "client_s": client, "client_share": share, "in_process": own}

    def wal_bytes(self, control: Control) -> int | None:
        """Return how much WAL was written since the beginning, by everybody."""
        now = self._position(control)
        return None if now is None or self._wal is None else now - self._wal

    def _position(self, control: Control) -> int | None:
        try:
            return self._engine.sizes(control)["wal_lsn_bytes"]
        except self._engine.errors:
            return None


def _cpu_s(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> float | None:
    if before is None or after is None:
        return None
    return float(sum(after[name] - before[name] for name in ("cpu_user_s", "cpu_system_s")))

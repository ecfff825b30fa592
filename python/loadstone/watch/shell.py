"""The sampler for machines without Python: a POSIX shell in a loop shows files, which are read here."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError
from loadstone.host.procfs import Host, Monotone, family_of, parse_stat
from loadstone.watch.remote_program import server_root

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

END = b"==end\n"
_FILES = "stat meminfo loadavg diskstats net/dev pressure/cpu pressure/io pressure/memory"
LOOP = (
    "while read -r question; do "
    'echo "==uptime"; cat /proc/uptime; echo "==wall"; date +%s; '
    'if [ "$question" = sample ]; then '
    f'for name in {_FILES}; do echo "==proc/$name"; cat "/proc/$name"; done; '
    'echo "==sys/block"; ls /sys/block; echo "==cards"; ls -d /sys/class/net/*/device; '
    'echo "==processes"; cat /proc/[0-9]*/stat; '
    'fi; echo "==end"; done 2>/dev/null'
)
"""Contains neither single quotes nor exclamation marks, for the login shell may be of any kind."""
_TICKS_PER_S = 100  # what Linux shows to programs


class ShellAnswers:
    """Turns the texts into the parts of a sample, by the readers that are used for this machine."""

    def __init__(self) -> None:
        """Make a folder for the files that are shown."""
        self._folder = tempfile.TemporaryDirectory(prefix="loadstone-watch-")
        self._root = Path(self._folder.name)
        self._host: Host | None = None
        self._pid: int | None = None
        self._backend: int | None = None
        self._totals = (Monotone(), Monotone())

    def close(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()

    def clocks(self, text: bytes) -> dict[str, Any]:
        """Return `monotonic_ns` and `wall_ns`. Raises LoadstoneError for what is no answer."""
        parts = sections(text)
        try:
            uptime_ns = int(float(parts["uptime"].split()[0]) * 1e9)
            return {"monotonic_ns": uptime_ns, "wall_ns": int(parts["wall"].strip()) * 10**9}
        except (KeyError, ValueError, IndexError, OverflowError) as error:
            raise LoadstoneError("its shell does not show /proc/uptime and the time") from error

    def sample(self, text: bytes, names: Collection[str], backend: int | None) -> dict[str, Any]:
        """Return `host`, `server` and `reason` of an answer. Raises LoadstoneError."""
        parts = sections(text)
        try:
            host = self._machine(parts)
            server, reason = self._server(parts.get("processes", ""), names, backend)
        except (OSError, ValueError, IndexError, KeyError) as error:
            raise LoadstoneError(f"its shell does not show /proc as Linux has it: {error}") from error
        return {"host": host, "server": server, "reason": reason}

    def _machine(self, parts: Mapping[str, str]) -> dict[str, Any]:
        for name, text in parts.items():
            if name.startswith("proc/") and name.removeprefix("proc/") in _FILES.split():
                path = self._root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        if self._host is None:
            for block in parts.get("sys/block", "").split():
                (self._root / "sys/block" / Path(block).name).mkdir(parents=True, exist_ok=True)
            for card in parts.get("cards", "").split():
                folder = self._root / "sys/class/net" / Path(card).parent.name / "device"
                folder.mkdir(parents=True, exist_ok=True)
            self._host = Host(root=self._root)
        return self._host.sample()

    def _server(
        self, processes: str, names: Collection[str], backend: int | None
    ) -> tuple[dict[str, Any] | None, str]:
        stats = {stat.pid: stat for line in processes.splitlines() if (stat := parse_stat(line.encode()))}
        if not names:
            return None, ""
        if self._pid not in stats or backend != self._backend:
            self._backend = backend
            known = {pid: stat.parent for pid, stat in stats.items() if stat.name in names}
            again = self._pid is not None
            self._pid, reason = server_root(known, backend)
            if self._pid is None:
                return None, reason
            self._rebase(stats, again=again)
        family = family_of(stats[self._pid], stats.values())
        return {
            "processes": sum(not stat.gone for stat in family),
            "cpu_user_s": self._totals[0].next(_seconds(stat.user for stat in family)),
            "cpu_system_s": self._totals[1].next(_seconds(stat.system for stat in family)),
            "rss_bytes": None,
            "read_bytes": None,
            "write_bytes": None,
        }, ""

    def _rebase(self, stats: Mapping[int, Any], *, again: bool) -> None:
        """Let counters go on where they were: the server was started again."""
        if again and self._pid is not None:
            family = family_of(stats[self._pid], stats.values())
            self._totals[0].rebase(_seconds(stat.user for stat in family))
            self._totals[1].rebase(_seconds(stat.system for stat in family))


def _seconds(ticks: Iterable[int]) -> float:
    return sum(ticks) / _TICKS_PER_S


def sections(text: bytes) -> dict[str, str]:
    """Split an answer at its lines `==NAME`."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.decode(errors="replace").splitlines():
        if line.startswith("=="):
            lines = found.setdefault(line[2:], [])
        else:
            lines.append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}

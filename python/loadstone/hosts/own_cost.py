"""What an agent costs beside its drive: CPU of the thread that answers, bytes of questions and answers."""

from __future__ import annotations

import time


class OwnCost:
    """Counts from `begin` on; to be used in the thread that answers. Neither drive threads nor Dask count."""

    def __init__(self) -> None:
        """Count nothing yet."""
        self._bytes = 0
        self._since = (0, 0, 0)

    def count(self, *messages: bytes) -> None:
        """Keep what was received and sent."""
        self._bytes += sum(map(len, messages))

    def begin(self) -> None:
        """Count from here on."""
        self._since = self._now()

    def document(self) -> dict[str, int]:
        """Return what it came to: `wall_ns`, `cpu_ns`, `bytes`."""
        spent = [now - then for now, then in zip(self._now(), self._since, strict=True)]
        return dict(zip(("wall_ns", "cpu_ns", "bytes"), spent, strict=True))

    def _now(self) -> tuple[int, int, int]:
        return time.monotonic_ns(), time.thread_time_ns(), self._bytes

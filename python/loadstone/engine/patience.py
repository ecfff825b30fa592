"""How long a server that was lost is waited for."""

from __future__ import annotations

import time

from loadstone.errors import ServerStartingError

_PAUSE_S = 0.25
_RECOVERY_S = 600.0
"""Longest wait for a server that says that it is on its way: it may have much WAL to read after a crash."""


class Patience:
    """Goes on trying to reach a server that was lost: longer while it says that it is on its way."""

    def __init__(self, away_s: float) -> None:
        """Begin; `away_s` is how long the server may be away."""
        self._away_s = away_s
        self._begun = self._there = time.monotonic()

    def pause(self, error: Exception) -> bool:
        """Wait for a moment before the next try; False when it was tried long enough."""
        now = time.monotonic()
        if isinstance(error, ServerStartingError):
            self._there = now
        if now - self._there > self._away_s or now - self._begun > max(_RECOVERY_S, self._away_s):
            return False
        time.sleep(_PAUSE_S)
        return True

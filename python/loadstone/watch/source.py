"""What watches a machine: asked once a second for counters, at a moment of our own clock."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from loadstone.watch.clock import RemoteClock

Facts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """Counters as they were read; parts are None where the source has none."""

    t_ns: int
    """When, on our monotonic clock."""
    host: Facts | None
    server: Facts | None
    counters: dict[str, float] | None = None
    gauges: dict[str, float] | None = None


class Source(ABC):
    """One `--watch`. `check` comes first; `ask` may raise at any time, and may work again the next time."""

    def __init__(self, shown: str) -> None:
        """Name it by its URL without secrets."""
        self.shown = shown
        self.clock = RemoteClock()
        self.not_observed: list[str] = []
        """What it does not show, and why, in words; known after `check`."""

    @abstractmethod
    def check(self) -> str:
        """Try it before anything is touched; returns what it is, in words. Raises LoadstoneError."""

    def served_by(self, backend: int | None) -> None:
        """Keep a process that serves us, as the server numbers it: it leads to the others."""
        del backend

    @abstractmethod
    def ask(self) -> Answer:
        """Return what it says now. Raises LoadstoneError."""

    @abstractmethod
    def close(self) -> None:
        """Leave nothing behind."""

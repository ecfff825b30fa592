"""Ctrl-C at an exact place of a command that runs in the test's own process."""

from __future__ import annotations

import signal
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


def interrupt_at(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int = 1) -> None:
    """Press Ctrl-C within the nth call of a function."""
    before, number = getattr(owner, name), count(1)

    def interrupted(*given: Any, **more: Any) -> Any:
        if next(number) == call:
            signal.raise_signal(signal.SIGINT)
        return before(*given, **more)

    monkeypatch.setattr(owner, name, interrupted)

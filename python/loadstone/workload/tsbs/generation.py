"""One generation by the core: watched until it ends."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from loadstone import _core
from loadstone.errors import LoadstoneError, RunFailedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.signals import Signals

FILE_FORMATS = ("parquet", "arrow")
"""What `tsbs.files` writes; the core knows the others."""
_POLL_S = 0.1
Progress = dict[str, Any]


def make(
    specification: dict[str, Any],
    signals: Signals | None = None,
    show: Callable[[Progress], None] | None = None,
    grace_s: float = 2.0,
) -> dict[str, Any]:
    """Make what a specification of `_core.Generation` says and return its account.

    The first signal asks it to stop; a write that then takes longer than `grace_s` is given up.
    Raises LoadstoneError when it cannot begin, RunFailedError when it cannot go on.
    """
    try:
        generation = _core.Generation(json.dumps(specification))
    except _core.DriveError as error:
        raise LoadstoneError(*error.args) from error
    # Before it starts: a signal raised after its output was opened, and before this, would leave it behind.
    with signals.calling(generation.stop) if signals is not None else nullcontext():
        try:
            generation.start()
        except _core.DriveError as error:
            raise LoadstoneError(*error.args) from error
        try:
            return _await(generation, signals, show, grace_s)
        except _core.DriveError as error:
            raise RunFailedError(*error.args) from error


def _await(
    generation: _core.Generation,
    signals: Signals | None,
    show: Callable[[Progress], None] | None,
    grace_s: float,
) -> dict[str, Any]:
    asked_at: float | None = None
    while True:
        text = generation.wait(_POLL_S)
        if text is not None:
            account: dict[str, Any] = json.loads(text)
            return account
        if show is not None:
            show(json.loads(generation.progress()))
        if signals is None or signals.received is None:
            continue
        asked_at = asked_at or time.monotonic()
        if time.monotonic() - asked_at > grace_s:
            signals.check()  # whoever reads our output does not: nothing comes of waiting

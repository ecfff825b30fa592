"""A wall clock that is set again and again, as the module sees it that reads it for all others."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import cycle
from typing import TYPE_CHECKING

from loadstone.host import environment

if TYPE_CHECKING:
    from datetime import tzinfo

    import pytest

_LEAPS = (timedelta(0), timedelta(hours=-3), timedelta(days=400), timedelta(days=-800))


def let_wall_clock_leap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the wall clock before each reading; the monotonic clock stays what it is."""
    leaps = cycle(_LEAPS)

    class Leaping(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + next(leaps)  # noqa: TID251

    monkeypatch.setattr(environment, "datetime", Leaping)

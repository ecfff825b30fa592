"""When a server is made to crash: random moments, a third of them each of one kind; or late ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import psycopg

Kind = Literal["anywhere", "checkpoint", "segment", "late"]
KINDS: tuple[Kind, ...] = ("anywhere", "checkpoint", "segment")
"""Those of random moments."""
_EARLIEST = 0.25
"""Of the window: before, there is little to lose."""
_CHECKPOINT_DELAY_S = 0.2
_SEGMENT_BYTES_AROUND = 256 << 10
_PATIENCE = 2.0
"""Windows to wait for a checkpoint to begin or for WAL to reach the end of a segment."""
_POLL_S = 0.002
_LATE_POLL_S = 0.01
"""A statement each time, which must not weigh on the load."""
_LATE_FROM_S = 2.0
"""The rate before the crash is of so much time, or of half a window."""
_LATE = (0.8, 0.9)
"""Of the most WAL that a crash could have to replay."""
_MAJOR_11 = 110000
_BEGUN = b"checkpoint starting:"


@dataclass(frozen=True, slots=True)
class Moment:
    """One random moment."""

    kind: Kind
    after_s: float
    """After the load began; the moment itself, or when it begins to be looked for."""
    delay_s: float = 0.0
    """After the checkpoint has begun."""
    offset_bytes: int = 0
    """Of WAL, from the switch to the next segment."""
    share: float = 0.0
    """Of the most WAL that a crash could have to replay."""


def late_moments(seed: int, cycles: int, window_s: float) -> list[Moment]:
    """Return moments late in the checkpoint cycle, so many as there are cycles."""
    chance = np.random.default_rng([seed, 0x6C617465])
    after_s = min(_LATE_FROM_S, window_s / 2)
    return [Moment("late", after_s, share=float(chance.uniform(*_LATE))) for _ in range(cycles)]


def moments(seed: int, cycles: int, window_s: float) -> list[Moment]:
    """Return the moments of so many cycles: the same for the same seed, window and place in the row."""
    chance = np.random.default_rng([seed, 0x6C6F6164])
    found: list[Moment] = []
    while len(found) < cycles:
        for at in chance.permutation(len(KINDS)):
            after_s = float(chance.uniform(_EARLIEST, 1.0)) * window_s
            delay_s = float(chance.uniform(0, _CHECKPOINT_DELAY_S))
            offset = int(chance.integers(-_SEGMENT_BYTES_AROUND, _SEGMENT_BYTES_AROUND))
            kind = KINDS[at]
            found.append(
                Moment(
                    kind, after_s, delay_s if kind == "checkpoint" else 0.0,
                    offset if kind == "segment" else 0,
                )
            )  # fmt: skip
    return found[:cycles]


@dataclass(frozen=True, slots=True)
class Watch:
    """What is seen of a server under load."""

    control: psycopg.Connection
    log: Path
    begin_s: float
    """When the load began, by `time.monotonic`."""
    check: Callable[[], None]
    """Raises what is to end the waiting: a signal, or the end of the load."""


def await_moment(moment: Moment, watch: Watch, window_s: float) -> str | None:
    """Wait until the moment has come; returns what was otherwise than drawn. Raises psycopg's errors."""
    until(lambda: False, watch, watch.begin_s + moment.after_s)
    patience_s = _PATIENCE * window_s
    if moment.kind == "checkpoint":
        return _after_checkpoint(moment, watch, patience_s)
    if moment.kind == "segment":
        return _around_switch(moment, watch, patience_s)
    if moment.kind == "late":
        return _late(moment, watch, window_s)
    return None


def until(condition: Callable[[], bool], watch: Watch, end_s: float, poll_s: float = _POLL_S) -> bool:
    """Wait for a condition, or for a time; returns whether it was the condition."""
    while not condition():
        left_s = end_s - monotonic()
        if left_s <= 0:
            return False
        watch.check()
        Event().wait(min(left_s, poll_s))
    return True


def _after_checkpoint(moment: Moment, watch: Watch, patience_s: float) -> str | None:
    from_byte = watch.log.stat().st_size
    # Not waited for: the crash is to come in its midst.
    watch.control.pgconn.send_query(b"checkpoint")
    watch.control.pgconn.flush()

    def has_begun() -> bool:
        with watch.log.open("rb") as file:
            file.seek(from_byte)
            return _BEGUN in file.read()

    if not until(has_begun, watch, monotonic() + patience_s):
        return "no checkpoint was seen to begin"
    until(lambda: False, watch, monotonic() + moment.delay_s)
    return None


def _around_switch(moment: Moment, watch: Watch, patience_s: float) -> str | None:
    size = int(_one(watch, "select setting from pg_settings where name = 'wal_segment_size'"))
    size *= _pages(watch)
    now = _wal(watch)
    goal = (now // size + 1) * size + moment.offset_bytes
    if goal <= now:
        goal += size
    if until(lambda: _wal(watch) >= goal, watch, monotonic() + patience_s):
        return None
    _one(watch, "select pg_switch_wal()")
    return "the load wrote too little WAL: the segment was switched on request"


def _late(moment: Moment, watch: Watch, window_s: float) -> str | None:
    """Wait until a crash has almost as much WAL to replay as it ever has: just before a checkpoint ends."""
    goal = Goal(moment.share, _most_to_replay(watch))
    if until(lambda: goal.reached_by(_to_replay(watch)), watch, watch.begin_s + window_s, _LATE_POLL_S):
        return None
    return (
        f"after {window_s:g} s {goal.last / 1e6:,.0f} MB of WAL were to be replayed, of "
        f"{goal.most / 1e6:,.0f} MB at most: a longer --window crashes later in the checkpoint cycle"
    )


@dataclass(slots=True)
class Goal:
    """How much WAL is to be replayed by the time of the crash; learns from checkpoints that end before."""

    share: float
    most: float
    """Bytes, as PostgreSQL plans its checkpoints; less where they were seen to end with less."""
    last: int = 0
    _peak: int = 0
    _peaks: list[int] = field(default_factory=list)

    def reached_by(self, to_replay: int) -> bool:
        """Keep the bytes that a crash would have to replay now; returns whether they are enough."""
        if to_replay < self.last:
            self._take_end_of_checkpoint()
        self.last = to_replay
        self._peak = max(self._peak, to_replay)
        return to_replay >= self.share * self.most

    def _take_end_of_checkpoint(self) -> None:
        self._peaks.append(self._peak)
        self._peak = 0
        # The first may have begun within a segment, or before the load.
        if len(self._peaks) > 1:
            self.most = min(self.most, max(self._peaks))


def _most_to_replay(watch: Watch) -> float:
    """Return the bytes of WAL from the start of a checkpoint to the end of the next, as the server plans it.

    As `CalculateCheckpointSegments` and `IsCheckpointOnSchedule` have it: one begins when the one before is n
    segments old, and spreads its writes over `checkpoint_completion_target` of n.
    """
    segment = _setting_bytes(watch, "wal_segment_size")
    target = float(_one(watch, "show checkpoint_completion_target"))
    kept = 1 if watch.control.info.server_version >= _MAJOR_11 else 2
    segments = max(int(_setting_bytes(watch, "max_wal_size") / segment / (kept + target)), 1)
    return (1 + target) * segments * segment


def _setting_bytes(watch: Watch, name: str) -> int:
    return int(_one(watch, f"select pg_size_bytes(current_setting('{name}'))"))


def _to_replay(watch: Watch) -> int:
    return int(
        _one(watch, "select (pg_current_wal_insert_lsn() - redo_lsn)::bigint from pg_control_checkpoint()")
    )


def _pages(watch: Watch) -> int:
    """Bytes of the unit of `wal_segment_size`: pages of WAL before version 11, bytes since."""
    unit = _one(watch, "select coalesce(unit, 'B') from pg_settings where name = 'wal_segment_size'")
    return 1 if unit == "B" else 8192


def _wal(watch: Watch) -> int:
    return int(_one(watch, "select (pg_current_wal_insert_lsn() - '0/0')::bigint"))


def _one(watch: Watch, sql: str) -> str:
    row = watch.control.execute(sql.encode()).fetchone()
    return "" if row is None else str(row[0])

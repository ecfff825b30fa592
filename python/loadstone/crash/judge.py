"""What became of each commit: pure functions of what clients know and what the server has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadstone.crash.ledger import ACKNOWLEDGED, EMPTY, SENT, Array, Records, Rows, keys

_READ_LATE_NS = 50_000_000
"""An answer may lie in a socket for so long before the client reads it; no server comes back as fast."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Losses that the settings allow."""

    killed_ns: int = 0
    window_ns: int = 0
    """A commit that was acknowledged so long before the crash may be lost; 0: none may."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Counts of transactions since the judgement before."""

    acknowledged: int
    lost: int
    """Acknowledged, and not there, though they had to be."""
    lost_allowed: int
    """The same where `synchronous_commit = off` allows it."""
    loss_window_s: float | None
    """How long before the crash the oldest lost one was acknowledged; None: nothing was lost, or unknown."""
    corrupt: int
    """There, with another checksum."""
    twice: int
    phantom: int
    """There, and refused, never sent or unknown to all clients."""
    holes: int
    """Acknowledged before the crash and not there, though a later one of the same client is."""
    unknown: int
    """Sent, and no answer was read."""
    unknown_present: int

    @property
    def is_whole(self) -> bool:
        """Return whether nothing is there or missing that must not."""
        return not (self.lost or self.corrupt or self.twice or self.phantom or self.holes)


def judge(records: Records, rows: Rows, settled: Rows = EMPTY, upto: Array | None = None,
          allowed: Allowed = Allowed()) -> Judgement:  # fmt: skip
    """Judge the transactions after those that are settled.

    `settled` are the rows that were found the last time, when the clients had begun `upto` transactions each
    (array by client): of those the same rows must be there now.
    """
    ends = np.zeros(max(_clients(records, rows), 0 if upto is None else len(upto)), np.int64)
    if upto is not None:
        ends[: len(upto)] = upto
    is_new = records.seq > ends[records.client]
    row_is_new = rows.seq > ends[np.clip(rows.client, 0, len(ends) - 1)]
    gone, strange = _changed(settled, rows, row_is_new)
    fresh = _New(rows.where(row_is_new), records.where(is_new))
    return fresh.judged(allowed, gone, strange)


def _clients(records: Records, rows: Rows) -> int:
    return int(max(records.client.max(initial=0), rows.client.max(initial=0))) + 1


def _changed(settled: Rows, rows: Rows, row_is_new: Array) -> tuple[int, int]:
    """Return how many settled rows are not there any more, and how many are new among them."""
    before, now = keys(settled.client, settled.seq), keys(rows.client, rows.seq)[~row_is_new]
    return int((~np.isin(before, now)).sum()), int((~np.isin(now, before)).sum())


@dataclass(frozen=True, slots=True)
class _New:
    """Transactions that are judged for the first time, and the rows that may be theirs."""

    rows: Rows
    records: Records

    def judged(self, allowed: Allowed, gone: int, strange: int) -> Judgement:
        own, there = keys(self.records.client, self.records.seq), keys(self.rows.client, self.rows.seq)
        distinct, first = np.unique(there, return_index=True)
        is_there = np.isin(own, distinct)
        acknowledged, sent = self.records.state == ACKNOWLEDGED, self.records.state == SENT
        missing = acknowledged & ~is_there
        age_ns = allowed.killed_ns - self.records.ns
        excused = missing & (self.records.ns > 0) & (age_ns >= -_READ_LATE_NS) & (age_ns <= allowed.window_ns)
        excused &= allowed.window_ns > 0
        nobodys = int((~np.isin(distinct, own)).sum())
        ages = age_ns[missing & (self.records.ns > 0)]
        return Judgement(
            acknowledged=int(acknowledged.sum()),
            lost=int((missing & ~excused).sum()) + gone,
            lost_allowed=int(excused.sum()),
            loss_window_s=float(ages.max()) / 1e9 if len(ages) else None,
            corrupt=self._corrupt(own, distinct, first),
            twice=len(there) - len(distinct),
            phantom=int((is_there & ~acknowledged & ~sent).sum()) + nobodys + strange,
            holes=self._holes(missing, is_there, allowed.killed_ns),
            unknown=int(sent.sum()),
            unknown_present=int((sent & is_there).sum()),
        )

    def _corrupt(self, own: Array, distinct: Array, first: Array) -> int:
        if not len(distinct) or not len(own):
            return 0
        at = np.clip(np.searchsorted(distinct, own), 0, len(distinct) - 1)
        found = distinct[at] == own
        return int((found & (self.rows.crc[first[at]] != self.records.crc)).sum())

    def _holes(self, missing: Array, is_there: Array, killed_ns: int) -> int:
        """Count what is missing before something that is there, both from before the crash."""
        if not missing.any():
            return 0
        latest = np.zeros(int(self.records.client.max()) + 1, np.int64)
        before = is_there & (self.records.seq < self._first_after(killed_ns)[self.records.client])
        np.maximum.at(latest, self.records.client[before], self.records.seq[before])
        return int((missing & (self.records.seq < latest[self.records.client])).sum())

    def _first_after(self, killed_ns: int) -> Array:
        """Return each client's first transaction that was acknowledged after the crash."""
        first = np.full(int(self.records.client.max()) + 1, np.iinfo(np.int64).max)
        after = (self.records.ns > killed_ns + _READ_LATE_NS) & (killed_ns > 0)
        np.minimum.at(first, self.records.client[after], self.records.seq[after])
        return first

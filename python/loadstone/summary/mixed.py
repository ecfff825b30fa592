"""What a user met who asked while rows went in: in the last third, when most of the table was there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.results.documents.base import Stats
from loadstone.results.documents.summary import LateQueries
from loadstone.summary.intervals import NS_PER_S, measured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.results.documents import Drive, Interval

PART = 1 / 3
"""Of a load's time: before, queries meet a table that is empty or small."""
FEWEST_BATCHES = 3
"""Batches, each a transaction, from which a part of the rows is seen before the last third is over."""


def summarise_late(load: Drive | None, asked: Sequence[Interval]) -> LateQueries | None:
    """Return rate and mean latency of the queries in the last third of a load; None where none is known.

    `load` is drive.json of the load, `asked` are the lines of series.jsonl of the queries. A query counts
    where it ended.
    """
    lines = measured(asked)
    if not lines:
        return None
    begin_ns, end_ns = lines[0].start_ns, lines[-1].end_ns
    if load is not None:
        begin_ns, end_ns = load.measure_ns, load.end_ns
    cut_ns = end_ns - (end_ns - begin_ns) * PART
    taken = [line for line in lines if line.start_ns >= cut_ns] or [lines[-1]]
    seconds = (taken[-1].end_ns - taken[0].start_ns) / NS_PER_S
    done = sum(line.done or 0 for line in taken)
    stats = [line.response or Stats() for line in taken]
    counted = sum(one.count or 0 for one in stats)
    spent_ns = sum((one.count or 0) * (one.mean_ns or 0.0) for one in stats)
    return LateQueries(
        seconds=seconds,
        done=done,
        qps=done / seconds if seconds > 0 else None,
        mean_ns=spent_ns / counted if counted else None,
        words=_words(load),
    )


def _words(load: Drive | None) -> str:
    batches = load and load.load and load.load.batches
    if batches is not None and batches < FEWEST_BATCHES:
        return (
            "in the last third of the import; it had so few batches that the queries saw at most half "
            "of the rows"
        )
    return "in the last third of the import, when the table was nearly complete"

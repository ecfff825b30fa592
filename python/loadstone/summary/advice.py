"""Advice from a load in steps: how large a partition may be, what import it sustains, and the DDL for it."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from loadstone.engine.dialect.tables import TableFacts, partition_ddl
from loadstone.engines import engine as engine_named
from loadstone.errors import LoadstoneError
from loadstone.model import PlainTable as TableWishes
from loadstone.results.documents.summary import Advice, Rate
from loadstone.summary.knee.knee import LEAST_GROWTH, rows_text
from loadstone.summary.statistics import CONFIDENCE, Interval, batch_means, ratio_interval
from loadstone.summary.steps import comparable, knee_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.results.documents.drive import PlainTable
    from loadstone.results.documents.run import PlannedLoad
    from loadstone.results.documents.summary import KneeFigures, StepFigures, StepsFigures

ROUND = (5, 2, 1)
"""Leading digits of the sizes that a person would choose."""
PARTITIONS = 12
"""Partitions that the DDL makes; who needs more sees the pattern."""
STILL_FLAT = 1.1
"""How much longer the last third of the steps may surely take while a table still counts as flat."""
UNSURE = 2.0
"""Upper end of that figure's interval from which steps scatter too much to say so."""
_FEWEST = 3
_MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the run folder says of a load beside its steps; None where it does not."""

    engine: str
    version: str
    """The server's, as its target tells it: `18.6`."""
    load: PlannedLoad | None
    """plan.json's `workload.load` of the phase."""
    table: PlainTable | None
    """The table's columns and what grows with the rows: drive.json's `load.table`."""


def advise(steps: StepsFigures, loaded: Loaded) -> Advice | None:
    """Return sentences, size, rate and DDL for summary.json; None where no knee was looked for."""
    knee = steps.knee
    if knee is None:
        return None
    if loaded.load and loaded.load.table.get("partition_rows"):  # no document: the options as planned
        return _advice([judge_flat(steps)[1]])
    rows = partition_rows(steps)
    rate = _rate(_before(steps, rows)) if rows else None
    sentences = [knee.sentence, *_sentences(knee, rows, rate), *_conditions(knee, steps)]
    if rows is None:
        return _advice(sentences, rate=_rate(comparable(steps.points, steps.step_rows)))
    return _with_ddl(_advice(sentences, rows=rows, rate=rate), loaded, rows)


def partition_rows(steps: StepsFigures) -> int | None:
    """Return how many rows a partition should have at most, a round number; None where it does not matter."""
    knee = steps.knee
    if knee and knee.outcome == "knee":
        return round_below(knee.low or 0)
    if knee and knee.outcome == "steady":
        return round_below(_still_fast(steps))
    return None


def round_below(rows: float) -> int | None:
    """Return the largest of 1, 2 and 5 times a power of ten that is not above `rows`; None below 1."""
    if rows < 1:
        return None
    power = 10 ** (len(str(int(rows))) - 1)
    return int(next(digit * power for digit in ROUND if digit * power <= rows))


def judge_flat(steps: StepsFigures) -> tuple[bool | None, str]:
    """Say whether the steps of a load stayed as fast as they began, in figures and words."""
    points = comparable(steps.points, steps.step_rows)
    knee = knee_of(steps.points, steps.step_rows)
    ratio = _last_over_first(points)
    if ratio is None or knee.outcome == "too_few":
        return None, f"Whether import stays fast is unknown: {len(points)} steps are too few."
    value, low, high = ratio
    figures = (
        f"the last third of {len(points)} steps takes {value:.3g} times as long as the first third "
        f"({100 * CONFIDENCE:g} % interval {low:.3g} to {high:.3g})"
    )
    if knee.outcome in ("none", "unclear") and low <= STILL_FLAT:
        if high > UNSURE or knee.outcome == "unclear":
            unsure = "but the steps scatter too much to call it flat"
            return None, f"No knee up to {rows_text(knee.up_to_rows or 0)} rows, {unsure}: {figures}."
        return True, f"It stays flat: no knee up to {rows_text(knee.up_to_rows or 0)} rows, and {figures}."
    found = "" if knee.outcome in ("none", "unclear") else f"{knee.sentence.rstrip('.')}; "
    return False, f"It does not stay flat: {found}{figures}."


def _advice(sentences: Sequence[str], *, rows: int | None = None, rate: Rate | None = None) -> Advice:
    return Advice(
        partition_rows=rows,
        column=None,
        by=None,
        partitions=None,
        rows_per_s=rate,
        sentences=list(sentences),
        ddl="",
    )


def _sentences(knee: KneeFigures, rows: int | None, rate: Rate | None) -> list[str]:
    if knee.outcome == "knee":
        if rows is None:
            return [
                (
                    "The interval reaches down to the first rows: no size of partition is certain to stay "
                    "below the knee."
                )
            ]
        return [
            (
                f"Keep each partition at {rows_text(rows)} rows or fewer: that is below the low end of "
                "the interval."
            ),
            *_rate_sentence("Up to there", rate),
        ]
    if knee.outcome == "steady":
        if rows is None:
            return ["The smaller the partitions, the faster the import; no measured size stays flat."]
        seen = (
            f"No size stays flat, but smaller partitions are faster. Up to {rows_text(rows)} rows no "
            f"step took over {100 * (LEAST_GROWTH - 1):g} % longer than the first ones (read from the "
            "steps, without an interval)."
        )
        return [seen, *_rate_sentence("Up to there", rate)]
    if knee.outcome == "none":
        up_to = rows_text(knee.up_to_rows or 0)
        unknown = "More rows, other indexes, less memory and rows in another order were not measured."
        return [f"Import needs no partitions up to {up_to} rows. {unknown}"]
    unclear = "No advice: measure again on a quieter machine, or with larger steps."
    return [unclear if knee.outcome == "unclear" else "Load more, or smaller, steps."]


def _rate_sentence(where: str, rate: Rate | None) -> list[str]:
    if rate is None:
        return []
    interval = ""
    if rate.low is not None:
        interval = f" ({100 * CONFIDENCE:g} % interval {rate.low:,.0f} to {rate.high:,.0f})"
    return [f"{where}, expect about {rate.value:,.0f} rows per second{interval}."]


def _conditions(knee: KneeFigures, steps: StepsFigures) -> list[str]:
    limit = steps.memory_limit_bytes
    if not limit or knee.outcome not in ("knee", "steady"):
        return []
    memory = f"{limit / 2**20:,.0f} MiB, including its page cache"
    return [f"The server's memory was limited to {memory}: with more memory, import slows down later."]


def _before(steps: StepsFigures, rows: int) -> list[StepFigures]:
    """Return the comparable steps into a table of up to `rows` rows, at least the first few."""
    points = comparable(steps.points, steps.step_rows)
    inside = [point for point in points if point.rows_before + point.rows <= rows]
    return inside if len(inside) >= _FEWEST else points[:_FEWEST]


def _rate(points: Sequence[StepFigures]) -> Rate | None:
    seconds = sum(_seconds(point) for point in points)
    if not seconds:
        return None
    value = sum(point.rows for point in points) / seconds
    interval = batch_means([point.rows / _seconds(point) for point in points], value)
    if isinstance(interval, str):
        return Rate(value=value, low=None, high=None, n=len(points), reason=interval)
    return Rate(**asdict(interval), reason=None)


def _still_fast(steps: StepsFigures) -> float:
    """Return the rows up to which the median of three neighbours stays within a quarter of the first ones."""
    points = comparable(steps.points, steps.step_rows)
    each = np.array([_seconds(point) / point.rows for point in points])
    middle = np.median(np.lib.stride_tricks.sliding_window_view(each, _FEWEST), axis=1)
    slow = np.flatnonzero(middle > LEAST_GROWTH * middle[0])
    last = int(slow[0]) if len(slow) else len(points) - 1
    return float(points[last].rows_before)


def _last_over_first(points: Sequence[StepFigures]) -> tuple[float, float, float] | None:
    """Return how much longer the last third of the steps takes than the first, with its 95 % interval."""
    third = len(points) // 3
    thirds = [_third(points[:third]), _third(points[len(points) - third :])]
    if third < _FEWEST or isinstance(thirds[0], str) or isinstance(thirds[1], str):
        return None
    return ratio_interval(thirds[0], thirds[1])


def _third(points: Sequence[StepFigures]) -> Interval | str:
    rates = [point.rows / _seconds(point) for point in points]
    return batch_means(rates, float(np.mean(rates))) if rates else "no steps"


def _seconds(point: StepFigures) -> float:
    return point.seconds or 0.0


def _with_ddl(advice: Advice, loaded: Loaded, rows: int) -> Advice:
    """Add column, kind and DDL of the partitions; what stands against them becomes a sentence."""
    table, load = loaded.table, loaded.load
    if table is None or load is None or not load.table:
        return _adding(advice, "The run ended before it recorded the table's columns, so there is no DDL.")
    column = table.sequence
    if not column:
        return _adding(
            advice,
            "No column is known to grow with the rows: choose one that does, such as a time or a serial "
            f"number, and partition by ranges of about {rows_text(rows)} rows.",
        )
    total = load.rows.rows or 0
    where = TableFacts(
        version_number=_version_number(loaded.version),
        first=load.rows.first or 0,
        rows=max(rows, min(total, rows * PARTITIONS)),
    )
    options = msgspec.convert(load.table, TableWishes)
    options = replace(options, partition_column=column, partition_rows=rows, index_when="before")
    try:
        ddl = partition_ddl(engine_named(loaded.engine).tables, msgspec.to_builtins(table), options, where)
    except LoadstoneError as error:
        return _adding(advice, f"There is no DDL: {error.message}. {error.hint}")
    kinds = {each.name: each.type for each in table.columns or []}
    by = "time" if kinds.get(column) in ("timestamp", "date") else "id"
    advice = _adding(advice, _bounds_sentence(table, by, rows, -(-total // rows)))
    partitions = -(-where.rows // rows)
    return msgspec.structs.replace(advice, column=column, by=by, partitions=partitions, ddl=ddl)


def time_partitions(loaded: Loaded, seconds: int) -> str | None:
    """Return DDL of partitions that span so many seconds each; None without a time that grows with the rows.

    Raises LoadstoneError where the engine cannot have them.
    """
    table, load = loaded.table, loaded.load
    column = (table and table.sequence) or ""
    kinds = {each.name: each.type for each in (table.columns if table else None) or []}
    if table is None or load is None or kinds.get(column) not in ("timestamp", "date"):
        return None
    # As if there were a row each second: then seconds are rows.
    spaced = msgspec.structs.replace(table, sequence_step=_MICROSECONDS)
    where = TableFacts(version_number=_version_number(loaded.version), first=0, rows=seconds * PARTITIONS)
    options = msgspec.convert(load.table, TableWishes)
    options = replace(options, partition_column=column, partition_rows=seconds, index_when="before")
    return partition_ddl(engine_named(loaded.engine).tables, msgspec.to_builtins(spaced), options, where)


def _adding(advice: Advice, sentence: str) -> Advice:
    return msgspec.structs.replace(advice, sentences=[*advice.sentences, sentence])


def _bounds_sentence(table: PlainTable, by: str, rows: int, needed: int) -> str:
    column, step = table.sequence, table.sequence_step or 0
    span = _span(timedelta(microseconds=step * rows)) if by == "time" else f"{step * rows:,}"
    more = f"; the rows of this load fill {needed} of them" if needed else ""
    return (
        f"The partitions are ranges of the column '{column}', each {span} wide at the rate of these "
        f"data{more}. Rows must arrive roughly in the order of '{column}': then only the newest "
        "partition's indexes are written to."
    )


def _span(length: timedelta) -> str:
    """Return a stretch of time: `50 s`, `0:15:00`, `1 day, 0:00:00`."""
    return f"{length.total_seconds():g} s" if length < timedelta(minutes=1) else str(length)


def _version_number(version: str) -> int:
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    return numbers[0] * 10_000 + (numbers[1] if len(numbers) > 1 else 0) if numbers else 0

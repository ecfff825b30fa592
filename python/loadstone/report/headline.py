"""The main table of a report: rate, percentiles and the published figure of every phase."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone.report import formats
from loadstone.report.chunks import sorted_groups, typical
from loadstone.report.names import phase_title, target_label, variant_words
from loadstone.results.documents.summary import Percentile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.results.documents.summary import (
        Built,
        Compared,
        Group,
        GroupRate,
        StoredFigures,
        Summary,
    )

PERCENTILES = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class HeadlineRow:
    """A phase in one variant on one target."""

    group: Group
    rate: GroupRate | None
    unit: str
    single: bool
    """Whether its rate is that of a single load, which has no interval."""
    variant: str
    target: str
    percentiles: list[Percentile]
    """Those of PERCENTILES, in this order."""
    published: Compared | None
    built: Built | None
    disk: StoredFigures | None


@dataclass(frozen=True, slots=True)
class HeadlineBlock:
    """A phase in all its variants."""

    title: str
    published: list[str] = field(default_factory=list)
    rows: list[HeadlineRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class HeadlineColumns:
    """Which columns have anything in them."""

    spread: bool
    percentiles: list[int]
    built: bool
    disk: bool
    published: bool


def headline(summary: Summary) -> list[HeadlineBlock]:
    """Return the main table: one block of rows per phase, with the published figure above it."""
    blocks: dict[tuple[str | None, str | None], HeadlineBlock] = {}
    for group in sorted_groups(summary):
        title = phase_title(group, summary)
        block = blocks.setdefault((group.scenario, group.id), HeadlineBlock(title))
        row = _row(group, summary)
        block.rows.append(row)
        if row.published:
            text = f"{formats.rate(row.published.value)} {row.unit}"
            if text not in block.published:
                block.published.append(text)
    return list(blocks.values())


def columns(blocks: Sequence[HeadlineBlock]) -> HeadlineColumns:
    """Say which columns of the main table have anything in them."""
    rows = [row for block in blocks for row in block.rows]
    return HeadlineColumns(
        spread=any(row.rate and row.rate.low is not None for row in rows),
        percentiles=[
            percentile
            for at, percentile in enumerate(PERCENTILES)
            if any(row.percentiles[at].value_ns is not None for row in rows)
        ],
        built=any(row.built for row in rows),
        disk=any(row.disk for row in rows),
        published=any(row.published for row in rows),
    )


def _row(group: Group, summary: Summary) -> HeadlineRow:
    rates = {"tps": group.tps, "rows_per_s": group.rows_per_s, "metrics_per_s": group.metrics_per_s}
    known = rates.get(group.headline)
    phase = typical(group, summary).phase
    looks = phase.storage.looks if phase.storage else []
    return HeadlineRow(
        group=group,
        rate=known or group.tps,
        unit=formats.unit(group.kind, group.headline if known else "tps"),
        single=group.kind == "load" and group.repeats == 1,
        variant=variant_words(group, summary),
        target=target_label(summary, group.target),
        percentiles=[_percentile(group.percentiles, wanted) for wanted in PERCENTILES],
        # Figures of several systems stand in a section of their own.
        published=next((p for p in group.published if p.metric == group.headline and not p.system), None),
        built=phase.load.built if phase.load else None,
        disk=looks[-1].sum if looks else None,
    )


def _percentile(percentiles: Iterable[Percentile], wanted: float) -> Percentile:
    missing = Percentile(percentile=wanted, value_ns=None, reason="not recorded")
    return next((p for p in percentiles if p.percentile == wanted), missing)

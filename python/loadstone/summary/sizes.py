"""Sizes of the database before and after a phase, in figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.results.documents.phase import Sizes
from loadstone.results.documents.summary import (
    KindGrowth,
    PerUnit,
    RelationGrowth,
    RelationKinds,
    SizeFigures,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.results.documents.phase import BeforeAfter, Relation
    from loadstone.results.documents.summary import DriveFigures


def summarise_sizes(
    sizes: BeforeAfter | None, drive: DriveFigures | None, rows: int | None
) -> SizeFigures | None:
    """Bytes by kind before and after, the largest relations, and growth per transaction and row."""
    if not sizes or not sizes.after:
        return None
    before, after = sizes.before or Sizes(), sizes.after
    old = {relation.name: relation.bytes or 0 for relation in before.relations or []}
    kinds = RelationKinds(
        table=_kind(before, after, "table"),
        index=_kind(before, after, "index"),
        toast=_kind(before, after, "toast"),
        other=_kind(before, after, "other"),
    )
    wal = _difference(after.wal_lsn_bytes, before.wal_lsn_bytes)
    return SizeFigures(
        database_before=before.database_bytes,
        database_after=after.database_bytes,
        kinds=kinds,
        wal_bytes=wal,
        relations=[_grown(relation, old) for relation in after.relations or []],
        relations_left_out=after.relations_left_out or 0,
        per_unit=_per_unit(wal, kinds, drive, rows),
    )


def _kind(before: Sizes, after: Sizes, kind: str) -> KindGrowth:
    then, now = _kind_bytes(before, kind), _kind_bytes(after, kind)
    return KindGrowth(before=then, after=now, growth=now - then)


def _grown(relation: Relation, old: Mapping[str, float]) -> RelationGrowth:
    return RelationGrowth(
        name=relation.name,
        kind=relation.kind,
        table=relation.table,
        bytes=relation.bytes,
        rows_estimate=relation.rows_estimate,
        growth_bytes=(relation.bytes or 0) - old.get(relation.name, 0),
    )


def _per_unit(
    wal: float | None, kinds: RelationKinds, drive: DriveFigures | None, rows: int | None
) -> PerUnit | None:
    if drive is None:
        return None
    done = drive.counts.done + drive.warmup_counts.done
    if not done:
        return None
    return PerUnit(
        wal_bytes_per_transaction=None if wal is None else wal / done,
        wal_bytes_per_row=wal / rows if rows and wal is not None else None,
        table_bytes_per_row=_each(kinds.table, rows),
        index_bytes_per_row=_each(kinds.index, rows),
    )


def _each(kind: KindGrowth, rows: int | None) -> float | None:
    """Return the growth by a row; None where relations did not grow: pages or an older table had room."""
    if not rows or (kind.after and kind.growth <= 0):
        return None
    return kind.growth / rows


def _kind_bytes(sizes: Sizes, kind: str) -> float:
    return sum(r.bytes or 0 for r in sizes.relations or [] if r.kind == kind)


def _difference(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before

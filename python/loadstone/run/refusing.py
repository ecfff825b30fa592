"""What of a plan cannot be asked of its data or its targets: refused before anything is touched."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from loadstone import _core, bulk
from loadstone.errors import LoadstoneError
from loadstone.parameter import nearest
from loadstone.tsbs.queries import KINDS, kind_named, kinds_of
from loadstone.tsbs.queries.draws import Range, draw
from loadstone.tsbs.series import data_document, range_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.model import BulkLoad, Plan, PlannedPhase, PlannedTarget, QueryMix, Series
    from loadstone.run.server import Server


def refuse_impossible(plan: Plan) -> None:
    """Refuse data sets, queries, tables that cannot be made. Raises LoadstoneError that names the phase."""
    for phase in plan.targets[0].phases:
        with _named(phase):
            _look_at(phase)
    # What only one engine lacks skips its phase, now or once its servers have said what they offer.
    loads = {phase.key: (phase, wanted) for target in plan.targets for phase, wanted in _bulk_loads(target)}
    for phase, wanted in loads.values():
        with _named(phase):
            bulk.look(wanted)


def refuse_idle(plan: Plan) -> None:
    """Refuse a plan of which no target can run a single phase. Raises LoadstoneError with all reasons."""
    phases = [phase for target in plan.targets for phase in target.phases]
    if any(phase.skip is None for phase in phases):
        return
    reasons = dict.fromkeys(phase.skip for phase in phases if phase.skip is not None)
    hint = "Name a target that can; `loadstone engines` lists them."
    if any(phase.bulk is not None and phase.bulk.rows.as_they_are for phase in phases):
        hint = "CSV, text and binary files go to PostgreSQL and its relatives; give Parquet for all others."
    raise LoadstoneError(f"nothing of this can be run: {'; '.join(reasons)}.", hint)


def refuse_without_room(plan: Plan, servers: Sequence[Server]) -> None:
    """Refuse bulk loads that are not expected to fit where the servers keep them.

    Each is looked at by itself: one that makes the same table as the one before takes its place. Raises
    LoadstoneError that names the phase.
    """
    for server, target in zip(servers, plan.targets, strict=True):
        engine, control = server.engine, server.control
        for phase, wanted in _bulk_loads(target):
            with _named(phase):
                need = bulk.needed_bytes(wanted, bulk.look(wanted, engine.tables), engine, control)
                bulk.refuse_without_room(need, server.opened, wanted.table, control)


def _bulk_loads(target: PlannedTarget) -> Iterator[tuple[PlannedPhase, BulkLoad]]:
    for phase in target.phases:
        if phase.bulk is not None and phase.skip is None:
            yield phase, phase.bulk


@contextlib.contextmanager
def _named(phase: PlannedPhase) -> Iterator[None]:
    try:
        yield
    except LoadstoneError as error:
        where = f"{phase.scenario}: phase `{phase.id}`"
        raise LoadstoneError(f"{where}: {error.message.rstrip('.')}.", error.hint) from error


def _look_at(phase: PlannedPhase) -> None:
    if phase.load is not None and not isinstance(phase.load.data, str):
        _look_at_data(phase.load.data)
    if phase.query is not None:
        _look_at_data(phase.query.series)
        _look_at_queries(phase.query)


def _look_at_data(series: Series) -> None:
    data_document(series)
    start_ns, end_ns = range_of(series)
    if end_ns <= start_ns:
        raise LoadstoneError(
            f"the data ends at {series.end}, which is not after its start, {series.start}",
            "Give a later `end`, or a `span_s` above 0.",
        )


def _look_at_queries(mix: QueryMix) -> None:
    known = kinds_of(mix.series.use_case)
    for name in mix.kinds:
        if known and name not in known:
            raise _unknown(name, known, mix.series.use_case)
        kind = kind_named(name, mix.series.use_case)
        # One query to no purpose: whether the data set has enough devices and time does not hang on chance.
        draw(kind, Range(mix.series.scale, *range_of(mix.series)), _core.GoRand(mix.seed))


def _unknown(name: str, known: tuple[str, ...], use_case: str) -> LoadstoneError:
    words = f"there are no queries of kind `{name}` for the use case {use_case}"
    if name in KINDS:
        words += f"; they are for {KINDS[name].family}"
    return LoadstoneError(words, f"{nearest(name, known)}Kinds: {', '.join(known)}.")

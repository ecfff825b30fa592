"""Imports of the scenarios that ask plain queries, side by side: rates, sizes, compression."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from loadstone.results.documents.summary import (
    ImportFigures,
    Imports,
    ImportSize,
    MixedPlainFigures,
    PlainQueriesTarget,
    Ratio,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.results.documents.summary import (
        Concurrency,
        Group,
        GroupRate,
        LoadFigures,
        PhaseFigures,
        PlainQueriesFigures,
        Rate,
    )

METRICS = ("rows_per_s", "table_bytes", "ratio")
"""Published figures that belong here."""


def summarise_imports(
    groups: Sequence[Group],
    phases: Sequence[PhaseFigures],
    plain_queries: Sequence[PlainQueriesFigures | Concurrency],
) -> list[Imports]:
    """Return the imports of each scenario with plain queries; `plain_queries` are its entries of them."""
    scenarios = dict.fromkeys(entry.scenario for entry in plain_queries)
    found = [_entry(scenario, groups, phases, plain_queries) for scenario in scenarios]
    return [entry for entry in found if entry.loads or entry.sizes]


def _entry(
    scenario: str | None,
    groups: Sequence[Group],
    phases: Sequence[PhaseFigures],
    plain_queries: Sequence[PlainQueriesFigures | Concurrency],
) -> Imports:
    ours = [phase for phase in phases if phase.scenario == scenario]
    by_key = {(phase.target, phase.folder): phase for phase in ours}
    loads = [
        _load(group, group.rows_per_s, by_key[group.target, group.phases[-1]])
        for group in groups
        if group.scenario == scenario and group.kind == "load" and group.rows_per_s
    ]
    published = [figure for phase in ours for figure in phase.published if figure.metric in METRICS]
    once = {tuple(str(value) for value in msgspec.structs.astuple(figure)): figure for figure in published}
    targets = dict.fromkeys(phase.target for phase in ours)
    tables = {
        table.target: table
        for entry in plain_queries
        if entry.scenario == scenario
        for table in entry.targets
        if isinstance(table, PlainQueriesTarget) and table.table_bytes
    }
    sizes = [size for target in targets if (size := _size(target, ours, tables.get(target)))]
    _compare(loads, sizes, next(iter(targets), None))
    return Imports(scenario=scenario, loads=loads, sizes=sizes, published=list(once.values()))


def _compare(loads: Sequence[ImportFigures], sizes: Sequence[ImportSize], first: str | None) -> None:
    """Give every import and size of a later target its ratio to that of the first target."""
    base = {_import(load): load.rows_per_s for load in loads if load.target == first}
    for load in loads:
        if load.target != first and (rate := base.get(_import(load))):
            load.ratio_to_first = _ratio(load.rows_per_s, rate)
    row = next((size.row_bytes for size in sizes if size.target == first), None)
    for size in sizes:
        if size.target != first and row and size.row_bytes:
            value = size.row_bytes / row
            size.ratio_to_first = Ratio(value=value, low=None, high=None, method="ratio of the bytes per row")


def _import(load: ImportFigures) -> str:
    return json.dumps([load.id, load.variant], sort_keys=True)


def _ratio(ours: Rate, base: Rate) -> Ratio | None:
    """Return ours over the base; its interval is wide, from both of theirs, and missing where one is."""
    if not ours.value or not base.value:
        return None
    value = ours.value / base.value
    if ours.low is None or ours.high is None or base.high is None or not base.low:
        return Ratio(value=value, low=None, high=None, method="one of the two has no interval")
    method = "from low / high to high / low of both intervals"
    return Ratio(value=value, low=ours.low / base.high, high=ours.high / base.low, method=method)


def _load(group: Group, given: GroupRate, phase: PhaseFigures) -> ImportFigures:
    load = phase.load
    each = _plain_row_bytes(load)
    finish_s = load.finish_s if load else 0.0
    rows, seconds = (load.rows, load.seconds) if load else (None, None)
    rate = _finished(given, rows, finish_s)
    return ImportFigures(
        id=group.id,
        title=group.title,
        variant=group.variant,
        target=group.target,
        incomplete=group.incomplete,
        rows_per_s=rate,
        runs=group.repeats,
        interval_words=_interval_words(rate, group.repeats),
        ratio_to_first=None,
        rows=rows,
        seconds=None if seconds is None else seconds + finish_s,
        finish_s=finish_s,
        method=load.method if load else None,
        workers=load.workers if load else None,
        bytes_per_s=rate.value * each if each and rate.value is not None else None,
        bytes_of=_bytes_of(load),
        mixed=_mixed(phase),
        published=[figure for figure in group.published if figure.metric == "rows_per_s"],
    )


def _interval_words(rate: Rate, runs: int) -> str:
    """Say why a rate has no interval: how steps or intervals of one run differ is no spread of imports."""
    if rate.low is not None:
        return ""
    return "one run" if runs == 1 else str(rate.reason or "")


def _finished(rate: GroupRate, rows: int | None, finish_s: float) -> GroupRate:
    """Return a rate that counts the engine's own end of the load: its interval moves with it."""
    if not finish_s or not rows:
        return rate

    def longer(figure: float | None) -> float | None:
        return rows / (rows / figure + finish_s) if figure else figure

    value, low, high = longer(rate.value), longer(rate.low), longer(rate.high)
    return msgspec.structs.replace(rate, value=value, low=low, high=high)


def _bytes_of(load: LoadFigures | None) -> str | None:
    """Say of what the bytes of a row are: of its text, else of the values alone."""
    if load is None:
        return None
    if load.text_row_bytes:
        return "text"
    return "values" if load.logical_row_bytes else None


def _plain_row_bytes(load: LoadFigures | None) -> float | None:
    """Return the bytes of a row as text, else of its values alone."""
    return load and (load.text_row_bytes or load.logical_row_bytes)


def _mixed(phase: PhaseFigures) -> MixedPlainFigures | None:
    """Return what was asked near the end of the load, and all that failed; None where nothing was asked."""
    found = phase.mixed
    if not found:
        return None
    late = found.late
    return MixedPlainFigures(
        seconds=late.seconds if late else None,
        done=late.done if late else 0,
        qps=late.qps if late else None,
        mean_ns=late.mean_ns if late else None,
        words=late.words if late else "",
        failed=found.drive.counts.failed,
        clients=found.drive.clients,
    )


def _size(target: str, phases: Sequence[PhaseFigures], table: PlainQueriesTarget | None) -> ImportSize | None:
    """Return the size of what was loaded last: by the look at its storage, else as those who asked saw it."""
    loads = [phase for phase in phases if phase.target == target and phase.load]
    looks = [(phase, phase.storage.looks[-1]) for phase in loads if phase.storage and phase.storage.looks]
    if looks:
        whole = looks[-1][1].sum
        held: float = whole.total_bytes if whole.allocated_bytes is None else whole.allocated_bytes
        rows, load = whole.rows, looks[-1][0].load
    elif table and table.rows and table.table_bytes:
        held, rows, load = table.table_bytes, table.rows, loads[-1].load if loads else None
    else:
        return None
    each = _plain_row_bytes(load)
    return ImportSize(
        target=target,
        rows=rows,
        table_bytes=held,
        row_bytes=held / rows if rows else None,
        plain_row_bytes=each,
        plain_of=_bytes_of(load),
        ratio=rows * each / held if rows is not None and each and held else None,
        ratio_to_first=None,
    )

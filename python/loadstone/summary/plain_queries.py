"""Plain queries asked one by one, cold and warm: the rounds of all targets put together."""

from __future__ import annotations

import json
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, TypeVar

from loadstone.model import ROUND
from loadstone.results.documents.summary import (
    EmptiedCaches,
    PlainQueriesFigures,
    PlainQueriesTarget,
    PlainQueryFigures,
    QueryRun,
    QueryTimes,
)
from loadstone.summary.gpuuse import energy_j, mark
from loadstone.summary.medians import middle, ratio_of_medians
from loadstone.summary.resources import usage_between
from loadstone.summary.scan_speed import Table, limits_of, scan, widths_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.results.documents import QueriesInTurn, QueriesInTurnDrive, QueryInTurnRun, Sample
    from loadstone.results.documents.drive import Caches
    from loadstone.results.documents.summary import Value, Variant
    from loadstone.summary.gpuuse import Span
    from loadstone.summary.run_files import PhaseFiles, RunFiles, TargetFiles
    from loadstone.summary.scan_speed import Limits

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class _Round:
    """One phase of queries on one target: one turn of the measurement."""

    files: PhaseFiles
    target: TargetFiles
    drive: QueriesInTurnDrive
    """The account of its end."""

    @property
    def plain_queries(self) -> QueriesInTurn:
        """What was asked, and every run of it."""
        return self.drive.plain_queries

    @property
    def number(self) -> int:
        """Which round: by the swept parameter, else by the repeat."""
        return round_of(self.files) or self.files.repeat


def round_of(files: PhaseFiles) -> int | None:
    """Return which round of a measurement a phase is, by the swept parameter; None where it has none."""
    number = files.phase.round or files.variant.get(ROUND)
    return None if number is None else int(number)


def without_round(variant: Mapping[str, Value]) -> Variant:
    """Return a variant as the rounds of a measurement share it."""
    return {name: value for name, value in variant.items() if name != ROUND}


def summarise_plain_queries(files: RunFiles) -> list[PlainQueriesFigures]:
    """Return an entry for each phase of queries and variant, with every target that asked them."""
    found: dict[str, dict[str, list[_Round]]] = {}
    for target in files.targets:
        for phase in target.phases:
            if phase.in_turn is not None:
                targets = found.setdefault(_identity(phase), {})
                targets.setdefault(target.target.id, []).append(_Round(phase, target, phase.in_turn))
    limits = limits_of(files.environment)
    return [_entry(targets, limits) for targets in found.values()]


def _identity(files: PhaseFiles) -> str:
    phase = files.phase
    return json.dumps([phase.scenario, phase.id, without_round(files.variant)], sort_keys=True)


def _entry(targets: Mapping[str, list[_Round]], limits: Limits) -> PlainQueriesFigures:
    every = [turn for rounds in targets.values() for turn in rounds]
    first = every[0]
    head = first.files.phase
    names = list(dict.fromkeys(name for turn in every for name in _names(turn)))
    entry = PlainQueriesFigures(
        scenario=head.scenario,
        id=head.id,
        title=head.title,
        why=head.why,
        variant=without_round(first.files.variant),
        rounds=len({turn.number for turn in every}),
        cold=any(turn.plain_queries.cold for turn in every),
        table=next((turn.plain_queries.table for turn in every if turn.plain_queries.table), None),
        queries=names,
        first=first.target.target.id,
        targets=[_target(rounds, names, limits) for rounds in targets.values()],
        published=head.published or [],
    )
    _compare(entry.targets)
    return entry


def _names(turn: _Round) -> list[str]:
    plain_queries = turn.plain_queries
    return [q.name for q in plain_queries.queries or []] + [r.query for r in plain_queries.runs]


def _target(rounds: Sequence[_Round], names: Sequence[str], limits: Limits) -> PlainQueriesTarget:
    first = rounds[0]
    known = [turn.plain_queries for turn in rounds]
    rows, held = (
        _last([plain_queries.rows for plain_queries in known]),
        _last([plain_queries.table_bytes for plain_queries in known]),
    )
    in_process = bool(first.target.target.in_process)
    caches = _caches([plain_queries.caches for plain_queries in known])
    is_cold = bool(caches and caches.emptied) if any(plain_queries.cold for plain_queries in known) else None
    table = Table(rows, held, widths_of(first.target))
    return PlainQueriesTarget(
        target=first.target.target.id,
        in_process=in_process,
        rows=rows,
        table_bytes=held,
        phases=[turn.files.folder.key for turn in rounds],
        incomplete=[_ending(turn) for turn in rounds if turn.files.state != "complete"],
        caches=caches,
        is_cold=is_cold,
        cold_words={True: "cold", False: "first run, not cold", None: ""}[is_cold],
        notes=list(dict.fromkeys(note for plain_queries in known for note in plain_queries.notes or [])),
        client_share=None if in_process else _client_share(rounds),
        queries=[_plain_query(name, rounds, (table, limits), is_cold=bool(is_cold)) for name in names],
    )


def _ending(turn: _Round) -> str:
    reason = turn.files.phase.reason or turn.drive.reason
    return f"round {turn.number} {turn.files.state}{f': {reason}' if reason else ''}"


def _caches(found: Sequence[Caches | None]) -> EmptiedCaches | None:
    """Return how the caches were emptied; None where that was not asked for. One failure counts for all."""
    known = [caches for caches in found if caches is not None]
    if not known:
        return None
    worst = next((caches for caches in known if not caches.emptied), known[-1])
    return EmptiedCaches(emptied=bool(worst.emptied), note=worst.note or "")


def _client_share(rounds: Sequence[_Round]) -> float | None:
    """Return our share of the CPU time that server and Loadstone used while queries were asked."""
    used = []
    for turn in rounds:
        start_ns, end_ns = turn.drive.start_ns, turn.drive.end_ns
        if not start_ns or not end_ns:
            continue
        usage = usage_between(turn.target.monitor, start_ns, end_ns)
        if usage and usage.cpu_server is not None and usage.cpu_client is not None:
            seconds = end_ns - start_ns
            used.append((usage.cpu_client * seconds, usage.cpu_server * seconds))
    ours, servers = (sum(column) for column in zip(*used, strict=True)) if used else (0.0, 0.0)
    return ours / (ours + servers) if ours + servers else None


def _plain_query(
    name: str, rounds: Sequence[_Round], limits: tuple[Table, Limits], *, is_cold: bool
) -> PlainQueryFigures:
    """Return a query on one target; a first run with warm caches tells nothing of a disk."""
    runs = [(run, turn) for turn in rounds for run in turn.plain_queries.runs if run.query == name]
    told = [q for turn in rounds for q in turn.plain_queries.queries or [] if q.name == name]
    monitor = rounds[0].target.monitor
    spans = [(run, span) for run, _ in runs if run.state == "done" and (span := _span(run))]
    cold, warm = (_times([run for run, _ in runs if run.kind == kind]) for kind in ("cold", "warm"))
    plan_says = _last([q.gpu for q in told])
    sql = _last([q.sql for q in told])
    scanned = scan(*limits, sql, (warm.median_s, cold.median_s if is_cold else None))
    return PlainQueryFigures(
        name=name,
        cold=cold,
        warm=warm,
        ratio_to_first=None,
        cold_ratio_to_first=None,
        failed=_failed([run for run, _ in runs]),
        wrong=_last([q.wrong for q in told]),
        plan_says_gpu=plan_says,
        gpu=mark(monitor, [span for _, span in spans], plan_says=plan_says),
        energy_j=_energy(monitor, [span for run, span in spans if run.kind == "warm"]),
        sql=sql,
        plan=_last([q.plan for q in told]),
        runs=[_run(run, turn) for run, turn in runs],
        rows_per_s=scanned.rows_per_s,
        bytes_per_s=scanned.bytes_per_s,
        cold_bytes_per_s=scanned.cold_bytes_per_s,
        not_all_read=scanned.not_all_read,
        named_columns=scanned.named_columns,
        named_bytes_per_s=scanned.named_bytes_per_s,
        named_of_memory=scanned.named_of_memory,
    )


def _run(run: QueryInTurnRun, turn: _Round) -> QueryRun:
    return QueryRun(
        round=turn.number,
        kind=run.kind,
        number=run.number,
        seconds=run.seconds,
        state=run.state,
        reason=run.reason,
        repeat=turn.files.repeat,
    )


def _span(run: QueryInTurnRun) -> Span | None:
    start_ns, end_ns = run.start_ns, run.end_ns
    return (start_ns, end_ns) if start_ns is not None and end_ns is not None else None


def _times(runs: Sequence[QueryInTurnRun]) -> QueryTimes:
    values = [run.seconds for run in runs if run.state == "done" and run.seconds is not None]
    found = middle(values)
    if found is not None:
        return found.document(values)
    return QueryTimes(median_s=None, low_s=None, high_s=None, coverage=None, n=0, whole_range=False, runs=[])


def _failed(runs: Sequence[QueryInTurnRun]) -> str | None:
    """Say how many runs failed, and why the first of them did; None where none did."""
    broken = [run for run in runs if run.state == "failed"]
    if not broken:
        return None
    tried = len([run for run in runs if run.state != "skipped"])
    reason = next((run.reason for run in broken if run.reason), "no reason was recorded")
    return f"{len(broken)} of {tried} runs failed: {reason}"


def _energy(monitor: Sequence[Sample], spans: Sequence[Span]) -> float | None:
    known = [joules for span in spans if (joules := energy_j(monitor, span)) is not None]
    return float(median(known)) if known else None


def _compare(targets: Sequence[PlainQueriesTarget]) -> None:
    """Give each right answer of a later target its ratio to the first target's, of cold and of warm runs.

    Cold runs compare with cold ones only: a first run on a server that kept its caches has no ratio.
    """
    first = {query.name: query for query in targets[0].queries}
    for target in targets[1:]:
        both_cold = target.is_cold and targets[0].is_cold
        for query in target.queries:
            base = first.get(query.name)
            if base is None or query.wrong or base.wrong:
                continue
            query.ratio_to_first = ratio_of_medians(query.warm.runs, base.warm.runs)
            if both_cold:
                query.cold_ratio_to_first = ratio_of_medians(query.cold.runs, base.cold.runs)


def _last(values: Sequence[Item | None]) -> Item | None:
    return next((value for value in reversed(values) if value is not None), None)

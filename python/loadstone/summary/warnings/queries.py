"""Warnings about queries in plain SQL, and about the imports before them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.summary.warnings.registry import Warnings, warning

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.results.documents.summary import (
        Concurrency,
        ImportFigures,
        Imports,
        PlainQueriesFigures,
        PlainQueriesTarget,
        PlainQueryFigures,
        QueryRun,
        Warning,
        WidthTarget,
    )

FEWEST_COLD, FEWEST_WARM = 3, 10
"""Runs of a query from which its medians are taken as more than chance."""
SHARE_BETWEEN_QUERIES = 0.10
"""Our share of the CPU time of server and Loadstone, from which it is in the times of single queries."""
ROUNDS_APART = 1.1
"""How much slower one round must have been than another to be worth a word."""
ENOUGH_RUNS = 3
"""Runs of a round; two may fall apart from two others by chance."""


@dataclass(frozen=True, slots=True)
class OnTarget:
    """The queries of a phase on one target."""

    entry: PlainQueriesFigures
    target: PlainQueriesTarget


@dataclass(frozen=True, slots=True)
class MixedImport:
    """An import, and all others of its scenario."""

    load: ImportFigures
    others: Sequence[ImportFigures]


of_asked: Warnings[OnTarget] = Warnings()
of_queries: Warnings[OnTarget] = Warnings()
of_query: Warnings[PlainQueryFigures] = Warnings()
of_rounds: Warnings[PlainQueriesTarget] = Warnings()
of_import: Warnings[MixedImport] = Warnings()
of_widths: Warnings[WidthTarget] = Warnings()


def plain_query_warnings(asked: Sequence[PlainQueriesFigures]) -> Iterator[Warning]:
    """Say what holds for queries that were asked one by one, target by target."""
    for entry in asked:
        for target in entry.targets:
            found, where = OnTarget(entry, target), (target.target, target.phases[0])
            yield from of_asked.of(found, target.target)
            yield from of_queries.of(found, *where)
            for query in target.queries:
                yield from of_query.of(query, *where)
            yield from of_rounds.of(target, target.target)


def import_warnings(imports: Sequence[Imports]) -> Iterator[Warning]:
    """Say where an import did not lose to the queries beside it what it should have lost."""
    for entry in imports:
        for load in entry.loads:
            yield from of_import.of(MixedImport(load, entry.loads), load.target)


def width_warnings(concurrency: Sequence[Concurrency]) -> Iterator[Warning]:
    """Say where the clients were busy between answers, so that the engine had less to do than it could."""
    for entry in concurrency:
        for target in entry.targets:
            yield from of_widths.of(target, target.target)


@of_asked
def in_our_process(asked: OnTarget) -> Warning | None:
    """Say that an engine without a server stands beside engines with one."""
    if not asked.target.in_process or all(target.in_process for target in asked.entry.targets):
        return None
    return warning(
        "This engine runs inside Loadstone's process: its times include no network or protocol between "
        "client and server; those of the other targets do.",
        "On one machine that is a fraction of a millisecond: consider it for queries that take only a "
        "few milliseconds.",
        "info",
    )


@of_asked
def caches_not_emptied(asked: OnTarget) -> Warning | None:
    """Say that cold runs were requested, and the caches were still full."""
    caches = asked.target.caches
    if not caches or caches.emptied:
        return None
    because = f": {caches.note.rstrip('.')}" if caches.note else ""
    return warning(
        f"The caches could not be emptied before the first run of each query{because}.",
        "Read its cold times as those of a first run with warm caches. For cold caches use a private "
        "server: Loadstone restarts it and removes its files from the page cache.",
    )


@of_queries
def client_worked_between_queries(asked: OnTarget) -> Warning | None:
    """Say that we used a part of the CPU time while one query ran at a time."""
    share = asked.target.client_share
    if share is None or share < SHARE_BETWEEN_QUERIES:
        return None
    return warning(
        f"Loadstone itself used {100 * share:.0f} % of the CPU time that it and the server used during the "
        "queries.",
        "Times of short queries include some of it. If they matter, drive from another machine, or "
        "compare the longer queries.",
    )


@of_queries
def few_runs(asked: OnTarget) -> Warning | None:
    """Say that medians of so few runs may be chance."""
    done = [query for query in asked.target.queries if not query.failed]
    if not done:
        return None
    warm = min(query.warm.n for query in done)
    cold = min(query.cold.n for query in done) if asked.entry.cold else None
    if warm >= FEWEST_WARM and (cold is None or cold >= FEWEST_COLD):
        return None
    runs = f"{warm} warm" if cold is None else f"{cold} cold and {warm} warm"
    return warning(
        f"There are only {runs} runs of a query: to tell a difference of medians from chance, you need "
        f"at least {FEWEST_COLD} cold and {FEWEST_WARM} warm ones.",
        "Run more rounds, or more warm runs per round, before you call one target faster.",
    )


@of_query
def queries_failed(query: PlainQueryFigures) -> Warning | None:
    """Say which query did not come to its end."""
    if not query.failed:
        return None
    return warning(
        f"{query.name}: {query.failed.rstrip('.')}.",
        "Its median includes only the runs that succeeded, if any; after a failure the rest of the "
        "round was skipped. Fix the cause, or treat the query as unsupported by this engine.",
    )


@of_query
def no_gpu_seen(query: PlainQueryFigures) -> Warning | None:
    """Say that the plan names a GPU, and none was seen at work."""
    if not query.plan_says_gpu or query.gpu != "CPU":
        return None
    return warning(
        f"{query.name}: the plan uses a GPU, but no GPU activity was seen while it ran. It is marked “CPU”.",
        "Install nvidia-ml-py so that Loadstone can watch GPUs, and check that the engine did not fall "
        "back to the CPU. For very short queries, use more runs.",
    )


@of_rounds
def rounds_differ(target: PlainQueriesTarget) -> Warning | None:
    """Say that the rounds of a measurement do not overlap: something changed between them."""
    names = [query.name for query in target.queries if _rounds_apart(query.runs)]
    if not names:
        return None
    return warning(
        "Rounds differ by more than chance: all warm runs of one round were slower than all of another "
        f"({', '.join(names)}).",
        "The interval treats all runs as one sample and is too narrow here: look at the runs of each "
        "round, and measure again on a quiet machine.",
    )


@of_import
def not_slower_while_asked(found: MixedImport) -> Warning | None:
    """Say that an import beside queries was as fast as the same import alone."""
    alone = [other for other in found.others if _without_queries(other, found.load)]
    best = max((other.rows_per_s.value or 0.0 for other in alone), default=0.0)
    rate = found.load.rows_per_s.value or 0.0
    if not found.load.mixed or not best or rate < best:
        return None
    return warning(
        f"The import with concurrent queries ({rate:,.0f} rows/s) was at least as fast as the import "
        f"alone ({best:,.0f} rows/s): imports vary by more than the queries cost.",
        "Repeat the run (--repeat 3) before you draw a conclusion from this difference.",
    )


@of_widths
def client_busy_between(target: WidthTarget) -> Warning | None:
    """Say that fewer queries were in flight than there were clients."""
    busy = [point for point in target.points if point.client_busy_between]
    if not busy:
        return None
    counts = "; ".join(f"{point.in_flight or 0:.3g} of {point.clients}" for point in busy)
    return warning(
        "The clients limited throughput, not the engine: on average fewer queries were in flight than "
        f"there were clients ({counts}).",
        "The engine can answer more: read its queries per second as a lower bound, and its latency as "
        "that with the number of queries in flight.",
    )


def _rounds_apart(runs: Sequence[QueryRun]) -> bool:
    """Whether all warm runs of one round were clearly slower than all of another."""
    rounds: dict[int, list[float]] = {}
    for run in runs:
        if run.kind == "warm" and run.state == "done" and run.seconds is not None:
            rounds.setdefault(run.round, []).append(run.seconds)
    whole = [times for times in rounds.values() if len(times) >= ENOUGH_RUNS]
    return len(whole) > 1 and max(map(min, whole)) > ROUNDS_APART * min(map(max, whole))


def _without_queries(other: ImportFigures, asked: ImportFigures) -> bool:
    """Whether an import is the same but for the queries beside it."""
    ours = (other.target, other.workers, other.rows)
    return ours == (asked.target, asked.workers, asked.rows) and other.mixed is None

"""Queries in plain SQL, target beside target: cold and warm runs, scan rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from loadstone.report import formats
from loadstone.report.concurrency import concurrency_block
from loadstone.report.costs import costs_block
from loadstone.report.imports import imports_block
from loadstone.report.published import Bar, notes_of, sources, system_of, systems
from loadstone.results.documents.run import Environment

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from loadstone.report.charts import Chart
    from loadstone.report.concurrency import ConcurrencyBlock
    from loadstone.report.costs import CostsBlock
    from loadstone.report.imports import ImportsBlock
    from loadstone.results.documents.phase import Published
    from loadstone.results.documents.run import Bandwidth
    from loadstone.results.documents.summary import (
        PlainQueriesFigures,
        PlainQueriesTarget,
        PlainQueryFigures,
        QueryTimes,
        Summary,
    )

MS_PER_S = 1e3
GIGA = 1e9
Kind = Literal["cold", "warm"]
KINDS: tuple[Kind, ...] = ("cold", "warm")


@dataclass(slots=True)
class PublishedTimes:
    """What was published of a query on one system, in ms."""

    system: str
    cold: float | None = None
    warm: float | None = None

    def of(self, kind: Kind) -> float | None:
        """Return the time of cold or of warm runs."""
        return self.cold if kind == "cold" else self.warm


@dataclass(frozen=True, slots=True)
class QueryRow:
    """A query on one target, by the target's name for people."""

    target: str
    first: bool
    in_process: bool
    unlike: str
    """What its cold runs are instead, where they were not cold."""
    figures: PlainQueryFigures
    cold_span: str
    warm_span: str

    def of(self, kind: Kind) -> QueryTimes:
        """Return the times of cold or of warm runs."""
        return _times(self.figures, kind)


@dataclass(frozen=True, slots=True)
class QueryRows:
    """A query on every target, and what others published of it."""

    name: str
    rows: list[QueryRow]
    published: list[PublishedTimes]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bandwidths that were measured, in bytes a second: of memory, and of the slowest disk."""

    memory: float | None
    disk: float | None
    words: list[str]

    def of_memory(self, bytes_per_s: float | None) -> float | None:
        """Return a rate as a share of the memory's bandwidth."""
        return _share(bytes_per_s, self.memory)

    def of_disk(self, bytes_per_s: float | None) -> float | None:
        """Return a rate as a share of the disk's bandwidth."""
        return _share(bytes_per_s, self.disk)


@dataclass(frozen=True, slots=True)
class PlainQueriesBlock:
    """What the page says of queries that ran one by one."""

    id: str
    title: str | None
    variant: str
    why: str | None
    charts: list[Chart]
    groups: list[QueryRows]
    cold: bool
    cold_ratio: bool
    several: bool
    gpu: bool
    energy: bool
    limits: Limits
    scanned: bool
    named: bool
    sentences: list[str]
    plans: list[QueryRows]
    """Those with a statement or a plan."""
    rounds: int
    sources: list[str]
    published: dict[str, dict[str, PublishedTimes | None]]
    """By system and query."""
    published_notes: list[str]
    ranges: list[str]
    kind: str = "in_turn"


QueryBlock: TypeAlias = "ImportsBlock | PlainQueriesBlock | ConcurrencyBlock | CostsBlock"


def blocks(summary: Summary, names: Mapping[str, str]) -> list[QueryBlock]:
    """Return the blocks of the section in the order of reading; `names` are the targets' names for people."""
    found: list[QueryBlock] = [
        imports_block(f"imports-{at}", entry, names, summary) for at, entry in enumerate(summary.imports)
    ]
    found += [_in_turn(at, entry, names, summary) for at, entry in enumerate(summary.plain_queries)]
    ours = {target.id for target in summary.targets if target.in_process}
    found += [
        concurrency_block(f"clients-{at}", entry, names, ours) for at, entry in enumerate(summary.concurrency)
    ]
    return [*found, *([costs_block(summary, names)] if summary.costs else [])]


def rows_of(
    entry: PlainQueriesFigures, names: Mapping[str, str], bare: Collection[Kind] = ()
) -> list[QueryRows]:
    """Return a group for each query, with a row for each target; intervals of `bare` kinds say no more."""
    return [
        QueryRows(
            name=name,
            rows=[_row(name, target, entry, names, bare) for target in entry.targets],
            published=_published(name, entry.published),
        )
        for name in entry.queries
    ]


def _row(
    name: str,
    target: PlainQueriesTarget,
    entry: PlainQueriesFigures,
    names: Mapping[str, str],
    bare: Collection[Kind],
) -> QueryRow:
    figures = _query(name, target)
    return QueryRow(
        target=names.get(target.target, target.target),
        first=target.target == entry.first,
        in_process=target.in_process,
        unlike=target.cold_words if target.is_cold is False else "",
        figures=figures,
        cold_span=span(figures.cold, bare="cold" in bare),
        warm_span=span(figures.warm, bare="warm" in bare),
    )


def _query(name: str, target: PlainQueriesTarget) -> PlainQueryFigures:
    """Return the last query of that name."""
    return next(query for query in reversed(target.queries) if query.name == name)


def _times(figures: PlainQueryFigures, kind: Kind) -> QueryTimes:
    return figures.cold if kind == "cold" else figures.warm


def _published(name: str, figures: Sequence[Published]) -> list[PublishedTimes]:
    """Return what others published of a query: a row for each system, with its cold and warm time in ms."""
    rows: dict[str, PublishedTimes] = {}
    for figure in figures:
        kind = figure.metric.removesuffix("_ms")
        if figure.query == name and kind in KINDS:
            system = system_of(figure)
            row = rows.setdefault(system, PublishedTimes(system))
            if kind == "cold":
                row.cold = figure.value
            else:
                row.warm = figure.value
    return list(rows.values())


def _published_table(groups: Sequence[QueryRows]) -> dict[str, dict[str, PublishedTimes | None]]:
    """Return the published times by system and query; None where a system has none of a query."""
    found: dict[str, dict[str, PublishedTimes | None]] = {}
    for group in groups:
        for row in group.published:
            times = found.setdefault(row.system, dict.fromkeys(each.name for each in groups))
            times[group.name] = row
    return found


def span(times: QueryTimes, *, bare: bool = False) -> str:
    """Return a median's interval in ms; that of few runs says that it is their range, unless `bare`."""
    if times.low_s is None:
        return "one run" if times.n else ""
    words = f"{formats.thousandths(times.low_s)} … {formats.thousandths(times.high_s)}"
    return f"{words}, all of {times.n}" if times.whole_range and not bare else words


def _ranges(entry: PlainQueriesFigures) -> tuple[list[str], set[Kind]]:
    """Say of which kinds all intervals are the range of as many runs: that is said once, below."""
    said: list[str] = []
    bare: set[Kind] = set()
    every = [_query(name, target) for name in entry.queries for target in entry.targets]
    for kind in KINDS:
        known = [times for figures in every if (times := _times(figures, kind)).low_s is not None]
        counts = sorted({times.n for times in known if times.whole_range})
        if len(counts) == 1 and all(times.whole_range for times in known):
            said.append(f"{counts[0]} {kind} runs")
            bare.add(kind)
        elif counts:
            said.append("“all of n”")
    return list(dict.fromkeys(said)), bare


def _in_turn(
    number: int, entry: PlainQueriesFigures, names: Mapping[str, str], summary: Summary
) -> PlainQueriesBlock:
    identity = f"queries-{number}"
    ranges, bare = _ranges(entry)
    groups = rows_of(entry, names, bare)
    charts = [_bars(f"{identity}-{at}", group) for at, group in enumerate(groups)]
    every = [row.figures for group in groups for row in group.rows]
    return PlainQueriesBlock(
        id=identity,
        title=entry.title,
        variant=formats.variant(entry.variant),
        why=entry.why,
        charts=[chart for chart in charts if chart],
        groups=groups,
        cold=entry.cold,
        cold_ratio=any(figures.cold_ratio_to_first for figures in every),
        several=len(entry.targets) > 1,
        gpu=any(figures.gpu for figures in every),
        energy=any(figures.energy_j is not None for figures in every),
        limits=_limits(summary),
        scanned=any(figures.rows_per_s for figures in every),
        named=any(figures.named_bytes_per_s for figures in every),
        sentences=_sentences(entry, names),
        plans=[_explained(group) for group in groups],
        rounds=entry.rounds,
        sources=sources(summary.scenarios) if any(group.published for group in groups) else [],
        published=_published_table(groups),
        published_notes=notes_of(entry.published),
        ranges=ranges,
    )


def _explained(group: QueryRows) -> QueryRows:
    rows = [row for row in group.rows if row.figures.sql or row.figures.plan]
    return QueryRows(group.name, rows, group.published)


def _bars(identity: str, group: QueryRows) -> Chart | None:
    bars = [bar for row in group.rows for kind in KINDS if (bar := _bar(row, kind))]
    bars += [
        Bar(row.system, kind, value, formats.digits(value), published=True)
        for row in group.published
        for kind in KINDS
        if (value := row.of(kind)) is not None
    ]
    return systems((identity, group.name), "ms", bars)


def _bar(row: QueryRow, kind: Kind) -> Bar | None:
    """Return the bar of a query's cold or warm runs; without a figure, why there is none."""
    times = row.of(kind)
    trouble = "wrong answer" if row.figures.wrong else "failed" if row.figures.failed else ""
    if times.median_s is None:
        return Bar(row.target, kind, None, trouble) if trouble and kind == "warm" else None
    words = formats.thousandths(times.median_s)
    low, high = (None if end is None else end * MS_PER_S for end in (times.low_s, times.high_s))
    text = f"{words}, {trouble}" if trouble else words
    unlike = row.unlike if kind == "cold" else ""
    return Bar(row.target, kind, times.median_s * MS_PER_S, text, low, high, unlike=unlike)


def _limits(summary: Summary) -> Limits:
    """Return the bandwidth of memory and of the slowest disk that was measured, and both in words."""
    found = msgspec.convert(summary.environment, Environment).bandwidth
    memory = found.memory if found else None
    disks = list(((found and found.disks) or {}).values())
    disk = min(
        (one for one in disks if one.bytes_per_s), key=lambda one: float(one.bytes_per_s or 0), default=None
    )
    why = next((one.reason for one in disks if one.reason), "")
    return Limits(
        memory=memory.bytes_per_s if memory else None,
        disk=disk.bytes_per_s if disk else None,
        words=[
            _bandwidth("Memory", memory, str((memory and memory.reason) or "")),
            _bandwidth("Disk", disk, str(why)),
        ],
    )


def _bandwidth(what: str, found: Bandwidth | None, reason: str) -> str:
    if not found or not found.bytes_per_s:
        return f"{what}: not measured{f', for {reason}' if reason else ''}."
    return f"{what} of this machine: {giga(found.bytes_per_s)} GB/s ({found.method})."


def giga(bytes_per_s: float | None) -> str:
    """Return bytes a second in GB/s, without the unit."""
    return formats.NONE if bytes_per_s is None else formats.digits(bytes_per_s / GIGA)


def _share(rate: float | None, limit: float | None) -> float | None:
    return rate / limit if rate is not None and limit else None


def _sentences(entry: PlainQueriesFigures, names: Mapping[str, str]) -> list[str]:
    """Say what was not possible, and what the figures of single targets do not hold."""
    said: dict[str, list[str]] = {}
    for target in entry.targets:
        for words in _notes(target):
            said.setdefault(words, []).append(names.get(target.target, target.target))
    return [f"{', '.join(whose)}: {words.rstrip('.')}." for words, whose in said.items()]


def _notes(target: PlainQueriesTarget) -> list[str]:
    caches = target.caches
    words = []
    if caches and not caches.emptied:
        because = f": {caches.note.rstrip('.')}" if caches.note else ""
        words.append(
            f"the caches could not be emptied{because}. Cold times are those of a first run, whatever "
            "was cached"
        )
    elif caches and caches.note:
        words.append(f"before each cold run, {caches.note}")
    if target.in_process:
        words.append("runs inside Loadstone's process: its times include no network or protocol")
    # What failed or was wrong stands beside its query.
    if not any(query.failed or query.wrong for query in target.queries):
        words += target.incomplete
    return words + list(target.notes)

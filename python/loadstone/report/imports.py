"""Imports and sizes, target beside target: rates with their ratios, bytes of the table, compression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.report import formats
from loadstone.report.published import Bar, notes_of, sources, system_of, systems

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.report.charts import Chart
    from loadstone.results.documents.phase import Published
    from loadstone.results.documents.summary import (
        Compared,
        ImportCost,
        ImportFigures,
        Imports,
        ImportSize,
        Summary,
    )


SIZES = ("table_bytes", "ratio")
"""Published figures of a table on disk; the others of a scenario are rates."""


@dataclass(frozen=True, slots=True)
class ImportRow:
    """An import on one target, by the target's name for people."""

    target: str
    first: bool
    figures: ImportFigures


@dataclass(frozen=True, slots=True)
class SizeRow:
    """The size of one target's table, by the target's name for people."""

    target: str
    figures: ImportSize


@dataclass(slots=True)
class PublishedSize:
    """What was published of one system: the bytes of its table, and its compression."""

    system: str
    table_bytes: float | None = None
    ratio: float | None = None


@dataclass(frozen=True, slots=True)
class ImportsBlock:
    """What the page says of the imports of a scenario."""

    id: str
    charts: list[Chart]
    loads: dict[str, list[ImportRow]]
    """By the import's title."""
    rows: int | None
    """Of each import, where all have as many."""
    several: bool
    mixed: bool
    """Whether queries ran while rows went in."""
    mixed_words: str
    mixed_failed: bool
    sizes: list[SizeRow]
    published: list[PublishedSize]
    of_values: bool
    """Whether compression is over the values alone, because the length of their text is not known."""
    sources: list[str]
    published_notes: list[str]
    kind: str = "imports"
    title: str = "Import and size"
    variant: str = ""
    why: str = ""


def imports_block(identity: str, entry: Imports, names: Mapping[str, str], summary: Summary) -> ImportsBlock:
    """Return the block of a scenario's imports; `names` are the targets' names for people."""
    loads: dict[str, list[ImportRow]] = {}
    for load in entry.loads:
        row = ImportRow(names.get(load.target, load.target), load.target == summary.targets[0].id, load)
        loads.setdefault(title_of(load), []).append(row)
    charts = [_rates(f"{identity}-{at}", title, same) for at, (title, same) in enumerate(loads.items())]
    sizes = [SizeRow(names.get(size.target, size.target), size) for size in entry.sizes]
    charts.append(_compression(f"{identity}-size", sizes, entry.published))
    published: list[Published | Compared] = [*entry.published]
    published += [figure for load in entry.loads for figure in load.published]
    mixed = [load.mixed for load in entry.loads if load.mixed]
    rows = {load.rows for load in entry.loads}
    return ImportsBlock(
        id=identity,
        charts=[chart for chart in charts if chart],
        loads=loads,
        rows=rows.pop() if len(rows) == 1 else None,
        several=any(load.ratio_to_first for load in entry.loads),
        mixed=bool(mixed),
        mixed_words=next((found.words for found in mixed if found.words), ""),
        mixed_failed=any(found.failed for found in mixed),
        sizes=sizes,
        published=_published_sizes(entry.published),
        of_values=any(size.figures.plain_of == "values" for size in sizes),
        sources=sources(summary.scenarios) if published else [],
        published_notes=[
            *(
                note
                for title, same in loads.items()
                for note in notes_of([f for one in same for f in one.figures.published], title)
            ),
            *notes_of([f for f in entry.published if f.metric in SIZES], "size"),
        ],
    )


def title_of(load: ImportFigures | ImportCost) -> str:
    """Return the title of an import with what tells it from others of this title."""
    more = formats.variant(load.variant)
    return f"{load.title}{f': {more}' if more else ''}"


def _published_sizes(figures: Sequence[Published]) -> list[PublishedSize]:
    """Return a row for each system: the size of its table and its compression."""
    rows: dict[str, PublishedSize] = {}
    for figure in figures:
        if figure.metric in SIZES:
            system = system_of(figure)
            row = rows.setdefault(system, PublishedSize(system))
            if figure.metric == "ratio":
                row.ratio = figure.value
            else:
                row.table_bytes = figure.value
    return list(rows.values())


def _rates(identity: str, title: str, loads: Sequence[ImportRow]) -> Chart | None:
    bars = []
    for load in loads:
        rate = load.figures.rows_per_s
        bars.append(Bar(load.target, "measured", rate.value, formats.stated(rate), rate.low, rate.high))
    figures = {system_of(figure): figure.value for load in loads for figure in load.figures.published}
    bars += [
        Bar(name, "measured", value, formats.rate(value), published=True) for name, value in figures.items()
    ]
    return systems((identity, f"{title}, rows/s"), "rows/s", bars)


def _compression(identity: str, sizes: Sequence[SizeRow], published: Sequence[Published]) -> Chart | None:
    """Draw how many bytes of text one byte of the table stands for; where that is unknown, bytes a row."""
    if not any(size.figures.ratio for size in sizes):
        bars = [
            Bar(size.target, "measured", size.figures.row_bytes, formats.size(size.figures.row_bytes))
            for size in sizes
        ]
        return systems((identity, "Size of a row on disk"), "bytes", bars)
    bars = [
        Bar(
            size.target,
            "measured",
            size.figures.ratio,
            f"{formats.digits(size.figures.ratio)}:1, {formats.size(size.figures.table_bytes)}",
        )
        for size in sizes
    ]
    bars += [
        Bar(
            system_of(figure),
            "measured",
            figure.value,
            f"{formats.digits(figure.value)}:1{_sized(figure, published)}",
            published=True,
        )
        for figure in published
        if figure.metric == "ratio"
    ]
    of = "text" if all(size.figures.plain_of == "text" for size in sizes) else "the values"
    return systems((identity, "Compression"), f"bytes of {of} per byte of the table", bars)


def _sized(ratio: Published, published: Sequence[Published]) -> str:
    """Return the published size that goes with a published ratio."""
    sizes = [f.value for f in published if f.metric == "table_bytes" and f.system == ratio.system]
    return f", {formats.decimal_size(sizes[0])}" if sizes else ""

"""Plain queries in the terminal: a row for each query and target, what more clients bring, sizes, costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from loadstone.report import formats
from loadstone.report.concurrency import verdict_words
from loadstone.report.fitted import Fitted
from loadstone.report.plain_queries import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from loadstone.report.plain_queries import QueryRow
    from loadstone.results.documents.summary import (
        Imports,
        PlainQueriesFigures,
        PlainQueriesTarget,
        Summary,
        TargetCost,
    )

LEFT_OUT = {"sql", "plan", "runs"}
"""Keys of a query that `--json` does not print."""


def plain_queries_table(summary: Summary, names: Mapping[str, str]) -> list[RenderableType]:
    """Return the tables of plain queries; none where nothing was asked."""
    found: list[RenderableType] = [_in_turn(entry, names) for entry in summary.plain_queries]
    for entry in summary.concurrency:
        verdicts = [(names.get(one.target, one.target), one.verdict) for one in entry.targets]
        found += [Text(words) for verdict in verdicts if (words := verdict_words(*verdict))]
    found += [table for entry in summary.imports if (table := _sizes(entry, names))]
    return [*found, *([_costs(summary.costs, names)] if summary.costs else [])]


def plain_queries_json(summary: Summary) -> dict[str, Any]:
    """Return what `--json` prints of plain queries: everything but statements, plans and single runs."""
    plain_queries = [
        msgspec.to_builtins(entry) | {"targets": [_target_json(target) for target in entry.targets]}
        for entry in summary.plain_queries
    ]
    return {
        "plain_queries": plain_queries,
        "concurrency": msgspec.to_builtins(summary.concurrency),
        "imports": msgspec.to_builtins(summary.imports),
        "costs": msgspec.to_builtins(summary.costs),
    }


def _target_json(target: PlainQueriesTarget) -> dict[str, Any]:
    queries = [
        {name: value for name, value in msgspec.to_builtins(query).items() if name not in LEFT_OUT}
        for query in target.queries
    ]
    found: dict[str, Any] = msgspec.to_builtins(target)
    return found | {"queries": queries}


def _in_turn(entry: PlainQueriesFigures, names: Mapping[str, str]) -> RenderableType:
    more = formats.variant(entry.variant)
    title = f"{entry.title}{f', {more}' if more else ''}: medians in ms"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("Query", overflow="fold")
    table.add_column("Target", min_width=10, overflow="fold")
    several = len(entry.targets) > 1
    heads = [*(["Cold"] if entry.cold else []), "Warm", "Interval", *(["vs first"] if several else []), ""]
    for head in heads:
        table.add_column(head, justify="left" if not head else "right", no_wrap=bool(head), overflow="fold")
    for group in rows_of(entry, names):
        table.add_section()
        for at, row in enumerate(group.rows):
            table.add_row(
                Text(group.name if at == 0 else "", style="bold"),
                Text(row.target),
                *([Text(formats.thousandths(row.figures.cold.median_s))] if entry.cold else []),
                Text(formats.thousandths(row.figures.warm.median_s), style="bold"),
                Text(row.warm_span, style="dim"),
                *([_ratio(row)] if several else []),
                Text.assemble(*_marks(row)),
            )
    return Fitted(table)


def _ratio(row: QueryRow) -> Text:
    if row.first:
        return Text("first", style="dim")
    found = row.figures.ratio_to_first
    return Text(f"{formats.versus(found.value)}×" if found else formats.NONE)


def _marks(row: QueryRow) -> Iterator[tuple[str, str]]:
    """Yield what must stand beside a figure."""
    found = row.figures
    words = [(found.gpu or "", "dim"), ("in process" if row.in_process else "", "dim")]
    words.append((f"cold: {row.unlike}" if row.unlike else "", "yellow"))
    words.append((f"wrong answer: {found.wrong}" if found.wrong else "", "red"))
    words.append((f"failed: {found.failed}" if found.failed else "", "red"))
    known = [(text, style) for text, style in words if text]
    for at, (text, style) in enumerate(known):
        yield (text if at == 0 else f", {text}"), style


def _sizes(entry: Imports, names: Mapping[str, str]) -> RenderableType | None:
    if not entry.sizes:
        return None
    table = Table(title="Size of the table", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("Target", min_width=10, overflow="fold")
    for head in ("Rows", "Size", "A row", "Compression"):
        table.add_column(head, justify="right", no_wrap=True)
    for size in entry.sizes:
        ratio = formats.NONE if size.ratio is None else f"{formats.digits(size.ratio)}:1"
        each = formats.size(size.row_bytes)
        name = Text(names.get(size.target, size.target))
        table.add_row(name, formats.rows(size.rows), formats.size(size.table_bytes), each, ratio)
    return Fitted(table)


def _costs(costs: Sequence[TargetCost], names: Mapping[str, str]) -> RenderableType:
    table = Table(title="Costs", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("Target", min_width=10, overflow="fold")
    for head in ("An hour", "Import, a million rows", "A thousand queries, one by one"):
        table.add_column(head, justify="right", no_wrap=True)
    for cost in costs:
        imports = [load.per_million_rows for load in cost.imports]
        queries = [query.per_thousand for query in cost.queries]
        name = Text(names.get(cost.target, cost.target))
        table.add_row(name, f"{cost.price_per_hour:g}", _span(imports), _span(queries))
    return Fitted(table)


def _span(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return formats.NONE
    least, most = formats.digits(min(known)), formats.digits(max(known))
    return least if least == most else f"{least} … {most}"

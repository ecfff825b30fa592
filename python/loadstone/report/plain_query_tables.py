"""Plain queries in the terminal: a row for each query and target, what more clients bring, sizes, costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from loadstone.report import formats
from loadstone.report.concurrency import verdict_words
from loadstone.report.fitted import Fitted
from loadstone.report.plain_queries import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import RenderableType

Json = dict[str, Any]


def questions_table(summary: Json, names: Mapping[str, str]) -> list[RenderableType]:
    """Return the tables of plain queries; none where nothing was asked."""
    found: list[RenderableType] = [_asked(entry, names) for entry in summary["asked"]]
    for entry in summary["concurrency"]:
        targets = [{**one, "target": names.get(one["target"], one["target"])} for one in entry["targets"]]
        found += [Text(words) for one in targets if (words := verdict_words(one))]
    found += [table for entry in summary["imports"] if (table := _sizes(entry, names))]
    return [*found, *([_costs(summary["costs"], names)] if summary["costs"] else [])]


def questions_json(summary: Json) -> Json:
    """Return what `--json` prints of plain queries: everything but statements, plans and single runs."""
    left_out = {"sql", "plan", "runs"}
    asked = [
        {
            **entry,
            "targets": [
                {
                    **target,
                    "questions": [
                        {name: value for name, value in question.items() if name not in left_out}
                        for question in target["questions"]
                    ],
                }
                for target in entry["targets"]
            ],
        }
        for entry in summary["asked"]
    ]
    return {"asked": asked, **{name: summary[name] for name in ("concurrency", "imports", "costs")}}


def _asked(entry: Json, names: Mapping[str, str]) -> RenderableType:
    more = formats.variant(entry["variant"])
    title = f"{entry['title']}{f', {more}' if more else ''}: medians in ms"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("Query", overflow="fold")
    table.add_column("Target", min_width=10, overflow="fold")
    several = len(entry["targets"]) > 1
    heads = [*(["Cold"] if entry["cold"] else []), "Warm", "Interval", *(["vs first"] if several else []), ""]
    for head in heads:
        table.add_column(head, justify="left" if not head else "right", no_wrap=bool(head), overflow="fold")
    for group in rows_of(entry, names):
        table.add_section()
        for at, row in enumerate(group["rows"]):
            table.add_row(
                Text(group["name"] if at == 0 else "", style="bold"),
                Text(row["target"]),
                *([Text(formats.thousandths(row["cold"]["median_s"]))] if entry["cold"] else []),
                Text(formats.thousandths(row["warm"]["median_s"]), style="bold"),
                Text(row["warm_span"], style="dim"),
                *([_ratio(row)] if several else []),
                Text.assemble(*_marks(row)),
            )
    return Fitted(table)


def _ratio(row: Json) -> Text:
    if row["first"]:
        return Text("first", style="dim")
    found = row["ratio_to_first"]
    return Text(f"{formats.versus(found['value'])}×" if found else formats.NONE)


def _marks(row: Json) -> Iterator[tuple[str, str]]:
    """Yield what must stand beside a figure."""
    words = [(row["gpu"] or "", "dim"), ("in process" if row["in_process"] else "", "dim")]
    words.append((f"cold: {row['unlike']}" if row["unlike"] else "", "yellow"))
    words.append((f"wrong answer: {row['wrong']}" if row["wrong"] else "", "red"))
    words.append((f"failed: {row['failed']}" if row["failed"] else "", "red"))
    known = [(text, style) for text, style in words if text]
    for at, (text, style) in enumerate(known):
        yield (text if at == 0 else f", {text}"), style


def _sizes(entry: Json, names: Mapping[str, str]) -> RenderableType | None:
    if not entry["sizes"]:
        return None
    table = Table(title="Size of the table", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("Target", min_width=10, overflow="fold")
    for head in ("Rows", "Size", "A row", "Compression"):
        table.add_column(head, justify="right", no_wrap=True)
    for size in entry["sizes"]:
        ratio = formats.NONE if size["ratio"] is None else f"{formats.digits(size['ratio'])}:1"
        each = formats.size(size["row_bytes"])
        name = Text(names.get(size["target"], size["target"]))
        table.add_row(name, formats.rows(size["rows"]), formats.size(size["table_bytes"]), each, ratio)
    return Fitted(table)


def _costs(costs: list[Json], names: Mapping[str, str]) -> RenderableType:
    table = Table(title="Costs", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("Target", min_width=10, overflow="fold")
    for head in ("An hour", "Import, a million rows", "A thousand queries, one by one"):
        table.add_column(head, justify="right", no_wrap=True)
    for cost in costs:
        imports = [load["per_million_rows"] for load in cost["imports"]]
        queries = [question["per_thousand"] for question in cost["questions"]]
        name = Text(names.get(cost["target"], cost["target"]))
        table.add_row(name, f"{cost['price_per_hour']:g}", _span(imports), _span(queries))
    return Fitted(table)


def _span(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return formats.NONE
    least, most = formats.digits(min(known)), formats.digits(max(known))
    return least if least == most else f"{least} … {most}"

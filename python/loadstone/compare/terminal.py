"""A comparison for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from loadstone.compare import texts
from loadstone.report.fitted import Fitted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from loadstone.compare.documents import Comparison, Document, Row

_COLOURS = {"bad": "bold red", "good": "green", "warning": "yellow"}
_LESS = ("Noise", "Repeats", "Blocks", "Detectable", "A", "B")
"""Columns that a narrow terminal leaves out first."""
_SHOWN = 12
"""Differences of one kind that are listed."""


def screen(document: Document, *, every: bool) -> RenderableType:
    """Return all comparisons; `every` shows every metric, also those that do not differ."""
    parts = [part for one in document.comparisons for part in _comparison(one, every=every)]
    return Group(*parts, Text(texts.explanation(document), style="dim"))


def _comparison(comparison: Comparison, *, every: bool) -> Iterator[RenderableType]:
    for line in texts.sides(comparison):
        yield Text(line, style="bold")
    yield from _differences(comparison)
    for note in comparison.notes:
        yield Text(f"! {note}", style="yellow")
    yield _table(comparison, every=every)
    if comparison.overall is not None:
        names = (comparison.a.name, comparison.b.name)
        yield Text(texts.overall(comparison.overall, names))
    yield Text(f"Verdicts: {texts.summary(comparison)}.", style="bold")
    if comparison.advice:
        yield Text(f"To decide it: {comparison.advice}")


def _differences(comparison: Comparison) -> Iterator[RenderableType]:
    kinds: dict[str, list[str]] = {}
    for one in comparison.differences:
        kinds.setdefault(one.kind, []).append(texts.difference(one))
    for kind, lines in kinds.items():
        blocks = any(one.blocks for one in comparison.differences if one.kind == kind)
        head = Text(f"differs, {kind}: ", style="bold red" if blocks else "bold")
        more = f"; {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
        yield head + Text("; ".join(lines[:_SHOWN]) + more, style="")


def _table(comparison: Comparison, *, every: bool) -> Fitted:
    table = Table(box=SIMPLE_HEAD, expand=False, pad_edge=False)
    table.add_column("Phase", min_width=22, overflow="fold")
    heads = dict(zip(("A", "B"), (comparison.a.name, comparison.b.name), strict=True))
    table.add_column("Verdict", overflow="fold")
    for head in texts.heads(comparison)[:-1]:
        table.add_column(_named(head, heads), justify="right", no_wrap=True)
    for block in texts.blocks(comparison, every=every):
        for number, row in enumerate(block.rows):
            table.add_row(*_cells(row, "" if number else block.title))
    return Fitted(table, less=tuple(_named(head, heads) for head in _LESS))


def _named(head: str, names: dict[str, str]) -> str:
    return "/".join(names.get(part, part) for part in head.split("/"))


def _cells(row: Row, title: str) -> list[Text]:
    *figures, verdict = texts.cells(row)
    style = "" if row.primary else "dim"
    remark = texts.remark(row) if row.primary or row.reason else ""
    name = Text(title, style="bold")
    name.append(f"{': ' if title else '  '}{texts.metric(row)}", style=style or "not bold")
    if remark:
        name.append(f"\n  {remark}", style="dim")
    shown = Text(verdict, style=_COLOURS[texts.level(row)] if row.primary else style)
    return [name, shown, *(Text(figure, style=style) for figure in figures)]

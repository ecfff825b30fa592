"""Tables that leave columns out, and say which, where the terminal is too narrow: a figure is never cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Column

LONGEST_WORD = 24
"""A longer word of a name is folded, before a figure gives way."""
_BOUNDLESS = 10_000


class Fitted:
    """A table whose columns of figures are shown whole or not at all.

    Columns of figures are those with `no_wrap`; the others hold names, whose words share lines. Where not
    even the first column of figures has room, each row becomes a list.
    """

    def __init__(self, table: Table, less: Sequence[str] = ()) -> None:
        """Take a table, and the heads of the columns that are left out first; others go from the right."""
        self._table = table
        self._less = less

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, and what it leaves out."""
        kept = list(range(len(self._table.columns)))
        order = self._order()
        for out in range(len(order) + 1):
            shown = [index for index in kept if index not in order[:out]]
            table = self._narrowed(shown, console, options)
            if table is not None:
                yield table
                if out:
                    heads = (_head(self._table.columns[index]) for index in sorted(order[:out]))
                    left = ", ".join(head for head in heads if head)
                    yield Text(f"… a wider terminal also shows {left or 'more'}", style="dim")
                return
        yield from self._listed(options.max_width)

    def _order(self) -> list[int]:
        """Return the columns that may be left out, the least important first."""
        columns = self._table.columns
        rest = [index for index, column in enumerate(columns) if column.no_wrap][:0:-1]
        first = [index for head in self._less for index in rest if _head(columns[index]) == head]
        return [*first, *(index for index in rest if index not in first)]

    def _narrowed(self, shown: Sequence[int], console: Console, options: ConsoleOptions) -> Table | None:
        """Return the table with these columns alone, as wide as there is room; None when there is not."""
        old = self._table
        columns = [old.columns[index] for index in shown]
        wide = [_width(column, console, options) for column in columns]
        least = [
            most.maximum if column.no_wrap else min(most.minimum, LONGEST_WORD)
            for column, most in zip(columns, wide, strict=True)
        ]
        boundless = options.update(width=_BOUNDLESS)
        room = options.max_width - Measurement.get(console, boundless, _table(old, shown, least)).minimum
        if room < 0:
            return None
        # The names that lack least first: a target's name stays on a line, and a phase's title takes two.
        for place in sorted(range(len(wide)), key=lambda place: wide[place].maximum - least[place]):
            more = min(room, wide[place].maximum - least[place])
            least[place] += more
            room -= more
        return _table(old, shown, least)

    def _listed(self, width: int) -> Iterator[Text]:
        """Yield each row as lines: its names, then each figure after its head, or below it."""
        table = self._table
        if table.title:
            yield Text(str(table.title), style="italic")
        for cells in zip(*(column.cells for column in table.columns), strict=True):
            for column, cell in zip(table.columns, cells, strict=True):
                text = _text(cell)
                if text.plain.strip():
                    head = f"{_head(column)} " if column.no_wrap and _head(column) else ""
                    if len(head) + len(text.plain) > width:
                        head = head.rstrip() + "\n" if head else ""
                    yield Text.assemble(head, text, overflow="fold")


def _table(old: Table, shown: Sequence[int], widths: Sequence[int]) -> Table:
    """Return a table with these columns of another, so many characters wide."""
    new = Table(title=old.title, title_justify=old.title_justify, box=old.box, pad_edge=old.pad_edge)
    columns = [old.columns[index] for index in shown]
    for column, width in zip(columns, widths, strict=True):
        new.add_column(
            column.header,
            justify=column.justify,
            no_wrap=column.no_wrap,
            overflow=column.overflow,
            width=width,
        )
    for row, *cells in zip(old.rows, *(column.cells for column in columns), strict=True):
        new.add_row(*cells, style=row.style, end_section=row.end_section)
    return new


def _width(column: Column, console: Console, options: ConsoleOptions) -> Measurement:
    boundless = options.update(width=_BOUNDLESS)
    cells = [Measurement.get(console, boundless, _text(cell)) for cell in (column.header, *column.cells)]
    return Measurement(max(cell.minimum for cell in cells), max(cell.maximum for cell in cells))


def _head(column: Column) -> str:
    return _text(column.header).plain


def _text(cell: object) -> Text:
    return cell if isinstance(cell, Text) else Text(str(cell))

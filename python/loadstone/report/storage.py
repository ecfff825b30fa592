"""What tables take on disk: bytes by kind beside the logical ones, and what was written for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from loadstone.report import formats
from loadstone.report.charts import Block, Chart, Table, filled, rounded
from loadstone.report.chunks import Labelled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.report.chunks import Chunk
    from loadstone.results.documents.summary import (
        BytesOfRow,
        LookFigures,
        PhaseFigures,
        StorageFigures,
        StoredTableFigures,
        Summary,
        Variant,
        WrittenFigures,
    )


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of bytes, as it is named and drawn."""

    label: str
    colour: str
    of: Callable[[BytesOfRow], float | None]


KINDS = (
    Kind("rows", "var(--series-1)", lambda row: row.heap),
    Kind("TOAST", "var(--series-3)", lambda row: row.toast),
    Kind("indexes", "var(--series-2)", lambda row: row.index),
    Kind("free space", "var(--series-6)", lambda row: row.free),
    Kind("maps", "var(--series-5)", lambda row: row.map),
)
MOST_BARS = 14
"""Of one chart; more are shared out among several."""
LABEL_LIMIT, LETTER_WIDTH = 170, 7
ROOM = 1.6
"""Length of the axis over the longest bar: the figure behind it is not cut off on a phone, either."""
"""In pixels: of a bar's label at most, and of a letter of it."""


@dataclass(frozen=True, slots=True)
class StorageMember:
    """A phase whose tables were looked at."""

    label: str
    target: str
    phase: PhaseFigures
    storage: StorageFigures


@dataclass(frozen=True, slots=True)
class TableRow:
    """A table at one look."""

    figures: StoredTableFigures
    variant: Variant
    target: str
    table: str
    when: str | None
    last: bool
    """Whether it is the last look of its phase."""
    names: tuple[str, ...] = ()
    """What tells it from the others, in columns of their own."""
    label: str = ""
    """The same as a word for its bar."""

    @property
    def more(self) -> list[str]:
        """What tells it from other tables of its variant."""
        return [name for name in (self.target, self.table) if name]

    @property
    def allocated(self) -> float | None:
        """Bytes of a row that the file system gave; those of the files where that is not known."""
        each = self.figures.per_row
        return each.total if each.allocated is None else each.allocated


@dataclass(frozen=True, slots=True)
class StorageBlock:
    """What the page says of the tables of a phase."""

    id: str
    title: str | None
    when: str | None
    charts: list[Chart]
    head: list[str]
    rows: list[TableRow]
    looks: list[TableRow]
    written: list[Labelled[WrittenFigures]]
    of: list[str]
    """What the bytes to the device were of."""
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Bar:
    """A table's bar: bytes of a row, or those over its logical bytes."""

    label: str
    kinds: list[float]
    """In the order of KINDS."""
    logical: float | None
    logical_text: str
    allocated: float | None
    allocated_text: str
    end: float
    text: str


def blocks(chunks: Sequence[Chunk]) -> list[StorageBlock]:
    """Return a block for each phase whose tables were looked at, with all its variants and targets."""
    phases: dict[tuple[str | None, str | None], list[StorageMember]] = {}
    for chunk in chunks:
        members = [
            StorageMember(member.label, member.target, member.phase, member.phase.storage)
            for member in chunk.members
            if member.phase.storage
        ]
        phases.setdefault((chunk.scenario, chunk.phase), []).extend(members)
    return [_block(f"storage-{at}", members) for at, members in enumerate(phases.values()) if members]


def costs(summary: Summary) -> list[tuple[PhaseFigures, StorageFigures, LookFigures]]:
    """Return each phase whose tables were looked at, with its last look."""
    return [
        (phase, phase.storage, phase.storage.looks[-1])
        for phase in summary.phases
        if phase.storage and phase.storage.looks
    ]


def _block(identity: str, members: Sequence[StorageMember]) -> StorageBlock:
    looks = [row for member in members for row in _looks(member)]
    varied = _varied(looks)
    looks = [_named(row, varied) for row in looks]
    last = [row for row in looks if row.last]
    whens = list(dict.fromkeys(row.when for row in last))
    charts = [
        _stacks(f"{identity}-{number}", title, (_axis_words(part, varied), part), per_logical=per_logical)
        for number, (title, part) in enumerate(_parts(last, varied))
        for per_logical in (True, False)
    ]
    return StorageBlock(
        id=identity,
        title=members[0].phase.title,
        when=whens[0] if len(whens) == 1 else "after the last statement of each phase",
        charts=[chart for chart in charts if chart],
        head=_head(last, varied),
        rows=last,
        looks=looks if len(looks) > len(last) else [],
        written=[
            Labelled(member.label or "all", member.storage.written)
            for member in members
            if _is_written(member.storage.written)
        ],
        of=sorted({member.storage.written.of or "" for member in members} - {""}),
        notes=_notes(members),
    )


def _is_written(found: WrittenFigures) -> bool:
    figures = (found.wal_bytes, found.device_bytes, found.server_bytes)
    return any((*figures, found.amplification, found.wal_per_logical))


def _notes(members: Sequence[StorageMember]) -> list[str]:
    """Return what was noted of the tables, each note once with the targets that it is of."""
    told: dict[str, dict[str, None]] = {}
    for member in members:
        for note in member.storage.notes:
            told.setdefault(note, {}).update({member.target: None} if member.target else {})
    return sorted(f"{', '.join(whose)}: {note}" if whose else note for note, whose in told.items())


def _looks(member: StorageMember) -> list[TableRow]:
    """Return a row for each table and look, in the order in which they were taken."""
    return [
        TableRow(
            figures=table,
            variant=member.phase.variant,
            target=member.target,
            table=table.name if len(look.tables) > 1 or not member.label else "",
            when=look.when,
            last=look is member.storage.looks[-1],
        )
        for look in member.storage.looks
        for table in look.tables
    ]


def _named(row: TableRow, varied: Sequence[str]) -> TableRow:
    """Return a row with what tells its table from the others."""
    names = (*(formats.word(row.variant.get(name)) for name in varied), *row.more)
    return replace(row, names=names, label=" · ".join(names) or row.figures.name)


def _varied(rows: Sequence[TableRow]) -> list[str]:
    """Return the parameters that tell the tables apart."""
    names = dict.fromkeys(name for row in rows for name in row.variant)
    return [name for name in names if len({str(row.variant.get(name)) for row in rows}) > 1]


def _more(rows: Sequence[TableRow]) -> list[str]:
    """Return the words for what else tells the tables apart."""
    found = {"target": any(row.target for row in rows), "table": any(row.table for row in rows)}
    return [name for name, there in found.items() if there]


def _head(rows: Sequence[TableRow], varied: Sequence[str]) -> list[str]:
    return [*varied, *_more(rows)] or ["table"]


def _parts(rows: Sequence[TableRow], varied: Sequence[str]) -> list[tuple[str, list[TableRow]]]:
    """Share many bars out among charts, by the parameter of fewest values; (its value in words, bars)."""
    if len(rows) <= MOST_BARS or len(varied) < 2:  # noqa: PLR2004 - nothing to share out by
        return [("", list(rows[at : at + MOST_BARS])) for at in range(0, len(rows), MOST_BARS)]
    by = min(varied, key=lambda name: len({str(row.variant.get(name)) for row in rows}))
    found: dict[str, list[TableRow]] = {}
    for row in rows:
        rest = [formats.word(row.variant.get(name)) for name in varied if name != by]
        part = found.setdefault(f"{by} = {row.variant.get(by)}", [])
        part.append(replace(row, label=" · ".join([*rest, *row.more])))
    return list(found.items())


def _axis_words(rows: Sequence[TableRow], varied: Sequence[str]) -> str:
    """Name what the bars' labels are the values of."""
    return " · ".join([*_varied(rows), *(name for name in _more(rows) if name not in varied)])


def _stacks(
    identity: str, part: str, bars: tuple[str, Sequence[TableRow]], *, per_logical: bool
) -> Chart | None:
    """Stack the kinds of bytes of each table, over its rows or over the logical bytes of those."""
    axis, tables = bars
    known = [table for table in tables if table.figures.per_row.total and table.figures.per_row.logical]
    if not known:
        return None
    unit = "bytes on disk per logical byte" if per_logical else "bytes per row"
    title = "Disk space per byte of data" if per_logical else "Disk space per row"
    title = f"{title}: {part}" if part else title
    rows = [_bar(table, per_logical=per_logical) for table in known]
    shown = formats.fitted([row.label for row in rows], LABEL_LIMIT // LETTER_WIDTH)
    extent = LETTER_WIDTH * max(map(len, shown))
    drawn = [(at, kind) for at, kind in enumerate(KINDS) if any(row.kinds[at] for row in rows)]
    spec = filled(
        "stacks",
        {
            "height": 30 * len(rows),
            "y_title": axis or None,
            "y_extent": extent,
            "y_limit": max(LABEL_LIMIT, extent),
            "x_title": unit,
            "x_max": max(row.end for row in rows) * ROOM,
            "series": [kind.label for _, kind in drawn],
            "colours": [kind.colour for _, kind in drawn],
        },
    )
    is_told = any(row.allocated is not None for row in rows)
    if not is_told:
        # Without any value the diamonds would have no place on the axis.
        layers = spec["layer"]  # no document: a chart's specification
        spec |= {"layer": [layer for layer in layers if _field(layer) != "allocated"]}
    points = [
        Block(
            {"series": kind.label, "rank": rank},
            {
                "label": shown,
                "value": [rounded(row.kinds[at]) for row in rows],
                "text": [formats.size(kind.of(table.figures.per_row)) for table in known],
            },
        )
        for rank, (at, kind) in enumerate(drawn)
    ]
    words = "; ".join(f"{row.label} {row.text}" for row in rows)
    return Chart(
        f"{identity}-{'logical' if per_logical else 'row'}",
        title,
        f"{title} by kind of byte, with logical bytes: {words}.",
        spec,
        {"points": points, "marks": [_marks(shown, rows)]},
        _table(known),
        "half",
        "Vertical mark: logical bytes."
        + (" Diamond: bytes that the file system allocated." if is_told else ""),
        [(kind.label, kind.colour) for _, kind in drawn],
    )


def _field(layer: dict[str, dict[str, dict[str, str]]]) -> str:
    return layer["encoding"]["x"]["field"]  # no document: a chart's specification


def _marks(shown: Sequence[str], rows: Sequence[Bar]) -> Block:
    columns = {
        "label": shown,
        "logical": [row.logical for row in rows],
        "logical_text": [row.logical_text for row in rows],
        "allocated": [row.allocated for row in rows],
        "allocated_text": [row.allocated_text for row in rows],
        "end": [row.end for row in rows],
        "text": [row.text for row in rows],
    }
    return Block({}, columns)


def _bar(table: TableRow, *, per_logical: bool) -> Bar:
    each = table.figures.per_row
    logical, total = each.logical or 0.0, each.total or 0.0
    unit = logical if per_logical else 1.0
    allocated = None if each.allocated is None else each.allocated / unit
    return Bar(
        label=table.label,
        kinds=[(kind.of(each) or 0.0) / unit for kind in KINDS],
        logical=rounded(logical / unit),
        logical_text=formats.size(each.logical),
        allocated=rounded(allocated),
        allocated_text=formats.size(each.allocated),
        end=max(total / unit, allocated or 0.0, logical / unit),
        text=formats.times(table.figures.ratio) if per_logical else formats.size(allocated or total / unit),
    )


def _table(tables: Sequence[TableRow]) -> Table:
    head = (
        "table",
        *(f"{kind.label}, B per row" for kind in KINDS),
        "logical, B per row",
        ("allocated, B per row"),
    )
    rows = [
        (
            table.label,
            *(formats.digits(kind.of(table.figures.per_row)) for kind in KINDS),
            formats.digits(table.figures.per_row.logical),
            formats.digits(table.figures.per_row.allocated),
        )
        for table in tables
    ]
    return Table(head, rows)

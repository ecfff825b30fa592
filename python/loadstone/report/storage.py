"""What tables take on disk: bytes by kind beside the logical ones, and what was written for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.report import formats
from loadstone.report.charts import Block, Chart, Table, filled, rounded

if TYPE_CHECKING:
    from collections.abc import Sequence

Json = dict[str, Any]

KINDS = (
    ("heap", "rows", "var(--series-1)"),
    ("toast", "TOAST", "var(--series-3)"),
    ("index", "indexes", "var(--series-2)"),
    ("free", "free space", "var(--series-6)"),
    ("map", "maps", "var(--series-5)"),
)
MOST_BARS = 14
"""Of one chart; more are shared out among several."""
LABEL_LIMIT, LETTER_WIDTH = 170, 7
"""In pixels: of a bar's label at most, and of a letter of it."""


def blocks(chunks: Sequence[Json]) -> list[Json]:
    """Return a block for each phase whose tables were looked at, with all its variants and targets."""
    phases: dict[tuple[str, str], list[Json]] = {}
    for chunk in chunks:
        members = [member for member in chunk["members"] if member["phase"]["storage"]]
        phases.setdefault((chunk["scenario"], chunk["phase"]), []).extend(members)
    return [_block(f"storage-{at}", members) for at, members in enumerate(phases.values()) if members]


def costs(summary: Json) -> list[tuple[Json, Json]]:
    """Return each phase whose tables were looked at, with its last look."""
    return [
        (phase, phase["storage"]["looks"][-1])
        for phase in summary["phases"]
        if phase["storage"] and phase["storage"]["looks"]
    ]


def _block(identity: str, members: Sequence[Json]) -> Json:
    looks = [row for member in members for row in _looks(member)]
    varied = _varied(looks)
    looks = [{**row, **_names(row, varied)} for row in looks]
    last = [row for row in looks if row["last"]]
    whens = list(dict.fromkeys(row["when"] for row in last))
    charts = [
        _stacks(f"{identity}-{number}", title, (_axis_words(part, varied), part), per_logical=per_logical)
        for number, (title, part) in enumerate(_parts(last, varied))
        for per_logical in (True, False)
    ]
    written = [(member, member["phase"]["storage"]["written"]) for member in members]
    return {
        "id": identity,
        "title": members[0]["phase"]["title"],
        "when": whens[0] if len(whens) == 1 else "after the last statement of each phase",
        "charts": [chart for chart in charts if chart],
        "head": _head(last, varied),
        "rows": last,
        "looks": looks if len(looks) > len(last) else [],
        "written": [
            {"label": member["label"] or "all", **account}
            for member, account in written
            if any(value for name, value in account.items() if name != "of")
        ],
        "of": sorted({account["of"] or "" for _, account in written} - {""}),
        "notes": _told(members),
    }


def _told(members: Sequence[Json]) -> list[str]:
    """Return what was noted of the tables, each note once with the targets that it is of."""
    told: dict[str, dict[str, None]] = {}
    for member in members:
        for note in member["phase"]["storage"]["notes"]:
            told.setdefault(note, {}).update({member["target"]: None} if member["target"] else {})
    return sorted(f"{', '.join(whose)}: {note}" if whose else note for note, whose in told.items())


def _looks(member: Json) -> list[Json]:
    """Return a row for each table and look, in the order in which they were taken."""
    storage = member["phase"]["storage"]
    rows = []
    for look in storage["looks"]:
        several = len(look["tables"]) > 1
        for table in look["tables"]:
            named = table["name"] if several or not member["label"] else ""
            where = {"variant": member["phase"]["variant"], "target": member["target"], "table": named or ""}
            rows.append({**table, **where, "when": look["when"], "last": look is storage["looks"][-1]})
    return rows


def _names(row: Json, varied: Sequence[str]) -> Json:
    """Return what tells a table from the others: in columns of their own, and in a word for its bar."""
    values = [formats.word(row["variant"].get(name)) for name in varied]
    more = [row[name] for name in ("target", "table") if row[name]]
    return {"names": [*values, *more], "label": " · ".join([*values, *more]) or str(row["name"])}


def _varied(rows: Sequence[Json]) -> list[str]:
    """Return the parameters that tell the tables apart."""
    names = dict.fromkeys(name for row in rows for name in row["variant"])
    return [name for name in names if len({str(row["variant"].get(name)) for row in rows}) > 1]


def _head(rows: Sequence[Json], varied: Sequence[str]) -> list[str]:
    more = [name for name in ("target", "table") if any(row[name] for row in rows)]
    return [*varied, *more] or ["table"]


def _parts(rows: Sequence[Json], varied: Sequence[str]) -> list[tuple[str, list[Json]]]:
    """Share many bars out among charts, by the parameter of fewest values; (its value in words, bars)."""
    if len(rows) <= MOST_BARS or len(varied) < 2:  # noqa: PLR2004 - nothing to share out by
        return [("", list(rows[at : at + MOST_BARS])) for at in range(0, len(rows), MOST_BARS)]
    by = min(varied, key=lambda name: len({str(row["variant"].get(name)) for row in rows}))
    found: dict[str, list[Json]] = {}
    for row in rows:
        rest = [formats.word(row["variant"].get(name)) for name in varied if name != by]
        label = " · ".join([*rest, *(row[name] for name in ("target", "table") if row[name])])
        found.setdefault(f"{by} = {row['variant'].get(by)}", []).append({**row, "label": label})
    return list(found.items())


def _axis_words(rows: Sequence[Json], varied: Sequence[str]) -> str:
    """Name what the bars' labels are the values of."""
    more = [name for name in ("target", "table") if any(row[name] for row in rows)]
    return " · ".join([*_varied(rows), *(name for name in more if name not in varied)])


def _stacks(identity: str, part: str, bars: tuple[str, Sequence[Json]], *, per_logical: bool) -> Chart | None:
    """Stack the kinds of bytes of each table, over its rows or over the logical bytes of those."""
    axis, tables = bars
    known = [table for table in tables if table["per_row"]["total"] and table["per_row"]["logical"]]
    if not known:
        return None
    unit = "bytes on disk for each logical byte" if per_logical else "bytes a row"
    title = "Disk space for each byte of data" if per_logical else "Disk space of a row"
    title = f"{title}: {part}" if part else title
    rows = [_bar(table, per_logical=per_logical) for table in known]
    shown = formats.fitted([row["label"] for row in rows], LABEL_LIMIT // LETTER_WIDTH)
    extent = LETTER_WIDTH * max(map(len, shown))
    drawn = [kind for kind in KINDS if any(row["kinds"][kind[0]] for row in rows)]
    spec = filled(
        "stacks",
        {
            "height": 30 * len(rows),
            "y_title": axis or None,
            "y_extent": extent,
            "y_limit": max(LABEL_LIMIT, extent),
            "x_title": unit,
            "x_max": max(row["end"] for row in rows) * 1.3,
            "series": [label for _, label, _ in drawn],
            "colours": [colour for _, _, colour in drawn],
        },
    )
    is_told = any(row["allocated"] is not None for row in rows)
    if not is_told:
        # Without any value the diamonds would have no place on the axis.
        spec["layer"] = [layer for layer in spec["layer"] if layer["encoding"]["x"]["field"] != "allocated"]
    points = [
        Block(
            {"series": label, "rank": rank},
            {
                "label": shown,
                "value": [rounded(row["kinds"][name]) for row in rows],
                "text": [formats.size(table["per_row"][name]) for table in known],
            },
        )
        for rank, (name, label, _) in enumerate(drawn)
    ]
    names = ("label", "logical", "logical_text", "allocated", "allocated_text", "end", "text")
    marks = [Block({}, {**{name: [row[name] for row in rows] for name in names}, "label": shown})]
    words = "; ".join(f"{row['label']} {row['text']}" for row in rows)
    return Chart(
        f"{identity}-{'logical' if per_logical else 'row'}",
        title,
        f"{title} by kind of byte, with logical bytes: {words}.",
        spec,
        {"points": points, "marks": marks},
        _table(known),
        "half",
        "Upright mark: logical bytes." + (" Diamond: what the file system gave." if is_told else ""),
        [(label, colour) for _, label, colour in drawn],
    )


def _bar(table: Json, *, per_logical: bool) -> Json:
    unit = table["per_row"]["logical"] if per_logical else 1.0
    each = {name: value / unit for name, value in table["per_row"].items() if value is not None}
    allocated = each.get("allocated")
    total = each["total"]
    return {
        "label": table["label"],
        "kinds": {name: each.get(name, 0.0) for name, _, _ in KINDS},
        "logical": rounded(each["logical"]),
        "logical_text": formats.size(table["per_row"]["logical"]),
        "allocated": rounded(allocated),
        "allocated_text": formats.size(table["per_row"]["allocated"]),
        "end": max(total, allocated or 0.0, each["logical"]),
        "text": formats.times(table["ratio"]) if per_logical else formats.size(allocated or total),
    }


def _table(tables: Sequence[Json]) -> Table:
    head = (
        "table",
        *(f"{label}, B a row" for _, label, _ in KINDS),
        "logical, B a row",
        "allocated, B a row",
    )
    rows = [
        (
            str(table["label"]),
            *(formats.digits(table["per_row"][name]) for name, _, _ in KINDS),
            formats.digits(table["per_row"]["logical"]),
            formats.digits(table["per_row"]["allocated"]),
        )
        for table in tables
    ]
    return Table(head, rows)

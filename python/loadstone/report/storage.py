"""What tables take on disk: bytes by kind beside the logical ones, and what was written for them."""

from __future__ import annotations

from itertools import zip_longest
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


def blocks(chunks: Sequence[Json]) -> list[Json]:
    """Return a block for each phase whose tables were looked at, with all its variants and targets."""
    phases: dict[tuple[str, str], list[Json]] = {}
    for chunk in chunks:
        members = [member for member in chunk["members"] if member["phase"]["storage"]]
        phases.setdefault((chunk["scenario"], chunk["phase"]), []).extend(members)
    return [_block(f"storage-{at}", members) for at, members in enumerate(phases.values()) if members]


def _block(identity: str, members: Sequence[Json]) -> Json:
    looks = _looks(members)
    varied = _varied(looks[-1][1])
    charts = [
        _stacks(f"{identity}-{number}", title, part, per_logical=per_logical)
        for number, (title, part) in enumerate(_parts(looks[-1][1], varied))
        for per_logical in (True, False)
    ]
    rows = [[_row(row, when, varied) for row in found] for when, found in looks]
    return {
        "id": identity,
        "title": members[0]["phase"]["title"],
        "when": looks[-1][0],
        "charts": [chart for chart in charts if chart],
        "head": _head(looks[-1][1], varied),
        "rows": rows[-1],
        # Each table's looks one after the other.
        "looks": [row for same in zip_longest(*rows) for row in same if row] if len(looks) > 1 else [],
        "written": [
            {"label": member["label"] or "all", **member["phase"]["storage"]["written"]}
            for member in members
            if any(value for name, value in member["phase"]["storage"]["written"].items() if name != "of")
        ],
        "of": sorted({m["phase"]["storage"]["written"]["of"] or "" for m in members} - {""}),
        "notes": sorted({note for m in members for note in m["phase"]["storage"]["notes"]}),
    }


def _varied(rows: Sequence[Json]) -> list[str]:
    """Return the parameters that tell the tables apart."""
    names = dict.fromkeys(name for row in rows for name in row["variant"])
    return [name for name in names if len({str(row["variant"].get(name)) for row in rows}) > 1]


def _head(rows: Sequence[Json], varied: Sequence[str]) -> list[str]:
    more = [name for name in ("target", "table") if any(row[name] for row in rows)]
    return [*varied, *more] or ["table"]


def _row(row: Json, when: str, varied: Sequence[str]) -> Json:
    """Return a row of the table of figures, with what tells it apart in columns of their own."""
    names = [str(row["variant"].get(name)) for name in varied]
    return {**row, "when": when, "names": [*names, *(row[name] for name in ("target", "table") if row[name])]}


def _parts(rows: Sequence[Json], varied: Sequence[str]) -> list[tuple[str, list[Json]]]:
    """Share many bars out among charts, by the parameter of fewest values; (its value in words, bars)."""
    if len(rows) <= MOST_BARS or len(varied) < 2:  # noqa: PLR2004 - nothing to share out by
        return [("", list(rows[at : at + MOST_BARS])) for at in range(0, len(rows), MOST_BARS)]
    by = min(varied, key=lambda name: len({str(row["variant"].get(name)) for row in rows}))
    found: dict[str, list[Json]] = {}
    for row in rows:
        rest = {name: row["variant"].get(name) for name in varied if name != by}
        words = formats.variant(rest) if len(rest) > 1 else str(next(iter(rest.values())))
        more = [part for part in (words, row["target"], row["table"]) if part]
        found.setdefault(f"{by} = {row['variant'].get(by)}", []).append({**row, "label": " · ".join(more)})
    return list(found.items())


def _looks(members: Sequence[Json]) -> list[tuple[str, list[Json]]]:
    """Return (when, one row a table) for each look, in the order in which they were taken."""
    found: dict[str, list[Json]] = {}
    for member in members:
        phase = member["phase"]
        for look in phase["storage"]["looks"]:
            tables = look["tables"]
            several = len({table["name"] for table in tables}) > 1
            for table in tables:
                named = table["name"] if several or not member["label"] else ""
                label = " · ".join(name for name in (member["label"], named) if name)
                where = {"variant": phase["variant"], "target": member["target"], "table": named or ""}
                found.setdefault(str(look["when"]), []).append({**table, "label": label, **where})
    return list(found.items())


def _stacks(identity: str, part: str, tables: Sequence[Json], *, per_logical: bool) -> Chart | None:
    """Stack the kinds of bytes of each table, over its rows or over the logical bytes of those."""
    known = [table for table in tables if table["per_row"]["total"] and table["per_row"]["logical"]]
    if not known:
        return None
    unit = "bytes on disk for each logical byte" if per_logical else "bytes a row"
    title = "Disk space for each byte of data" if per_logical else "Disk space of a row"
    title = f"{title}: {part}" if part else title
    rows = [_bar(table, per_logical=per_logical) for table in known]
    drawn = [kind for kind in KINDS if any(row["kinds"][kind[0]] for row in rows)]
    spec = filled(
        "stacks",
        {
            "height": 30 * len(rows),
            "x_title": unit,
            "x_max": max(row["end"] for row in rows) * 1.3,
            "series": [label for _, label, _ in drawn],
            "colours": [colour for _, _, colour in drawn],
        },
    )
    points = [
        Block(
            {"series": label, "rank": rank},
            {
                "label": [row["label"] for row in rows],
                "value": [rounded(row["kinds"][name]) for row in rows],
                "text": [formats.size(table["per_row"][name]) for table in known],
            },
        )
        for rank, (name, label, _) in enumerate(drawn)
    ]
    names = ("label", "logical", "logical_text", "allocated", "allocated_text", "end", "text")
    marks = [Block({}, {name: [row[name] for row in rows] for name in names})]
    words = "; ".join(f"{row['label']} {row['text']}" for row in rows)
    return Chart(
        f"{identity}-{'logical' if per_logical else 'row'}",
        title,
        f"{title} by kind of byte, with logical bytes: {words}.",
        spec,
        {"points": points, "marks": marks},
        _table(known),
        "half",
        "Upright mark: logical bytes. Diamond: what the file system gave.",
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

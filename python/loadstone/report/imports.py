"""Imports and sizes, target beside target: rates with their ratios, bytes of the table, compression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.report import formats
from loadstone.report.published import PUBLISHED, Bar, notes_of, sources, systems

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.report.charts import Chart

Json = dict[str, Any]


def imports_block(identity: str, entry: Json, names: Mapping[str, str], summary: Json) -> Json:
    """Return the block of a scenario's imports; `names` are the targets' names for people."""
    loads: dict[str, list[Json]] = {}
    for load in entry["loads"]:
        loads.setdefault(title_of(load), []).append(
            {
                **load,
                "target": names.get(load["target"], load["target"]),
                "first": load["target"] == summary["targets"][0]["id"],
            }
        )
    charts = [_rates(f"{identity}-{at}", title, same) for at, (title, same) in enumerate(loads.items())]
    sizes = [{**size, "target": names.get(size["target"], size["target"])} for size in entry["sizes"]]
    charts.append(_compression(f"{identity}-size", sizes, entry["published"]))
    published = [*entry["published"], *(figure for load in entry["loads"] for figure in load["published"])]
    beside = [load["asked_beside"] for load in entry["loads"] if load["asked_beside"]]
    rows = {load["rows"] for load in entry["loads"]}
    return {
        "kind": "imports",
        "id": identity,
        "title": "Import and size",
        "variant": "",
        "why": "",
        "charts": [chart for chart in charts if chart],
        "loads": loads,
        "rows": rows.pop() if len(rows) == 1 else None,
        "several": any(load["ratio_to_first"] for load in entry["loads"]),
        "beside": bool(beside),
        "beside_words": next((found["words"] for found in beside if found["words"]), ""),
        "beside_failed": any(found["failed"] for found in beside),
        "sizes": sizes,
        "published": _published_sizes(entry["published"]),
        "values": any(size["plain_of"] == "values" for size in sizes),
        "sources": sources(summary) if published else [],
        "published_notes": notes_of(published),
    }


def title_of(load: Json) -> str:
    """Return the title of an import with what tells it from others of this title."""
    more = formats.variant(load["variant"])
    return f"{load['title']}{f': {more}' if more else ''}"


def _published_sizes(figures: Sequence[Json]) -> list[Json]:
    """Return a row for each system: the size of its table and its compression."""
    rows: dict[str, Json] = {}
    for figure in figures:
        if figure["metric"] in ("table_bytes", "ratio"):
            system = str(figure.get("system") or PUBLISHED)
            row = rows.setdefault(system, {"system": system, "table_bytes": None, "ratio": None})
            row[figure["metric"]] = figure["value"]
    return list(rows.values())


def _rates(identity: str, title: str, loads: Sequence[Json]) -> Chart | None:
    bars = [
        Bar(
            load["target"],
            "measured",
            load["rows_per_s"]["value"],
            formats.stated(load["rows_per_s"]),
            load["rows_per_s"]["low"],
            load["rows_per_s"]["high"],
        )
        for load in loads
    ]
    figures = {f["system"] or PUBLISHED: f["value"] for load in loads for f in load["published"]}
    bars += [
        Bar(name, "measured", value, formats.rate(value), published=True) for name, value in figures.items()
    ]
    return systems((identity, f"{title}, rows/s"), "rows/s", bars)


def _compression(identity: str, sizes: Sequence[Json], published: Sequence[Json]) -> Chart | None:
    """Draw how many bytes of text one byte of the table stands for; where that is unknown, bytes a row."""
    if not any(size["ratio"] for size in sizes):
        bars = [Bar(s["target"], "measured", s["row_bytes"], formats.size(s["row_bytes"])) for s in sizes]
        return systems((identity, "Size of a row on disk"), "bytes", bars)
    bars = [
        Bar(
            size["target"],
            "measured",
            size["ratio"],
            f"{formats.digits(size['ratio'])}:1, {formats.size(size['table_bytes'])}",
        )
        for size in sizes
    ]
    bars += [
        Bar(
            figure["system"] or PUBLISHED,
            "measured",
            figure["value"],
            f"{formats.digits(figure['value'])}:1{_sized(figure, published)}",
            published=True,
        )
        for figure in published
        if figure["metric"] == "ratio"
    ]
    of = "text" if all(size["plain_of"] == "text" for size in sizes) else "the values"
    return systems((identity, "Compression"), f"bytes of {of} for each byte of the table", bars)


def _sized(ratio: Json, published: Sequence[Json]) -> str:
    """Return the published size that goes with a published ratio."""
    sizes = [f["value"] for f in published if f["metric"] == "table_bytes" and f["system"] == ratio["system"]]
    return f", {formats.decimal_size(sizes[0])}" if sizes else ""

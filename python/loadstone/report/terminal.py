"""The same figures in the terminal: a table for people, an object for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from loadstone.report import formats, storage
from loadstone.report import steps as stepped
from loadstone.report.fitted import Fitted
from loadstone.report.plain_query_tables import questions_json, questions_table
from loadstone.report.view import chunks, columns, headline, phase_title, target_label, variant_words
from loadstone.results.documents.summary import Summary
from loadstone.visible import visible_tree

if TYPE_CHECKING:
    from rich.console import RenderableType

Json = dict[str, Any]

_BUILT = ("Indexes after", "With them")


def summary_table(figures: Summary) -> RenderableType:
    """Return the final tables of a run: rates, percentiles; knees and advice; what a row takes on disk."""
    summary: Json = visible_tree(msgspec.to_builtins(figures))
    steps = [part for chunk in chunks(summary) if (part := _steps(chunk, summary))]
    held = _storage(summary)
    names = {target["id"]: target_label(summary, target["id"]) for target in summary["targets"]}
    more = [*questions_table(msgspec.convert(summary, Summary), names), *steps, *([held] if held else [])]
    if not summary["groups"] and more:
        return Group(*more)
    return Group(_rates(summary), *more) if more else _rates(summary)


def _rates(summary: Json) -> Fitted:
    """Return rate with interval, percentiles, and the published figure of every phase."""
    blocks = headline(summary)
    several = len(summary["targets"]) > 1
    failed = any(row["group"]["failed"] for block in blocks for row in block["rows"])
    published = any(block["published"] for block in blocks)
    built = columns(blocks)["built"]
    table = Table(box=SIMPLE_HEAD, expand=False, pad_edge=False)
    table.add_column("Phase", min_width=18, overflow="fold")
    if several:
        table.add_column("Target", overflow="fold")
    names = ["Rate", "", *(_BUILT if built else ()), "p50 ms", "p95 ms", "p99 ms"]
    for name in [*names, *(["Failed"] if failed else []), *(["Published"] if published else [])]:
        table.add_column(name, justify="right", no_wrap=True)
    for block in blocks:
        table.add_section()
        plain = not several and len(block["rows"]) == 1 and not block["rows"][0]["variant"]
        if not plain:
            table.add_row(Text(block["title"], style="bold"))
        for row in block["rows"]:
            shown = {"several": several, "failed": failed, "published": published, "built": built}
            table.add_row(*_cells(block["title"] if plain else None, row, shown))
    return Fitted(table, less=("Published", "p95 ms", *_BUILT[:1], "p50 ms"))


def headline_json(figures: Summary) -> Json:
    """Return what `--json` prints: the main figures with their spread, the verdict and the warnings."""
    summary: Json = msgspec.to_builtins(figures)
    run = summary["run"]
    return {
        "id": run.get("id"),
        "state": run.get("state"),
        "verdict": summary["verdict"],
        "results": [
            {
                "scenario": group["scenario"],
                "phase": group["id"],
                "variant": group["variant"],
                "target": group["target"],
                "repeats": group["repeats"],
                "tps": _spread(group["tps"]),
                "rows_per_s": _spread(group["rows_per_s"]),
                "metrics_per_s": _spread(group["metrics_per_s"]),
                "latency_ms": _latency(group),
                "done": group["done"],
                "failed": group["failed"],
                "published": group["published"],
                "ratio_to_first": group["ratio_to_first"],
            }
            for group in summary["groups"]
        ],
        "steps": [_steps_json(phase) for phase in summary["phases"] if phase["steps"]],
        "storage": [
            {
                **{name: phase[name] for name in ("scenario", "id", "variant", "target", "repeat")},
                "when": look["when"],
                **look["sum"],
                "written": phase["storage"]["written"],
            }
            for phase, look in storage.costs(summary)
        ],
        **questions_json(figures),
        "warnings": summary["warnings"],
        "skipped": summary["skipped"],
    }


def _steps(chunk: Json, summary: Json) -> RenderableType | None:
    """Return a table of a phase's loads in steps, and below it what they advise."""
    members = [member for member in chunk["members"] if stepped.in_steps(member["phase"])]
    if not members:
        return None
    table = Table(
        title=f"{chunk['title']}, step by step", title_justify="left", box=SIMPLE_HEAD, pad_edge=False
    )
    table.add_column("Variant", min_width=18, overflow="fold")
    for name in ("Rows", "Knee", "95 % interval", "Rows/s before", "Slowdown at the end"):
        table.add_column(name, justify="right", no_wrap=True)
    for member in members:
        row = stepped.figures(member["phase"]["steps"])
        knee, interval = Text(row["knee"], style="bold"), Text(row["interval"], style="dim")
        rate, slower = formats.rate(row["rows_per_s"]), formats.times(row["slowdown"])
        table.add_row(Text(member["label"] or "all"), formats.rows(row["rows"]), knee, interval, rate, slower)
    return Group(Fitted(table), *(Text(text) for text in stepped.conclusions(members, summary)))


def _storage(summary: Json) -> RenderableType | None:
    """Return what the rows of each load take on disk, where that was looked at."""
    found = storage.costs(summary)
    if not found:
        return None
    table = Table(title="On disk", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("Phase and variant", min_width=18, overflow="fold")
    for name in ("Rows", "Logical a row", "On disk a row", "Over logical", "Allocated", "WAL over logical"):
        table.add_column(name, justify="right", no_wrap=True)
    title = ""
    for phase, look in found:
        if (new := phase_title(phase, summary)) != title:
            title = new
            table.add_section()
            table.add_row(Text(title, style="bold"))
        whole, each = look["sum"], look["sum"]["per_row"]
        held = each["total"] if each["allocated"] is None else each["allocated"]
        table.add_row(
            Text(f"  {_words(phase, summary)}"),
            formats.rows(whole["rows"]),
            formats.size(each["logical"]),
            Text(formats.size(held), style="bold"),
            formats.times(whole["ratio"]),
            formats.size(whole["allocated_bytes"]),
            formats.times(phase["storage"]["written"]["wal_per_logical"]),
        )
    return Fitted(table)


def _words(phase: Json, summary: Json) -> str:
    """Return what tells a phase from the others of its title."""
    several = len(summary["targets"]) > 1
    repeat = f"repeat {phase['repeat']}" if phase["repeat"] > 1 else ""
    target = target_label(summary, phase["target"]) if several else ""
    parts = [variant_words(phase, summary), target, repeat]
    return " · ".join(part for part in parts if part) or "as planned"


def _steps_json(phase: Json) -> Json:
    steps = phase["steps"]
    names = ("scenario", "variant", "target", "repeat")
    return {
        "phase": phase["id"],
        **{name: phase[name] for name in names},
        **{name: steps[name] for name in ("step_rows", "knee", "advice", "memory_limit_bytes")},
        "figures": stepped.figures(steps),
    }


def _cells(title: str | None, row: Json, shown: dict[str, bool]) -> list[Text]:
    published, failed = row["published"], row["group"]["failed"]
    return [
        _name(title, row),
        *([Text(row["target"])] if shown["several"] else []),
        Text(f"{formats.stated(row['rate'])} {row['unit']}", style="bold"),
        Text(formats.interval(row["rate"]), style="dim"),
        *(_built(row) if shown["built"] else []),
        *(Text(formats.milliseconds(p["value_ns"])) for p in row["percentiles"]),
        *([Text(formats.count(failed), style="red" if failed else "dim")] if shown["failed"] else []),
        *(
            [Text(formats.rate(published["value"]) if published else "", style="dim")]
            if shown["published"]
            else []
        ),
    ]


def _built(row: Json) -> list[Text]:
    """Return the time of the indexes made after the rows, and the rate with them."""
    built = row["built"] or {"indexes_s": None, "rows_per_s": (row["rate"] or {}).get("value")}
    rate = f"{formats.rate(built['rows_per_s'])} {row['unit']}"
    return [Text(formats.duration(built["indexes_s"])), Text(rate, style="bold")]


def _name(title: str | None, row: Json) -> Text:
    name = Text(title, style="bold") if title else Text(f"  {row['variant'] or 'as planned'}")
    if row["group"]["incomplete"]:
        name.append(" incomplete", style="yellow")
    return name


def _spread(rate: Json | None) -> Json | None:
    return (
        None if rate is None else {name: rate.get(name) for name in ("value", "low", "high", "spread", "n")}
    )


def _latency(group: Json) -> Json:
    values = {f"p{p['percentile']:g}": p["value_ns"] for p in group["percentiles"]}
    values |= {name.removesuffix("_ns"): value for name, value in group["latency"].items()}
    return {name: None if value is None else value / 1e6 for name, value in values.items()}

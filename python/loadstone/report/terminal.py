"""The same figures in the terminal: a table for people, an object for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from loadstone.report import formats
from loadstone.report.view import headline

if TYPE_CHECKING:
    from rich.console import RenderableType

Json = dict[str, Any]


def summary_table(summary: Json) -> RenderableType:
    """Return the final table of a run: rate with interval, percentiles, and the published figure."""
    several = len(summary["targets"]) > 1
    table = Table(title=f"Loadstone · {summary['run'].get('id', '')}", title_justify="left", expand=False)
    table.add_column("Phase", overflow="fold")
    if several:
        table.add_column("Target", overflow="fold")
    for name in ("Rate", "", "p50 ms", "p95 ms", "p99 ms", "Failed", "Published"):
        table.add_column(name, justify="right", no_wrap=True)
    for block in headline(summary):
        for row in block["rows"]:
            table.add_row(*_cells(block["title"], row, several=several))
    return table


def headline_json(summary: Json) -> Json:
    """Return what `--json` prints: the main figures with their spread, the verdict and the warnings."""
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
                "latency_ms": _latency(group),
                "done": group["done"],
                "failed": group["failed"],
                "published": group["published"],
                "ratio_to_first": group["ratio_to_first"],
            }
            for group in summary["groups"]
        ],
        "warnings": summary["warnings"],
        "skipped": summary["skipped"],
    }


def _cells(title: str, row: Json, *, several: bool) -> list[Text]:
    published, failed = row["published"], row["group"]["failed"]
    return [
        _name(title, row),
        *([Text(row["target"])] if several else []),
        Text(f"{formats.rate((row['rate'] or {}).get('value'))} {row['unit']}", style="bold"),
        Text(formats.interval(row["rate"]), style="dim"),
        *(Text(formats.milliseconds(p["value_ns"])) for p in row["percentiles"]),
        Text(formats.count(failed), style="red" if failed else "dim"),
        Text(formats.rate(published["value"]) if published else formats.NONE, style="dim"),
    ]


def _name(title: str, row: Json) -> Text:
    name = Text(title)
    if row["variant"]:
        name.append(f" ({row['variant']})", style="dim")
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

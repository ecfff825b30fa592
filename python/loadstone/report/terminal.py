"""The same figures in the terminal: a table for people, an object for machines."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from loadstone.report import formats, storage
from loadstone.report.chunks import chunks
from loadstone.report.findings import findings
from loadstone.report.fitted import Fitted
from loadstone.report.headline import columns, headline
from loadstone.report.names import phase_title, target_label, target_names, variant_words
from loadstone.report.plain_query_tables import plain_queries_json, plain_queries_table
from loadstone.report.steps import conclusions, figures, members_of
from loadstone.report.visible_summary import visible_summary

if TYPE_CHECKING:
    from rich.console import RenderableType

    from loadstone.report.chunks import Chunk
    from loadstone.report.findings import Finding
    from loadstone.report.headline import HeadlineRow
    from loadstone.results.documents.summary import Group as GroupFigures
    from loadstone.results.documents.summary import (
        GroupRate,
        LookFigures,
        PhaseFigures,
        StepsFigures,
        StorageFigures,
        Summary,
    )

    Json = dict[str, Any]

_BUILT = ("Index build", "Rate with indexes")
_WARNINGS = 5
"""Kinds of warnings that are printed; the report has them all."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """Which columns of the main table are shown."""

    several: bool
    failed: bool
    published: bool
    built: bool


def summary_table(figures: Summary) -> RenderableType:
    """Return the final tables of a run: rates, percentiles; knees and advice; what a row takes on disk."""
    summary = visible_summary(figures)
    steps = [part for chunk in chunks(summary) if (part := _steps(chunk, summary))]
    held = _storage(summary)
    more = [*plain_queries_table(summary, target_names(summary)), *steps, *([held] if held else [])]
    more += [_finding(finding) for finding in findings(summary)]
    more += _cautions(summary)
    if not summary.groups and more:
        return Group(*more)
    return Group(_rates(summary), *more) if more else _rates(summary)


def _finding(finding: Finding) -> Text:
    """Return a question and its answer as lines."""
    lines = [Text(finding.question, style="bold"), *(Text(f"- {one.text}") for one in finding.sentences)]
    if finding.next_step:
        lines.append(Text(f"  {finding.next_step}", style="dim"))
    return Text("\n").join([*lines, Text()])


def _cautions(summary: Summary) -> list[Text]:
    """Return what is to be known before the figures are used: answers that are not good, and warnings."""
    lines = [f"{v.question} {v.answer}: {v.detail}" for v in summary.verdict if v.level != "good"]
    kinds: dict[str, list[str]] = {}
    for warning in summary.warnings:
        if warning.level != "info":
            kinds.setdefault(warning.kind, []).append(warning.message)
    for messages in [*kinds.values()][:_WARNINGS]:
        where = f" (in {len(messages)} places)." if len(messages) > 1 else "."
        lines.append(f"{messages[0].removesuffix('.')}{where}")
    if (left := len(kinds) - _WARNINGS) > 0:
        lines.append(f"{left} more kind{'' if left == 1 else 's'} of warning: see the report.")
    if not lines:
        return []
    head = Text("Before you use these figures", style="bold yellow")
    return [Text("\n").join([head, *(Text(f"- {line}") for line in lines), Text()])]


def _rates(summary: Summary) -> Fitted:
    """Return rate with interval, percentiles, and the published figure of every phase."""
    blocks = headline(summary)
    shown = _Shown(
        several=len(summary.targets) > 1,
        failed=any(row.group.failed for block in blocks for row in block.rows),
        published=any(block.published for block in blocks),
        built=columns(blocks).built,
    )
    table = Table(box=SIMPLE_HEAD, expand=False, pad_edge=False)
    table.add_column("Phase", min_width=18, overflow="fold")
    if shown.several:
        table.add_column("Target", overflow="fold")
    names = ["Rate", "", *(_BUILT if shown.built else ()), "p50 ms", "p95 ms", "p99 ms"]
    for name in [*names, *(["Failed"] if shown.failed else []), *(["Published"] if shown.published else [])]:
        table.add_column(name, justify="right", no_wrap=True)
    for block in blocks:
        table.add_section()
        plain = not shown.several and len(block.rows) == 1 and not block.rows[0].variant
        if not plain:
            table.add_row(Text(block.title, style="bold"))
        for row in block.rows:
            table.add_row(*_cells(block.title if plain else None, row, shown))
    return Fitted(table, less=("Published", "p95 ms", *_BUILT[:1], "p50 ms"))


def headline_json(summary: Summary) -> Json:
    """Return what `--json` prints: the main figures with their spread, the verdict and the warnings."""
    return {
        "id": summary.run.id,
        "state": summary.run.state,
        "verdict": msgspec.to_builtins(summary.verdict),
        "results": [_group_json(group) for group in summary.groups],
        "steps": [_steps_json(phase, phase.steps) for phase in summary.phases if phase.steps],
        "storage": [_storage_json(*costs) for costs in storage.costs(summary)],
        **plain_queries_json(summary),
        "findings": msgspec.to_builtins(findings(summary)),
        "warnings": msgspec.to_builtins(summary.warnings),
        "skipped": msgspec.to_builtins(summary.skipped),
    }


def _group_json(group: GroupFigures) -> Json:
    return {
        "scenario": group.scenario,
        "phase": group.id,
        "variant": group.variant,
        "target": group.target,
        "repeats": group.repeats,
        "tps": _spread(group.tps),
        "rows_per_s": _spread(group.rows_per_s),
        "metrics_per_s": _spread(group.metrics_per_s),
        "latency_ms": _latency(group),
        "done": group.done,
        "failed": group.failed,
        "published": msgspec.to_builtins(group.published),
        "ratio_to_first": msgspec.to_builtins(group.ratio_to_first),
    }


def _storage_json(phase: PhaseFigures, found: StorageFigures, look: LookFigures) -> Json:
    return {
        "scenario": phase.scenario,
        "id": phase.id,
        "variant": phase.variant,
        "target": phase.target,
        "repeat": phase.repeat,
        "when": look.when,
        **msgspec.to_builtins(look.sum),
        "written": msgspec.to_builtins(found.written),
    }


def _steps_json(phase: PhaseFigures, steps: StepsFigures) -> Json:
    return {
        "phase": phase.id,
        "scenario": phase.scenario,
        "variant": phase.variant,
        "target": phase.target,
        "repeat": phase.repeat,
        "step_rows": steps.step_rows,
        "knee": msgspec.to_builtins(steps.knee),
        "advice": msgspec.to_builtins(steps.advice),
        "memory_limit_bytes": steps.memory_limit_bytes,
        "figures": asdict(figures(steps)),
    }


def _steps(chunk: Chunk, summary: Summary) -> RenderableType | None:
    """Return a table of a phase's loads in steps, and below it what they advise."""
    members = members_of(chunk)
    if not members:
        return None
    table = Table(title=f"{chunk.title}, step by step", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("Variant", min_width=18, overflow="fold")
    for name in ("Rows", "Knee", "95 % interval", "Rows/s before", "Slowdown at the end"):
        table.add_column(name, justify="right", no_wrap=True)
    for member in members:
        row = figures(member.steps)
        knee, interval = Text(row.knee, style="bold"), Text(row.interval, style="dim")
        rate, slower = formats.rate(row.rows_per_s), formats.times(row.slowdown)
        table.add_row(Text(member.label or "all"), formats.rows(row.rows), knee, interval, rate, slower)
    return Group(Fitted(table), *(Text(text) for text in conclusions(members, summary)))


def _storage(summary: Summary) -> RenderableType | None:
    """Return what the rows of each load take on disk, where that was looked at."""
    found = storage.costs(summary)
    if not found:
        return None
    table = Table(title="On disk", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("Phase and variant", min_width=18, overflow="fold")
    for name in (
        "Rows",
        "Logical per row",
        "On disk per row",
        "On disk / logical",
        "Allocated",
        "WAL / logical",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    title = ""
    for phase, held, look in found:
        if (new := phase_title(phase, summary)) != title:
            title = new
            table.add_section()
            table.add_row(Text(title, style="bold"))
        each = look.sum.per_row
        table.add_row(
            Text(f"  {_words(phase, summary)}"),
            formats.rows(look.sum.rows),
            formats.size(each.logical),
            Text(formats.size(each.total if each.allocated is None else each.allocated), style="bold"),
            formats.times(look.sum.ratio),
            formats.size(look.sum.allocated_bytes),
            formats.times(held.written.wal_per_logical),
        )
    return Fitted(table)


def _words(phase: PhaseFigures, summary: Summary) -> str:
    """Return what tells a phase from the others of its title."""
    several = len(summary.targets) > 1
    repeat = f"repeat {phase.repeat}" if phase.repeat > 1 else ""
    target = target_label(summary, phase.target) if several else ""
    parts = [variant_words(phase, summary), target, repeat]
    return " · ".join(part for part in parts if part) or "as planned"


def _cells(title: str | None, row: HeadlineRow, shown: _Shown) -> list[Text]:
    published, failed = row.published, row.group.failed
    return [
        _name(title, row),
        *([Text(row.target)] if shown.several else []),
        Text(f"{formats.stated(row.rate)} {row.unit}", style="bold"),
        Text(formats.interval(row.rate), style="dim"),
        *(_built(row) if shown.built else []),
        *(Text(formats.milliseconds(p.value_ns)) for p in row.percentiles),
        *([Text(formats.count(failed), style="red" if failed else "dim")] if shown.failed else []),
        *([Text(formats.rate(published.value) if published else "", style="dim")] if shown.published else []),
    ]


def _built(row: HeadlineRow) -> list[Text]:
    """Return the time of the indexes made after the rows, and the rate with them."""
    if row.built:
        indexes_s, rows_per_s = row.built.indexes_s, row.built.rows_per_s
    else:
        indexes_s, rows_per_s = None, row.rate.value if row.rate else None
    rate = f"{formats.rate(rows_per_s) if row.built else formats.stated(row.rate)} {row.unit}"
    return [Text(formats.duration(indexes_s)), Text(rate, style="bold")]


def _name(title: str | None, row: HeadlineRow) -> Text:
    name = Text(title, style="bold") if title else Text(f"  {row.variant or 'as planned'}")
    if row.group.incomplete:
        name.append(" incomplete", style="yellow")
    return name


def _spread(rate: GroupRate | None) -> Json | None:
    if rate is None:
        return None
    return {"value": rate.value, "low": rate.low, "high": rate.high, "spread": rate.spread, "n": rate.n}


def _latency(group: GroupFigures) -> Json:
    latency = group.latency
    values = {f"p{p.percentile:g}": p.value_ns for p in group.percentiles}
    values |= {
        "mean": latency.mean_ns,
        "stddev": latency.stddev_ns,
        "max": latency.max_ns,
        "min": latency.min_ns,
    }
    return {name: None if value is None else value / 1e6 for name, value in values.items()}

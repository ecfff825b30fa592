"""Which charts a phase gets, and what each says in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadstone.report import formats
from loadstone.report.charts import (
    COLOURS,
    Axes,
    Band,
    Block,
    Chart,
    Line,
    Table,
    filled,
    legend_of,
    over_time,
    rounded,
)
from loadstone.report.charts.curves import log_domain, log_ticks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.report.charts import Width
    from loadstone.results.documents.summary import CurvePoint, LatencyPoint, RatePoint, Sweep

NS_PER_MS = 1e6
MEBI = 2**20
MAX_SERIES = len(COLOURS)
_RATES = {"rows/s": "Rows per second", "metrics/s": "Metrics per second"}
MAX_BARS = 24
"""Of more values than that the table alone speaks."""
FEWEST_POINTS = 3
"""A course over time has at least so many points."""
_DECADES = (0.5, 0.1, 0.01, 0.001, 0.0001, 0.00001, 0.000001)
_SHORT = (0.5, 0.4, 0.3, 0.2)
"""Shares beyond a percentile that a distribution's axis names; the short one ends before 90 %."""
PERCENTILE_LINES: tuple[tuple[str, Callable[[LatencyPoint], float | None], int], ...] = (
    ("p50", lambda point: point.p50_ns, 2),
    ("p95", lambda point: point.p95_ns, 0),
    ("p99", lambda point: point.p99_ns, 1),
)


@dataclass(frozen=True, slots=True)
class Series:
    """The courses of one phase, as they are drawn beside those of others."""

    label: str
    throughput: Sequence[RatePoint] = ()
    latency: Sequence[LatencyPoint] = ()
    curve: Sequence[CurvePoint] = ()
    warmup_s: float = 0
    headline: str = "tps"
    kind: str | None = None
    rows_per_transaction: float | None = None


def throughput(section: str, series: Sequence[Series]) -> Chart | None:
    """Rate over time, one line per series of a phase section; None for phases of two intervals."""
    if max((len(s.throughput) for s in series), default=0) < FEWEST_POINTS:
        return None
    unit, scale, word = time_unit(max((p.t_s for s in series for p in s.throughput), default=0))
    y_title = formats.unit(series[0].kind, series[0].headline)
    lines = [
        Line(
            s.label,
            [round(p.t_s / scale, 3) for p in s.throughput],
            [rounded(_rate_at(p, s)) for p in s.throughput],
        )
        for s in series
    ]
    warmup = max((s.warmup_s for s in series), default=0) / scale
    end = max((x for line in lines for x in line.x), default=1)
    bands = [Band(0, round(warmup, 3), "warm-up", 1)] if warmup else []
    return over_time(
        "lines",
        identity=(f"{section}-throughput", "Throughput over time", course(lines, y_title)),
        lines=lines,
        axes=Axes(
            word,
            f"{unit} since the phase began",
            (0, end),
            y_title,
            # Room above the lines for the word that marks the warm-up.
            {"domain": [0, 1.12 * max((y for line in lines for y in line.y if y), default=1)]},
        ),
        bands=bands,
        width="half",
    )


def _rate_at(point: RatePoint, series: Series) -> float:
    """Return the rate that is first in the phase, at one point of its course."""
    rates = {"tps": point.tps, "rows_per_s": point.rows_per_s, "metrics_per_s": point.metrics_per_s}
    known = rates.get(series.headline)
    if known is not None:
        return float(known)
    rows = series.rows_per_transaction if series.headline == "rows_per_s" else None
    return float(point.tps * (rows or 1))


def distribution(section: str, series: Sequence[Series]) -> Chart | None:
    """Latency by percentile, out to where the samples end; of series with too few percentiles, none."""
    drawn = [s for s in series if len(s.curve) >= FEWEST_POINTS]
    if not drawn:
        return None
    blocks, rows = [], []
    for s in drawn:
        beyond = [rounded(p.beyond, 6) for p in s.curve]
        ms = [rounded(p.value_ns / NS_PER_MS) for p in s.curve]
        labels = [f"{100 * (1 - p.beyond):.6g} %" for p in s.curve]
        blocks.append(
            Block({"series": s.label}, {"beyond": beyond, "milliseconds": ms, "percentile": labels})
        )
        rows += [[s.label, label, formats.digits(value)] for label, value in zip(labels, ms, strict=True)][
            ::4
        ]
    domain = log_domain([p.value_ns / NS_PER_MS for s in drawn for p in s.curve])
    farthest_beyond = min(p.beyond for s in drawn for p in s.curve)
    spec = filled(
        "distribution",
        {
            "height": 220,
            "x_domain": [farthest_beyond, 0.5],
            "x_values": list(_SHORT if farthest_beyond > _DECADES[1] else _DECADES),
            "y_domain": domain,
            "y_values": log_ticks(domain),
            "series": [s.label for s in drawn],
            "colours": list(COLOURS[: len(drawn)]),
        },
    )
    farthest = "; ".join(f"{s.label}: {_farthest(s)}" for s in drawn)
    description = f"Latency by percentile on a logarithmic scale of 1 − p. {farthest}."
    table = Table(("series", "percentile", "latency, ms"), rows)
    names = [s.label for s in drawn]
    legend = legend_of(names, COLOURS[: len(names)]) if len(names) > 1 else ()
    identity = (f"{section}-distribution", "Latency distribution", description)
    return Chart(*identity, spec, {"points": blocks}, table, "half", legend=legend)


def latencies(section: str, series: Sequence[Series]) -> list[Chart]:
    """p50, p95 and p99 over time: one panel per series, all on one scale."""
    drawn = [s for s in series if any(figure(p) for p in s.latency for _, figure, _ in PERCENTILE_LINES)]
    values = [
        value / NS_PER_MS
        for s in drawn
        for p in s.latency
        for _, figure, _ in PERCENTILE_LINES
        if (value := figure(p))
    ]
    if not values or max(len(s.latency) for s in drawn) < FEWEST_POINTS:
        return []
    unit, scale, word = time_unit(max(p.t_s for s in drawn for p in s.latency))
    end = max(p.t_s for s in drawn for p in s.latency) / scale
    width: Width = "whole" if len(drawn) == 1 else "half" if len(drawn) in (2, 4) else "third"
    charts = []
    for number, s in enumerate(drawn):
        lines = _percentile_lines(s, scale)
        title = f"{s.label}: latency over time" if len(drawn) > 1 else "Latency over time"
        charts.append(
            over_time(
                "lines",
                identity=(f"{section}-latency-{number}", title, course(lines, "ms")),
                lines=lines,
                axes=Axes(
                    word,
                    f"{unit} since the phase began",
                    (0, end),
                    "latency, ms",
                    y_scale={"type": "log", "domain": log_domain(values), "nice": False},
                    y_values=log_ticks(log_domain(values)),
                    height=170,
                ),
                width=width,
            )
        )
    return charts


def sweep(section: str, table: Sweep, *, stored: bool) -> list[Chart]:
    """Bars for the rate and for the bytes of indexes, one bar per value of the parameter.

    Bytes that are the same everywhere, or that are `stored` in a section of their own, are not drawn.
    """
    rows = [(row.value, row.rate) for row in table.rows if row.rate]
    if not 0 < len(rows) <= MAX_BARS:
        return []
    word = formats.unit(table.kind, table.headline)
    charts = [
        _bars(
            f"{section}-rate",
            f"{_RATES.get(word, 'Throughput')} by {table.parameter}",
            (table.parameter, word),
            [(value, rate.value, rate.low, rate.high, formats.stated(rate)) for value, rate in rows],
            "var(--series-1)",
        )
    ]
    held = {row.index_bytes for row in table.rows}
    if not stored and len(held) > 1:
        charts.append(
            _bars(
                f"{section}-bytes",
                f"Bytes of indexes by {table.parameter}",
                (table.parameter, "MiB"),
                [
                    (row.value, (row.index_bytes or 0) / MEBI, None, None, formats.size(row.index_bytes))
                    for row in table.rows
                ],
                "var(--series-2)",
            )
        )
    return charts


def time_unit(span_s: float) -> tuple[str, float, str]:
    """(title, seconds per unit, field) for an axis over so long a span."""
    if span_s > 3 * 3600:
        return "hours", 3600.0, "hours"
    return ("minutes", 60.0, "minutes") if span_s > 5 * 60 else ("seconds", 1.0, "seconds")


def course(lines: Sequence[Line], unit: str) -> str:
    """Say what a chart over time shows, in words: range and mean of each line."""
    parts = []
    for line in lines:
        known = [y for y in line.y if y is not None]
        if known:
            low, high, mean = (
                formats.digits(value) for value in (min(known), max(known), sum(known) / len(known))
            )
            parts.append(f"{line.name}: mean {mean} {unit}, between {low} and {high}")
    return "; ".join(parts) + "." if parts else "No data."


def _bars(
    identity: str,
    title: str,
    axis: tuple[str, str],
    rows: Sequence[tuple[str, float | None, float | None, float | None, str]],
    colour: str,
) -> Chart:
    highest = max((row[3] or row[1] or 0 for row in rows), default=1) or 1
    spec = filled(
        "bars",
        {
            "y_title": axis[0],
            "x_title": axis[1],
            "x_max": highest * 1.35,
            "colour": colour,
            "height": 34 * len(rows),
        },
    )
    columns: dict[str, Sequence[Any]] = {
        "label": [row[0] for row in rows],
        "value": [row[1] for row in rows],
        "low": [row[1] if row[2] is None else row[2] for row in rows],
        "high": [row[1] if row[3] is None else row[3] for row in rows],
        "end": [row[3] or row[1] for row in rows],
        "text": [row[4] for row in rows],
    }
    description = f"{title}: " + "; ".join(f"{row[0]} {row[4]}" for row in rows) + "."
    table = Table((axis[0], axis[1]), [(row[0], row[4]) for row in rows])
    return Chart(identity, title, description, spec, {"points": [Block({}, columns)]}, table, "half")


def _percentile_lines(series: Series, scale: float) -> list[Line]:
    xs = [round(p.t_s / scale, 3) for p in series.latency]
    return [
        Line(
            name,
            xs,
            [None if (value := figure(p)) is None else rounded(value / NS_PER_MS) for p in series.latency],
            COLOURS[colour],
        )
        for name, figure, colour in PERCENTILE_LINES
        if any(figure(p) for p in series.latency)
    ]


def _farthest(series: Series) -> str:
    last = series.curve[-1]
    return f"{formats.milliseconds(last.value_ns)} ms at {100 * (1 - last.beyond):.5g} %"

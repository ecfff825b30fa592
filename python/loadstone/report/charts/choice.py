"""Which charts a summary gets, and what each says in words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loadstone.report import formats
from loadstone.report.charts import (
    COLOURS,
    Axes,
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
    from collections.abc import Sequence

    from loadstone.report.charts import Width

Json = dict[str, Any]

NS_PER_MS = 1e6
MEBI = 2**20
MAX_SERIES = len(COLOURS)
_RATES = {"rows/s": "Rows per second", "metrics/s": "Metrics per second"}
MAX_BARS = 24
"""Of more values than that the table alone speaks."""
FEWEST_POINTS = 3
"""A course over time has at least so many points."""
PERCENTILE_LINES = (("p50", "p50_ns", 2), ("p95", "p95_ns", 0), ("p99", "p99_ns", 1))
GAP_S = 5.0
NARROW_BAND = 0.02
"""Share of the axis under which a phase's number has no room."""
CPU_SERIES = (
    ("server", "cpu_server", "var(--series-1)"),
    ("Loadstone", "cpu_client", "var(--series-3)"),
    ("other", "cpu_other", "var(--series-2)"),
    ("stolen", "cpu_steal", "var(--series-4)"),
)
TOGETHER = "engine and Loadstone together"
"""An engine that works inside our process: what it takes cannot be told from what we take."""
PANELS: tuple[tuple[str, str, str, float, tuple[tuple[str, str], ...]], ...] = (
    (
        "disk-bytes",
        "Disk throughput",
        "MiB/s",
        MEBI,
        (("written", "disk_write_bytes_per_s"), ("read", "disk_read_bytes_per_s")),
    ),
    (
        "disk-ops",
        "Disk operations",
        "ops/s",
        1,
        (("writes", "disk_write_ops_per_s"), ("reads", "disk_read_ops_per_s")),
    ),
    ("wal", "Write-ahead log; dashed lines: checkpoints", "MiB/s", MEBI, (("WAL", "wal_bytes_per_s"),)),
    (
        "network",
        "Network",
        "MiB/s",
        MEBI,
        (("sent", "network_tx_bytes_per_s"), ("received", "network_rx_bytes_per_s")),
    ),
    (
        "memory",
        "Memory",
        "GiB",
        2**30,
        (("machine, in use", "memory_used_bytes"), ("server", "server_rss_bytes")),
    ),
    (
        "group-memory",
        "Memory of the server's control group, its files' page cache included",
        "MiB",
        MEBI,
        (
            ("in use", "group_memory_bytes"),
            ("page cache", "group_cache_bytes"),
            ("limit", "group_limit_bytes"),
        ),
    ),
    (
        "group-bytes",
        "Disk throughput of the server's control group",
        "MiB/s",
        MEBI,
        (("written", "group_write_bytes_per_s"), ("read", "group_read_bytes_per_s")),
    ),
    ("machine-cpu", "CPU of the server's machine", "%", 0.01, (("busy", "machine_cpu"),)),
    (
        "machine-ops",
        "Disk operations of the server's machine",
        "ops/s",
        1,
        (("writes", "machine_write_ops_per_s"), ("reads", "machine_read_ops_per_s")),
    ),
    (
        "machine-memory",
        "Memory of the server's machine",
        "GiB",
        2**30,
        (("in use", "machine_memory_bytes"),),
    ),
    ("gpu", "GPU, mean utilisation", "%", 0.01, (("GPU", "gpu_utilisation"),)),
    ("gpu-memory", "GPU memory in use", "GiB", 2**30, (("GPU", "gpu_memory_bytes"),)),
)


def throughput(section: str, series: Sequence[Json]) -> Chart | None:
    """Rate over time, one line per series of a phase section; None for phases of two intervals."""
    if max((len(s["throughput"]) for s in series), default=0) < FEWEST_POINTS:
        return None
    unit, scale, word = time_unit(max((p["t_s"] for s in series for p in s["throughput"]), default=0))
    y_title = formats.unit(series[0])
    lines = [
        Line(
            s["label"],
            [round(p["t_s"] / scale, 3) for p in s["throughput"]],
            [rounded(_rate_at(p, s)) for p in s["throughput"]],
        )
        for s in series
    ]
    warmup = max((s["warmup_s"] for s in series), default=0) / scale
    end = max((x for line in lines for x in line.x), default=1)
    bands = [{"from": 0, "to": round(warmup, 3), "label": "warm-up", "fill": 1}] if warmup else []
    return over_time(
        "lines",
        identity=(f"{section}-throughput", "Throughput over time", _course(lines, y_title)),
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


def _rate_at(point: Json, series: Json) -> float:
    """Return the rate that stands first in the phase, at one point of its course."""
    if series["headline"] in point:
        return float(point[series["headline"]])
    rows = series["rows_per_transaction"] if series["headline"] == "rows_per_s" else None
    return float(point["tps"] * (rows or 1))


def distribution(section: str, series: Sequence[Json]) -> Chart | None:
    """Latency by percentile, out to where the samples end; of series with too few percentiles, none."""
    drawn = [s for s in series if len(s["curve"]) >= FEWEST_POINTS]
    if not drawn:
        return None
    blocks, rows = [], []
    for s in drawn:
        beyond = [rounded(p["beyond"], 6) for p in s["curve"]]
        ms = [rounded(p["value_ns"] / NS_PER_MS) for p in s["curve"]]
        labels = [f"{100 * (1 - p['beyond']):.6g} %" for p in s["curve"]]
        blocks.append(
            Block({"series": s["label"]}, {"beyond": beyond, "milliseconds": ms, "percentile": labels})
        )
        rows += [[s["label"], label, formats.digits(value)] for label, value in zip(labels, ms, strict=True)][
            ::4
        ]
    domain = log_domain([p["value_ns"] / NS_PER_MS for s in drawn for p in s["curve"]])
    spec = filled(
        "distribution",
        {
            "height": 220,
            "x_domain": [min(p["beyond"] for s in drawn for p in s["curve"]), 0.5],
            "y_domain": domain,
            "y_values": log_ticks(domain),
            "series": [s["label"] for s in drawn],
            "colours": list(COLOURS[: len(drawn)]),
        },
    )
    farthest = "; ".join(f"{s['label']}: {_farthest(s)}" for s in drawn)
    description = f"Latency by percentile on a logarithmic scale of 1 − p. {farthest}."
    table = Table(("series", "percentile", "latency, ms"), rows)
    names = [s["label"] for s in drawn]
    legend = legend_of(names, COLOURS[: len(names)]) if len(names) > 1 else ()
    identity = (f"{section}-distribution", "Latency distribution", description)
    return Chart(*identity, spec, {"points": blocks}, table, "half", legend=legend)


def latencies(section: str, series: Sequence[Json]) -> list[Chart]:
    """p50, p95 and p99 over time: one panel per series, all on one scale."""
    drawn = [s for s in series if any(p[field] for p in s["latency"] for _, field, _ in PERCENTILE_LINES)]
    values = [p[f] / NS_PER_MS for s in drawn for p in s["latency"] for _, f, _ in PERCENTILE_LINES if p[f]]
    if not values or max(len(s["latency"]) for s in drawn) < FEWEST_POINTS:
        return []
    unit, scale, word = time_unit(max(p["t_s"] for s in drawn for p in s["latency"]))
    end = max(p["t_s"] for s in drawn for p in s["latency"]) / scale
    width: Width = "whole" if len(drawn) == 1 else "half" if len(drawn) in (2, 4) else "third"
    charts = []
    for number, s in enumerate(drawn):
        lines = _percentile_lines(s, scale)
        title = f"{s['label']}: latency over time" if len(drawn) > 1 else "Latency over time"
        charts.append(
            over_time(
                "lines",
                identity=(f"{section}-latency-{number}", title, _course(lines, "ms")),
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


def sweep(section: str, table: Json, *, stored: bool) -> list[Chart]:
    """Bars for the rate and for the bytes of indexes, one bar per value of the parameter.

    Bytes that are the same everywhere, or that are `stored` in a section of their own, are not drawn.
    """
    rows = [row for row in table["rows"] if row["rate"]]
    if not 0 < len(rows) <= MAX_BARS:
        return []
    word = formats.unit(table)
    charts = [
        _bars(
            f"{section}-rate",
            f"{_RATES.get(word, 'Throughput')} by {table['parameter']}",
            (table["parameter"], word),
            [
                (
                    str(r["value"]),
                    r["rate"]["value"],
                    r["rate"]["low"],
                    r["rate"]["high"],
                    formats.rate(r["rate"]["value"]),
                )
                for r in rows
            ],
            "var(--series-1)",
        )
    ]
    held = {row["index_bytes"] for row in table["rows"]}
    if not stored and len(held) > 1:
        charts.append(
            _bars(
                f"{section}-bytes",
                f"Bytes of indexes by {table['parameter']}",
                (table["parameter"], "MiB"),
                [
                    (
                        str(r["value"]),
                        (r["index_bytes"] or 0) / MEBI,
                        None,
                        None,
                        formats.size(r["index_bytes"]),
                    )
                    for r in table["rows"]
                ],
                "var(--series-2)",
            )
        )
    return charts


def resources(
    section: str, target: Json, phases: Sequence[Json], domain_s: tuple[float, float]
) -> list[Chart]:
    """Panels on one shared time axis, with the phases as bands; only those with data."""
    in_process = bool(target.get("in_process"))
    points = target["resources"]["points"]
    if in_process:
        points = [{**point, "server_rss_bytes": point["client_rss_bytes"]} for point in points]
    if not points:
        return []
    unit, scale, word = time_unit(domain_s[1] - domain_s[0])
    domain = (round(domain_s[0] / scale, 3), round(domain_s[1] / scale, 3))
    started = [phase for phase in phases if phase["start_s"] is not None]
    bands = [_band(phase, scale, shaded=at % 2 == 0) for at, phase in enumerate(started)]
    narrow = (domain[1] - domain[0]) * NARROW_BAND
    bands = [b if b["to"] - b["from"] > narrow else {**b, "label": ""} for b in bands]
    checkpoints = [
        {"at": round(t / scale, 3), "label": "checkpoint"} for t in target["resources"]["checkpoints"]
    ]
    axes = Axes(word, f"{unit} since the run began", domain, "", y_extent=52, y_ticks=3, height=96)
    charts = [_cpu(section, points, axes, (bands, scale), in_process=in_process)]
    for name, title, unit_text, divisor, fields in PANELS:
        lines = [
            line
            for label, field in fields
            if (line := _resource_line(_whose(label, in_process), points, field, (scale, divisor)))
        ]
        if lines:
            panel = _with_title(axes, unit_text)
            charts.append(
                over_time(
                    "lines",
                    identity=(f"{section}-{name}", title, _course(lines, unit_text)),
                    lines=lines,
                    axes=panel,
                    bands=_unlabelled(bands),
                    marks=checkpoints if name == "wal" else (),
                )
            )
    waits = _waits(section, target, axes, (bands, scale))
    return [*charts, waits] if waits else charts


def time_unit(span_s: float) -> tuple[str, float, str]:
    """(title, seconds per unit, field) for an axis over so long a span."""
    if span_s > 3 * 3600:
        return "hours", 3600.0, "hours"
    return ("minutes", 60.0, "minutes") if span_s > 5 * 60 else ("seconds", 1.0, "seconds")


def _cpu(
    section: str, points: Sequence[Json], axes: Axes, at: tuple[Sequence[Json], float], *, in_process: bool
) -> Chart:
    bands, scale = at
    known = [
        (_whose(label, in_process), name, colour)
        for label, name, colour in CPU_SERIES
        if any(p[name] is not None for p in points)
    ]
    lines = [
        Line(
            label,
            [round(p["t_s"] / scale, 4) for p in points],
            [rounded((p[name] or 0) * 100) for p in points],
            colour,
        )
        for label, name, colour in known
    ]
    shares = ", ".join(f"{line.name} {formats.digits(_mean(line), 2)} %" for line in lines)
    cpu = Axes(
        axes.x_field,
        axes.x_title,
        axes.x_domain,
        "%",
        {"domain": [0, 100], "clamp": True},
        None,
        axes.y_extent,
        3,
        130,
    )
    return over_time(
        "areas",
        identity=(
            f"{section}-cpu",
            "CPU of the whole machine",
            f"Stacked shares of the machine's CPU; means: {shares}.",
        ),
        lines=lines,
        axes=cpu,
        bands=bands,
    )


def _waits(section: str, target: Json, axes: Axes, at: tuple[Sequence[Json], float]) -> Chart | None:
    bands, scale = at
    points, names = target["resources"]["points"], target["resources"]["waits"]
    if not names:
        return None
    xs = [round(p["t_s"] / scale, 4) for p in points]
    lines = [Line(name, xs, [rounded(p["waits"].get(name, 0)) for p in points]) for name in names]
    left_out = target["resources"]["waits_left_out"]
    return over_time(
        "areas",
        identity=(f"{section}-waits", "Sessions waiting, by wait event", _course(lines, "sessions")),
        lines=lines,
        axes=_with_title(axes, "sessions"),
        bands=_unlabelled(bands),
        note=f"{left_out} rarer wait events are left out." if left_out else "",
    )


def _resource_line(label: str, points: Sequence[Json], name: str, scales: tuple[float, float]) -> Line | None:
    """Return A line that breaks where the monitor paused between two phases."""
    if all(point[name] is None for point in points):
        return None
    scale, divisor = scales
    xs: list[float] = []
    ys: list[float | None] = []
    usual = max(GAP_S, 3 * (points[-1]["t_s"] - points[0]["t_s"]) / max(1, len(points)))
    for before, point in zip([points[0], *points[:-1]], points, strict=True):
        if point["t_s"] - before["t_s"] > usual:
            xs.append(round((before["t_s"] + 0.001) / scale, 4))
            ys.append(None)
        xs.append(round(point["t_s"] / scale, 4))
        ys.append(None if point[name] is None else rounded(point[name] / divisor))
    return Line(label, xs, ys)


def _bars(
    identity: str,
    title: str,
    axis: tuple[str, str],
    rows: Sequence[tuple[str, float, float | None, float | None, str]],
    colour: str,
) -> Chart:
    highest = max((row[3] or row[1] for row in rows), default=1) or 1
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


def _percentile_lines(series: Json, scale: float) -> list[Line]:
    xs = [round(p["t_s"] / scale, 3) for p in series["latency"]]
    return [
        Line(
            name,
            xs,
            [None if p[field] is None else rounded(p[field] / NS_PER_MS) for p in series["latency"]],
            COLOURS[colour],
        )
        for name, field, colour in PERCENTILE_LINES
        if any(p[field] for p in series["latency"])
    ]


def _course(lines: Sequence[Line], unit: str) -> str:
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


def _mean(line: Line) -> float:
    known = [y for y in line.y if y is not None]
    return sum(known) / len(known) if known else 0.0


def _farthest(series: Json) -> str:
    last = series["curve"][-1]
    return f"{formats.milliseconds(last['value_ns'])} ms at {100 * (1 - last['beyond']):.5g} %"


def _band(phase: Json, scale: float, *, shaded: bool) -> Json:
    end = (
        phase["end_s"]
        if phase["end_s"] is not None
        else (phase["drive"] or {}).get("end_s") or phase["start_s"]
    )
    return {
        "from": round(phase["start_s"] / scale, 3),
        "to": round(end / scale, 3),
        "label": str(phase["number"]),
        "fill": 1 if shaded else 0,
    }


def _whose(label: str, in_process: bool) -> str:  # noqa: FBT001 - the only thing that it asks
    return TOGETHER if in_process and label in ("server", "Loadstone") else label


def _unlabelled(bands: Sequence[Json]) -> list[Json]:
    return [{**band, "label": ""} for band in bands]


def _with_title(axes: Axes, title: str) -> Axes:
    return replace(axes, y_title=title)

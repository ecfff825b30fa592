"""Phases beside each other: repeats, targets, published figures, and the values of a swept parameter."""

from __future__ import annotations

import json
import math
from statistics import mean, median, stdev
from typing import TYPE_CHECKING, Any

from loadstone.summary.statistics import CONFIDENCE, Interval, ratio_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.summary.reading import Json

ENOUGH_REPEATS = 3
"""From here on the spread between repeats, not the one inside a repeat, says how sure a figure is."""

RATES = ("tps", "rows_per_s", "metrics_per_s")
"""Figures that stand first, by the names that scenarios use for them."""

LATENCY_METRICS = {
    "latency_avg": "mean_ns",
    "latency_stddev": "stddev_ns",
    "latency_max": "max_ns",
}
"""Published latencies, in milliseconds, by the names that scenarios may use for them."""
NS_PER_MS = 1e6


def group_repeats(phases: Sequence[Json]) -> list[Json]:
    """One entry per driven phase, variant and target: the median over repeats, with each repeat kept."""
    members: dict[str, list[Json]] = {}
    for phase in phases:
        if phase["drive"]:
            members.setdefault(_identity(phase, phase["target"]), []).append(phase)
    return [_group(group) for group in members.values()]


def compare_targets(groups: Sequence[Json], targets: Sequence[str]) -> None:
    """Give every group of a later target its ratio to the first target's, with its 95 % interval."""
    if len(targets) < 2:  # noqa: PLR2004 - one target has nothing to be compared with
        return
    first = {_identity(group, ""): group for group in groups if group["target"] == targets[0]}
    for group in groups:
        base = first.get(_identity(group, ""))
        if base is not None and base is not group:
            group["ratio_to_first"] = _ratio(group, base)


def compare_published(group: Json, source_cores: int | None, cores: int | None) -> list[Json]:
    """Return the published figures beside ours; rates also per core where both numbers of cores are known."""
    rows = []
    for figure in group["published"]:
        ours, value = _metric(group, figure["metric"]), figure.get("value")
        row = {**figure, "measured": ours, "ratio": ours / value if ours is not None and value else None}
        is_rate = figure["metric"] in RATES
        if is_rate and row["ratio"] is not None and source_cores and cores:
            row["ratio_per_core"] = row["ratio"] * source_cores / cores
        rows.append(row)
    return rows


def sweeps(groups: Sequence[Json], phases: Sequence[Json]) -> list[Json]:
    """Return a table per swept phase and target: rate against the baseline, bytes of indexes.

    A phase swept over several parameters has one table too, each combination of their values a row.
    """
    members: dict[tuple[str, str, str], list[Json]] = {}
    for group in groups:
        if group["variant"]:
            members.setdefault((group["scenario"], group["id"], group["target"]), []).append(group)
    return [_sweep(rows, phases) for rows in members.values() if len(rows) > 1]


def _group(group: list[Json]) -> Json:
    head = group[0]
    drives = [phase["drive"] for phase in group]
    summary: Json = {
        name: head[name]
        for name in (
            "scenario",
            "id",
            "kind",
            "title",
            "why",
            "variant",
            "target",
            "headline",
            "rows_per_transaction",
            "published",
        )
    }
    summary |= {
        "phases": [phase["folder"] for phase in group],
        "repeats": len(group),
        "incomplete": any(phase["state"] != "complete" or phase["drive"]["reconstructed"] for phase in group),
        "clients": drives[0]["clients"],
        "tps": _over_repeats([drive["tps"] for drive in drives]),
        "rows_per_s": _over_repeats([drive["rows_per_s"] for drive in drives if drive["rows_per_s"]]),
        "metrics_per_s": _over_repeats([d["metrics_per_s"] for d in drives if d["metrics_per_s"]]),
        "tps_including_connections": _median([drive["tps_including_connections"] for drive in drives]),
        "latency": {
            name: _median([drive["response"][name] for drive in drives])
            for name in ("mean_ns", "stddev_ns", "max_ns", "min_ns")
        },
        "percentiles": _percentiles(drives),
        "failed": sum(drive["counts"]["failed"] for drive in drives),
        "done": sum(drive["counts"]["done"] for drive in drives),
        "ratio_to_first": None,
    }
    return summary


def _over_repeats(rates: Sequence[Json]) -> Json | None:
    """Return the rate of one run as it is; of several the median with min..max."""
    known = [rate for rate in rates if rate["value"] is not None]
    if not known:
        return None
    if len(known) == 1:
        return {**known[0], "spread": "95 % interval" if known[0]["low"] is not None else None}
    values = [rate["value"] for rate in known]
    combined: Json = {
        "value": median(values),
        "low": min(values),
        "high": max(values),
        "spread": f"min..max of {len(values)} repeats",
        "n": len(values),
        "reason": None,
    }
    if len(values) >= ENOUGH_REPEATS and mean(values):
        combined["relative_se"] = stdev(values) / math.sqrt(len(values)) / mean(values)
        combined["degrees_of_freedom"] = len(values) - 1
    elif all(rate.get("relative_se") is not None for rate in known):
        combined["relative_se"] = math.sqrt(mean(rate["relative_se"] ** 2 for rate in known) / len(known))
        combined["degrees_of_freedom"] = sum(rate["degrees_of_freedom"] for rate in known)
    return combined


def _ratio(ours: Json, base: Json) -> Json | None:
    """Return the headline rate of `ours` over that of `base`."""
    a, b = ours[ours["headline"]] or ours["tps"], base[base["headline"]] or base["tps"]
    if not a or not b or not a["value"] or not b["value"]:
        return None
    if a.get("relative_se") is None or b.get("relative_se") is None:
        return {"value": a["value"] / b["value"], "low": None, "high": None, "differs": None}
    value, low, high = ratio_interval(_interval(a), _interval(b))
    return {
        "value": value,
        "low": low,
        "high": high,
        "differs": not low <= 1 <= high,
        "confidence": CONFIDENCE,
    }


def _interval(rate: Json) -> Interval:
    return Interval(
        rate["value"],
        0.0,
        0.0,
        0,
        0,
        float(rate["degrees_of_freedom"]),
        float(rate["relative_se"]),
        method="",
    )


def _percentiles(drives: Sequence[Json]) -> list[Json]:
    """Per percentile the median over the repeats that support it; the reason when none does."""
    rows = []
    for entries in zip(*(drive["response"]["percentiles"] for drive in drives), strict=True):
        value = _median([entry["value_ns"] for entry in entries])
        reason = None if value is not None else entries[0]["reason"]
        rows.append({"percentile": entries[0]["percentile"], "value_ns": value, "reason": reason})
    return rows


def _metric(group: Json, metric: str) -> float | None:
    if metric in RATES:
        rate: Json | None = group[metric]
        return None if rate is None else rate["value"]
    name = LATENCY_METRICS.get(metric)
    value: float | None = group["latency"][name] if name else None
    return None if value is None else value / NS_PER_MS


def _sweep(groups: Sequence[Json], phases: Sequence[Json]) -> Json:
    values: dict[str, list[Any]] = {}
    for group in groups:
        for parameter, value in group["variant"].items():
            values.setdefault(parameter, []).append(value)
    swept = [name for name, found in values.items() if any(value != found[0] for value in found)]
    table: Json = {
        name: groups[0][name] for name in ("scenario", "id", "kind", "title", "target", "headline")
    }
    table |= {
        "parameters": swept,
        "parameter": " × ".join(swept),
        "fixed": {name: found[0] for name, found in values.items() if name not in swept},
        "rows": [_sweep_row(group, swept, phases) for group in groups],
    }
    _relate(table)
    return table


def _sweep_row(group: Json, swept: Sequence[str], phases: Sequence[Json]) -> Json:
    rate = group[group["headline"]] or group["tps"]
    wanted = (group["target"], group["phases"][-1])
    phase = next(phase for phase in phases if (phase["target"], phase["folder"]) == wanted)
    sizes = phase["sizes"]
    per_unit = (sizes or {}).get("per_unit") or {}
    table_bytes, index_bytes = _held(phase)
    values = [group["variant"].get(name) for name in swept]
    return {
        "values": values,
        "value": " · ".join(str(value) for value in values),
        "rate": rate,
        "p99_ns": next((p["value_ns"] for p in group["percentiles"] if p["percentile"] == 99), None),  # noqa: PLR2004
        "table_bytes": table_bytes,
        "index_bytes": index_bytes,
        "index_growth_bytes": sizes["kinds"]["index"]["growth"] if sizes else None,
        "index_bytes_per_row": _look(phase)["per_row"]["index"]
        if _look(phase)
        else per_unit.get("index_bytes_per_row"),
        "wal_bytes_per_row": per_unit.get("wal_bytes_per_row") or per_unit.get("wal_bytes_per_transaction"),
    }


def _look(phase: Json) -> Json:
    """Return the sum of the last look at the phase's own tables; empty where nobody looked."""
    looks = (phase["storage"] or {}).get("looks") or []
    found: Json = looks[-1]["sum"] if looks else {}
    return found


def _held(phase: Json) -> tuple[int | None, int | None]:
    """Return the bytes of table and indexes: of the phase's own tables, else of all that the schema holds."""
    if look := _look(phase):
        return look["total_bytes"] - look["index_bytes"], look["index_bytes"]
    sizes = phase["sizes"]
    if not sizes:
        return None, None
    return sizes["kinds"]["table"]["after"], sizes["kinds"]["index"]["after"]


def _relate(table: Json) -> None:
    """Relate every row to the one of the values "none" (or off), where there are such, else the first."""
    rows = table["rows"]
    wanted = [_neutral([row["values"][at] for row in rows]) for at in range(len(table["parameters"]))]
    base = next((row for row in rows if row["values"] == wanted), rows[0])
    table["baseline"] = base["value"]
    for row in rows:
        row["ratio"] = None
        if row is not base and row["rate"] and base["rate"]:
            row["ratio"] = _ratio(
                {"headline": "tps", "tps": row["rate"]}, {"headline": "tps", "tps": base["rate"]}
            )


def _neutral(values: Sequence[Any]) -> Any:
    return next((v for v in values if str(v).lower() in {"none", "off", "false", "0"}), values[0])


def _identity(entry: Json, target: str) -> str:
    return json.dumps([entry["scenario"], entry["id"], entry["variant"], target], sort_keys=True)


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(median(known)) if known else None

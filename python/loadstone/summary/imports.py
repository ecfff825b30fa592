"""Imports of the scenarios that ask plain queries, side by side: rates, sizes, compression."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.summary.reading import Json

METRICS = ("rows_per_s", "table_bytes", "ratio")
"""Published figures that belong here."""


def summarise_imports(groups: Sequence[Json], phases: Sequence[Json], asking: Sequence[Json]) -> list[Json]:
    """Return the imports of each scenario that asks questions; `asking` are its entries of such phases."""
    scenarios = dict.fromkeys(entry["scenario"] for entry in asking)
    found = [_entry(scenario, groups, phases, asking) for scenario in scenarios]
    return [entry for entry in found if entry["loads"] or entry["sizes"]]


def _entry(scenario: str, groups: Sequence[Json], phases: Sequence[Json], asking: Sequence[Json]) -> Json:
    ours = [phase for phase in phases if phase["scenario"] == scenario]
    by_key = {(phase["target"], phase["folder"]): phase for phase in ours}
    loads = [
        _load(group, by_key[group["target"], group["phases"][-1]])
        for group in groups
        if group["scenario"] == scenario and group["kind"] == "load" and group["rows_per_s"]
    ]
    published = [figure for phase in ours for figure in phase["published"] if figure["metric"] in METRICS]
    once = {tuple(sorted((name, str(v)) for name, v in figure.items())): figure for figure in published}
    targets = dict.fromkeys(phase["target"] for phase in ours)
    tables = {
        table["target"]: table
        for entry in asking
        if entry["scenario"] == scenario
        for table in entry["targets"]
        if table.get("table_bytes")
    }
    sizes = [size for target in targets if (size := _size(target, ours, tables.get(target)))]
    _compare(loads, sizes, next(iter(targets), None))
    return {"scenario": scenario, "loads": loads, "sizes": sizes, "published": list(once.values())}


def _compare(loads: Sequence[Json], sizes: Sequence[Json], first: str | None) -> None:
    """Give every import and size of a later target its ratio to that of the first target."""
    base = {_import(load): load["rows_per_s"] for load in loads if load["target"] == first}
    for load in loads:
        if load["target"] != first and (rate := base.get(_import(load))):
            load["ratio_to_first"] = _ratio(load["rows_per_s"], rate)
    row = next((size["row_bytes"] for size in sizes if size["target"] == first), None)
    for size in sizes:
        if size["target"] != first and row and size["row_bytes"]:
            size["ratio_to_first"] = {
                "value": size["row_bytes"] / row,
                **dict.fromkeys(("low", "high")),
                "method": "of the bytes of a row",
            }


def _import(load: Json) -> str:
    return json.dumps([load["id"], load["variant"]], sort_keys=True)


def _ratio(ours: Json, base: Json) -> Json | None:
    """Return ours over the base; its interval is wide, from both of theirs, and missing where one is."""
    if not ours["value"] or not base["value"]:
        return None
    found = {"value": ours["value"] / base["value"], "low": None, "high": None}
    if None in (ours["low"], ours["high"], base["high"]) or not base["low"]:
        return found | {"method": "without an interval on one side"}
    bounds = {"low": ours["low"] / base["high"], "high": ours["high"] / base["low"]}
    return found | bounds | {"method": "least over largest to largest over least of both intervals"}


def _load(group: Json, phase: Json) -> Json:
    load = phase["load"] or {}
    each = load.get("text_row_bytes") or load.get("logical_row_bytes")
    finish_s = load.get("finish_s") or 0.0
    rate = _finished(group["rows_per_s"], load.get("rows"), finish_s)
    return {
        **{name: group[name] for name in ("id", "title", "variant", "target", "incomplete")},
        "rows_per_s": rate,
        "runs": group["repeats"],
        "interval_words": _interval_words(rate, group["repeats"]),
        "ratio_to_first": None,
        "rows": load.get("rows"),
        "seconds": None if load.get("seconds") is None else load["seconds"] + finish_s,
        "finish_s": finish_s,
        "method": load.get("method"),
        "workers": load.get("workers"),
        "bytes_per_s": rate["value"] * each if each else None,
        "bytes_of": _bytes_of(load),
        "asked_beside": _beside(phase),
        "published": [figure for figure in group["published"] if figure["metric"] == "rows_per_s"],
    }


def _interval_words(rate: Json, runs: int) -> str:
    """Say why a rate has no interval: how steps or intervals of one run differ is no spread of imports."""
    if rate["low"] is not None:
        return ""
    return "one run" if runs == 1 else str(rate["reason"] or "")


def _finished(rate: Json, rows: int | None, finish_s: float) -> Json:
    """Return a rate that counts the engine's own end of the load: its interval moves with it."""
    if not finish_s or not rows:
        return rate
    longer = {
        name: None if rate[name] is None else rows / (rows / rate[name] + finish_s)
        for name in ("value", "low", "high")
        if rate[name] != 0
    }
    return {**rate, **longer}


def _bytes_of(load: Json) -> str | None:
    """Say of what the bytes of a row are: of its text, else of the values alone."""
    if load.get("text_row_bytes"):
        return "text"
    return "values" if load.get("logical_row_bytes") else None


def _beside(phase: Json) -> Json | None:
    """Return what was asked near the end of the load, and all that failed; None where nothing was asked."""
    found = phase["beside"]
    if not found:
        return None
    drive, late = found["drive"], found["late"]
    if late is None:
        late = {"qps": None, "mean_ns": None, "done": 0, "seconds": None, "words": ""}
    return {**late, "failed": drive["counts"]["failed"], "clients": drive["clients"]}


def _size(target: str, phases: Sequence[Json], table: Json | None) -> Json | None:
    """Return the size of what was loaded last: by the look at its storage, else as those who asked saw it."""
    loads = [phase for phase in phases if phase["target"] == target and phase["load"]]
    looked = [phase for phase in loads if (phase["storage"] or {}).get("looks")]
    if looked:
        whole = looked[-1]["storage"]["looks"][-1]["sum"]
        held = whole["total_bytes"] if whole["allocated_bytes"] is None else whole["allocated_bytes"]
        rows = whole["rows"]
    elif table and table["rows"]:
        held, rows = table["table_bytes"], table["rows"]
    else:
        return None
    load = (looked or loads or [{"load": {}}])[-1]["load"]
    each = load.get("text_row_bytes") or load.get("logical_row_bytes")
    return {
        "target": target,
        "rows": rows,
        "table_bytes": held,
        "row_bytes": held / rows if rows else None,
        "plain_row_bytes": each,
        "plain_of": _bytes_of(load),
        "ratio": rows * each / held if each and held else None,
        "ratio_to_first": None,
    }

"""Queries in plain SQL, target beside target: cold and warm runs, scan rates, costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.report import formats
from loadstone.report.concurrency import concurrency_block
from loadstone.report.imports import imports_block, title_of
from loadstone.report.published import PUBLISHED, Bar, notes_of, sources, systems

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.report.charts import Chart

Json = dict[str, Any]

MS_PER_S = 1e3
GIGA = 1e9
KINDS = ("cold", "warm")


def blocks(summary: Json, names: Mapping[str, str]) -> list[Json]:
    """Return the blocks of the section in the order of reading; `names` are the targets' names for people."""
    found = [
        imports_block(f"imports-{at}", entry, names, summary) for at, entry in enumerate(summary["imports"])
    ]
    found += [_asked(at, entry, names, summary) for at, entry in enumerate(summary["asked"])]
    ours = {target["id"] for target in summary["targets"] if target.get("in_process")}
    found += [
        concurrency_block(f"clients-{at}", entry, names, ours)
        for at, entry in enumerate(summary["concurrency"])
    ]
    return [*found, *([_costs(summary, names)] if summary["costs"] else [])]


def rows_of(entry: Json, names: Mapping[str, str]) -> list[Json]:
    """Return a group for each query, with a row for each target."""
    by_target = {
        target["target"]: {question["name"]: question for question in target["questions"]}
        for target in entry["targets"]
    }
    return [
        {
            "name": name,
            "rows": [
                {
                    "target": names.get(target["target"], target["target"]),
                    "first": target["target"] == entry["first"],
                    "in_process": target["in_process"],
                    "unlike": target["cold_words"] if target["is_cold"] is False else "",
                    **by_target[target["target"]][name],
                    "cold_span": span(by_target[target["target"]][name]["cold"]),
                    "warm_span": span(by_target[target["target"]][name]["warm"]),
                }
                for target in entry["targets"]
            ],
            "published": _published(name, entry["published"]),
        }
        for name in entry["questions"]
    ]


def _published(name: str, figures: Sequence[Json]) -> list[Json]:
    """Return what others published of a query: a row for each system, with its cold and warm time in ms."""
    rows: dict[str, Json] = {}
    for figure in figures:
        kind = figure["metric"].removesuffix("_ms")
        if figure.get("question") == name and kind in KINDS:
            system = str(figure.get("system") or PUBLISHED)
            row = rows.setdefault(system, {"system": system, **dict.fromkeys(KINDS)})
            row[kind] = figure["value"]
    return list(rows.values())


def _published_table(groups: Sequence[Json]) -> dict[str, dict[str, Json | None]]:
    """Return the published times by system and query; None where a system has none of a query."""
    found: dict[str, dict[str, Json | None]] = {}
    for group in groups:
        for row in group["published"]:
            times = found.setdefault(row["system"], dict.fromkeys(each["name"] for each in groups))
            times[group["name"]] = row
    return found


def span(times: Json, *, bare: bool = False) -> str:
    """Return a median's interval in ms; that of few runs says that it is their range, unless `bare`."""
    if times["low_s"] is None:
        return "one run" if times["n"] else ""
    words = f"{formats.thousandths(times['low_s'])} … {formats.thousandths(times['high_s'])}"
    return f"{words}, all of {times['n']}" if times["whole_range"] and not bare else words


def _ranges(rows: Sequence[Json]) -> list[str]:
    """Take out of intervals that they are ranges where all of a kind are: that is said once, below."""
    said = []
    for kind in KINDS:
        known = [row for row in rows if row[kind]["low_s"] is not None]
        counts = sorted({row[kind]["n"] for row in known if row[kind]["whole_range"]})
        if len(counts) == 1 and all(row[kind]["whole_range"] for row in known):
            said.append(f"Of {kind} runs there are {counts[0]}")
            for row in known:
                row[f"{kind}_span"] = span(row[kind], bare=True)
        elif counts:
            said.append("“All of n”")
    return list(dict.fromkeys(said))


def _asked(number: int, entry: Json, names: Mapping[str, str], summary: Json) -> Json:
    identity = f"asked-{number}"
    groups = rows_of(entry, names)
    charts = [_bars(f"{identity}-{at}", group) for at, group in enumerate(groups)]
    limits = _limits(summary)
    for group in groups:
        for row in group["rows"]:
            row["of_memory"] = _share(row["bytes_per_s"], limits["memory"])
            row["of_disk"] = _share(row["cold_bytes_per_s"], limits["disk"])
    every = [row for group in groups for row in group["rows"]]
    ranges = _ranges(every)
    return {
        "kind": "asked",
        "id": identity,
        "title": entry["title"],
        "variant": formats.variant(entry["variant"]),
        "why": entry["why"],
        "charts": [chart for chart in charts if chart],
        "groups": groups,
        "cold": entry["cold"],
        "cold_ratio": any(row["cold_ratio_to_first"] for row in every),
        "several": len(entry["targets"]) > 1,
        "gpu": any(row["gpu"] for row in every),
        "energy": any(row["energy_j"] is not None for row in every),
        "limits": limits,
        "scanned": any(row["rows_per_s"] for row in every),
        "named": any(row["named_bytes_per_s"] for row in every),
        "sentences": _sentences(entry, names),
        "plans": [
            {"name": group["name"], "rows": [row for row in group["rows"] if row["sql"] or row["plan"]]}
            for group in groups
        ],
        "rounds": entry["rounds"],
        "sources": sources(summary) if any(group["published"] for group in groups) else [],
        "published": _published_table(groups),
        "published_notes": notes_of(entry["published"]),
        "ranges": ranges,
    }


def _bars(identity: str, group: Json) -> Chart | None:
    bars = [bar for row in group["rows"] for kind in KINDS if (bar := _bar(row, kind))]
    bars += [
        Bar(row["system"], kind, row[kind], formats.digits(row[kind]), published=True)
        for row in group["published"]
        for kind in KINDS
        if row[kind] is not None
    ]
    return systems((identity, group["name"]), "ms", bars)


def _bar(row: Json, kind: str) -> Bar | None:
    """Return the bar of a query's cold or warm runs; without a figure, why there is none."""
    times = row[kind]
    trouble = "wrong answer" if row["wrong"] else "failed" if row["failed"] else ""
    if times["median_s"] is None:
        return Bar(row["target"], kind, None, trouble) if trouble and kind == "warm" else None
    words = formats.thousandths(times["median_s"])
    low, high = (None if times[n] is None else times[n] * MS_PER_S for n in ("low_s", "high_s"))
    text = f"{words}, {trouble}" if trouble else words
    unlike = row["unlike"] if kind == "cold" else ""
    return Bar(row["target"], kind, times["median_s"] * MS_PER_S, text, low, high, unlike=unlike)


def _limits(summary: Json) -> Json:
    """Return the bandwidth of memory and of the slowest disk that was measured, and both in words."""
    found = summary["environment"].get("bandwidth") or {}
    memory = found.get("memory") or {}
    disks = [disk for disk in (found.get("disks") or {}).values() if disk.get("bytes_per_s")]
    disk = min(disks, key=lambda one: float(one["bytes_per_s"]), default=None)
    why = next((d["reason"] for d in (found.get("disks") or {}).values() if d.get("reason")), "")
    return {
        "memory": memory.get("bytes_per_s"),
        "disk": disk["bytes_per_s"] if disk else None,
        "words": [
            _bandwidth("Memory", memory, str(memory.get("reason") or "")),
            _bandwidth("Disk", disk or {}, str(why)),
        ],
    }


def _bandwidth(what: str, found: Json, reason: str) -> str:
    if not found.get("bytes_per_s"):
        return f"{what}: not measured{f', for {reason}' if reason else ''}."
    return f"{what} of this machine: {giga(found['bytes_per_s'])} GB/s ({found.get('method')})."


def giga(bytes_per_s: float | None) -> str:
    """Return bytes a second in GB/s, without the unit."""
    return formats.NONE if bytes_per_s is None else formats.digits(bytes_per_s / GIGA)


def _share(rate: float | None, limit: float | None) -> float | None:
    return rate / limit if rate is not None and limit else None


def _sentences(entry: Json, names: Mapping[str, str]) -> list[str]:
    """Say what was not possible, and what the figures of single targets do not hold."""
    said: dict[str, list[str]] = {}
    for target in entry["targets"]:
        for words in _told(target):
            said.setdefault(words, []).append(names.get(target["target"], target["target"]))
    return [f"{', '.join(whose)}: {words.rstrip('.')}." for words, whose in said.items()]


def _told(target: Json) -> list[str]:
    caches = target["caches"]
    words = []
    if caches and not caches["emptied"]:
        because = f": {caches['note'].rstrip('.')}" if caches["note"] else ""
        words.append(f"the caches could not be emptied{because}. Cold times are of a first run only")
    elif caches and caches["note"]:
        words.append(f"before each cold run, {caches['note']}")
    if target["in_process"]:
        words.append("works inside Loadstone's own process: no way between client and server is in its times")
    # What failed or was wrong stands beside its query.
    if not any(question["failed"] or question["wrong"] for question in target["questions"]):
        words += target["incomplete"]
    return words + list(target["notes"])


def _costs(summary: Json, names: Mapping[str, str]) -> Json:
    """Lay the costs out: a row for each import, query and number of clients, a column for each target."""
    targets = [cost["target"] for cost in summary["costs"]]
    rows: dict[tuple[str, str], dict[str, float | None]] = {}
    for cost in summary["costs"]:
        for load in cost["imports"]:
            rows.setdefault(("A million rows imported", title_of(load)), {})[cost["target"]] = load[
                "per_million_rows"
            ]
        for query in cost["questions"]:
            rows.setdefault(("A thousand queries, one by one and warm", query["name"]), {})[
                cost["target"]
            ] = query["per_thousand"]
        for point in cost["loads"]:
            words = f"{point['clients']} client{'' if point['clients'] == 1 else 's'}"
            rows.setdefault(("A thousand queries, under load", words), {})[cost["target"]] = point[
                "per_thousand"
            ]
    groups: dict[str, list[Json]] = {}
    for (of, words), found in rows.items():
        cells = [formats.digits(found.get(target)) for target in targets]
        groups.setdefault(of, []).append({"words": words, "cells": cells})
    return {
        "kind": "costs",
        "id": "costs",
        "title": "Costs",
        "variant": "",
        "why": "",
        "targets": [
            f"{names.get(cost['target'], cost['target'])} at {cost['price_per_hour']:g} an hour"
            for cost in summary["costs"]
        ],
        "head": [names.get(target, target) for target in targets],
        "groups": groups,
        "unpriced": [names.get(t["id"], t["id"]) for t in summary["targets"] if t["id"] not in targets],
    }

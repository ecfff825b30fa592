"""The report's content, ordered for reading: from a summary to what the template prints."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from loadstone.report import formats, grid, overlay, plain_queries, steps, storage, transactions
from loadstone.report.charts import choice
from loadstone.results.documents.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.report.charts import Chart
    from loadstone.results.documents.summary import PhaseFigures

Json = dict[str, Any]

HEADLINE_PERCENTILES = (50, 95, 99)
LEVELS = ("error", "warning", "info")
RELATIONS_SHOWN = 12


def view(summary: Json) -> Json:
    """Everything the template needs; no markup."""
    run = summary["run"]
    several_targets = len(summary["targets"]) > 1
    parts = chunks(summary)
    figures = headline(summary)
    targets = _with_headings(summary)
    names = {target["id"]: target["short_label"] for target in targets}
    labels = {(p["target"], p["folder"]): variant_words(p, summary) for p in summary["phases"]}
    return {
        "title": ", ".join(s["title"] for s in summary["scenarios"]) or str(run.get("id")),
        "sentence": sentence(summary),
        "run": run,
        "scenarios": [{**s, "parameters": _given(s["parameters"])} for s in summary["scenarios"]],
        "verdict": summary["verdict"],
        "several_targets": several_targets,
        "has_repeats": any(group["repeats"] > 1 for group in summary["groups"]),
        "headline": figures,
        "shown": columns(figures),
        "hardware": [s["source"] for s in summary["scenarios"] if s["source"]],
        "cores": summary["cores"],
        "sweeps": _sweeps(summary),
        "sections": [_section(chunk["id"], chunk["groups"], summary) for chunk in parts],
        "questions": plain_queries.blocks(msgspec.convert(summary, Summary), names),
        "stepped": steps.blocks(parts, summary),
        "storage": storage.blocks(parts),
        "transactions": transactions.blocks(parts),
        "grids": [
            replace(block, title=phase_title(entry, summary))
            for entry, block in zip(
                summary["grids"], grid.blocks(summary, names if several_targets else {}), strict=True
            )
        ],
        "beside": [
            {"title": phase_title(_named(block.phase), summary), "label": block.label, "charts": block.charts}
            for block in overlay.blocks(summary, names, labels)
        ],
        "resources": [_resources(target, summary) for target in targets],
        "sizes": [_sizes(phase, summary) for phase in summary["phases"] if phase["sizes"]],
        "warnings": warnings(summary),
        "skipped": [
            {**entry, "target": names.get(entry["target"], entry["target"])} for entry in summary["skipped"]
        ],
        "checks": [_check(phase, check, summary) for phase in summary["phases"] for check in phase["checks"]],
        "targets": targets,
        "environment": flat({k: v for k, v in summary["environment"].items() if k != "warnings"}),
        "command": shlex.join(str(word) for word in run.get("command") or []),
        "phases": [_phase_row(phase, summary) for phase in summary["phases"]],
    }


def sentence(summary: Json) -> str:
    """Say what was run, in one sentence."""
    run = summary["run"]
    driven = [phase for phase in summary["phases"] if phase["drive"]]
    turns = sum(len(target["phases"]) for entry in summary["asked"] for target in entry["targets"])
    targets = formats.listed(_targets(summary)) or "no target"
    clients = sorted({phase["drive"]["clients"] for phase in driven if phase["drive"]["clients"]})
    word = "client" if clients == [1] else "clients"
    width = f" with {formats.listed([str(c) for c in clients])} {word}" if clients else ""
    took = f" in {formats.duration(run['duration_s'])}" if run.get("duration_s") else ""
    count = len(driven) + turns
    return f"{count} measured phase{'' if count == 1 else 's'} on {targets}{width}{took}."


def _with_headings(summary: Json) -> list[Json]:
    """Give each target a heading: all that is known of where it is, or what alone tells it from another."""
    known = Counter(str(target["label"]) for target in summary["targets"])
    return [
        {**target, "heading": target["label" if known[target["label"]] == 1 else "short_label"]}
        for target in summary["targets"]
    ]


def _targets(summary: Json) -> list[str]:
    """Return the targets' names: of one all that is known, of several what tells them apart."""
    if len(summary["targets"]) == 1:
        return [str(summary["targets"][0].get("label"))]
    return [target_label(summary, target["id"]) for target in summary["targets"]]


def headline(summary: Json) -> list[Json]:
    """Return the main table: one block of rows per phase, with the published figure above it."""
    blocks: dict[tuple[str, str], Json] = {}
    for group in sorted_groups(summary):
        title = phase_title(group, summary)
        block = blocks.setdefault(
            (group["scenario"], group["id"]), {"title": title, "published": [], "rows": []}
        )
        row = _headline_row(group, summary)
        block["rows"].append(row)
        if row["published"]:
            text = f"{formats.rate(row['published']['value'])} {row['unit']}"
            block["published"] += [text] if text not in block["published"] else []
    return list(blocks.values())


def columns(blocks: Sequence[Json]) -> Json:
    """Say which columns of the main table have anything in them."""
    rows = [row for block in blocks for row in block["rows"]]
    return {
        "spread": any(row["rate"] and row["rate"]["low"] is not None for row in rows),
        "percentiles": [
            percentile
            for at, percentile in enumerate(HEADLINE_PERCENTILES)
            if any(row["percentiles"][at]["value_ns"] is not None for row in rows)
        ],
        **{name: any(row[name] for row in rows) for name in ("built", "disk", "published")},
    }


def _headline_row(group: Json, summary: Json) -> Json:
    known = group[group["headline"]]
    phase = _typical(group, summary)
    looks = (phase["storage"] or {}).get("looks")
    return {
        "group": group,
        "rate": known or group["tps"],
        "unit": formats.unit(group if known else {**group, "headline": "tps"}),
        "single": group["kind"] == "load" and group["repeats"] == 1,
        "variant": variant_words(group, summary),
        "target": target_label(summary, group["target"]),
        "percentiles": [_percentile(group["percentiles"], p) for p in HEADLINE_PERCENTILES],
        # Figures of several systems stand in a section of their own.
        "published": next(
            (p for p in group["published"] if p["metric"] == group["headline"] and not p.get("system")), None
        ),
        "built": (phase["load"] or {}).get("built"),
        "disk": looks[-1]["sum"] if looks else None,
    }


def sorted_groups(summary: Json) -> list[Json]:
    """Return the groups, equal phases and in them equal variants together, else as they ran."""
    phases: dict[tuple[str, str], int] = {}
    variants: dict[str, int] = {}
    for group in summary["groups"]:
        phases.setdefault((group["scenario"], group["id"]), len(phases))
        variants.setdefault(formats.variant(group["variant"]), len(variants))
    return sorted(
        summary["groups"],
        key=lambda group: (
            phases[group["scenario"], group["id"]],
            variants[formats.variant(group["variant"])],
        ),
    )


def chunks(summary: Json) -> list[Json]:
    """One part per phase with all its variants and targets; split where lines would be too many.

    Its `members` are {label, phase} of the repeat that is drawn, in the order of their colours.
    """
    members: dict[tuple[str, str], list[Json]] = {}
    for group in sorted_groups(summary):
        members.setdefault((group["scenario"], group["id"]), []).append(group)
    found: list[Json] = []
    for every in members.values():
        size = _chunk_size(every)
        for at in range(0, len(every), size):
            groups = every[at : at + size]
            phases = [_typical(group, summary) for group in groups]
            drawn = [_member(phase, groups, summary) for phase in phases]
            title = phase_title(groups[0], summary)
            where = {"scenario": groups[0]["scenario"], "phase": groups[0]["id"], "title": title}
            found.append({"id": f"phase-{len(found)}", **where, "groups": groups, "members": drawn})
    return found


def _named(phase: PhaseFigures) -> Json:
    return {"scenario": phase.scenario, "id": phase.id, "title": phase.title}


def phase_title(entry: Json, summary: Json) -> str:
    """Return the title that all variants of a phase share; "…" stands for the words in which they differ."""
    same = (entry["scenario"], entry["id"])
    titles = {str(group["title"]) for group in summary["groups"] if (group["scenario"], group["id"]) == same}
    words = [title.split() for title in sorted(titles)]
    if len(words) < 2 or len({len(each) for each in words}) > 1:  # noqa: PLR2004 - nothing to compare
        return str(entry["title"])
    shared = [each[0] if len(set(each)) == 1 else "…" for each in zip(*words, strict=True)]
    return " ".join(shared) if shared[0] != "…" else str(entry["id"]).replace("-", " ").capitalize()


def _chunk_size(groups: Sequence[Json]) -> int:
    """Return how many lines to draw together: equal shares, with all targets of a variant in one."""
    shares = -(-len(groups) // choice.MAX_SERIES)
    size = -(-len(groups) // shares)
    targets = len({group["target"] for group in groups})
    whole = -(-size // targets) * targets
    return whole if whole <= choice.MAX_SERIES else size


def variant_words(entry: Json, summary: Json) -> str:
    """Return a variant in words, without the parameters that are the same in all variants of its phase."""
    every = [
        group["variant"]
        for group in summary["groups"]
        if (group["scenario"], group["id"]) == (entry["scenario"], entry["id"])
    ]
    varied = {
        name: value
        for name, value in entry["variant"].items()
        if any(variant.get(name) != value for variant in every)
    }
    return formats.variant(varied or entry["variant"])


def warnings(summary: Json) -> list[Json]:
    """Warnings of one kind and advice together, errors first."""
    merged: dict[tuple[str, str], Json] = {}
    for warning in summary["warnings"]:
        entry = merged.setdefault(
            (warning["kind"], warning["hint"]),
            {"level": warning["level"], "kind": warning["kind"], "hint": warning["hint"], "cases": []},
        )
        entry["cases"].append({"message": warning["message"], "where": _where(warning, summary)})
    return sorted(merged.values(), key=lambda entry: LEVELS.index(entry["level"]))


def flat(document: Json | list[Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return a nested document as (dotted name, value) rows; a list of plain values stays one row."""
    rows: list[tuple[str, str]] = []
    pairs = document.items() if isinstance(document, dict) else enumerate(document, start=1)
    for name, value in pairs:
        path = f"{prefix}{name}"
        if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(v, dict) for v in value)):
            rows += flat(value, f"{path}.")
        elif isinstance(value, list):
            rows.append((path, ", ".join(str(item) for item in value)))
        else:
            rows.append((path, _plain(str(name), value)))
    return rows


def target_label(summary: Json, target_id: str) -> str:
    """Return a target's name for people, no longer than it must be to tell the targets apart."""
    return next((str(t["short_label"]) for t in summary["targets"] if t["id"] == target_id), target_id)


def phase_label(phase: Json, summary: Json) -> str:
    """Return A phase's name with whatever tells it from its neighbours."""
    parts = [str(phase["title"]), variant_words(phase, summary)]
    if phase["round"]:
        parts.append(f"round {phase['round']}")
    if phase["repeat"] > 1:
        parts.append(f"repeat {phase['repeat']}")
    if len(summary["targets"]) > 1:
        parts.append(target_label(summary, phase["target"]))
    return " · ".join(part for part in parts if part)


def _section(identity: str, groups: Sequence[Json], summary: Json) -> Json:
    phases = [_typical(group, summary) for group in groups]
    series = [_series(phase, _series_label(phase, groups, summary)) for phase in phases]
    charts: list[Chart | None] = [
        choice.throughput(identity, series),
        choice.distribution(identity, series),
    ]
    charts += choice.latencies(identity, series)
    every = [phase for group in groups for phase in _members(group, summary)]
    return {
        "id": identity,
        "title": phase_title(groups[0], summary),
        "why": groups[0]["why"],
        "charts": [chart for chart in charts if chart],
        "too_short": charts[0] is None,
        "repeats": max(group["repeats"] for group in groups),
        "rows": [
            {"label": _series_label(p, groups, summary) or "all", "phase": p, "drive": p["drive"]}
            for p in phases
        ],
        "published": [
            {**figure, "label": _series_label(phase, groups, summary)}
            for phase, group in zip(phases, groups, strict=True)
            for figure in group["published"]
        ],
        "errors": [
            {**error, "label": _series_label(phase, groups, summary)}
            for phase in every
            for error in phase["drive"]["errors"]
        ],
        "outages": [{**o, "label": phase_label(p, summary)} for p in every for o in p["drive"]["outages"]],
        "repeat_rows": [
            {
                "label": _series_label(p, groups, summary),
                "repeat": p["round"] or p["repeat"],
                "drive": p["drive"],
            }
            for group in groups
            if group["repeats"] > 1
            for p in _members(group, summary)
        ],
    }


def _members(group: Json, summary: Json) -> list[Json]:
    wanted = set(group["phases"])
    return [p for p in summary["phases"] if p["target"] == group["target"] and p["folder"] in wanted]


def _typical(group: Json, summary: Json) -> Json:
    """Return the repeat whose rate is nearest to the median: the one that is drawn."""
    middle = (group["tps"] or {}).get("value") or 0
    return min(
        _members(group, summary), key=lambda p: (abs((p["drive"]["tps"]["value"] or 0) - middle), p["number"])
    )


def _series(phase: Json, label: str) -> Json:
    drive = phase["drive"]
    return {
        "label": label or "all",
        "throughput": steps.rates(phase) if steps.in_steps(phase) else drive["series"],
        "latency": drive["latency_series"],
        "curve": drive["curve"],
        "warmup_s": drive["warmup_s"],
        "headline": phase["headline"],
        "kind": phase["kind"],
        "rows_per_transaction": phase["rows_per_transaction"],
    }


def _member(phase: Json, groups: Sequence[Json], summary: Json) -> Json:
    several = len({group["target"] for group in groups}) > 1
    target = target_label(summary, phase["target"]) if several else ""
    return {"label": _series_label(phase, groups, summary), "target": target, "phase": phase}


def _series_label(phase: Json, groups: Sequence[Json], summary: Json) -> str:
    parts = [variant_words(phase, summary)]
    if len({group["target"] for group in groups}) > 1:
        parts.append(target_label(summary, phase["target"]))
    return " · ".join(part for part in parts if part)


def _percentile(percentiles: Iterable[Json], wanted: float) -> Json:
    missing = {"percentile": wanted, "value_ns": None, "reason": "not recorded"}
    return next((p for p in percentiles if p["percentile"] == wanted), missing)


def _sweeps(summary: Json) -> list[Json]:
    """Return the tables of swept phases; grids and plain queries by clients have sections of their own."""
    names = ("scenario", "id", "target")
    grids = {tuple(entry[name] for name in names) for entry in summary.get("grids") or []}
    stored = {tuple(phase[name] for name in names) for phase in summary["phases"] if phase["storage"]}
    grids |= {
        (entry["scenario"], entry["id"], one["target"])
        for entry in summary["concurrency"]
        for one in entry["targets"]
    }
    shown = [
        (table, identity in stored)
        for table in summary["sweeps"]
        if (identity := tuple(table[name] for name in names)) not in grids
    ]
    return [
        _sweep(number, table, summary, stored=elsewhere) for number, (table, elsewhere) in enumerate(shown)
    ]


def _sweep(number: int, table: Json, summary: Json, *, stored: bool) -> Json:
    rows = table["rows"]
    return {
        "id": f"sweep-{number}",
        "title": phase_title(table, summary),
        "table": table,
        "unit": formats.unit(table),
        "fixed": formats.variant(table["fixed"]),
        "target": target_label(summary, table["target"]) if len(summary["targets"]) > 1 else "",
        "spread": any(row["rate"] and row["rate"]["low"] is not None for row in rows),
        "sure": any(row["ratio"] and row["ratio"]["low"] is not None for row in rows),
        "p99": any(row["p99_ns"] is not None for row in rows),
        "charts": choice.sweep(f"sweep-{number}", table, stored=stored),
    }


def _resources(target: Json, summary: Json) -> Json:
    phases = [phase for phase in summary["phases"] if phase["target"] == target["id"]]
    moments = [p["t_s"] for p in target["resources"]["points"]]
    moments += [phase["start_s"] for phase in phases if phase["start_s"] is not None]
    domain = (min(moments, default=0.0), max(moments, default=1.0))
    charts = choice.resources(f"resources-{target['id']}", target, phases, domain)
    return {
        "target": target,
        "charts": charts,
        "phases": [(p["number"], phase_label(p, summary)) for p in phases],
    }


def _sizes(phase: Json, summary: Json) -> Json:
    sizes = phase["sizes"]
    return {
        "label": phase_label(phase, summary),
        "sizes": sizes,
        "relations": sizes["relations"][:RELATIONS_SHOWN],
        "more": max(0, len(sizes["relations"]) - RELATIONS_SHOWN) + sizes["relations_left_out"],
    }


def _check(phase: Json, check: Json, summary: Json) -> Json:
    return {**check, "label": phase_label(phase, summary)}


def _phase_row(phase: Json, summary: Json) -> Json:
    end = phase["end_s"] if phase["end_s"] is not None else (phase["drive"] or {}).get("end_s")
    seconds = None if end is None or phase["start_s"] is None else end - phase["start_s"]
    return {**phase, "label": phase_label(phase, summary), "seconds": seconds}


def _where(warning: Json, summary: Json) -> str:
    for phase in summary["phases"]:
        if (phase["target"], phase["folder"]) == (warning["target"], warning["phase"]):
            return phase_label(phase, summary)
    return target_label(summary, warning["target"]) if warning["target"] else ""


def _given(parameters: Json | None) -> Json:
    """Leave out parameters that are empty: they mean "nothing special"."""
    return {name: value for name, value in (parameters or {}).items() if value not in ("", None)}


def _plain(name: str, value: object) -> str:
    if value is None:
        return formats.NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float) and name.endswith("_bytes"):
        return formats.size(value)
    return str(value)

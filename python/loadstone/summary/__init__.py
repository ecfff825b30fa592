"""summary.json: everything the report says, computed from the run folder alone; same folder, same bytes."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from loadstone.jsonfile import write_atomic
from loadstone.labels import distinct_labels, name_of_document
from loadstone.redact import redact_document
from loadstone.summary.advice import Loaded, advise
from loadstone.summary.comparisons import compare_published, compare_targets, group_repeats, sweeps
from loadstone.summary.concurrency import summarise_concurrency
from loadstone.summary.costs import summarise_costs
from loadstone.summary.gpuuse import energy_j
from loadstone.summary.grids import summarise_grids, summarise_scaling
from loadstone.summary.imports import summarise_imports
from loadstone.summary.judge import (
    ceiling,
    judge_asked,
    judge_disks,
    judge_imports,
    judge_phase,
    judge_run,
    judge_target,
    judge_widths,
)
from loadstone.summary.loads import with_cpu
from loadstone.summary.phases import summarise_phase
from loadstone.summary.questions import summarise_asked
from loadstone.summary.reading import read_run
from loadstone.summary.resources import course_between, summarise_resources, usage_between
from loadstone.summary.verdict import verdict
from loadstone.summary.verification import FOLDER, summarise_verification

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.summary.cautions import Caution
    from loadstone.summary.reading import Json, PhaseFiles, RunFiles, TargetFiles

FORMAT = 6
DIGITS = 9
"""Significant digits of numbers in summary.json: fewer than sums differ in between machines."""

__all__ = ["FORMAT", "summarise", "write_summary"]


def write_summary(folder: Path) -> Json:
    """Compute the summary of a run folder and write its summary.json, without secrets.

    The folder of an earlier version may hold some.
    """
    summary: Json = redact_document(summarise(folder))
    text = json.dumps(summary, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    write_atomic(folder / "summary.json", text + "\n")
    return summary


def summarise(folder: Path) -> Json:
    """Compute the summary of a run folder without writing anything. Raises LoadstoneError when it is none."""
    return _summarise(folder, verification=_verification(folder))


def _summarise(folder: Path, verification: Json | None = None) -> Json:
    files = read_run(folder)
    origin_ns = _origin_ns(files)
    cautions = list(judge_run(files))
    phases: list[Json] = []
    for target in files.targets:
        cautions += judge_target(target.target)
        for phase_files in target.phases:
            phase, found = _phase(phase_files, target, files, origin_ns)
            phases.append(phase)
            cautions += found
    cautions += judge_disks(files, phases)
    groups = _groups(files, phases)
    grids = summarise_grids(groups, phases)
    plain = _plain_queries(files, groups, phases)
    cautions += judge_asked(plain["asked"])
    cautions += judge_imports(plain["imports"])
    cautions += judge_widths(plain["concurrency"])
    summary: Json = {
        "format": FORMAT,
        "run": {**files.run, "state": files.state, "pid": None, "process": None},
        "plan": {name: files.plan.get(name) for name in ("size", "seed", "repeats")},
        "scenarios": [_scenario(scenario) for scenario in files.plan.get("scenarios") or []],
        "environment": files.environment,
        "cores": _cores(files),
        "targets": _targets(files, origin_ns),
        "phases": phases,
        "groups": groups,
        "sweeps": sweeps(groups, phases),
        "grids": grids,
        "scaling": summarise_scaling(grids),
        **plain,
        "verification": verification,
        "warnings": [caution.document() for caution in cautions],
        "skipped": _skipped(files, phases),
    }
    summary["verdict"] = verdict(summary)
    stable: Json = _stable(summary)
    return stable


def _phase(
    files: PhaseFiles, target: TargetFiles, run: RunFiles, origin_ns: int
) -> tuple[Json, list[Caution]]:
    phase = summarise_phase(files, origin_ns)
    usage = None
    phase["energy_j"] = None
    if phase["drive"]:
        window = _window_ns(phase["drive"], origin_ns)
        usage = usage_between(target.monitor, *window)
        phase["energy_j"] = energy_j(target.monitor, window)
        phase["drive"]["ceiling_tps"] = ceiling(run.calibration, phase["drive"])
        phase["outages_s"] = [_outage(outage, origin_ns) for outage in phase["drive"].pop("outages")]
        phase["drive"]["outages"] = phase["outages_s"]
    if phase["load"]:
        phase["load"] = with_cpu(phase["load"], usage)
    phase["usage"] = usage
    if phase["steps"]:
        limit = (usage or {}).get("memory_limit_bytes") or target.target.get("memory_limit_bytes")
        phase["steps"]["memory_limit_bytes"] = limit
        phase["steps"]["advice"] = advise(phase["steps"], _loaded(files, target, run))
    phase["course"] = _course(files, target, several=len(run.targets) > 1)
    return phase, list(judge_phase(phase, usage, run.calibration))


def _plain_queries(files: RunFiles, groups: Sequence[Json], phases: Sequence[Json]) -> Json:
    """Return what is told of queries in plain SQL, of the imports before them, and of what both cost."""
    asked = summarise_asked(files)
    in_process = {target.target["id"] for target in files.targets if target.target.get("in_process")}
    concurrency = summarise_concurrency(groups, phases, in_process)
    imports = summarise_imports(groups, phases, [*asked, *concurrency])
    prices = files.run.get("prices") or {}
    costs = summarise_costs(prices, imports, asked, concurrency)
    return {"asked": asked, "concurrency": concurrency, "imports": imports, "costs": costs}


def _loaded(files: PhaseFiles, target: TargetFiles, run: RunFiles) -> Loaded:
    """Return what is known of a load for the sake of advice: as planned, and as the driver wrote it down."""
    planned = [
        phase
        for one in run.plan.get("targets") or []
        if one.get("id") == target.target["id"]
        for phase in one.get("phases") or []
        if phase.get("key") == files.phase.get("key")
    ]
    return Loaded(
        engine=str(target.target.get("engine") or "postgres"),
        version=str(target.target.get("version") or ""),
        bulk=planned[0].get("bulk") if planned else None,
        table=((files.drive or {}).get("load") or {}).get("table"),
    )


def _course(files: PhaseFiles, target: TargetFiles, *, several: bool) -> list[Json]:
    """Return what the machine did on the phase's own time axis; nothing where there is one target only."""
    start, end = files.phase.get("start_ns"), files.phase.get("end_ns")
    if not several or start is None or end is None:
        return []
    return course_between(target.monitor, start, end)


def _verification(folder: Path) -> Json | None:
    """Summarise the run below this one that verified its advice, if there was one."""
    inside = folder / FOLDER
    return summarise_verification(_summarise(inside)) if (inside / "run.json").is_file() else None


def _window_ns(drive: Json, origin_ns: int) -> tuple[int, int]:
    start, end = (origin_ns + round(drive[name] * 1e9) for name in ("measure_s", "end_s"))
    return start, end


def _outage(outage: Json, origin_ns: int) -> Json:
    start, end = outage.get("start_ns"), outage.get("end_ns")
    return {
        **outage,
        "start_s": None if start is None else (start - origin_ns) / 1e9,
        "end_s": None if end is None else (end - origin_ns) / 1e9,
    }


def _groups(files: RunFiles, phases: Sequence[Json]) -> list[Json]:
    groups = group_repeats(phases)
    compare_targets(groups, [target.target["id"] for target in files.targets])
    sources = {s.get("id"): s.get("source") or {} for s in files.plan.get("scenarios") or []}
    for group in groups:
        source = sources.get(group["scenario"]) or {}
        group["published"] = compare_published(group, source.get("cores"), _cores(files))
    return groups


def _scenario(scenario: Json) -> Json:
    return {name: scenario.get(name) for name in ("id", "version", "title", "why", "source", "parameters")}


def _targets(files: RunFiles, origin_ns: int) -> list[Json]:
    short = distinct_labels([name_of_document(target.target) for target in files.targets])
    return [
        {
            **target.target,
            "short_label": label,
            "resources": summarise_resources(target.monitor, origin_ns),
        }
        for target, label in zip(files.targets, short, strict=True)
    ]


def _skipped(files: RunFiles, phases: Sequence[Json]) -> list[Json]:
    """Phases that did not run, with the reason: skipped by the plan, on the way, or never reached."""
    begun = {(phase["target"], phase["folder"]) for phase in phases if phase["state"] != "skipped"}
    told = {(phase["target"], phase["folder"]): phase["reason"] for phase in phases}
    skipped = []
    for target in files.plan.get("targets") or []:
        for phase in target.get("phases") or []:
            at = (target.get("id"), phase.get("key"))
            if at in begun:
                continue
            reason = phase.get("skip") or told.get(at) or "not reached: the run ended before"
            skipped.append(
                {
                    "target": at[0],
                    "phase": at[1],
                    "title": phase.get("title"),
                    "variant": phase.get("variant") or {},
                    "reason": reason,
                }
            )
    return skipped


def _cores(files: RunFiles) -> int | None:
    for target in files.targets:
        for sample in target.monitor:
            cores = (sample.get("host") or {}).get("cores")
            if cores:
                return int(cores)
    return None


def _origin_ns(files: RunFiles) -> int:
    origin = files.run.get("origin_ns")
    if isinstance(origin, int):
        return origin
    starts = [
        p.phase["start_ns"] for target in files.targets for p in target.phases if p.phase.get("start_ns")
    ]
    return min(starts, default=0)


def _stable(value: Any) -> Any:
    """Round floats to the digits that count; JSON knows no infinity."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        rounded = float(f"{value:.{DIGITS}g}")
        return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded
    if isinstance(value, dict):
        return {str(name): _stable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_stable(item) for item in value]
    return value

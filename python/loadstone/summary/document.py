"""summary.json: everything the report says, computed from the run folder alone; same folder, same bytes."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from loadstone.results.documents.summary import (
    PlanFigures,
    ScenarioFigures,
    Skipped,
    Summary,
    SummaryRun,
    TargetFigures,
)
from loadstone.results.documents.summary.run import FORMAT
from loadstone.results.json_files import write_atomic
from loadstone.results.labels import distinct_labels, name_of_document
from loadstone.results.redact import redact_document
from loadstone.summary.advice import Loaded, advise
from loadstone.summary.comparisons import compare_published, compare_targets, group_repeats, sweeps
from loadstone.summary.costs import summarise_costs
from loadstone.summary.gpuuse import energy_j
from loadstone.summary.imports import summarise_imports
from loadstone.summary.loads import with_cpu
from loadstone.summary.phases import summarise_phase
from loadstone.summary.plain_queries import summarise_plain_queries
from loadstone.summary.resources import course_between, summarise_resources, usage_between
from loadstone.summary.run_files import read_run
from loadstone.summary.scaling.concurrency import summarise_concurrency
from loadstone.summary.scaling.grids import summarise_grids, summarise_scaling
from loadstone.summary.verdict import verdict
from loadstone.summary.verification import FOLDER, summarise_verification
from loadstone.summary.warnings import (
    ceiling,
    disk_warnings,
    import_warnings,
    phase_warnings,
    plain_query_warnings,
    run_warnings,
    target_warnings,
    width_warnings,
)
from loadstone.summary.watched import watch_figures

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.results.documents.run import PlannedScenario
    from loadstone.results.documents.summary import (
        CoursePoint,
        DriveFigures,
        Group,
        PhaseFigures,
        Resources,
        TimedOutage,
        Verification,
    )
    from loadstone.summary.run_files import PhaseFiles, RunFiles, TargetFiles

DIGITS = 9
"""Significant digits of numbers in summary.json: fewer than sums differ in between machines."""

__all__ = ["FORMAT", "summarise", "write_summary"]


def write_summary(folder: Path) -> Summary:
    """Compute the summary of a run folder and write its summary.json, without secrets.

    The folder of an earlier version may hold some.
    """
    document = redact_document(msgspec.to_builtins(summarise(folder)))
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    write_atomic(folder / "summary.json", text + "\n")
    return msgspec.convert(document, Summary)


def summarise(folder: Path) -> Summary:
    """Compute the summary of a run folder without writing anything. Raises LoadstoneError when it is none."""
    return _summarise(folder, verification=_verification(folder))


def _summarise(folder: Path, verification: Verification | None = None) -> Summary:
    files = read_run(folder)
    origin_ns = _origin_ns(files)
    warnings = list(run_warnings(files))
    phases: list[PhaseFigures] = []
    for target in files.targets:
        warnings += target_warnings(target.target)
        for phase_files in target.phases:
            phase = _phase(phase_files, target, files, origin_ns)
            phases.append(phase)
            warnings += phase_warnings(phase, files.calibration, in_process=bool(target.target.in_process))
    warnings += disk_warnings(files, phases)
    groups = _groups(files, phases)
    grids = summarise_grids(groups, phases)
    plain_queries = summarise_plain_queries(files)
    in_process = {target.target.id for target in files.targets if target.target.in_process}
    concurrency = summarise_concurrency(groups, phases, in_process)
    imports = summarise_imports(groups, phases, [*plain_queries, *concurrency])
    warnings += [
        *plain_query_warnings(plain_queries),
        *import_warnings(imports),
        *width_warnings(concurrency),
    ]
    summary = Summary(
        format=FORMAT,
        run=_run(files),
        plan=PlanFigures(size=files.plan.size, seed=files.plan.seed, repeats=files.plan.repeats),
        scenarios=[_scenario(scenario) for scenario in files.plan.scenarios],
        environment=dict(files.recorded),
        cores=_cores(files),
        targets=_targets(files, origin_ns),
        phases=phases,
        groups=groups,
        sweeps=sweeps(groups, phases),
        grids=grids,
        scaling=summarise_scaling(grids),
        plain_queries=plain_queries,
        concurrency=concurrency,
        imports=imports,
        costs=summarise_costs(files.run.prices or {}, imports, plain_queries, concurrency),
        verification=verification,
        warnings=warnings,
        skipped=_skipped(files, phases),
        verdict=[],
    )
    summary.verdict = verdict(summary)
    return msgspec.convert(_stable(msgspec.to_builtins(summary, enc_hook=_number)), Summary)


def _phase(files: PhaseFiles, target: TargetFiles, run: RunFiles, origin_ns: int) -> PhaseFigures:
    phase = summarise_phase(files, origin_ns)
    drive, steps = phase.drive, phase.steps
    if drive:
        window = _window_ns(drive, origin_ns)
        phase.usage = usage_between(target.monitor, *window)
        phase.energy_j = energy_j(target.monitor, window)
        drive.ceiling_tps = _ceiling_of_hosts(phase) or ceiling(run.calibration, drive)
        drive.outages = [_outage(outage, origin_ns) for outage in drive.outages]
        phase.outages_s = drive.outages
    if phase.load:
        phase.load = with_cpu(phase.load, phase.usage)
    if steps:
        limit = (phase.usage and phase.usage.memory_limit_bytes) or target.target.memory_limit_bytes
        steps.memory_limit_bytes = limit
        steps.advice = advise(steps, _loaded(files, target, run))
    phase.course = _course(files, target, several=len(run.targets) > 1)
    return phase


def _ceiling_of_hosts(phase: PhaseFigures) -> float | None:
    """Return what all load hosts reach together; None for one host, and where one has not measured it."""
    hosts = phase.hosts.hosts if phase.hosts else []
    ceilings = [host.ceiling_tps for host in hosts if host.ceiling_tps]
    return sum(ceilings) if ceilings and len(ceilings) == len(hosts) else None


def _run(files: RunFiles) -> SummaryRun:
    run = msgspec.structs.asdict(files.run)
    return SummaryRun(**run | {"state": files.state, "pid": None, "process": None})


def loads_of(folder: Path) -> dict[tuple[str, str], Loaded]:
    """Return what a run knows of each load, by target and folder of the phase. Raises LoadstoneError."""
    files = read_run(folder)
    return {
        (target.target.id, phase.folder.key): _loaded(phase, target, files)
        for target in files.targets
        for phase in target.phases
    }


def _loaded(files: PhaseFiles, target: TargetFiles, run: RunFiles) -> Loaded:
    """Return what is known of a load for the sake of advice: as planned, and as the driver wrote it down."""
    planned = [
        phase.workload
        for one in run.plan.targets
        if one.id == target.target.id
        for phase in one.phases
        if phase.key == files.phase.key and phase.workload
    ]
    return Loaded(
        engine=target.target.engine or "postgres",
        version=target.target.version or "",
        load=planned[0].load if planned else None,
        table=files.drive and files.drive.load and files.drive.load.table,
    )


def _course(files: PhaseFiles, target: TargetFiles, *, several: bool) -> list[CoursePoint]:
    """Return what the machine did on the phase's own time axis; nothing where there is one target only."""
    start, end = files.phase.start_ns, files.phase.end_ns
    if not several or start is None or end is None:
        return []
    return course_between(target.monitor, start, end)


def _verification(folder: Path) -> Verification | None:
    """Summarise the run below this one that verified its advice, if there was one."""
    inside = folder / FOLDER
    return summarise_verification(_summarise(inside)) if (inside / "run.json").is_file() else None


def _window_ns(drive: DriveFigures, origin_ns: int) -> tuple[int, int]:
    return origin_ns + round(drive.measure_s * 1e9), origin_ns + round(drive.end_s * 1e9)


def _outage(outage: TimedOutage, origin_ns: int) -> TimedOutage:
    start_s = (outage.start_ns - origin_ns) / 1e9
    end_s = None if outage.end_ns is None else (outage.end_ns - origin_ns) / 1e9
    return msgspec.structs.replace(outage, start_s=start_s, end_s=end_s)


def _groups(files: RunFiles, phases: Sequence[PhaseFigures]) -> list[Group]:
    groups = group_repeats(phases)
    compare_targets(groups, [target.target.id for target in files.targets], phases)
    cores = {scenario.id: scenario.source.cores for scenario in files.plan.scenarios if scenario.source}
    for group in groups:
        group.published = compare_published(group, cores.get(group.scenario or ""), _cores(files))
    return groups


def _scenario(scenario: PlannedScenario) -> ScenarioFigures:
    return ScenarioFigures(
        id=scenario.id,
        version=scenario.version,
        title=scenario.title,
        why=scenario.why,
        source=scenario.source,
        parameters=scenario.parameters,
        findings=scenario.findings,
    )


def _targets(files: RunFiles, origin_ns: int) -> list[TargetFigures]:
    short = distinct_labels(
        [name_of_document(msgspec.to_builtins(target.target)) for target in files.targets]
    )
    return [
        TargetFigures(
            **msgspec.structs.asdict(target.target),
            short_label=label,
            resources=_resources(target, origin_ns),
        )
        for target, label in zip(files.targets, short, strict=True)
    ]


def _resources(target: TargetFiles, origin_ns: int) -> Resources:
    found = summarise_resources(target.monitor, origin_ns)
    found.watch = watch_figures(target.monitor, target.target, origin_ns) or None
    return found


def _skipped(files: RunFiles, phases: Sequence[PhaseFigures]) -> list[Skipped]:
    """Phases that did not run, with the reason: skipped by the plan, on the way, or never reached."""
    begun = {(phase.target, phase.folder) for phase in phases if phase.state != "skipped"}
    told = {(phase.target, phase.folder): phase.reason for phase in phases}
    return [
        Skipped(
            target=target.id,
            phase=phase.key,
            title=phase.title,
            variant=phase.variant or {},
            reason=phase.skip or told.get((target.id, phase.key)) or "not reached: the run ended before",
        )
        for target in files.plan.targets
        for phase in target.phases
        if (target.id, phase.key) not in begun
    ]


def _cores(files: RunFiles) -> int | None:
    samples = (sample for target in files.targets for sample in target.monitor)
    return next((int(sample.host.cores) for sample in samples if sample.host and sample.host.cores), None)


def _origin_ns(files: RunFiles) -> int:
    if files.run.origin_ns is not None:
        return files.run.origin_ns
    starts = [p.phase.start_ns for target in files.targets for p in target.phases if p.phase.start_ns]
    return min(starts, default=0)


def _number(value: object) -> object:
    """Return a number of a library of figures as a plain one."""
    return value.item() if isinstance(value, np.generic) else value


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

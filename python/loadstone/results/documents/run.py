"""run.json, plan.json, environment.json, calibration.json and events.jsonl."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from loadstone.results.documents.base import Amount, Count, Ns, Scalar, Struct, Words


class Run(Struct, frozen=True):
    """run.json."""

    format: Annotated[int, Meta(description="2; 1 as of version 0.1.0 is read too")]
    loadstone: str | None = None
    id: str | None = None
    scenarios: list[str] | None = None
    size: Annotated[str | None, Meta(description="tiny, small or full; null: a pgbench command line")] = None
    state: Annotated[
        Literal["running", "complete", "failed", "interrupted"] | None,
        Meta(description="`failed`: a check or a phase failed; `interrupted`: a signal"),
    ] = None
    pid: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | None = None
    process: Annotated[
        str | None,
        Meta(description="BOOT_ID/START_TICKS: tells `pid` from a later process with the same number"),
    ] = None
    started_at: Annotated[str | None, Meta(description="wall-clock time")] = None
    origin_ns: Annotated[Ns | None, Meta(description="monotonic clock at `started_at`")] = None
    ended_at: str | None = None
    duration_s: Amount | None = None
    exit_code: int | None = None
    reason: str | None = None
    command: list[str] | None = None
    options: Annotated[
        dict[str, Any] | UnsetType | None,
        Meta(description="not in the plan; `--resume` must find them unchanged"),
    ] = UNSET
    asked: Annotated[
        dict[str, Any] | UnsetType | None,
        Meta(description="the options of the run: `--resume DIR` alone takes them from here"),
    ] = UNSET
    prices: Annotated[
        dict[str, Amount] | UnsetType | None,
        Meta(description="`--price`: of an hour of each target, by its id, in the user's currency"),
    ] = UNSET
    resumed_at: Annotated[list[str] | UnsetType | None, Meta(description="only if the run was resumed")] = (
        UNSET
    )
    manifest: Annotated[
        bool | UnsetType | None, Meta(description="true: the run has one (all but those of version 0.1.0)")
    ] = UNSET


class PlannedSource(Struct, frozen=True):
    """Where a scenario was published."""

    title: Words = None
    author: Words = None
    year: Words = None
    hardware: Words = None
    url: Words = None
    cores: Annotated[Amount | None, Meta(description="of the machine of the published figures")] = None


class PlannedFinding(Struct, frozen=True):
    """A question of a scenario that the report answers as sentences."""

    question: str
    compare: Annotated[
        str, Meta(description="what answers it: rates, sizes, phases, targets, queries, knee or scaling")
    ]
    parameter: Annotated[str | None, Meta(description="of rates and sizes: the swept parameter")] = None
    phases: Annotated[list[str], Meta(description="ids of those that count; empty: all")] = msgspec.field(
        default_factory=list
    )


class PlannedScenario(Struct, frozen=True):
    """A scenario in plan.json."""

    id: str
    title: str
    version: Words = None
    why: Words = None
    source: PlannedSource | None = None
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)
    findings: Annotated[
        list[PlannedFinding], Meta(description="questions that the report answers as sentences")
    ] = msgspec.field(default_factory=list)


class PlannedRows(Struct, frozen=True):
    """Which rows a load of a plain table was to have."""

    rows: Count | None = None
    first: Annotated[Count | None, Meta(description="number of the first row")] = None


class PlannedLoad(Struct, frozen=True):
    """What a load was to do, as far as the advice needs it."""

    rows: Annotated[PlannedRows, Meta(description="of a plain table")] = PlannedRows()
    table: Annotated[dict[str, Any], Meta(description="how the plain table was to be made")] = msgspec.field(
        default_factory=dict
    )


class PlannedWorkload(Struct, frozen=True):
    """What a phase was to do on its target."""

    type: Annotated[
        str,
        Meta(
            description="sql, script, timeseries-load, table-load, timeseries-queries, plain-queries, size "
            "or check"
        ),
    ]
    load: Annotated[PlannedLoad | None, Meta(description="of timeseries-load and table-load")] = None


class PlannedPhase(Struct, frozen=True):
    """A phase in plan.json."""

    key: Annotated[str, Meta(description="NNN-PHASE: the name of its folder")]
    id: str | None = None
    title: Words = None
    variant: Annotated[dict[str, Scalar] | None, Meta(description="values of the swept parameters")] = None
    skip: Annotated[str | None, Meta(description="why it is not run")] = None
    workload: PlannedWorkload | None = None


class PlannedTarget(Struct, frozen=True):
    """A target in plan.json."""

    id: str
    engine: str | None = None
    phases: list[PlannedPhase] = msgspec.field(default_factory=list)


class Plan(Struct, frozen=True):
    """plan.json."""

    size: Words = None
    seed: Words = None
    repeats: Words = None
    scenarios: list[PlannedScenario] = msgspec.field(default_factory=list)
    targets: list[PlannedTarget] = msgspec.field(default_factory=list)


class Note(Struct, frozen=True):
    """A warning of environment.json."""

    message: str
    hint: str | None = None
    level: Literal["info", "warning", "error"] = "warning"


class Core(Struct, frozen=True):
    """Our own compiled part."""

    debug_build: Annotated[bool | None, Meta(description="true: its figures are not to be used")] = None


class Build(Struct, frozen=True):
    """Which Loadstone this is."""

    core: Core | None = None


class Place(Struct, frozen=True):
    """Where data lie."""

    disk: str | None = None


class Bandwidth(Struct, frozen=True):
    """How fast memory or a disk is."""

    bytes_per_s: Annotated[Amount | None, Meta(description="null: not measured")] = None
    method: Words = None
    reason: Annotated[Words, Meta(description="why it was not measured")] = None


class Bandwidths(Struct, frozen=True):
    """What was measured before plain queries."""

    memory: Annotated[
        Bandwidth | None, Meta(description="copying a buffer larger than the caches, on all usable cores")
    ] = None
    disks: Annotated[
        dict[str, Bandwidth] | None, Meta(description="reading sequentially, past the page cache")
    ] = None


class Environment(Struct, frozen=True):
    """environment.json."""

    loadstone: Build | None = None
    warnings: list[Note] | None = None
    storage: Annotated[
        dict[str, Place] | None, Meta(description="`results`, and `data of TARGET` of private servers")
    ] = None
    bandwidth: Annotated[Bandwidths | None, Meta(description="only when plain queries are planned")] = None


class Ceiling(Struct, frozen=True):
    """One line of calibration.json."""

    mode: str | None = None
    clients: Amount | None = None
    tps: Amount | None = None


class Calibration(Struct, frozen=True):
    """calibration.json."""

    results: list[Ceiling] | None = None


class Event(Struct, frozen=True):
    """A line of events.jsonl."""

    t_ns: Ns | None = None
    level: Literal["info", "warning", "error"] = "info"
    kind: Annotated[
        str | None, Meta(description="phase-start, phase-end, warning, skip, outage, check or note")
    ] = None
    message: str = ""
    hint: str | None = None
    target: str | None = None
    phase: Annotated[str | None, Meta(description="NNN-PHASE")] = None

"""run.json, plan.json, environment.json, calibration.json and events.jsonl."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from loadstone.results.documents.base import Amount, Count, Ns, Scalar, Struct, Words


class Run(Struct, frozen=True):
    """run.json."""

    format: int
    loadstone: str | None = None
    id: str | None = None
    scenarios: list[str] | None = None
    size: str | None = None
    state: Literal["running", "complete", "failed", "interrupted"] | None = None
    pid: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | None = None
    process: str | None = None
    started_at: str | None = None
    origin_ns: Ns | None = None
    ended_at: str | None = None
    duration_s: Amount | None = None
    exit_code: int | None = None
    reason: str | None = None
    command: list[str] | None = None
    options: dict[str, Any] | UnsetType | None = UNSET
    asked: dict[str, Any] | UnsetType | None = UNSET
    prices: dict[str, Amount] | UnsetType | None = UNSET
    resumed_at: list[str] | UnsetType | None = UNSET
    manifest: bool | UnsetType | None = UNSET


class PlannedSource(Struct, frozen=True):
    """Where a scenario was published."""

    title: Words = None
    author: Words = None
    year: Words = None
    hardware: Words = None
    url: Words = None
    cores: Amount | None = None


class PlannedScenario(Struct, frozen=True):
    """A scenario in plan.json."""

    id: str
    title: str
    version: Words = None
    why: Words = None
    source: PlannedSource | None = None
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)


class PlannedRows(Struct, frozen=True):
    """Which rows a bulk load was to have."""

    rows: Count | None = None
    first: Count | None = None


class PlannedBulk(Struct, frozen=True):
    """What a bulk load was to do, as far as the advice needs it."""

    rows: PlannedRows
    table: dict[str, Any]


class PlannedPhase(Struct, frozen=True):
    """A phase in plan.json."""

    key: str
    id: str | None = None
    title: Words = None
    variant: dict[str, Scalar] | None = None
    skip: str | None = None
    kind: str | None = None
    bulk: PlannedBulk | None = None


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

    debug_build: bool | None = None


class Build(Struct, frozen=True):
    """Which Loadstone this is."""

    core: Core | None = None


class Place(Struct, frozen=True):
    """Where data lie."""

    disk: str | None = None


class Bandwidth(Struct, frozen=True):
    """How fast memory or a disk is."""

    bytes_per_s: Amount | None = None
    method: Words = None
    reason: Words = None


class Bandwidths(Struct, frozen=True):
    """What was measured before plain queries."""

    memory: Bandwidth | None = None
    disks: dict[str, Bandwidth] | None = None


class Environment(Struct, frozen=True):
    """environment.json."""

    loadstone: Build | None = None
    warnings: list[Note] | None = None
    storage: dict[str, Place] | None = None
    bandwidth: Bandwidths | None = None


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
    kind: str | None = None
    message: str = ""
    hint: str | None = None
    target: str | None = None
    phase: str | None = None

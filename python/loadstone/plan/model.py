"""A plan as data: what is done on each target, phase by phase, with every template filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from loadstone.model import (
    BulkLoad,
    Drive,
    Load,
    PhaseKind,
    PlainQueries,
    PrivateServer,
    Published,
    PublishedCurve,
    QueryMix,
    RowCheck,
    Source,
    Value,
)


class Workload(Struct, frozen=True, tag_field="type"):
    """What a phase does on a target. Each subclass has a name in plan.json, and all are in `SomeWorkload`."""

    kind: ClassVar[PhaseKind]
    headline: ClassVar[str] = "tps"
    """The figure that the report shows first, where the scenario names none."""

    @property
    def clients(self) -> int:
        """How many connections it has open at once, ours for control and watching left out."""
        return 0


class SqlWorkload(Workload, frozen=True, tag="sql"):
    """The statements of the phase's `setup`, and nothing else."""

    kind = "sql"


class ScriptWorkload(Workload, frozen=True, tag="script"):
    """Scripts, driven by many clients."""

    kind = "script"
    drive: Drive
    row_check: RowCheck | None = None

    @property
    def clients(self) -> int:
        """The clients of the drive."""
        return self.drive.clients


class TimeSeriesLoadWorkload(Workload, frozen=True, tag="timeseries-load"):
    """A load of time series into fresh tables."""

    kind = "load"
    headline = "metrics_per_s"
    load: Load
    mixed: QueryMix | None = None
    """Queries that run during the load."""

    @property
    def clients(self) -> int:
        """The load's workers; with queries theirs too, and the one that looks for the latest row."""
        return self.load.workers + (self.mixed.workers + 1 if self.mixed else 0)


class TableLoadWorkload(Workload, frozen=True, tag="table-load"):
    """A load of rows into a fresh plain table."""

    kind = "load"
    headline = "rows_per_s"
    load: BulkLoad
    mixed: PlainQueries | None = None
    """Queries that run during the load."""

    @property
    def clients(self) -> int:
        """The load's workers, and the clients of the queries."""
        return self.load.workers + (self.mixed.clients if self.mixed else 0)


class TimeSeriesQueriesWorkload(Workload, frozen=True, tag="timeseries-queries"):
    """TSBS's queries over what is loaded."""

    kind = "queries"
    queries: QueryMix

    @property
    def clients(self) -> int:
        """The workers of the queries."""
        return self.queries.workers


class PlainQueriesWorkload(Workload, frozen=True, tag="plain-queries"):
    """Plain SQL over a table that is loaded."""

    kind = "queries"
    queries: PlainQueries

    @property
    def clients(self) -> int:
        """The clients of the queries."""
        return self.queries.clients


class SizeWorkload(Workload, frozen=True, tag="size"):
    """The sizes of tables and indexes."""

    kind = "size"


class CheckWorkload(Workload, frozen=True, tag="check"):
    """The phase's `checks`, and nothing else."""

    kind = "check"


SomeWorkload = (
    SqlWorkload
    | ScriptWorkload
    | TimeSeriesLoadWorkload
    | TableLoadWorkload
    | TimeSeriesQueriesWorkload
    | PlainQueriesWorkload
    | SizeWorkload
    | CheckWorkload
)


@dataclass(frozen=True, slots=True)
class PlannedPhase:
    """One phase on one target, ready to run: every template filled in, nothing left to decide."""

    key: str
    """Unique in the plan and usable as a folder name: phase id, variant, repeat."""
    id: str
    scenario: str
    title: str
    workload: SomeWorkload
    """What is done on the target once it is set up."""
    why: str = ""
    variant: Mapping[str, Value] = field(default_factory=dict)
    repeat: int = 1
    setup: tuple[str, ...] = ()
    """SQL statements before the phase (for kind `sql`: the phase itself), one statement each."""
    checks: tuple[tuple[str, str, str], ...] = ()
    """(name, SQL giving one value, expected value as text): verified after the phase."""
    headline: str = "tps"
    rows_per_transaction: int | None = None
    published: tuple[Published, ...] = ()
    curves: tuple[PublishedCurve, ...] = ()
    """Published seconds of the steps of a bulk load, to be drawn beside ours."""
    knee: bool = False
    """Look for the number of rows from which steps become slower, and advise on partitions."""
    optional: bool = False
    """A failing setup skips the phase, with the server's words as the reason, instead of failing the run."""
    setup_estimate_s: float = 0.0
    """About how long `setup` takes, in the scenario author's judgement; 0 when not worth counting."""
    skip: str | None = None
    """Why this phase cannot run on this target, in words; None when it can."""

    @property
    def kind(self) -> PhaseKind:
        """The scenario's word for what is done."""
        return self.workload.kind


@dataclass(frozen=True, slots=True)
class PlannedTarget:
    """One target with its phases in order."""

    id: str
    engine: str
    url: str
    """Without password."""
    phases: tuple[PlannedPhase, ...]
    label: str = ""
    """Its name for people: unlike that of any other target of the run."""


@dataclass(frozen=True, slots=True)
class PlannedFinding:
    """A question that the report answers as sentences."""

    question: str
    compare: str
    parameter: str | None
    phases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlannedScenario:
    """What the report must say of a scenario that is run."""

    id: str
    version: str
    title: str
    why: str
    source: Source | None
    parameters: Mapping[str, Value]
    folder: Path
    findings: tuple[PlannedFinding, ...] = ()
    private_server: PrivateServer = field(default_factory=PrivateServer)


@dataclass(frozen=True, slots=True)
class Plan:
    """Scenario x engine: pure data, written to plan.json before anything is touched."""

    size: str
    seed: int
    repeats: int
    scenarios: tuple[PlannedScenario, ...]
    targets: tuple[PlannedTarget, ...]

"""Phases, their groups, sweeps and grids in summary.json."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from loadstone.results.documents.phase import Check, Published, Statement
from loadstone.results.documents.summary.drives import (
    ConcurrentQueriesFigures,
    DriveFigures,
    MixedQueriesFigures,
    QueryFigures,
    TimedOutage,
)
from loadstone.results.documents.summary.hosts import HostsFigures
from loadstone.results.documents.summary.loads import (
    LoadFigures,
    SizeFigures,
    StepsFigures,
    StorageFigures,
    TransactionsFigures,
)
from loadstone.results.documents.summary.machine import CoursePoint, Usage
from loadstone.results.documents.summary.rates import (
    FreshnessFigures,
    GroupRate,
    MedianLatencies,
    Percentile,
    RateRatio,
)
from loadstone.results.documents.summary.units import (
    Bytes,
    BytesPerRow,
    Figure,
    Figures,
    Joules,
    Nanoseconds,
    PerSecond,
    Seconds,
    Share,
    Value,
    Variant,
)


class PhaseFigures(Figures, kw_only=True):
    """A phase on a target. Times count from the run's origin."""

    number: int | None
    id: str | None
    key: str | None
    kind: str | None
    title: str | None
    why: str | None
    variant: Variant
    repeat: int
    target: str
    scenario: str | None
    state: str
    reason: str | None
    folder: str
    round: int | None
    start_s: Seconds | None
    end_s: Seconds | None
    headline: str
    rows_per_transaction: Figure | None
    published: list[Published]
    checks: list[Check]
    setup: list[Statement]
    drive: DriveFigures | None
    plain_queries: ConcurrentQueriesFigures | None
    sizes: SizeFigures | None
    steps: StepsFigures | None
    load: LoadFigures | None
    queries: list[QueryFigures] | None
    storage: StorageFigures | None
    transactions: TransactionsFigures | None
    mixed: MixedQueriesFigures | None
    freshness: FreshnessFigures | None
    energy_j: Joules | None
    usage: Usage | None
    course: list[CoursePoint]
    outages_s: list[TimedOutage] | UnsetType = UNSET
    hosts: Annotated[HostsFigures | UnsetType, Meta(description="of drives on several load hosts")] = UNSET


class Compared(Figures, kw_only=True):
    """A published figure beside ours."""

    metric: str
    value: Figure | None
    unit: str | None
    note: str | None
    system: str | None
    query: str | None
    measured: Figure | None
    ratio: Figure | None
    ratio_per_core: Annotated[Figure | UnsetType, Meta(description="rates only")] = UNSET


class Group(Figures, kw_only=True):
    """A driven phase over its repeats."""

    scenario: str | None
    id: str | None
    kind: str | None
    title: str | None
    why: str | None
    variant: Variant
    target: str
    headline: str
    rows_per_transaction: Figure | None
    published: list[Compared]
    phases: Annotated[list[str], Meta(description="folders of the repeats")]
    repeats: int
    incomplete: bool
    clients: int | None
    tps: GroupRate | None
    rows_per_s: GroupRate | None
    metrics_per_s: GroupRate | None
    tps_including_connections: PerSecond | None
    latency: MedianLatencies
    percentiles: list[Percentile]
    failed: int
    done: int
    ratio_to_first: RateRatio | None


class SweepRow(Figures, kw_only=True):
    """One value of a swept parameter."""

    values: list[Value]
    value: str
    rate: GroupRate | None
    p99_ns: Nanoseconds | None
    table_bytes: Bytes | None
    index_bytes: Bytes | None
    index_growth_bytes: Bytes | None
    index_bytes_per_row: BytesPerRow | None
    wal_bytes_per_row: BytesPerRow | None
    ratio: RateRatio | None


class Sweep(Figures, kw_only=True):
    """A phase that is swept over parameters."""

    scenario: str | None
    id: str | None
    kind: str | None
    title: str | None
    target: str
    headline: str
    parameters: list[str]
    parameter: str
    fixed: Variant
    rows: list[SweepRow]
    baseline: str


class CellRate(Figures, kw_only=True):
    """A rate in a cell."""

    value: Figure | None
    low: Figure | None
    high: Figure | None


class Cell(Figures, kw_only=True):
    """A combination of the values of a grid."""

    variant: Variant
    tps: CellRate | None
    mean_ns: Nanoseconds | None
    p95_ns: Nanoseconds | None
    p99_ns: Nanoseconds | None
    failed: int | None
    reason: str | None


class Grid(Figures, kw_only=True):
    """A phase that is swept over several numbers."""

    scenario: str | None
    id: str | None
    title: str | None
    target: str
    parameters: list[str]
    cells: list[Cell]


class ScalingPoint(Figures, kw_only=True):
    """Throughput at a number of clients."""

    n: Figure
    tps: Figure


class FittedRange(Figures, kw_only=True):
    """A fitted figure with its 95 % interval."""

    value: Figure
    low: Figure
    high: Figure | None


class FittedLaw(Figures, kw_only=True, rename={"lambda_": "lambda"}):
    """The universal scalability law."""

    lambda_: Annotated[FittedRange, Meta(description="throughput of one client", extra={"unit": "1/s"})]
    sigma: Annotated[FittedRange, Meta(description="contention")]
    kappa: Annotated[FittedRange, Meta(description="coherency")]
    peak_n: FittedRange | None
    peak_tps: FittedRange | None
    r2: Figure
    relative_error: Annotated[Share, Meta(description="root mean square of the relative residuals")]


class ScalingCurvePoint(Figures, kw_only=True):
    """A point of the fitted law with its band."""

    n: Figure
    tps: Figure
    low: Figure | None
    high: Figure | None


class ScalingFigures(Figures, kw_only=True):
    """The scalability law over clients, for one combination of a grid's other parameters."""

    scenario: str | None
    id: str | None
    title: str | None
    target: str
    over: str
    fixed: Variant
    points: list[ScalingPoint]
    fit: FittedLaw | None
    reason: str | None
    sentence: str
    curve: list[ScalingCurvePoint]
    method: str
    confidence: Share

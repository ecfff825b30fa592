"""What a driver did, in summary.json."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from loadstone.results.documents.base import Stats
from loadstone.results.documents.drive import Connect, Draw, Failure, Loop, Operations, Pace, Script
from loadstone.results.documents.summary.rates import (
    CurvePoint,
    Drift,
    Latency,
    LatencyPoint,
    Rate,
    RatePoint,
)
from loadstone.results.documents.summary.units import (
    Bytes,
    Figure,
    Figures,
    Nanoseconds,
    PerSecond,
    Seconds,
    Share,
    Value,
)


class OutcomeCounts(Figures, kw_only=True):
    """Outcomes of transactions."""

    scheduled: int
    carried: Annotated[int, Meta(description="begun in the warm-up, ended in the measured window")]
    done: int
    failed: int
    skipped: int
    dropped: int


class Equation(Figures, kw_only=True):
    """Whether what began is what ended."""

    holds: Annotated[bool | None, Meta(description="null: rebuilt from the intervals")]
    text: str


class TimedOutage(Figures, kw_only=True):
    """A time in which clients were without their connection."""

    start_ns: Nanoseconds
    end_ns: Nanoseconds | None
    clients: int | None
    start_s: Annotated[Seconds | UnsetType | None, Meta(description="not of queries beside a load")] = UNSET
    end_s: Seconds | UnsetType | None = UNSET


class StatementFigures(Figures, kw_only=True):
    """A statement of a script."""

    script: int
    index: int
    line: int | None
    text: str | None
    failed: int | None
    service: Latency


class ClientCpuFigures(Figures, kw_only=True):
    """CPU time of our threads."""

    user_ns: Nanoseconds
    system_ns: Nanoseconds
    per_transaction_ns: Nanoseconds | None
    utilisation: Annotated[Share | None, Meta(description="of the threads' wall time")]


class DriveFigures(Figures, kw_only=True):
    """The driver's results with intervals and percentiles. Times count from the run's origin."""

    io: str | None
    mode: str | None
    clients: int | None
    threads: int | None
    pace: Pace | None
    seed: Value
    reconstructed: Annotated[bool, Meta(description="rebuilt from the intervals: the run was killed")]
    state: str | None
    reason: str | None
    start_s: Seconds
    measure_s: Seconds
    end_s: Seconds
    measured_s: Seconds
    warmup_s: Seconds
    counts: OutcomeCounts
    warmup_counts: OutcomeCounts
    losses: Annotated[list[str], Meta(description="how the server failed to serve to the end")]
    window_end_ns: Nanoseconds
    pauses_s: Annotated[Seconds, Meta(description="our own threads were stopped")]
    equation: Equation
    drift: Drift | None
    series: list[RatePoint]
    latency_series: list[LatencyPoint]
    curve: list[CurvePoint]
    logged: Annotated[int, Meta(description="samples in latency.hlog")]
    tps: Rate
    tps_including_connections: PerSecond | None
    rows_per_s: Rate | None
    metrics_per_s: Rate | None
    response: Latency
    service: Latency | None
    latency_note: str
    statements: list[StatementFigures]
    in_doubt: int
    retried: int
    retries: int
    late: int
    errors: list[Failure]
    outages: list[TimedOutage]
    scripts: list[Script]
    connect: Connect | None
    lag: Stats | None
    loop: Loop | None
    bytes_sent: Bytes | None
    bytes_received: Bytes | None
    client_cpu: ClientCpuFigures | None
    ceiling_tps: Annotated[
        PerSecond | UnsetType | None, Meta(description="of our own, by the calibration; phases only")
    ] = UNSET
    operations: Annotated[Operations | UnsetType, Meta(description="only of scripts in Lua")] = UNSET


class QueryFigures(Figures, kw_only=True):
    """A kind of query."""

    label: str | None
    counts: OutcomeCounts | None
    rows: int | None
    response_mean_ns: Nanoseconds | None
    service: Latency


class LateQueries(Figures, kw_only=True):
    """Queries in the last third of a load."""

    seconds: Seconds | None
    done: int
    qps: Figure | None
    mean_ns: Nanoseconds | None
    words: str


class MixedPlainFigures(LateQueries, kw_only=True):
    """Queries near the end of a load, and all that failed."""

    failed: int
    clients: int | None


class MixedQueriesFigures(Figures, kw_only=True):
    """The queries that ran while a phase loaded."""

    drive: DriveFigures
    queries: list[QueryFigures] | None
    late: LateQueries | None


class ConcurrentQueriesFigures(Figures, kw_only=True):
    """Plain queries that clients asked as a load."""

    table: str | None
    rows: int | None
    clients: int | None
    draws: list[Draw] | None

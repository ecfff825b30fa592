"""Plain queries in summary.json: asked one by one, asked as a load, and the imports before them."""

from typing import Annotated

from msgspec import Meta

from loadstone.results.documents.drive import Draw
from loadstone.results.documents.phase import Published
from loadstone.results.documents.summary.drives import MixedPlainFigures
from loadstone.results.documents.summary.phases import Compared
from loadstone.results.documents.summary.rates import GroupRate, Ratio
from loadstone.results.documents.summary.units import (
    Bytes,
    BytesPerRow,
    BytesPerSecond,
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


class QueryTimes(Figures, kw_only=True):
    """The median of the runs of a query, with the interval between two of the sorted times."""

    median_s: Seconds | None
    low_s: Seconds | None
    high_s: Seconds | None
    coverage: Annotated[Share | None, Meta(description="probability that the interval contains the median")]
    n: int
    whole_range: Annotated[bool, Meta(description="the interval is that of all runs")]
    runs: Annotated[list[Figure], Meta(extra={"unit": "s"})]


class QueryRun(Figures, kw_only=True):
    """One run of a query."""

    round: int
    kind: str
    number: int | None
    seconds: Seconds | None
    state: str
    reason: str | None
    repeat: int = 1


class Beyond(Figures, kw_only=True):
    """Whether a rate is above what the machine gives, so that not all of the bytes were read."""

    warm: bool
    cold: bool
    named: bool


class PlainQueryFigures(Figures, kw_only=True):
    """A query on one target."""

    name: str
    cold: QueryTimes
    warm: QueryTimes
    ratio_to_first: Ratio | None
    cold_ratio_to_first: Ratio | None
    failed: Annotated[str | None, Meta(description="how many runs failed, and why the first did")]
    wrong: Annotated[str | None, Meta(description="how the answer differs from another target's")]
    plan_says_gpu: bool | None
    gpu: Annotated[str | None, Meta(description="GPU or CPU")]
    energy_j: Joules | None
    sql: str | None
    plan: str | None
    runs: list[QueryRun]
    rows_per_s: PerSecond | None
    bytes_per_s: BytesPerSecond | None
    cold_bytes_per_s: BytesPerSecond | None
    not_all_read: Beyond
    named_columns: Annotated[list[str], Meta(description="columns that the query names")]
    named_bytes_per_s: BytesPerSecond | None
    named_of_memory: Annotated[Figure | None, Meta(description="share of the memory's bandwidth")]


class EmptiedCaches(Figures, kw_only=True):
    """How the caches were emptied."""

    emptied: bool
    note: str


class PlainQueriesTarget(Figures, kw_only=True):
    """The queries of a phase on one target."""

    target: str
    in_process: bool
    rows: Figure | None
    table_bytes: Bytes | None
    phases: list[str]
    incomplete: list[str]
    caches: EmptiedCaches | None
    is_cold: bool | None
    cold_words: str
    notes: list[str]
    client_share: Share | None
    queries: list[PlainQueryFigures]


class PlainQueriesFigures(Figures, kw_only=True):
    """Queries that ran one by one."""

    scenario: str | None
    id: str | None
    title: str | None
    why: str | None
    variant: Variant
    rounds: int
    cold: bool
    table: str | None
    queries: list[str]
    first: str
    targets: list[PlainQueriesTarget]
    published: list[Published]


class PublishedWidth(Compared, kw_only=True):
    """A published figure at a number of clients."""

    clients: Value


class WidthPoint(Figures, kw_only=True):
    """Queries at one number of clients."""

    clients: int | None
    qps: GroupRate | None
    mean_ns: Nanoseconds | None
    in_flight: Figure | None
    client_busy_between: bool
    p50_ns: Nanoseconds | None
    p95_ns: Nanoseconds | None
    p99_ns: Nanoseconds | None
    done: int
    failed: int
    reason: str | None
    energy_j: Annotated[Joules | None, Meta(description="of one query")]
    cpu_server: Share | None
    cpu_client: Share | None
    server_rss_bytes: Bytes | None
    client_rss_bytes: Bytes | None
    gpu_utilisation: Share | None
    gpu_memory_bytes: Bytes | None
    cpu_others: Annotated[Share | None, Meta(description="of other programs and the hypervisor")] = None


class WidthVerdict(Figures, kw_only=True):
    """What more clients brought."""

    kind: Annotated[str, Meta(description="fills_machine, shared, serialises, flat or scales")]
    serialises: bool
    fills_machine: bool
    from_clients: int
    to_clients: int
    qps_ratio: Figure
    latency_ratio: Figure | None
    cpu_alone: Share | None
    cpu_others: Annotated[Share | None, Meta(description="with the most clients")] = None


class WidthTarget(Figures, kw_only=True):
    """Queries by the number of clients on one target."""

    target: str
    points: list[WidthPoint]
    verdict: WidthVerdict | None


class Concurrency(Figures, kw_only=True):
    """Queries that clients asked as a load."""

    scenario: str | None
    id: str | None
    title: str | None
    why: str | None
    variant: Variant
    draws: list[Draw]
    rows: int | None
    targets: list[WidthTarget]
    published: list[PublishedWidth]


class ImportFigures(Figures, kw_only=True):
    """An import on one target."""

    id: str | None
    title: str | None
    variant: Variant
    target: str
    incomplete: bool
    rows_per_s: GroupRate
    runs: int
    interval_words: Annotated[str, Meta(description="why there is no interval")]
    ratio_to_first: Ratio | None
    rows: int | None
    seconds: Seconds | None
    finish_s: Seconds
    method: str | None
    workers: int | None
    bytes_per_s: BytesPerSecond | None
    bytes_of: Annotated[str | None, Meta(description="text or values")]
    mixed: MixedPlainFigures | None
    published: list[Compared]


class ImportSize(Figures, kw_only=True):
    """The size of what was loaded last on one target."""

    target: str
    rows: Figure | None
    table_bytes: Bytes
    row_bytes: BytesPerRow | None
    plain_row_bytes: BytesPerRow | None
    plain_of: Annotated[str | None, Meta(description="text or values")]
    ratio: Annotated[Figure | None, Meta(description="plain bytes over bytes on disk")]
    ratio_to_first: Ratio | None


class Imports(Figures, kw_only=True):
    """The imports of a scenario."""

    scenario: str | None
    loads: list[ImportFigures]
    sizes: list[ImportSize]
    published: list[Published]


class ImportCost(Figures, kw_only=True):
    """What an import costs."""

    id: str | None
    title: str | None
    variant: Variant
    per_million_rows: Figure | None


class QueryCost(Figures, kw_only=True):
    """What a query costs."""

    scenario: str | None
    id: str | None
    variant: Variant
    name: str
    per_thousand: Figure | None


class WidthCost(Figures, kw_only=True):
    """What a query costs at a number of clients."""

    scenario: str | None
    id: str | None
    variant: Variant
    clients: int | None
    per_thousand: Figure | None


class TargetCost(Figures, kw_only=True):
    """Costs on one target, in the user's currency."""

    target: str
    price_per_hour: Figure
    imports: list[ImportCost]
    queries: list[QueryCost]
    loads: list[WidthCost]

"""Loads, steps, sizes and storage in summary.json."""

from typing import Annotated

from msgspec import Meta

from loadstone.results.documents.phase import StoredIndex
from loadstone.results.documents.summary.rates import Rate
from loadstone.results.documents.summary.units import (
    Bytes,
    BytesPerRow,
    Figure,
    Figures,
    PerSecond,
    Seconds,
    Share,
)


class TableRows(Figures, kw_only=True):
    """A table of a load."""

    name: str
    rows: int


class Built(Figures, kw_only=True):
    """Indexes that were made after the rows."""

    indexes: int
    rows_s: Seconds
    indexes_s: Seconds
    whole_s: Seconds
    rows_per_s: Annotated[PerSecond | None, Meta(description="of rows and indexes together")]


class LoadFigures(Figures, kw_only=True):
    """A load beyond its rate."""

    rows: int
    metrics: int
    batches: int | None
    tags_rows: int | None
    seconds: Seconds
    method: str | None
    workers: int | None
    tables: list[TableRows]
    starved: Annotated[Share | None, Meta(description="of the workers' time, in which they waited for rows")]
    wal_bytes_per_row: BytesPerRow | None
    table_bytes_per_row: BytesPerRow | None
    index_bytes_per_row: BytesPerRow | None
    compression: Figure | None
    logical_row_bytes: BytesPerRow | None
    finish_s: Annotated[Seconds, Meta(description="statements with which the engine ends a load")]
    text_row_bytes: BytesPerRow | None
    bytes_per_row_on_the_wire: BytesPerRow | None
    built: Built | None
    cpu_server: Share | None
    cpu_client: Share | None
    client_share: Annotated[Share | None, Meta(description="of the CPU time of both")]


class StepFigures(Figures, kw_only=True):
    """A step of a load."""

    step: int
    rows_before: int
    rows: int
    seconds: Seconds | None
    state: str
    reason: str | None
    start_s: Seconds | None
    end_s: Seconds | None
    rows_per_s: PerSecond | None
    table_bytes: Bytes | None
    index_bytes: Bytes | None
    toast_bytes: Bytes | None
    wal_bytes: Bytes | None
    wal_bytes_per_row: BytesPerRow | None
    hit_ratio: Share | None
    checkpoints: Figure | None
    server_cpu_s: Seconds | None
    client_cpu_s: Seconds | None
    server_write_bytes: Bytes | None


class KneePoint(Figures, kw_only=True):
    """A point of the fitted curve."""

    rows: Figure
    seconds: Seconds


class KneeFigures(Figures, kw_only=True):
    """The knee of a load in steps, or why there is none."""

    found: bool
    outcome: Annotated[str, Meta(description="knee, none, steady, unclear or too_few")]
    method: str
    sentence: str
    evidence: str
    flat_seconds: Seconds | None
    steps: int
    reason: str | None = None
    up_to_rows: Figure | None = None
    confidence: Share | None = None
    rows: Annotated[Figure | None, Meta(description="the place of the knee")] = None
    low: Figure | None = None
    high: Figure | None = None
    end_seconds: Seconds | None = None
    slope_seconds_per_million: Seconds | None = None
    p_constant: Share | None = None
    p_steady: Share | None = None
    curve: list[KneePoint] | None = None


class PublishedCurve(Figures, kw_only=True):
    """A published curve with the knee that this method reads out of it."""

    name: str | None
    step_rows: int
    seconds: list[Figure]
    note: str
    knee: KneeFigures | None


class Advice(Figures, kw_only=True):
    """How large a partition should be."""

    partition_rows: int | None
    column: str | None
    by: Annotated[str | None, Meta(description="time or id")]
    partitions: int | None
    rows_per_s: Rate | None
    sentences: list[str]
    ddl: str


class StepsFigures(Figures, kw_only=True):
    """A load in steps."""

    step_rows: int
    points: list[StepFigures]
    curves: list[PublishedCurve]
    knee: KneeFigures | None
    advice: Advice | None
    memory_limit_bytes: Bytes | None


class RelationGrowth(Figures, kw_only=True):
    """A relation of the database."""

    name: str
    kind: str | None
    table: str | None
    bytes: Bytes | None
    rows_estimate: Figure | None
    growth_bytes: Bytes


class KindGrowth(Figures, kw_only=True):
    """Bytes of one kind of relation."""

    before: Bytes
    after: Bytes
    growth: Bytes


class RelationKinds(Figures, kw_only=True):
    """Bytes by kind of relation."""

    table: KindGrowth
    index: KindGrowth
    toast: KindGrowth
    other: KindGrowth


class PerUnit(Figures, kw_only=True):
    """Bytes for each transaction and row."""

    wal_bytes_per_transaction: Figure | None
    wal_bytes_per_row: BytesPerRow | None
    table_bytes_per_row: BytesPerRow | None
    index_bytes_per_row: BytesPerRow | None


class SizeFigures(Figures, kw_only=True):
    """Sizes of the database before and after a phase."""

    database_before: Bytes | None
    database_after: Bytes | None
    kinds: RelationKinds
    wal_bytes: Bytes | None
    relations: list[RelationGrowth]
    relations_left_out: int
    per_unit: PerUnit | None


class KindBytes(Figures, kw_only=True):
    """Bytes of tables by kind; they add up to the total."""

    heap: Bytes
    free: Bytes
    toast: Bytes
    index: Bytes
    map: Bytes


class BytesOfRow(Figures, kw_only=True):
    """Bytes of a row, by kind."""

    logical: BytesPerRow | None
    total: BytesPerRow | None
    allocated: BytesPerRow | None
    heap: BytesPerRow | None
    free: BytesPerRow | None
    toast: BytesPerRow | None
    index: BytesPerRow | None
    map: BytesPerRow | None


class StoredFigures(Figures, kw_only=True):
    """What tables take on disk."""

    rows: Figure | None
    logical_bytes: Bytes | None
    heap_bytes: Bytes | None
    toast_bytes: Bytes | None
    index_bytes: Bytes | None
    map_bytes: Bytes | None
    free_bytes: Bytes | None
    allocated_bytes: Bytes | None
    file_bytes: Annotated[Bytes | None, Meta(description="of a file shared with other tables")]
    file_free_bytes: Bytes | None
    kinds: KindBytes
    total_bytes: Bytes
    ratio: Annotated[Figure | None, Meta(description="bytes held over logical bytes")]
    packed: Annotated[Figure | None, Meta(description="allocated over total: under 1 if compressed")]
    per_row: BytesOfRow


class StoredTableFigures(StoredFigures, kw_only=True):
    """What one table takes on disk."""

    name: str
    indexes: list[StoredIndex] | None = None
    shared_file: bool | None = None


class LookFigures(Figures, kw_only=True):
    """All tables at one moment."""

    when: str | None
    tables: list[StoredTableFigures]
    sum: StoredFigures


class WrittenFigures(Figures, kw_only=True):
    """What was written to get the rows onto the disk."""

    wal_bytes: Bytes | None
    device_bytes: Bytes | None
    server_bytes: Bytes | None
    amplification: Figure | None
    of: str | None
    wal_per_logical: Figure | None


class StorageFigures(Figures, kw_only=True):
    """What a load takes on disk."""

    looks: list[LookFigures]
    written: WrittenFigures
    notes: list[str]


class Mark(Figures, kw_only=True):
    """A point of a long transaction's course."""

    rows: int
    t_s: Seconds


class TransactionFigures(Figures, kw_only=True):
    """A long transaction."""

    transaction: int
    state: str
    rows: int
    start_s: Seconds
    seconds: Seconds | None
    rows_per_s: PerSecond | None
    commit_s: Seconds | None
    marks: list[Mark]


class Spread(Figures, kw_only=True):
    """How times spread."""

    count: int
    median_s: Seconds
    p95_s: Seconds | None
    p99_s: Seconds | None
    max_s: Seconds


class MarkPoint(Figures, kw_only=True):
    """The time of a mark's rows, by the rows that went in before."""

    rows: int
    p50_s: Seconds | None
    p95_s: Seconds | None


class TransactionsFigures(Figures, kw_only=True):
    """Loads by long transactions."""

    transactions: list[TransactionFigures]
    committed: int
    rows_committed: int
    commit_s: Spread | None
    mark_rows: int | None
    per_mark: Spread | None
    course: list[MarkPoint]

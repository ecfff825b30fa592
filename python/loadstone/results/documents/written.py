"""Keys that a run writes for its readers, and that nothing is computed with: the report does not check them.

Each type adds keys to one that is read: see ADDED. docs/run-folder.md has both in one table.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from loadstone.results.documents.base import Amount, Count, Ns, Number, Stats, Struct, Words
from loadstone.results.documents.drive import (
    Caches,
    Column,
    ConcurrentQueries,
    Drive,
    Interval,
    Loaded,
    LoadedTable,
    Queries,
    QueriesInTurn,
    QueriesInTurnDrive,
    QueryInTurn,
    RowSource,
)
from loadstone.results.documents.phase import Check, Statement
from loadstone.results.documents.run import Bandwidth, Build, Core, Environment, Place


class CoreBuild(Struct, frozen=True):
    """Which build of our compiled part it is."""

    version: str
    sha256: str | None
    crates: Annotated[
        dict[str, list[str]] | None,
        Meta(description="versions of every crate that it was built from, by name"),
    ]


class LoadstoneVersion(Struct, frozen=True):
    """Which Loadstone this is."""

    version: str


class Python(Struct, frozen=True):
    """The interpreter."""

    version: str
    implementation: str


class System(Struct, frozen=True):
    """The operating system. Unknown values are null, here and below."""

    hostname: str | None
    kernel: str | None
    distribution: str | None
    virtualisation: str | None
    container: str | None
    clock_source: str | None
    time_zone: str | None
    as_root: bool


class Cpu(Struct, frozen=True):
    """The processors."""

    model: str | None
    architecture: str | None
    cores_physical: Count | None
    cores_logical: Count | None
    cores_online: Count | None
    cores_usable: Annotated[Count | None, Meta(description="by the affinity of our process")]
    cores_limit: Annotated[Amount | None, Meta(description="of the control group")]
    smt: bool | None
    numa_nodes: Count | None
    frequency_max_hz: Amount | None
    governors: list[str]
    frequency_driver: str | None
    turbo: bool | None


class Memory(Struct, frozen=True):
    """The machine's memory."""

    total_bytes: Count | None
    available_bytes: Count | None
    limit_bytes: Annotated[Count | None, Meta(description="of the control group")]
    swap_total_bytes: Count | None
    swap_used_bytes: Count | None
    huge_pages_total: Count | None
    huge_pages_free: Count | None
    huge_page_bytes: Count | None
    transparent_huge_pages: str | None
    swappiness: Count | None
    overcommit: Count | None
    dirty_ratio: Count | None
    dirty_background_ratio: Count | None


class Filesystem(Struct, frozen=True):
    """A folder's file system, and the disk below it."""

    path: str
    filesystem: str | None
    mount_point: str | None
    options: str | None
    disk_model: str | None
    rotational: bool | None
    scheduler: str | None
    write_cache: str | None
    total_bytes: Count | None
    free_bytes: Count | None


class Limit(Struct, frozen=True):
    """A limit of the operating system; null: none."""

    soft: Count | None
    hard: Count | None


class Limits(Struct, frozen=True):
    """Limits of our process."""

    open_files: Limit | None
    processes: Limit | None
    locked_memory_bytes: Limit | None
    threads_max: Count | None


class ControlGroupPath(Struct, frozen=True):
    """Our own control group."""

    version: Annotated[Count | None, Meta(description="1 or 2: which one accounts for memory")]
    path: str | None


class IoUring(Struct, frozen=True):
    """Whether io_uring can be used."""

    available: bool
    reason: str | None
    sysctl: int | None


class GpuModel(Struct, frozen=True):
    """A GPU of NVIDIA's, where `nvidia-ml-py` is installed and a driver answers."""

    model: str | None
    memory_bytes: Count | None
    driver: str | None


class MachineFacts(Struct, frozen=True):
    """The machine that Loadstone runs on."""

    format: Annotated[int, Meta(description="1")]
    python: Python
    libraries: Annotated[dict[str, str | None], Meta(description="versions; null: not installed")]
    system: System
    cpu: Cpu
    memory: Memory
    limits: Limits
    control_group: ControlGroupPath
    io_uring: IoUring
    gpus: list[GpuModel]
    load: Annotated[list[Number] | None, Meta(description="load average over 1, 5 and 15 minutes")]
    on_battery: bool | None


class Measured(Struct, frozen=True):
    """How the bandwidth of memory was measured."""

    threads: Annotated[Count | None, Meta(description="of memory only")] = None
    buffer_bytes: Annotated[Count | None, Meta(description="of memory only")] = None


class DigestColumn(Struct, frozen=True):
    """A column of an answer: `count` is of values that are not NULL."""

    name: str
    kind: Annotated[str, Meta(description="text, time, number or span")]
    count: Count
    crc: Annotated[Count | None, Meta(description="text, time: sum of the values' CRC-32")] = None
    min_us: Annotated[int | None, Meta(description="time: since 1970 UTC")] = None
    max_us: Annotated[int | None, Meta(description="time: since 1970 UTC")] = None
    sum: Annotated[Number | None, Meta(description="number, span; spans in µs")] = None
    abs: Annotated[Number | None, Meta(description="number, span: sum of absolute values")] = None
    weighted: Annotated[Number | None, Meta(description="number, span: sum of value × weight of its row")] = (
        None
    )
    nan: Count | None = None
    inf: Count | None = None
    neg_inf: Count | None = None
    type_oid: Annotated[Count | None, Meta(description="of a type whose binary form is unknown")] = None


class Digest(Struct, frozen=True):
    """An answer, for comparison between engines, whatever the order of its rows."""

    rows: Count
    keys: Annotated[
        int, Meta(description="sum of each row's CRC-32 of its texts, times and NULLs, modulo 2^64")
    ]
    columns: list[DigestColumn]


class Answer(Struct, frozen=True):
    """The answer of a distinct text: its digest, or its first rows where rows were requested."""

    query: Annotated[Count, Meta(description="number of the first query with that text, from 0")]
    digest: Digest | None = None
    columns: list[str] | None = None
    rows: list[list[Words]] | None = None
    row_count: Count | None = None


class Translation(Struct, frozen=True):
    """What was done to TSBS's queries for an engine with other SQL."""

    translated: Count
    as_they_are: Annotated[dict[str, Any], Meta(description="why queries were sent unchanged, by label")]


class QueryList(Struct, frozen=True):
    """The queries that were sent."""

    total: Annotated[Count, Meta(description="queries in the list")]
    burn_in: Annotated[Count, Meta(description="counted in `warmup_counts`")]
    binary: Annotated[bool | None, Meta(description="whether answers came in binary form")]
    answers: Annotated[list[Answer], Meta(description="one for each distinct text, at most 10,000")]
    answers_left_out: Count
    translation: Translation | None = None


class Fingerprint(Struct, frozen=True):
    """All rows in acknowledged and skipped batches; whole numbers as text."""

    rows: str
    time_sum: str
    tags_sum: str
    nulls: Annotated[list[str], Meta(description="for each field")]
    content: str


class TableFingerprint(Struct, frozen=True):
    """What a table was given."""

    fingerprint: Annotated[Fingerprint | None, Meta(description="null: plain rows")]


class SourceEnd(Struct, frozen=True):
    """How far rows were made."""

    busy_ns: Annotated[Ns, Meta(description="CPU time of the thread that makes them")]
    exhausted: Annotated[bool, Meta(description="all rows were made")]


class ColumnValues(Struct, frozen=True):
    """What a column holds."""

    nulls: bool
    repeats: Annotated[bool | None, Meta(description="whether texts come again")] = None
    sql: Annotated[str | None, Meta(description="its type in SQL, where the scenario gives one")] = None


class DriveStep(Struct, frozen=True):
    """A step as the driver saw it: what was acknowledged to this drive."""

    step: Count
    first_row: Annotated[Count, Meta(description="of the data, from 0")]
    rows: Count
    batches: Count
    start_ns: Annotated[Ns, Meta(description="its first batch could begin")]
    end_ns: Annotated[Ns | None, Meta(description="last acknowledgement")]
    state: Annotated[str, Meta(description="complete, failed or interrupted")]


class CpuOfLoad(Struct, frozen=True):
    """CPU time of a load."""

    server_s: Number | None
    client_s: Number | None
    client_share: Number | None
    in_process: Annotated[bool, Meta(description="the engine works in our process: both are in `client_s`")]


class Committed(Struct, frozen=True):
    """What is in the table, by the ledger."""

    batches: Count
    rows: Count


class BytesOfTable(Struct, frozen=True):
    """The size of a time series table after its load."""

    name: str
    rows: Count | None
    table_bytes: Count | None
    index_bytes: Count | None
    bytes_per_row: Number | None
    compression: Number | None
    outside: Annotated[Count | None, Meta(description="rows outside the span of the partitions")]


class LoadBatches(Struct, frozen=True):
    """What became of the batches: made = batches + unsent + failed + in doubt."""

    made_batches: Count
    skipped_batches: Annotated[Count, Meta(description="stored before, not sent")]
    unsent_batches: Annotated[Count, Meta(description="made, never sent")]
    failed_batches: Annotated[list[Count], Meta(description="numbers of those surely not stored")]
    in_doubt_batches: Annotated[
        list[Count], Meta(description="numbers of those sent without an answer: stored or not")
    ]
    committed: Committed
    tags_total: Annotated[Count, Meta(description="rows of tags, those of skipped batches too")]
    marks: Annotated[Count, Meta(description="lines of sent.jsonl")]
    steps: Annotated[list[DriveStep], Meta(description="empty without `step_rows`")]
    statements: Annotated[list[Statement], Meta(description="that made the table")]
    cpu: CpuOfLoad | None
    wal_bytes: Annotated[Count | None, Meta(description="of the drive")]
    checks: list[Check]
    verified: Annotated[bool | None, Meta(description="null: not requested")]
    notes: list[str]
    tables_bytes: list[BytesOfTable] | None = None


class DriveFormat(Struct, frozen=True):
    """Which form of drive.json it is."""

    format: Annotated[int, Meta(description="1")]


class QueriesInTurnDriveFormat(DriveFormat, frozen=True):
    """The same of queries that ran one by one."""

    seed: Words
    output_error: Annotated[str | None, Meta(description="why other files end early")] = None


class DistinctTexts(Struct, frozen=True):
    """How many texts were drawn."""

    distinct: Annotated[Count, Meta(description="texts drawn for each query")]


class TimeLimit(Struct, frozen=True):
    """The limit of a run."""

    timeout_s: Number | None


class RestartAdvice(Struct, frozen=True):
    """What would empty the caches."""

    restart_would_help: bool | None = None


class AnswerDigest(Struct, frozen=True):
    """The answer of a query."""

    answer: Digest | None


class IntervalStats(Stats, frozen=True):
    """A distribution of an interval, with percentiles."""

    p50_ns: Ns | None = None
    p95_ns: Ns | None = None
    p99_ns: Ns | None = None


class IntervalLatency(Struct, frozen=True):
    """Latencies of an interval."""

    response: IntervalStats | None = None


ADDED: dict[type[msgspec.Struct], type[msgspec.Struct]] = {
    QueriesInTurnDrive: QueriesInTurnDriveFormat,
    QueriesInTurn: TimeLimit,
    QueryInTurn: AnswerDigest,
    ConcurrentQueries: DistinctTexts,
    Bandwidth: Measured,
    Build: LoadstoneVersion,
    Caches: RestartAdvice,
    Column: ColumnValues,
    Core: CoreBuild,
    Drive: DriveFormat,
    Environment: MachineFacts,
    Interval: IntervalLatency,
    Loaded: LoadBatches,
    LoadedTable: TableFingerprint,
    Place: Filesystem,
    Queries: QueryList,
    RowSource: SourceEnd,
}
"""Which keys are written beside those that are read."""

"""The nouns that several stages share, as frozen values without behaviour of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Value = bool | int | float | str
"""The value of a scenario's parameter."""

PhaseKind = Literal["sql", "script", "load", "queries", "size", "check"]
QueryMode = Literal["simple", "extended", "prepared"]
PaceKind = Literal["closed", "fixed", "poisson", "varying"]
InOut = Literal["auto", "io_uring", "epoll"]
"""Which interface of the kernel carries the driver's bytes; `auto` is io_uring where it is allowed."""
WireProtocol = Literal["postgres", "mysql"]
"""What a server speaks, by the name that the core has for it."""
FileFormat = Literal["text", "csv", "binary", "parquet"]
Compression = Literal["none", "gzip", "zstd"]
SIZES = ("tiny", "small", "full")
"""The sizes that every scenario has."""
MATTERS = 0.03
"""The smallest difference that matters, as a part of one, where nobody says another."""


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach one server by its wire protocol; for PostgreSQL's, libpq's parameters, resolved.

    `host` beginning with "/" is the folder of a unix socket, or, with MySQL's protocol, the socket. The
    password never shows in `repr`.
    """

    host: str
    port: int
    user: str
    database: str
    password: str | None = field(default=None, repr=False)
    sslmode: str = "prefer"
    sslrootcert: str | None = None
    sslcert: str | None = None
    sslkey: str | None = None
    channel_binding: str = "prefer"
    connect_timeout_s: float = 10.0
    application_name: str = "loadstone"
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Further start-up parameters (`options`, `search_path`, …), sent as they are; with MySQL's protocol,
    variables of each session."""
    claimed: tuple[str, str] | None = None
    """A schema, and the mark that it must still bear for a session to be ours."""
    protocol: WireProtocol = "postgres"
    session_check: str | None = None
    """A query for each of the driver's sessions after its log-in: no row where it is as requested, else what
    is wrong and how to mend it. None: PostgreSQL's own is made of `parameters` and `claimed`."""

    def document(self) -> dict[str, Any]:
        """Return how the core is told where to connect, the password included."""
        names = (
            "protocol", "host", "port", "user", "database", "password", "sslmode", "sslrootcert", "sslcert",
            "sslkey", "channel_binding", "connect_timeout_s", "application_name",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names} | {"parameters": dict(self.parameters)}


@dataclass(frozen=True, slots=True)
class Published:
    """One figure of the published test, to be shown beside ours."""

    metric: str
    value: float
    unit: str
    note: str = ""
    system: str = ""
    """Which of the systems that were compared; empty where there was one."""
    query: str = ""
    """Name of the query that the figure is of; empty: of the whole phase."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a published test comes from, and on what it ran."""

    title: str
    author: str
    year: int
    hardware: str
    cores: int
    url: str = ""


@dataclass(frozen=True, slots=True)
class Script:
    """One pgbench-language script with its weight in the mix."""

    name: str
    text: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class RatePiece:
    """A time in which a rate goes evenly from one value to another."""

    from_per_s: float
    to_per_s: float
    length_s: float


RATE_MAX_PER_S = 1e7
"""No server takes more, and the schedule alone would keep a core busy: the driver refuses higher rates."""


@dataclass(frozen=True, slots=True)
class Pace:
    """When transactions are to start; `rate_per_s` is the total over all clients."""

    kind: PaceKind = "closed"
    rate_per_s: float | None = None
    pieces: tuple[RatePiece, ...] = ()
    """Of a varying pace, of which `rate_per_s` is the highest; after the last piece its last rate goes on."""


@dataclass(frozen=True, slots=True)
class RowCheck:
    """After a script phase: `count_sql` (one integer) must have grown by rows_per_transaction x done."""

    count_sql: str
    rows_per_transaction: int


@dataclass(frozen=True, slots=True)
class Drive:
    """All that the driver needs to know of a phase, except where to connect."""

    scripts: tuple[Script, ...]
    mode: QueryMode = "prepared"
    clients: int = 1
    threads: int | None = None
    duration_s: float | None = None
    transactions_per_client: int | None = None
    warmup_s: float = 0.0
    pace: Pace = Pace()
    latency_limit_ms: float | None = None
    timeout_s: float = 60.0
    reconnect: bool = False
    ramp_up_s: float = 0.0
    """Clients begin evenly over this time."""
    connect_rate_per_s: float | None = None
    """Most connections begun in a second."""
    seed: int = 1
    variables: Mapping[str, Value] = field(default_factory=dict)


UseCase = Literal["iot", "devops", "cpu-only", "cpu-single", "devops-generic"]
LoadMethod = Literal["copy_binary", "copy_text", "insert", "arrow", "best"]
"""How rows are sent; `best` leaves the choice to the engine."""


@dataclass(frozen=True, slots=True)
class Series:
    """The rows of a time-series data set: TSBS's serial stream, or the native one that starts anywhere."""

    use_case: UseCase
    start: str
    """First timestamp, RFC 3339, inclusive."""
    end: str
    """RFC 3339, exclusive."""
    scale: int = 1
    seed: int = 123
    interval_s: float = 10.0
    initial_scale: int = 0
    """Devices that report in the first epoch; 0: all."""
    max_points: int = 0
    max_metrics: int = 100
    """Most fields of one host; `devops-generic` only."""
    native: bool = False
    slice: tuple[int, int] = (0, 1)
    """Which slice of how many; native data only."""


@dataclass(frozen=True, slots=True)
class SeriesTables:
    """How the tables of a time-series data set are made; an engine maps each wish to its own means."""

    time_index: bool = True
    partition_index: bool = True
    """An index on (device, time)."""
    time_partition_index: bool = False
    """An index on (time, device) in place of the one on time."""
    field_index: Literal["VALUE-TIME", "TIME-VALUE"] = "VALUE-TIME"
    field_index_count: int = 0
    """How many fields get an index of their own; -1: all."""
    chunk_time_s: float | None = None
    """Span of one partition or chunk; None: the table is not split by time."""
    hash_partitions: int = 0
    """How many parts each span is split into by device; 0: it is not split."""
    jsonb_tags: bool = False
    in_table_tag: bool = False
    """The first tag is in every row, and is what (device, time) means."""
    compress: bool = False
    """Compress or turn into columns what is loaded, where the engine can."""
    compress_after_s: float | None = None
    """Leave a policy behind that compresses what is older than that, where the engine can."""


@dataclass(frozen=True, slots=True)
class Load:
    """A load of a data set into tables that are there."""

    data: Series | str
    """A data set to generate, or the path of a file in TSBS's own text format; "-" is standard input."""
    method: LoadMethod = "copy_binary"
    batch_rows: int = 10_000
    """Rows of one batch, over all tables together; a batch is one transaction."""
    workers: int = 1
    hash_workers: bool = False
    """All rows of a device go through the same worker."""
    limit_rows: int = 0
    """Stop after so many rows; 0: all."""
    pace: Pace = Pace()
    """When batches are to start; the rate is in batches per second."""
    insert_intervals: str = ""
    """TSBS's `a,b-c`: least seconds between the starts of a worker's batches."""
    tables: SeriesTables = SeriesTables()
    timeout_s: float = 60.0
    seed: int = 1
    """Of random starts and intervals; the data set has its own."""


RowFormat = Literal["text", "csv", "binary", "parquet"]
"""How a file of rows is written: as PostgreSQL's COPY reads it, or as Parquet, which is read as values."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one plain table: generated, or read from files.

    Generated row *i* is a function of set, options, seed and *i*: any slice can be made on its own.
    """

    set: str = ""
    """Name of a built-in data set. With files: their rows have its columns, else they say for themselves."""
    rows: int = 0
    """How many; of files: 0, all that they hold."""
    first: int = 0
    """Number of the first row, counted from 0."""
    seed: int = 1
    options: Mapping[str, Value] = field(default_factory=dict)
    """What the set offers to choose, such as the distribution of its values."""
    files: tuple[str, ...] = ()
    """Paths, loaded one after the other."""
    format: RowFormat = "text"
    header: bool = False
    """Each CSV file begins with a line of column names."""

    @property
    def as_they_are(self) -> bool:
        """Whether rows of files are sent as they lie there, not as values."""
        return bool(self.files) and self.format != "parquet"


TableForm = Literal["default", "columnar"]
ToastCompression = Literal["default", "none", "pglz", "lz4"]


@dataclass(frozen=True, slots=True)
class PlainTable:
    """How one plain table is made; an engine maps each wish to its own means."""

    name: str
    indexes: str = "0"
    """How many of the data set's usual indexes, or which: `a, b:brin, (f,l), l:hash`."""
    index_when: Literal["before", "after"] = "before"
    """Indexes are made before the load, or after it."""
    primary_key: str = ""
    """Column of the primary key; empty: none."""
    partition_column: str = ""
    """Column whose ranges are the partitions; empty: the table is not partitioned."""
    partition_rows: int = 0
    """Rows of one partition, about; 0: the table is not partitioned."""
    tablespace: str = ""
    index_tablespace: str = ""
    form: TableForm = "default"
    """`columnar`: the engine's column store."""
    compression: ToastCompression = "default"
    """How long values are compressed."""


@dataclass(frozen=True, slots=True)
class LongTransactions:
    """Rows that go in one by one, many in a transaction."""

    rows: int
    """Rows of one transaction."""
    pipeline: bool = True
    """Send the next statements without waiting for the answers to those before."""
    mark_rows: int = 1000
    """Note the time whenever so many rows more have been answered."""


@dataclass(frozen=True, slots=True)
class BulkLoad:
    """A bulk load of one plain table, in steps."""

    rows: Rows
    table: PlainTable
    step_rows: int = 0
    """Rows of one step: each begins when the one before is committed whole. 0: all rows are one step."""
    method: LoadMethod = "best"
    batch_rows: int = 100_000
    """Rows of one COPY, which is one transaction."""
    workers: int = 1
    transactions: LongTransactions | None = None
    """Single-row INSERTs in place of `method`."""
    after: tuple[str, ...] = ()
    """SQL statements once the rows are in, each timed; the storage is looked at before and after them."""
    settle: bool = False
    """Before these, have the engine put the table in order as its manual advises after a load."""
    storage: bool = False
    """Account for every byte on disk."""
    verify: Literal["content", "count"] = "content"
    timeout_s: float = 600.0


LOAD_FILES = "load:files"
"""The capability to take the rows of text files as they lie there."""
FEWEST_STEPS = 10
"""A load of fewer steps has too few points to look for the number of rows from which it becomes slower."""


@dataclass(frozen=True, slots=True)
class PublishedCurve:
    """Published seconds of each step, the first into an empty table."""

    name: str
    step_rows: int
    seconds: tuple[float, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class QueryMix:
    """Queries of TSBS's kinds over a data set, and how they are to be run."""

    series: Series
    kinds: tuple[str, ...]
    """TSBS's names: `single-groupby-1-1-1`, `last-loc`, …"""
    count: int = 100
    """Queries of each kind."""
    seed: int = 123
    workers: int = 1
    pace: Pace = Pace()
    duration_s: float | None = None
    """Go round the queries for so long; None: each once."""
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class PlainQuery:
    """A query in plain SQL, which engines may put into words of their own."""

    name: str
    sql: str
    """May hold `:name` for each of the draws."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A whole number drawn again for each call, evenly from `least` to `most`, both included."""

    name: str
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class PlainQueries:
    """Queries in plain SQL over a table that is loaded, asked in one of two ways.

    Without `duration_s` each is asked by itself: once with caches emptied, then warm, every time measured.
    With it, `clients` go round them for so long, as a load.
    """

    queries: tuple[PlainQuery, ...]
    table: str = ""
    """The table that they read: scan rates are of its rows and bytes."""
    cold: bool = True
    """Empty the caches before each query's first run, as far as that can be done."""
    warm_runs: int = 4
    clients: int = 1
    duration_s: float | None = None
    draws: tuple[Draw, ...] = ()
    distinct: int = 1000
    """How many times the draws are made beforehand."""
    seed: int = 1
    timeout_s: float = 600.0


ROUND = "round"
"""A swept parameter of this name makes variants that are turns of one measurement: targets take them in turn,
and their figures are put together."""


@dataclass(frozen=True, slots=True)
class TargetName:
    """What a target can be named by; what it does not have is empty."""

    title: str
    """Engine, and its version once that is known."""
    host: str = ""
    port: str = ""
    database: str = ""
    user: str = ""
    options: str = ""
    """Settings that its URL gives to every session."""
    given: str = ""
    """The short name of a private server, or where a file is."""
    settings: str = ""
    """Settings of this target alone."""


@dataclass(frozen=True, slots=True)
class PrivateServer:
    """What a scenario wants of a private server; it has no meaning for any other."""

    memory_bytes: int | None = None
    """Memory of the server and the page cache of its files together, where control groups allow it."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the server; those that the user gives beat them."""

"""drive.json and the lines that are written while a drive goes on."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from loadstone.results.documents.base import (
    Amount,
    Count,
    Counts,
    Ns,
    Number,
    Stats,
    Struct,
    WarmupCounts,
    Whole,
    Words,
)
from loadstone.results.documents.phase import Storage


class RatePiece(Struct, frozen=True):
    """A time in which the rate goes evenly from one value to another."""

    from_per_s: Amount
    to_per_s: Amount
    length_s: Amount


class Pace(Struct, frozen=True):
    """When transactions begin."""

    kind: Annotated[str, Meta(description="`closed`, `fixed`, `poisson` or `varying`")] = "closed"
    rate_per_s: Amount | UnsetType | None = UNSET
    pieces: Annotated[
        list[RatePiece] | UnsetType,
        Meta(description="of a rate that varies; the last rate remains"),
    ] = UNSET


class Connect(Struct, frozen=True):
    """How connecting went."""

    wall_ns: Annotated[Amount | None, Meta(description="first connect to the last client ready")] = None
    latency: Stats | None = None
    reconnects: Count | None = None


class Failure(Struct, frozen=True):
    """A class of errors."""

    sqlstate: Annotated[
        str | None,
        Meta(description="or a word: `connection`, `timeout`, `protocol`, `script`, `answer`, `internal`"),
    ] = None
    message: Annotated[str | None, Meta(description="the first of this class")] = None
    count: Count = 0
    first_ns: Ns | None = None
    last_ns: Ns | None = None


class Operations(Struct, frozen=True):
    """Statements of a script in Lua by what they did."""

    reads: Annotated[Count, Meta(description="statements with a result")] = 0
    writes: Annotated[Count, Meta(description="statements that changed rows")] = 0
    others: Count = 0
    reconnects: Annotated[Count, Meta(description="connections that the script made again")] = 0
    ignored: Annotated[
        list[Failure] | None, Meta(description="errors of statements after which the event began again")
    ] = None


class Outage(Struct, frozen=True):
    """A time in which clients were without their connection."""

    start_ns: Ns
    end_ns: Ns | None = None
    clients: Count | None = None


class LostClients(Struct, frozen=True):
    """Clients that lost their connection and had no other at the end."""

    count: Annotated[Count, Meta(description="had no new connection when the drive ended")] = 0
    first_ns: Ns | None = None
    sqlstate: str | None = None
    message: str | None = None


class Stall(Struct, frozen=True):
    """The longest time in which nothing was done although there was work."""

    start_ns: Ns
    length_ns: Annotated[Ns, Meta(description="up to the end of the window at most")]
    end_ns: Annotated[Ns | None, Meta(description="null: none was done after it")] = None


class Pauses(Struct, frozen=True):
    """Times in which our own threads were stopped."""

    count: Annotated[Count | None, Meta(description="lags of 50 ms and more")] = None
    total_ns: Ns | None = None
    longest_ns: Ns | None = None
    longest_start_ns: Ns | None = None


class Script(Struct, frozen=True):
    """A script of a drive."""

    name: str | None = None
    weight: Amount | None = None
    counts: WarmupCounts | None = None
    service: Annotated[Stats | None, Meta(description="from the real start")] = None
    response: Annotated[Stats | None, Meta(description="from the intended start")] = None


class TimedStatement(Struct, frozen=True):
    """A statement of a script."""

    script: Annotated[Count, Meta(description="number of the script, from 0")]
    index: Annotated[Count, Meta(description="number of the command, from 0")]
    line: Annotated[Count | None, Meta(description="null: of a load")] = None
    text: str | None = None
    failed: Count | None = None
    service: Stats | None = None


class ClientCpu(Struct, frozen=True):
    """CPU time of our threads."""

    user_ns: Annotated[Amount, Meta(description="of the driver's threads, in the measured window")]
    system_ns: Amount


class Loop(Struct, frozen=True):
    """The event loop."""

    iterations: Count | None = None
    events: Count | None = None
    lag: Annotated[Stats | None, Meta(description="from a wake-up to the next wait")] = None
    lag_p99_ns: Amount | None = None
    pauses: Annotated[Pauses | None, Meta(description="of the thread that lost most time")] = None


class LoadedTable(Struct, frozen=True):
    """A table of a load."""

    name: str
    rows: Annotated[Count, Meta(description="acknowledged by the server, of this drive")]


class RowSource(Struct, frozen=True):
    """The maker of the rows."""

    wait_ns: Annotated[Amount | None, Meta(description="clients waited for rows, summed over clients")] = None


class Column(Struct, frozen=True):
    """A column of a loaded table."""

    name: str
    type: str | None = None
    text_bytes: Annotated[Amount | None, Meta(description="mean length of its texts in the first rows")] = (
        None
    )


class PlainTable(Struct, frozen=True):
    """The table of a load of plain rows."""

    name: str | None = None
    metrics: Count | None = None
    columns: list[Column] | None = None
    usual_indexes: list[str] | None = None
    row_bytes: Amount | None = None
    sequence: Annotated[str | None, Meta(description="the column that grows")] = None
    sequence_first: Whole | None = None
    sequence_step: Whole | None = None
    text_row_bytes: Annotated[Amount | None, Meta(description="a row as text")] = None


class BuiltIndex(Struct, frozen=True):
    """An index or a statement of a load."""

    seconds: Amount
    text: str | None = None
    when: Annotated[str | None, Meta(description="before or after the rows")] = None
    part_of_load: Annotated[
        bool | None, Meta(description="a statement with which the engine itself finishes a load")
    ] = None


class Resumed(Struct, frozen=True):
    """What an earlier attempt had committed."""

    rows: Annotated[Count | None, Meta(description="by an earlier attempt")] = None
    batches: Count | None = None


class LongTransaction(Struct, frozen=True):
    """A long transaction of a load."""

    transaction: Count
    rows: Annotated[Count | None, Meta(description="answered")] = None
    start_ns: Annotated[Ns | None, Meta(description="BEGIN")] = None
    end_ns: Ns | None = None
    state: Annotated[str | None, Meta(description="committed, lost or in_doubt")] = None


class Loaded(Struct, frozen=True):
    """What a load did."""

    rows: Annotated[
        Count, Meta(description="acknowledged by the server, of this drive; so are metrics and batches")
    ]
    metrics: Count
    batches: Count | None = None
    tags_rows: Annotated[Count | None, Meta(description="likewise")] = None
    tables: list[LoadedTable] | None = None
    source: RowSource | None = None
    logical_bytes: Annotated[
        Amount | None,
        Meta(
            description="plain rows: octets of texts, 4 or 8 of numbers, 1 of a boolean; of files their bytes"
        ),
    ] = None
    finish_ns: Annotated[Amount | None, Meta(description="statements with which the engine ends a load")] = (
        None
    )
    table: PlainTable | None = None
    indexes: list[BuiltIndex] | None = None
    after: list[BuiltIndex] | None = None
    resumed: Resumed | None = None
    compression: Annotated[Amount | None, Meta(description="plain bytes over bytes on disk")] = None
    storage: Storage | None = None
    transactions: Annotated[list[LongTransaction] | None, Meta(description="long transactions only")] = None


class Label(Struct, frozen=True):
    """A kind of query."""

    label: str | None = None
    counts: Counts | None = None
    rows: Annotated[Count | None, Meta(description="received, all queries that were done")] = None
    response: Stats | None = None
    service: Stats | None = None


class Queries(Struct, frozen=True):
    """The queries of a drive."""

    labels: list[Label] | None = None


class Draw(Struct, frozen=True):
    """From which numbers a parameter of a query is drawn."""

    name: str
    least: Whole
    most: Whole


class Caches(Struct, frozen=True):
    """How caches were emptied."""

    emptied: Annotated[bool | None, Meta(description="before cold runs")] = None
    note: Annotated[str | None, Meta(description="how they were emptied the last time, or why not")] = None


class ConcurrentQueries(Struct, frozen=True):
    """Queries that clients asked as a load."""

    table: str | None = None
    rows: Count | None = None
    clients: Annotated[Count | None, Meta(description="how many asked")] = None
    draws: list[Draw] | None = None


class Drive(Struct, frozen=True):
    """drive.json."""

    start_ns: Annotated[Ns, Meta(description="barrier: all clients connected")]
    measure_ns: Annotated[Ns, Meta(description="end of the warm-up")]
    end_ns: Annotated[Ns, Meta(description="last transaction ended")]
    counts: Annotated[Counts, Meta(description="measured window")]
    response: Annotated[Stats, Meta(description="from the intended start")]
    bytes_sent: Count | None
    warmup_counts: WarmupCounts | None = None
    state: Annotated[str | None, Meta(description="complete, interrupted or aborted")] = None
    reason: str | None = None
    output_error: Annotated[str | None, Meta(description="why the files beside this one end early")] = None
    io: Annotated[str | None, Meta(description="io_uring or epoll; `driver`: a client library")] = None
    mode: Annotated[str | None, Meta(description="of queries; of loads the method")] = None
    clients: Count | None = None
    threads: Annotated[Count | None, Meta(description="of a client library: the clients")] = None
    seed: Words = None
    pace: Pace | None = None
    connect: Connect | None = None
    in_doubt: Annotated[Count | None, Meta(description="sent, connection lost before the answer")] = None
    retried: Count | None = None
    retries: Count | None = None
    late: Annotated[Count | None, Meta(description="over the latency limit")] = None
    service: Annotated[Stats | None, Meta(description="from the real start")] = None
    lag: Annotated[Stats | None, Meta(description="real minus intended start, under a rate")] = None
    errors: list[Failure] | None = None
    outages: list[Outage] | None = None
    deadline_ns: Ns | None = None
    lost_clients: LostClients | None = None
    lost_hosts: Annotated[
        list[str] | UnsetType, Meta(description="load hosts that were lost; only where there are several")
    ] = UNSET
    stall: Annotated[
        Stall | None,
        Meta(description="longest time of the window in which nothing was done although there was work"),
    ] = None
    scripts: list[Script] | None = None
    statements: list[TimedStatement] | None = None
    bytes_received: Count | None = None
    client_cpu: ClientCpu | None = None
    loop: Loop | None = None
    load: Loaded | None = None
    queries: Queries | None = None
    plain_queries: ConcurrentQueries | None = None
    operations: Annotated[
        Operations | UnsetType, Meta(description="only of scripts in Lua, in the measured window")
    ] = UNSET

    def check(self) -> None:
        """Raise ValueError where times do not follow each other, or labels have no statement."""
        if not self.start_ns <= self.measure_ns:
            message = "measure_ns is before start_ns"
            raise ValueError(message)
        labels = len((self.queries and self.queries.labels) or ())
        if {statement.script for statement in self.statements or ()} < set(range(labels)):
            message = "a label of `queries` has no statement"
            raise ValueError(message)


class QueryInTurnRun(Struct, frozen=True):
    """One run of a query."""

    query: str
    kind: Literal["cold", "warm"]
    state: Literal["done", "failed", "skipped"]
    number: Annotated[Count | None, Meta(description="from 1, of each kind")] = None
    start_ns: Ns | None = None
    end_ns: Ns | None = None
    seconds: Annotated[
        Amount | None,
        Meta(description="done runs: from the text sent to the last row digested"),
    ] = None
    rows: Annotated[Count | None, Meta(description="of the answer")] = None
    reason: Annotated[str | None, Meta(description="the server's message")] = None


class QueryInTurn(Struct, frozen=True):
    """A query."""

    name: str
    sql: Annotated[str | None, Meta(description="as sent")] = None
    plan: Annotated[str | None, Meta(description="as the engine explains it, after the runs")] = None
    gpu: Annotated[
        bool | None,
        Meta(description="whether the plan says that a GPU runs it; null: an engine without one, or no plan"),
    ] = None
    wrong: Annotated[str | None, Meta(description="how the answer differs from another target's")] = None


class QueriesInTurn(Struct, frozen=True):
    """Queries that ran one by one."""

    runs: list[QueryInTurnRun]
    queries: list[QueryInTurn] | None = None
    table: str | None = None
    rows: Annotated[Count | None, Meta(description="of the table")] = None
    table_bytes: Amount | None = None
    cold: Annotated[bool | None, Meta(description="whether cold runs were requested")] = None
    caches: Annotated[Caches | None, Meta(description="null: not requested")] = None
    notes: Annotated[list[str] | None, Meta(description="what could not be found out")] = None


class QueriesInTurnDrive(Struct, frozen=True):
    """drive.json of queries that ran one by one."""

    plain_queries: QueriesInTurn
    state: Annotated[str | None, Meta(description="`complete` even if queries failed, or `interrupted`")] = (
        None
    )
    reason: str | None = None
    start_ns: Ns | None = None
    end_ns: Ns | None = None
    clients: Annotated[Count | None, Meta(description="1")] = None
    counts: Annotated[Counts | None, Meta(description="of runs")] = None
    errors: list[Failure] | None = None
    outages: list[Outage] | None = None

    def check(self) -> None:
        """Raise ValueError where a run that was done took no time."""
        for number, run in enumerate(self.plain_queries.runs):
            if run.state == "done" and run.seconds is None:
                message = f"a run that is done has no seconds - at `$.plain_queries.runs[{number}]`"
                raise ValueError(message)


class Interval(Struct, frozen=True):
    """A line of series.jsonl."""

    start_ns: Ns
    end_ns: Ns
    warmup: bool = False
    done: Annotated[
        Count,
        Meta(description="outcomes are those that ended in the interval, without a burn-in"),
    ] = 0
    failed: Count = 0
    skipped: Count = 0
    dropped: Count = 0
    retries: Count | None = None
    connected: Count | None = None
    bytes_sent: Count | None = None
    bytes_received: Count | None = None
    loop_lag_max_ns: Amount | None = None
    response: Stats | None = None
    lag_mean_ns: Number | None = None
    rows: Annotated[
        Count | None, Meta(description="of the batches acknowledged in the interval; loads only")
    ] = None
    metrics: Count | None = None


class StepSizes(Struct, frozen=True):
    """The table's size after a step."""

    table_bytes: Amount | None = None
    index_bytes: Amount | None = None
    toast_bytes: Amount | None = None


class Step(Struct, frozen=True):
    """A line of steps.jsonl."""

    step: Count
    rows_before: Count
    rows: Count
    seconds: Amount | None
    state: Literal["complete", "failed", "interrupted", "resumed"]
    reason: Annotated[
        str | None, Meta(description="on a full disk with the bytes that the step needed, about")
    ] = None
    start_ns: Annotated[Ns | None, Meta(description="the first batch may be sent")] = None
    end_ns: Annotated[Ns | None, Meta(description="the last one is committed")] = None
    sizes: Annotated[StepSizes | None, Meta(description="after it")] = None
    counters: Annotated[
        dict[str, Number | None] | None, Meta(description="increase of those of monitor.jsonl")
    ] = None
    server_cpu_s: Number | None = None
    client_cpu_s: Number | None = None
    server_write_bytes: Number | None = None


class Progress(Struct, frozen=True):
    """A line of progress.jsonl."""

    transaction: Count
    rows: Annotated[Count, Meta(description="answered by then")]
    t_ns: Ns
    state: Literal["open", "committed", "lost", "in_doubt"]


class Sent(Struct, frozen=True):
    """A line of sent.jsonl."""

    time_us: Annotated[Whole, Meta(description="its latest row time, since 1970 UTC")]
    sent_ns: Annotated[Ns, Meta(description="handed over")]
    acked_ns: Annotated[Ns | None, Meta(description="the server acknowledged the commit")] = None


class Probed(Struct, frozen=True):
    """A line of probe.jsonl."""

    end_ns: Annotated[Ns, Meta(description="answer complete")]
    start_ns: Annotated[Ns | None, Meta(description="handed over")] = None
    value: Annotated[
        Whole | None, Meta(description="first column of the first row; a time in µs since 1970 UTC")
    ] = None


def kind_of_drive(drive: dict[str, Any]) -> type[Drive | QueriesInTurnDrive]:
    """Return the type of a drive.json: queries that are asked one by one leave a shorter one."""
    plain_queries = drive.get("plain_queries")
    return QueriesInTurnDrive if isinstance(plain_queries, dict) and "runs" in plain_queries else Drive

"""drive.json and the lines that are written while a drive goes on."""

from typing import Any, Literal

from msgspec import UNSET, UnsetType

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


class Pace(Struct, frozen=True):
    """When transactions begin."""

    kind: str = "closed"
    rate_per_s: Amount | UnsetType | None = UNSET


class Connect(Struct, frozen=True):
    """How connecting went."""

    wall_ns: Amount | None = None
    latency: Stats | None = None
    reconnects: Count | None = None


class Failure(Struct, frozen=True):
    """A class of errors."""

    sqlstate: str | None = None
    message: str | None = None
    count: Count = 0
    first_ns: Ns | None = None
    last_ns: Ns | None = None


class Outage(Struct, frozen=True):
    """A time in which clients were without their connection."""

    start_ns: Ns
    end_ns: Ns | None = None
    clients: Count | None = None


class LostClients(Struct, frozen=True):
    """Clients that lost their connection and had no other at the end."""

    count: Count = 0
    first_ns: Ns | None = None
    sqlstate: str | None = None
    message: str | None = None


class Stall(Struct, frozen=True):
    """The longest time in which nothing was done although there was work."""

    start_ns: Ns
    length_ns: Ns
    end_ns: Ns | None = None


class Pauses(Struct, frozen=True):
    """Times in which our own threads were stopped."""

    count: Count | None = None
    total_ns: Ns | None = None
    longest_ns: Ns | None = None
    longest_start_ns: Ns | None = None


class Script(Struct, frozen=True):
    """A script of a drive."""

    name: str | None = None
    weight: Amount | None = None
    counts: WarmupCounts | None = None
    service: Stats | None = None
    response: Stats | None = None


class TimedStatement(Struct, frozen=True):
    """A statement of a script."""

    script: Count
    index: Count
    line: Count | None = None
    text: str | None = None
    failed: Count | None = None
    service: Stats | None = None


class ClientCpu(Struct, frozen=True):
    """CPU time of our threads."""

    user_ns: Amount
    system_ns: Amount


class Loop(Struct, frozen=True):
    """The event loop."""

    iterations: Count | None = None
    events: Count | None = None
    lag: Stats | None = None
    lag_p99_ns: Amount | None = None
    pauses: Pauses | None = None


class LoadedTable(Struct, frozen=True):
    """A table of a load."""

    name: str
    rows: Count


class RowSource(Struct, frozen=True):
    """The maker of the rows."""

    wait_ns: Amount | None = None


class Column(Struct, frozen=True):
    """A column of a loaded table."""

    name: str
    type: str | None = None
    text_bytes: Amount | None = None


class PlainTable(Struct, frozen=True):
    """The table of a load of plain rows."""

    name: str | None = None
    metrics: Count | None = None
    columns: list[Column] | None = None
    usual_indexes: list[str] | None = None
    row_bytes: Amount | None = None
    sequence: str | None = None
    sequence_first: Whole | None = None
    sequence_step: Whole | None = None
    text_row_bytes: Amount | None = None


class BuiltIndex(Struct, frozen=True):
    """An index or a statement of a load."""

    seconds: Amount
    text: str | None = None
    when: str | None = None
    part_of_load: bool | None = None


class Resumed(Struct, frozen=True):
    """What an earlier attempt had committed."""

    rows: Count | None = None
    batches: Count | None = None


class LongTransaction(Struct, frozen=True):
    """A long transaction of a load."""

    transaction: Count
    rows: Count | None = None
    start_ns: Ns | None = None
    end_ns: Ns | None = None
    state: str | None = None


class Loaded(Struct, frozen=True):
    """What a load did."""

    rows: Count
    metrics: Count
    batches: Count | None = None
    tags_rows: Count | None = None
    tables: list[LoadedTable] | None = None
    source: RowSource | None = None
    logical_bytes: Amount | None = None
    finish_ns: Amount | None = None
    table: PlainTable | None = None
    indexes: list[BuiltIndex] | None = None
    after: list[BuiltIndex] | None = None
    resumed: Resumed | None = None
    compression: Amount | None = None
    storage: Storage | None = None
    transactions: list[LongTransaction] | None = None


class Label(Struct, frozen=True):
    """A kind of query."""

    label: str | None = None
    counts: Counts | None = None
    rows: Count | None = None
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

    emptied: bool | None = None
    note: str | None = None


class Asking(Struct, frozen=True):
    """Questions that clients asked as a load."""

    table: str | None = None
    rows: Count | None = None
    clients: Count | None = None
    draws: list[Draw] | None = None


class Drive(Struct, frozen=True):
    """drive.json."""

    start_ns: Ns
    measure_ns: Ns
    end_ns: Ns
    counts: Counts
    response: Stats
    bytes_sent: Count | None
    warmup_counts: WarmupCounts | None = None
    state: str | None = None
    reason: str | None = None
    output_error: str | None = None
    io: str | None = None
    mode: str | None = None
    clients: Count | None = None
    threads: Count | None = None
    seed: Words = None
    pace: Pace | None = None
    connect: Connect | None = None
    in_doubt: Count | None = None
    retried: Count | None = None
    retries: Count | None = None
    late: Count | None = None
    service: Stats | None = None
    lag: Stats | None = None
    errors: list[Failure] | None = None
    outages: list[Outage] | None = None
    deadline_ns: Ns | None = None
    lost_clients: LostClients | None = None
    stall: Stall | None = None
    scripts: list[Script] | None = None
    statements: list[TimedStatement] | None = None
    bytes_received: Count | None = None
    client_cpu: ClientCpu | None = None
    loop: Loop | None = None
    load: Loaded | None = None
    queries: Queries | None = None
    asking: Asking | None = None

    def check(self) -> None:
        """Raise ValueError where times do not follow each other, or labels have no statement."""
        if not self.start_ns <= self.measure_ns:
            message = "measure_ns lies before start_ns"
            raise ValueError(message)
        labels = len((self.queries and self.queries.labels) or ())
        if {statement.script for statement in self.statements or ()} < set(range(labels)):
            message = "a label of `queries` has no statement"
            raise ValueError(message)


class AskedRun(Struct, frozen=True):
    """One run of a question."""

    question: str
    kind: Literal["cold", "warm"]
    state: Literal["done", "failed", "skipped"]
    number: Count | None = None
    start_ns: Ns | None = None
    end_ns: Ns | None = None
    seconds: Amount | None = None
    rows: Count | None = None
    reason: str | None = None


class AskedQuestion(Struct, frozen=True):
    """A question."""

    name: str
    sql: str | None = None
    plan: str | None = None
    gpu: bool | None = None
    wrong: str | None = None


class AskedInTurn(Struct, frozen=True):
    """Queries that ran one by one."""

    runs: list[AskedRun]
    questions: list[AskedQuestion] | None = None
    table: str | None = None
    rows: Count | None = None
    table_bytes: Amount | None = None
    cold: bool | None = None
    caches: Caches | None = None
    notes: list[str] | None = None


class AskedDrive(Struct, frozen=True):
    """drive.json of queries that ran one by one."""

    asking: AskedInTurn
    state: str | None = None
    reason: str | None = None
    start_ns: Ns | None = None
    end_ns: Ns | None = None
    clients: Count | None = None
    counts: Counts | None = None
    errors: list[Failure] | None = None
    outages: list[Outage] | None = None

    def check(self) -> None:
        """Raise ValueError where a run that was done took no time."""
        for number, run in enumerate(self.asking.runs):
            if run.state == "done" and run.seconds is None:
                message = f"a run that is done has no seconds - at `$.asking.runs[{number}]`"
                raise ValueError(message)


class Interval(Struct, frozen=True):
    """A line of series.jsonl."""

    start_ns: Ns
    end_ns: Ns
    warmup: bool = False
    done: Count = 0
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
    rows: Count | None = None
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
    reason: str | None = None
    start_ns: Ns | None = None
    end_ns: Ns | None = None
    sizes: StepSizes | None = None
    counters: dict[str, Number | None] | None = None
    server_cpu_s: Number | None = None
    client_cpu_s: Number | None = None
    server_write_bytes: Number | None = None


class Progress(Struct, frozen=True):
    """A line of progress.jsonl."""

    transaction: Count
    rows: Count
    t_ns: Ns
    state: Literal["open", "committed", "lost", "in_doubt"]


class Sent(Struct, frozen=True):
    """A line of sent.jsonl."""

    time_us: Whole
    sent_ns: Ns
    acked_ns: Ns | None = None


class Probed(Struct, frozen=True):
    """A line of probe.jsonl."""

    end_ns: Ns
    start_ns: Ns | None = None
    value: Whole | None = None


def kind_of_drive(drive: dict[str, Any]) -> type[Drive | AskedDrive]:
    """Return the type of a drive.json: questions that are asked one by one leave a shorter one."""
    asking = drive.get("asking")
    return AskedDrive if isinstance(asking, dict) and "runs" in asking else Drive

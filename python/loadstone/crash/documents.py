"""The types of crash.json (meaning: docs/crash.md)."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from loadstone.experiment.documents import Head, PhaseHead, State
from loadstone.results.documents.summary.units import Figure, Value
from loadstone.scenario.tables.crash import Moments

FORMAT = 1
NAME = "crash.json"
JOINT_NAME = "crashes.json"
LEDGER = "ledger"
CYCLES = "cycles"

LevelName = Literal["process", "power"]
Verdict = Literal["kept", "lost", "cannot show a loss", "did not come up", "undecided"]


class Moment(Struct, kw_only=True):
    """When the server was killed."""

    kind: Literal["anywhere", "checkpoint", "segment", "late"]
    after_s: Annotated[Figure, Meta(description="after the load began")]
    note: Annotated[str | None, Meta(description="what was otherwise than drawn")] = None


class Recovery(Struct, kw_only=True):
    """How long the server took to come back. Seconds are from the time at which it was started again."""

    down_s: Annotated[Figure, Meta(description="from the crash until it was started again: ours, not its")]
    connection_s: Annotated[Figure | None, Meta(description="until a client could log in")] = None
    commit_s: Annotated[Figure | None, Meta(description="until a client read the answer to a COMMIT")] = None
    rate_s: Annotated[
        Figure | None, Meta(description="until 95 % of the rate; null: not while it was watched")
    ] = None
    rate_before: Annotated[Figure | None, Meta(description="commits per second before the crash")] = None
    wal_bytes: Annotated[int | None, Meta(description="WAL replayed")] = None
    replay_s: Annotated[Figure | None, Meta(description="time of the replay, by the server's log")] = None
    before_replay_s: Annotated[
        Figure | None, Meta(description="from the start until the replay began: syncing the data, by the log")
    ] = None
    clock_step_s: Annotated[
        Figure | None,
        Meta(description="by which the wall clock was set meanwhile, so that times of the log are left out"),
    ] = None
    watched_s: Annotated[
        Figure | None, Meta(description="after the log-in: how long the load was watched at most")
    ] = None


class CommitCounts(Struct, kw_only=True):
    """What the judgement of a cycle counted, over all clients."""

    acknowledged: int
    lost: int
    lost_allowed: Annotated[int, Meta(description="lost within what `synchronous_commit = off` allows")]
    loss_window_s: Annotated[
        Figure | None, Meta(description="age of the oldest lost commit at the time of the crash")
    ] = None
    corrupt: int
    twice: int
    phantom: int
    holes: int
    unknown: int
    unknown_present: int


class Flaw(Struct, kw_only=True):
    """A check of the database that failed."""

    check: str
    detail: str


class Content(Struct, kw_only=True):
    """The rows of all tables before and after the second restart."""

    tables: int
    rows: Annotated[int, Meta(description="that were hashed before it")]
    bytes: Annotated[int, Meta(description="of all tables")]
    hashed_bytes: Annotated[int, Meta(description="of the blocks that were hashed")]
    before: Annotated[str, Meta(description="hash of all tables before the restart")]
    after: Annotated[str | None, Meta(description="the same after it; null: not known")] = None
    hash_s: Annotated[Figure, Meta(description="seconds that both hashes took")]


class Cycle(Struct, kw_only=True):
    """Load, crash, recovery, verification."""

    number: Annotated[int, Meta(description="from 1; 0: the control cycle with fsync=off")]
    folder: str
    moment: Moment
    killed_ns: Annotated[int, Meta(description="when the server's processes were killed, monotonic clock")]
    upto: Annotated[list[int], Meta(description="transactions begun by each client until the verification")]
    allowed_s: Annotated[Figure, Meta(description="3 × wal_writer_delay if commits are asynchronous, else 0")]
    recovery: Recovery
    forgot: Annotated[
        dict[str, int] | None, Meta(description="power: bytes, files and names lost, bytes that survived")
    ] = None
    found: CommitCounts | None = None
    flaws: list[Flaw] = field(default_factory=list)
    restarted: Annotated[
        bool | None, Meta(description="a second restart left everything as it was; null: not tried")
    ] = None
    content: Annotated[
        Content | None, Meta(description="the tables at the second restart; null: not compared")
    ] = None
    down_after: Annotated[
        Literal["crash", "second restart"] | None,
        Meta(description="after which of them the server did not come up; null: it came up"),
    ] = None
    note: str | None = None


class Crash(PhaseHead, kw_only=True):
    """crash.json: every cycle, and the verdict; replaced as a whole after each cycle."""

    version: Annotated[str | None, Meta(description="of the server")] = None
    level: LevelName
    clients: int
    wanted: Annotated[int, Meta(description="cycles")]
    window_s: Annotated[Figure, Meta(description="longest load before a crash")]
    moments: Annotated[
        Moments, Meta(description="late: late in the checkpoint cycle, most WAL to replay")
    ] = "random"
    max_wal_size: str | None = None
    amcheck: Annotated[str | None, Meta(description="why files were not checked; null: they were")] = None
    verdict: Verdict = "undecided"
    data: Annotated[
        str | None, Meta(description="data folder of a server that did not come up; null: none was kept")
    ] = None
    disk: Annotated[
        dict[str, int] | None, Meta(description="power: counters of the file system at the end")
    ] = None
    rate_plain: Annotated[
        Figure | None, Meta(description="power: commits per second on the disk itself, for comparison")
    ] = None
    control: Annotated[Cycle | None, Meta(description="power: the cycle that had to lose commits")] = None
    checker: Annotated[
        bool | None,
        Meta(description="a row that was deleted on purpose at the end was found missing; null: not tried"),
    ] = None
    cycles: list[Cycle] = field(default_factory=list)


class Spread(Struct, kw_only=True):
    """A figure over several crashes."""

    median: Figure
    low: Figure
    high: Figure
    crashes: Annotated[int, Meta(description="in which it was seen")]


class CrashesOfValue(Struct, kw_only=True):
    """What the crashes of one value of the parameter show together. Seconds are as in crash.json."""

    value: Value
    folder: Annotated[str, Meta(description="with its crash.json; empty before it was begun")]
    state: State | Literal["not begun"] = "not begun"
    verdict: Verdict = "undecided"
    crashes: Annotated[int, Meta(description="that were made")] = 0
    acknowledged: int = 0
    lost: Annotated[int, Meta(description="also those that `synchronous_commit = off` allows")] = 0
    wal_bytes: Annotated[Spread | None, Meta(description="WAL replayed")] = None
    before_replay_s: Spread | None = None
    replay_bytes_per_s: Spread | None = None
    connection_s: Spread | None = None
    commit_s: Spread | None = None
    rate_s: Annotated[Spread | None, Meta(description="until 95 % of the rate")] = None
    rate_before: Annotated[Spread | None, Meta(description="commits per second before the crash")] = None
    missing: Annotated[
        dict[str, str], Meta(description="why a figure was not seen in some crashes, by its key")
    ] = field(default_factory=dict)


class Crashes(Head, kw_only=True):
    """crashes.json: several values of one parameter, a fresh server and a crash.json for each."""

    parameter: str
    unit: Annotated[str, Meta(description="of the parameter's values; empty: none")] = ""
    level: LevelName
    wanted: Annotated[int, Meta(description="cycles of each value")]
    values: list[CrashesOfValue]

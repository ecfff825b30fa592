"""What the Rust core offers to Python. Documents cross the border as JSON text."""

from collections.abc import Sequence
from typing import Any, Self

from loadstone.engine.library.client import Clients

__version__: str
is_debug_build: bool

class DriveError(Exception):
    """The driver could not start: `args` are (message, hint)."""

class ScriptError(Exception):
    """A script does not parse: `args` are (message, file, line, column, hint)."""

def check_script(name: str, text: str, mode: str, variables: Sequence[str], late: bool = False) -> str:
    """Parse a pgbench script; `late` leaves to the run what pgbench itself notices only then.

    Returns JSON: `{"commands": [{"line", "text", "kind"}], "variables": [...], "warnings": [...]}`.
    """

def lua_script(document: str) -> str:
    """Load a script written for sysbench, in a state of its own, and return what it declares, as JSON.

    `document`: `{"script","source","files","path","options","argv"}` as in a drive's `lua`; `files`: texts
    that stand in for files, by their paths. Returns
    `{"options": [{"name","description","default","type"}], "commands": {NAME: {"parallel"}},
    "has": [FUNCTION], "files": [PATH], "needs_database", "legacy", "output"}`; `files`: those that it has
    read; `needs_database`: it uses one while it is
    loaded, and what is returned is what it has declared up to there. Raises ScriptError, whose hint is the
    traceback, and which has what the script printed as a sixth argument, for a script that is not there,
    does not parse, fails, or is not loaded within 10 s.
    """

def merge_hosts(document: str) -> str:
    """Merge what several hosts have recorded; returns the account of them together, JSON as drive.json.

    `document`: `{"drive": {…}, "start_ns", "hosts": [{"name", "records", "lost"}]}` with the drive of all
    hosts, whose `out_dir` gets the merged files, the common start on this host's clock, and of each host the
    path of its records.jsonl, or why nothing more came of it. Raises DriveError.
    """

class LuaReports:
    """A script written for sysbench, loaded once more for its hooks for reports.

    `document` is that of `lua_script`. Raises ScriptError where the script cannot be loaded.
    """

    def __init__(self, document: str) -> None: ...
    def call(self, hook: str, figures: str) -> str:
        """Call a hook with a JSON object of figures, and return what it prints.

        Raises ScriptError where it fails, asks for a database, or is not over after 10 s.
        """

    def end(self) -> str:
        """End the script's state, and return what it prints at that."""

def pgbench_rows(table: str, first: int, count: int) -> bytes:
    """Return `count` lines of COPY for pgbench_branches, pgbench_tellers or pgbench_accounts.

    `first` is the number of the first row, from 0. Raises ValueError for another table.
    """

def scan_sql(name: str, text: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Cut SQL by psql's rules: begin and end of its statements, and of the names behind a single colon.

    Statements come without semicolon and comments before them. Raises ScriptError for a quote or comment that
    never ends, and for a backslash command.
    """

class Conversation:
    """One connection by any wire protocol, for the few statements beside drives. Releases Python's lock.

    Raises DriveError where the server cannot be reached, refuses the log-in or is lost.
    """

    def __init__(self, connection: str, limit_s: float) -> None:
        """Connect as the `connection` of a drive's document says, within so many seconds."""

    def ask(self, sql: str) -> None:
        """Send a statement."""

    def wait(self, limit_s: float) -> str | None:
        """Return its answer as JSON, None when it is not complete within the time.

        `{"columns":[{"name","numeric"}],"rows":[[text or null]],"error":REMARK or null,"notices":[REMARK]}`.
        REMARK: `{"state","severity","message","text"}`, `state` being an error's SQLSTATE as drives count it,
        and `text` all that libpq would show.
        """

    def parameter(self, name: str) -> str | None:
        """Return what the server reported at the log-in, such as `server_version`."""

    @property
    def process_id(self) -> int | None:
        """The server's process that the log-in named."""

    def cancel(self) -> None:
        """Ask the server to end the statement under way."""

    def close(self) -> None:
        """Say goodbye."""

class PowerDiskMount:
    """A file system that forgets what was not synced, mounted by this process (`loadstone.power_disk`).

    The threads that serve it never wait for Python. Raises OSError where it cannot be mounted.
    """

    def __new__(cls, backing: str, mount: str, source: str, strict: bool, most_unsynced_bytes: int) -> Self:
        """Mount it over the files of `backing`; `source` is what /proc/self/mountinfo shows.

        `strict`: only the sync of a directory makes a name durable.
        """

    def lose(self, seed: int, keep: float, force: bool) -> str:
        """Forget what was not synced, but for this share of the pages; returns JSON of `power_disk.Lost`.

        Raises BlockingIOError, with how many and the paths of some, while files are open, unless forced.
        """

    def counters(self) -> str:
        """Return JSON of `power_disk.Counters`."""

    def sync(self) -> None:
        """Make everything durable."""

    def unmount(self, write_back: bool) -> bool:
        """Unmount, and then make everything durable or not; returns whether a process still used it."""

class Drive:
    """One drive phase: threads of the core that send, receive and record."""

    def __init__(self, spec: str, library: Clients | None = None) -> None:
        """Take JSON; where it has no `connection`, clients connect through the library."""

    def start(self) -> None:
        """Connect all clients and begin; returns at once."""

    def progress(self) -> str:
        """JSON of the totals and the intervals since the last call, and the latest; never blocks."""

    def stop(self) -> None:
        """Ask for an early end: transactions under way finish or are cut off after a grace time."""

    def go(self, at_ns: int) -> None:
        """Let one of several hosts (`host` in the document) begin, at this time of `time.monotonic_ns`."""

    def proceed(self) -> None:
        """Let the next step of a load begin, if it waits for that word (`hold`).

        To the first of several hosts that share a script: all others have ended.
        """

    def wait(self, timeout_s: float) -> str | None:
        """drive.json's text once the phase has ended, None when it has not within `timeout_s`.

        Returns None at once while a step waits for the word to proceed. What a library's calls raised that is
        no trouble of the database is raised here.
        """

class RowBatch:
    """Rows that go into a database together, in one transaction."""

    @property
    def number(self) -> int:
        """Counted from 0 over the load."""

    @property
    def rows(self) -> int:
        """Rows of `tables` together."""

    @property
    def tags(self) -> tuple[TableBatch, ...]:
        """New rows of the table of devices, which come first."""

    @property
    def tables(self) -> tuple[TableBatch, ...]:
        """Rows of the other tables."""

def answer_digest(answer: object) -> str:
    """Return the digest of an answer that exports an Arrow stream, as JSON. Raises TypeError."""

class Generation:
    """One data set that becomes files, made and compressed by threads of the core."""

    def __init__(self, spec: str) -> None:
        """Take JSON: `{"data":DATA,"format","output":OUTPUT,"compress","threads"}`.

        `format` is `timescaledb`, `influx`, `copy_binary` or `copy_text`; OUTPUT `{"path","overwrite"}` or
        `{"fd"}`; `compress` `none`, `gzip` or `zstd`; `threads` a number or null for one a core.
        """

    def start(self) -> None:
        """Open the output and begin; returns at once."""

    def progress(self) -> str:
        """JSON of what was made so far: `rows`, `metrics`, `plain_bytes`, `bytes`, `elapsed_ns`."""

    def stop(self) -> None:
        """Ask for an early end: a file that is incomplete is removed."""

    def wait(self, timeout_s: float) -> str | None:
        """Return the account as JSON once it has ended, None when it has not within `timeout_s`.

        Its `state` is `complete`, `interrupted` or `reader_gone`.
        """

class DuckDatabase:
    """A DuckDB database that is open in this process, by the library's C interface.

    Methods release Python's lock and raise the exceptions of the package `duckdb`. A file is open here once:
    until its last connection is closed, opening it again is refused.
    """

    def __init__(self, spec: str) -> None:
        """Open it: `spec` is JSON, `{"library","path"?,"settings"?:{}}`; without `path` it is in memory."""

    def connect(self) -> DuckConnection: ...
    def clients(self, spec: str) -> NativeLibrary:
        """Return clients for drives: `spec` is JSON, `{"begin":[SQL],"load"?:LOAD}`.

        LOAD: `{"method":"arrow"|"insert","tags":TABLE|null,"tables":{name:TABLE},"ledger":SQL|null,
        "mark_rows"?,"finish":[SQL]}`; TABLE: `{"into":SQL,"columns":[name],"by_place"?,"as_json"?}`.
        """

    def close(self) -> None:
        """Close it; DuckDB does so when the last connection is closed."""

class DuckConnection:
    """One of its connections, for one thread at a time."""

    def query(self, sql: str, params: dict[str, Any] | None = None) -> DuckAnswer:
        """Run one statement to its end and return its whole answer; parameters are written `$name`.

        Values are None, truth values, numbers and texts. Without parameters the text may be several
        statements, of which the last one's answer is returned.
        """

    def interrupt(self) -> None:
        """Make the call fail that another thread is in; without one, do nothing.

        A statement that begins just then may miss it: do it again until the call has ended.
        """

    def close(self) -> None:
        """Close it; a call that another thread is in is interrupted, and waited for."""

class DuckAnswer:
    """A whole answer; `pyarrow.table` reads it without copying."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

class NativeLibrary:
    """Clients that a drive calls without Python's lock."""

class DataStream:
    """Rows of a data set (a DATA document), in the order of its stream."""

    def __init__(self, data: str, *, fingerprints: bool = True) -> None: ...
    def dataset(self) -> str:
        """JSON of the tables: `{"tags":TABLE|null,"tables":[TABLE]}`.

        TABLE is `{"name","metrics","columns":[{"name","type","sql"?}]}`, `sql` being what PostgreSQL calls
        the type where that says more (`varchar(2000)`); of a plain table also `"usual_indexes"` (columns that
        can be indexed, in the usual order), `"row_bytes"` (average logical bytes) and `"sequence"` (the
        column whose value is `"sequence_first"` + row's number * `"sequence_step"`, microseconds of a time;
        or all null).
        """

    def read(self, rows: int) -> list[TableBatch] | None:
        """Read the next `rows` rows over all tables, new tags before all; None at the end."""

    def fingerprints(self) -> str:
        """Return JSON of what was read so far: `[{"name","rows","fingerprint":{…}}]`.

        Raises RuntimeError when the stream takes none.
        """

    @property
    def rows(self) -> int:
        """Rows read so far, tags not among them."""

    @property
    def metrics(self) -> int:
        """Fields read so far, empty ones included."""

class TableBatch:
    """Rows of one table; pyarrow and DuckDB read them without copying."""

    @property
    def table(self) -> str: ...
    @property
    def rows(self) -> int: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...

def fingerprint_rows(data: str, threads: int = 0) -> str:
    """Make all rows of DATA of the kind `rows` and take their fingerprint; `threads` 0: one a core.

    Returns JSON: `{"rows","bytes","content","numbers","nulls":[…]}`, whole numbers as text, nulls by column.
    The formula stands at the head of crates/gen/src/rows/fingerprint.rs. Ctrl-C ends it.
    """

class NullServer:
    """The built-in PostgreSQL-protocol server that answers at once."""

    def __init__(self, spec: str) -> None: ...
    @property
    def port(self) -> int: ...
    @property
    def socket_directory(self) -> str: ...
    def cpu_ns(self) -> int:
        """CPU time that serving has taken so far, nanoseconds."""

    def stop(self) -> None: ...

class GoRand:
    """Go's `math/rand` (version 1) after `rand.Seed(seed)`, bit for bit."""

    def __init__(self, seed: int) -> None:
        """Take a seed of 64 bits with sign; equal ones modulo 2^31 - 1 give one stream."""

    def int63(self) -> int:
        """Return 63 random bits."""

    def int63n(self, n: int) -> int:
        """Return a number in [0, n). Raises ValueError unless n is above 0. Not `intn`'s stream."""

    def intn(self, n: int) -> int:
        """Return a number in [0, n), of 31 random bits where they suffice. Raises ValueError unless n > 0."""

    def float64(self) -> float:
        """Return a number in [0, 1)."""

def builtin_script(prefix: str) -> tuple[str, str, str]:
    """Name, description and text of pgbench's built-in script whose name begins with `prefix`."""

def builtin_scripts() -> list[tuple[str, str]]:
    """Names and descriptions of pgbench's built-in scripts."""

def clock_cost_ns() -> float:
    """Median cost of reading the driver's clock once, in nanoseconds."""

def record_cost_ns() -> float:
    """Median cost of recording one sample, in nanoseconds."""

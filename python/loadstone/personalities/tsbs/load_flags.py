"""The flags of `loadstone tsbs load`: TSBS's, those of a fork that published figures, and our own."""

# ruff: noqa: FBT003 - a default is of the flag's kind

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from loadstone.errors import LoadstoneError
from loadstone.model import InOut, Load, LoadMethod, Pace, Series, SeriesTables, UseCase
from loadstone.personalities.tsbs import observed
from loadstone.personalities.tsbs.flags import Flag
from loadstone.workload.tsbs.content import STANDARD_INPUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.engine import Engine
    from loadstone.personalities.tsbs.flags import Values

_SECOND_NS = 10**9
_USE_CASES = get_args(UseCase)

TSBS = (
    Flag("admin-db-name", "string", "postgres", "Database to connect to for creating the other one"),
    Flag("batch-size", "uint", 10_000, "Rows per batch; each batch is one transaction"),
    Flag("chunk-time", "duration", 12 * 3600 * _SECOND_NS, "Time range of a chunk or partition", "12h0m0s"),
    Flag("create-metrics-table", "bool", True, "Create the tables; false: they exist and are empty"),
    Flag("db-name", "string", "benchmark", "Name of the database"),
    Flag("do-abort-on-exist", "bool", False, "Refuse a database that exists, whatever it contains"),
    Flag("do-create-db", "bool", True, "Create the database if it does not exist (none is ever dropped)"),
    Flag("do-load", "bool", True, "Load; false: only generate or read the data, to measure that"),
    Flag("field-index", "string", "VALUE-TIME", "Order of the columns of indexes on fields, or TIME-VALUE"),
    Flag("field-index-count", "int", 0, "Number of fields that get their own index, -1 = all"),
    Flag("file", "string", "", "File to read data from; without it, standard input"),
    Flag("force-text-format", "bool", False, "Send COPY's text format"),
    Flag("hash-workers", "bool", False, "Send all rows of a device through the same worker"),
    Flag("host", "string", "localhost", "Host of the server"),
    Flag("in-table-partition-tag", "bool", False, "Store the first tag in every row, and index it"),
    Flag("insert-intervals", "string", "", "Minimum seconds between a worker's batches: '1,2-4'"),
    Flag("limit", "uint", 0, "Rows to load, 0 = all"),
    Flag(
        "log-batches",
        "bool",
        False,
        "Accepted for compatibility with TSBS: percentiles of batches are always shown",
    ),
    Flag("partition-index", "bool", True, "Index on (device, time)"),
    Flag("partitions", "int", 0, "Hash partitions (by device) of each time range"),
    Flag("pass", "string", "", "Password"),
    Flag("port", "string", "5432", "Port of the server"),
    Flag("postgres", "string", "sslmode=disable", "Further parameters of the connection"),
    Flag(
        "replication-factor",
        "int",
        0,
        "Accepted for compatibility with TSBS: TimescaleDB no longer has data nodes",
    ),
    Flag("reporting-period", "duration", 10 * _SECOND_NS, "Time between two lines of progress", "10s"),
    Flag("results-file", "string", "", "Write a summary as JSON to this file"),
    Flag("seed", "int", 0, "Seed of generated data, and of random insert intervals"),
    Flag("time-index", "bool", True, "Index on time"),
    Flag("time-partition-index", "bool", False, "Index on (time, device) instead of the one on time"),
    Flag("use-hypertable", "bool", True, "Create hypertables; false: plain tables of PostgreSQL"),
    Flag("use-insert", "bool", False, "Load with multi-row INSERT instead of COPY"),
    Flag("use-jsonb-tags", "bool", False, "Store the tags of a device in one JSON column"),
    Flag("user", "string", "postgres", "User to connect as"),
    Flag("workers", "uint", 1, "Number of connections that load"),
    Flag("write-profile", "string", "", "Accepted for compatibility with TSBS; nothing is written"),
    Flag("write-replication-stats", "string", "", "Accepted for compatibility with TSBS; nothing is written"),
)
FORK = (
    Flag(
        "channel-capacity", "uint", 0, "Accepted for compatibility with TSBS: the driver has no such channel"
    ),
    Flag(
        "chunkgroup-duration",
        "string",
        "",
        "Accepted for compatibility with a fork of TSBS: chunk-time decides",
    ),
    Flag(
        "no-flow-control",
        "bool",
        False,
        "Accepted for compatibility with TSBS: workers take batches when they are free",
    ),
    Flag("use-copy", "bool", True, "Load with COPY; false: with INSERT"),
    Flag("use-tags-id", "bool", True, "Rows refer to devices by number; false: like in-table-partition-tag"),
)
DATA = (
    Flag("initial-scale", "uint", 0, "Devices that report in the first epoch, 0 = all of them"),
    Flag("log-interval", "duration", 10 * _SECOND_NS, "Time between two rows of one device", "10s"),
    Flag("max-data-points", "uint", 0, "Maximum number of rows, 0 = no limit"),
    Flag("max-metric-count", "uint", 100, "Maximum number of fields of a host; devops-generic only"),
    Flag(
        "native",
        "bool",
        False,
        "Data that can be generated in parallel, from any point on; not TSBS's values",
    ),
    Flag("scale", "uint", 1, "Number of hosts or trucks"),
    Flag("slice", "string", "", "Generate slice i of n, from 0, as i/n; with --native only"),
    Flag("timestamp-end", "string", "2016-01-02T00:00:00Z", "End of the time range, exclusive (RFC3339)"),
    Flag("timestamp-start", "string", "2016-01-01T00:00:00Z", "Beginning of the time range (RFC3339)"),
    Flag("use-case", "string", "", f"Generate the data while loading. (choices: {', '.join(_USE_CASES)})"),
)
OURS = (
    Flag("compress", "bool", False, "Compress the loaded data, if the target can"),
    Flag("compress-after", "duration", 0, "Add a policy that compresses data older than this"),
    Flag(
        "hosts",
        "string",
        "",
        "Load from several hosts, with --native: local:N, ssh://me@h1,me@h2 or tcp://HOST:8786",
    ),
    Flag("io", "string", "auto", f"Kernel interface for network I/O. ({', '.join(get_args(InOut))})"),
    Flag("keep", "bool", False, "Keep a private server running"),
    Flag("method", "string", "", f"How rows are sent. (choices: {', '.join(get_args(LoadMethod))})"),
    Flag("no-verify", "bool", False, "Do not compare the tables with the generated data"),
    Flag("out", "string", "", "New folder for drive.json, series.jsonl and latency.hlog"),
    Flag("rate", "float", 0.0, "Batches to start per second, over all workers; 0 = no limit"),
    Flag("replace", "bool", False, "Drop existing tables of the same names"),
    Flag("resume", "bool", False, "Resume an interrupted load"),
    Flag(
        "setting",
        "string",
        "",
        "Settings of a private server, or of Loadstone's sessions: name=value,name=value",
    ),
    Flag("storage", "string", "", "Folder for the data of private servers"),
    Flag("target", "string", "", "Where to load: pg, postgres://…, timescaledb://…, duckdb:…"),
    Flag("timeout", "duration", 60 * _SECOND_NS, "Longest wait for the answer to a batch", "1m0s"),
)
FLAGS = (*TSBS, *FORK, *DATA, *OURS, *observed.FLAGS)

_WITHOUT_MEANING = {
    "channel-capacity": "no effect: a worker takes a batch when it is free",
    "chunkgroup-duration": "no effect: only --chunk-time sets the length of a partition",
    "log-batches": "batches are not printed one by one; their percentiles always are",
    "no-flow-control": "no effect: a worker takes a batch when it is free",
    "replication-factor": "no effect: TimescaleDB has had no data nodes since 2.14",
    "use-tags-id": "the first tag is stored in every row, as with --in-table-partition-tag",
    "write-profile": "no effect: nothing is written",
    "write-replication-stats": "no effect: nothing is written",
}
"""Flags that are taken and do nothing, or something else; what is said of them when they are given."""

UNIFIED = (
    ("--loader.runner.", "--"),
    ("--loader.db-specific.", "--"),
    ("--data-source.file.location", "--file"),
    ("--data-source.simulator.", "--"),
)
"""How the flags of `tsbs_load TARGET` are spelt, and what they are here."""


def from_unified(arguments: Sequence[str]) -> list[str]:
    """Return arguments of TSBS's later program, `tsbs_load`, as those of `tsbs_load_timescaledb`."""
    found: list[str] = []
    skip = False
    for argument in arguments:
        if skip or argument.startswith("--data-source.type"):
            skip = not skip and "=" not in argument
            continue
        for prefix, ours in UNIFIED:
            if argument.startswith(prefix):
                found.append(ours + argument.removeprefix(prefix))
                break
        else:
            found.append(argument)
    return found


def load_of(values: Values, engine: Engine) -> Load:
    """Return the load that the flags ask for; raises LoadstoneError where they contradict each other."""
    rate = values.real("rate")
    if rate < 0:
        raise LoadstoneError(f"--rate={rate:g} is negative", "Set batches per second, or 0 for no limit.")
    return Load(
        data=_series(values) if values.text("use-case") else values.text("file") or STANDARD_INPUT,
        method=_method(values),
        batch_rows=_above_zero(values, "batch-size"),
        workers=_above_zero(values, "workers"),
        hash_workers=values.on("hash-workers"),
        limit_rows=values.number("limit"),
        pace=Pace("fixed", rate) if rate else Pace(),
        insert_intervals=values.text("insert-intervals"),
        tables=_tables(values, engine),
        timeout_s=max(1.0, values.number("timeout") / _SECOND_NS),
        seed=values.number("seed") or 1,
    )


def notes(values: Values, engine: Engine) -> Iterator[str]:
    """Yield what flags that were given do not do here."""
    given = values.chosen
    defaults = {flag.name: flag.default for flag in FLAGS}
    for name, effect in _WITHOUT_MEANING.items():
        if name in given and values.raw(name) != defaults[name]:
            yield f"--{name}: {effect}"
    if engine.name == "postgres" and "chunk-time" not in given:
        yield f"tables of {engine.title} are partitioned by time only if --chunk-time is set"


def _series(values: Values) -> Series:
    use_case = values.text("use-case")
    if use_case not in _USE_CASES:
        raise LoadstoneError(
            f"invalid use case specified: {use_case!r}", f"Choose one of {', '.join(_USE_CASES)}."
        )
    if values.text("file"):
        raise LoadstoneError("--file and --use-case exclude each other", "Use only one of them.")
    if not values.number("seed"):
        raise LoadstoneError("generated data needs a seed", "Set --seed=123, or any other number above 0.")
    return Series(
        use_case=use_case,  # type: ignore[arg-type]
        start=values.text("timestamp-start"),
        end=values.text("timestamp-end"),
        scale=values.number("scale"),
        seed=values.number("seed"),
        interval_s=values.number("log-interval") / _SECOND_NS,
        initial_scale=values.number("initial-scale"),
        max_points=values.number("max-data-points"),
        max_metrics=values.number("max-metric-count"),
        native=values.on("native"),
        slice=_slice(values.text("slice")),
    )


def _slice(text: str) -> tuple[int, int]:
    if not text:
        return (0, 1)
    number, _, count = text.partition("/")
    if not number.isdecimal() or not count.isdecimal() or int(number) >= int(count):
        raise LoadstoneError(f"{text!r} is not a slice", "Write i/n, i from 0 to n - 1: 0/4.")
    return int(number), int(count)


def _method(values: Values) -> LoadMethod:
    wanted, given = values.text("method"), values.chosen
    inserts = values.on("use-insert") or not values.on("use-copy")
    if "use-copy" in given and values.on("use-copy") and values.on("use-insert"):
        raise LoadstoneError("--use-copy and --use-insert exclude each other", "Use only one of them.")
    if wanted:
        if wanted not in get_args(LoadMethod):
            raise LoadstoneError(
                f"{wanted!r} is not a method", f"Choose one of {', '.join(get_args(LoadMethod))}."
            )
        if given & {"use-copy", "use-insert", "force-text-format"}:
            raise LoadstoneError(
                "--method and TSBS's flags for the method exclude each other", "Remove TSBS's flags."
            )
        return wanted  # type: ignore[return-value]
    if inserts:
        return "insert"
    if values.on("force-text-format"):
        return "copy_text"
    # Whoever does not ask has COPY's binary format in TSBS, and the engine's best way here.
    return "copy_binary" if "use-copy" in given else "best"


def _tables(values: Values, engine: Engine) -> SeriesTables:
    order = values.text("field-index")
    if order not in ("VALUE-TIME", "TIME-VALUE"):
        raise LoadstoneError(
            f"--field-index={order} is not an order of columns",
            "Write VALUE-TIME or TIME-VALUE.",
        )
    if values.number("partitions") < 0:
        raise LoadstoneError("--partitions is negative", "Use 0 for none.")
    split = engine.name == "timescaledb" or bool(values.chosen & {"chunk-time"})
    after = values.number("compress-after")
    return SeriesTables(
        time_index=values.on("time-index"),
        partition_index=values.on("partition-index"),
        time_partition_index=values.on("time-partition-index"),
        field_index=order,  # type: ignore[arg-type]
        field_index_count=values.number("field-index-count"),
        chunk_time_s=values.number("chunk-time") / _SECOND_NS if split else None,
        hash_partitions=values.number("partitions"),
        jsonb_tags=values.on("use-jsonb-tags"),
        in_table_tag=values.on("in-table-partition-tag") or not values.on("use-tags-id"),
        compress=values.on("compress"),
        compress_after_s=after / _SECOND_NS if after else None,
    )


def _above_zero(values: Values, name: str) -> int:
    number = values.number(name)
    if number < 1 or number > 1 << 31:
        raise LoadstoneError(f"--{name}={number} is out of range", "Use 1 or more.")
    return number

"""`loadstone tsbs generate-queries`: TSBS's tsbs_generate_queries, and texts for other databases."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.errors import ExitCode, LoadstoneError, RunFailedError
from loadstone.personalities.tsbs.flags import Flag, Values, parse
from loadstone.workload.tsbs.dataset import parse_time
from loadstone.workload.tsbs.queries import Layout, Query, QuerySpec, dialects, generate, gob
from loadstone.workload.tsbs.queries.kinds import FAMILIES, kinds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadstone.workload.tsbs.queries import Dialect

    Write = Callable[[str], object]

PROGRAM = "loadstone tsbs generate-queries"
_NOT_HERE = (
    "akumuli", "cassandra", "clickhouse", "cratedb", "influx", "mongo", "questdb", "siridb", "timestream",
    "victoriametrics",
)  # fmt: skip
_LABEL, _DESCRIPTION = 1, 2
"""Levels of --debug; above, the whole query is shown."""

FLAGS = (
    Flag(
        "clickhouse-use-tags",
        "bool",
        default=True,
        help="Accepted for compatibility with TSBS; without effect",
    ),
    Flag("db-name", "string", "benchmark", "Accepted for compatibility with TSBS; without effect"),
    Flag(
        "debug", "int", 0, "Show each query on stderr: 1 its label, 2 also its description, 3 also its text"
    ),
    Flag("file", "string", "", "Write the queries to this file"),
    Flag(
        "format",
        "string",
        "",
        "Database that the queries are written for: timescaledb (as in TSBS), or an engine",
    ),
    Flag("interleaved-generation-group-id", "uint", 0, "Which of the interleaved groups to write, from 0"),
    Flag("interleaved-generation-groups", "uint", 1, "Number of interleaved groups"),
    Flag(
        "mongo-use-naive", "bool", default=True, help="Accepted for compatibility with TSBS; without effect"
    ),
    Flag("queries", "uint", 1000, "Number of queries to generate"),
    Flag("query-type", "string", "", "Query type. (Choices are in the use case matrix below.)"),
    Flag("scale", "uint", 1, "Number of hosts or trucks in the data set"),
    Flag("seed", "int", 0, "Seed of the random parameters, 0 = from the clock (the seed is shown)"),
    Flag("timescale-use-json", "bool", default=False, help="Tags are in one JSON column of the table tags"),
    Flag("timescale-use-tags", "bool", default=True, help="Tags are in a separate table"),
    Flag(
        "timescale-use-time-bucket",
        "bool",
        default=True,
        help="Use time_bucket; false: an expression (devops only)",
    ),
    Flag("timestamp-end", "string", "2016-01-02T00:00:00Z", "End of the data set (RFC3339)"),
    Flag("timestamp-start", "string", "2016-01-01T00:00:00Z", "Beginning of the data set (RFC3339)"),
    Flag("use-case", "string", "", f"Use case of the data set. (choices: {', '.join(FAMILIES)})"),
)


def main(arguments: Sequence[str], out: Write, err: Write) -> int:
    """Generate what the arguments say; the queries go to a file or to standard output, all else to `err`."""
    del out  # queries are bytes
    values = parse(PROGRAM, FLAGS, arguments)
    spec = _spec(values, err)
    shown = _Shown(values.number("debug"), err)
    if values.number("debug") > 0:
        err(f"using random seed {spec.seed}\n")
    # What cannot be generated is refused before the file is made.
    queries = generate(spec)
    _write(shown.each(queries), values.text("file"))
    err("".join(f"{label}: {count} points\n" for label, count in sorted(shown.counts.items())))
    return ExitCode.OK


class _Shown:
    """What is said of queries while they are written."""

    def __init__(self, level: int, err: Write) -> None:
        self.counts: dict[str, int] = {}
        self._level, self._err = level, err

    def each(self, queries: Iterator[Query]) -> Iterator[Query]:
        for query in queries:
            yield query
            self.counts[query.label] = self.counts.get(query.label, 0) + 1
            if self._level > 0:
                self._err(self._text(query) + "\n")

    def _text(self, query: Query) -> str:
        if self._level == _LABEL:
            return query.label
        if self._level == _DESCRIPTION:
            return query.description
        return (
            f"HumanLabel: {query.label}, HumanDescription: {query.description}, "
            f"Hypertable: {query.table}, Query: {query.sql}"
        )


def _spec(values: Values, err: Write) -> QuerySpec:
    dialect = _dialect(values.text("format"))
    group = values.number("interleaved-generation-group-id")
    groups = values.number("interleaved-generation-groups")
    if groups == 0:
        raise LoadstoneError("incorrect interleaved groups configuration: total groups = 0", "Use 1 or more.")
    if group >= groups:
        raise LoadstoneError(
            f"incorrect interleaved groups configuration: id {group} >= total groups {groups}",
            f"Groups are numbered from 0: use at most {groups - 1}.",
        )
    if values.number("scale") == 0:
        raise LoadstoneError("scale cannot be 0", "Set the scale of the data set: --scale=…")
    if not values.text("query-type"):
        raise LoadstoneError("query type cannot be empty", _matrix())
    return QuerySpec(
        use_case=values.text("use-case"),
        kind=values.text("query-type"),
        scale=values.number("scale"),
        start_ns=parse_time(values.text("timestamp-start")),
        end_ns=parse_time(values.text("timestamp-end")),
        seed=values.number("seed") or _seed_by_clock(err),
        count=values.number("queries"),
        group=group,
        groups=groups,
        dialect=dialect,
        layout=Layout(
            use_json=values.on("timescale-use-json"),
            use_tags=values.on("timescale-use-tags"),
            use_time_bucket=values.on("timescale-use-time-bucket"),
        ),
    )


def _dialect(name: str) -> Dialect:
    known = {dialect.name: dialect for dialect in dialects()}
    if name in known:
        return known[name]
    choice = f"Choose {', '.join(known)}: --format=…"
    if name in _NOT_HERE:
        raise LoadstoneError(f"queries in TSBS's format {name} are not supported", choice)
    raise LoadstoneError(f"invalid format specified: {name!r}", choice)


def _matrix() -> str:
    lines = [f"  use case: {use}, query type: {name}" for use in FAMILIES for name in kinds_of(use)]
    return "\n".join(["The use case matrix of choices is:", *lines])


def _seed_by_clock(err: Write) -> int:
    seed = time.time_ns() % 10**9 or 1  # noqa: TID251 - as TSBS does
    err(f"{PROGRAM}: the seed is {seed}, from the clock: repeat with --seed={seed}\n")
    return seed


def _write(queries: Iterator[Query], path: str) -> None:
    try:
        if path:
            with Path(path).open("wb") as file:
                gob.write(queries, file)
            return
        sys.stdout.flush()
        gob.write(queries, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except OSError as error:
        if not path:
            # What Python still holds must not complain once more at its exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise _not_written(path, error) from error


def _not_written(path: str, error: OSError) -> LoadstoneError:
    where = path or "standard output"
    if isinstance(error, BrokenPipeError):
        return RunFailedError(
            f"{where} was closed before all queries were written",
            "Write to a file, or to a program that reads all of them.",
        )
    kind = LoadstoneError if path else RunFailedError
    return kind(
        f"the queries could not be written to {where}: {error.strerror}",
        "Choose a file on a disk with free space: --file=…",
    )

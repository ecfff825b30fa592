"""Queries asked of a target by the core, over the wire or through a client library."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, Literal

from loadstone.engine import SCHEMA
from loadstone.errors import LoadstoneError
from loadstone.model import Pace
from loadstone.results.redact import redact
from loadstone.workload.drive import connection_document, perform
from loadstone.workload.queries.answer import compare
from loadstone.workload.queries.clients import EngineAsker, QueryingLibrary, native_clients

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from loadstone.engine.library.client import Clients
    from loadstone.signals import Signals
    from loadstone.target import OpenTarget
    from loadstone.workload.drive import Progress
    from loadstone.workload.queries.clients import Asker

    Drive = Callable[[dict[str, Any], Callable[[Progress], None] | None], dict[str, Any]]
    """Runs a drive's document to its end, shows its progress, and returns its account."""

Account = dict[str, Any]
"""drive.json of docs/run-folder.md, with `queries`."""

QUERIES_FILE = "queries.jsonl"
_QUOTED = json.JSONEncoder().encode


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """How queries are run."""

    workers: int = 1
    pace: Pace = field(default_factory=Pace)
    duration_s: float | None = None
    """Go round the queries for so long; None: each once."""
    burn_in: int = 0
    """So many queries first, which are not measured."""
    most: int = 0
    """Stop after so many; 0: all."""
    timeout_s: float = 60.0
    seed: int = 1
    binary: bool = True
    """Answers in binary, where the protocol has it."""
    answers: Literal["digest", "none"] = "digest"
    strict: bool = False
    """Refuse queries that cannot be put into the target's dialect, rather than send them as they are."""
    answers_most: int = 10_000
    """Keep the answers of so many distinct queries."""
    resting: bool = True
    """The database rests: a query whose answer changes has failed."""
    prepared: int = 512
    """Texts that a connection keeps prepared, where the protocol has that; 0: each is planned again."""
    brittle: bool = False
    """End at the first query that fails, or with the first connection that is lost."""
    records: bool = True
    """Write what happens to files."""
    interval_s: float = 1.0
    labels: tuple[str, ...] = ()
    """Labels that are numbered before those that come with the queries."""
    suffixes: tuple[str, ...] = ("",)
    """Each query is run once for each, one after the other, with this behind its label."""
    asker: Asker | None = None
    """Who carries the queries in place of what is usual for the target."""
    on_answer: Callable[[str, Any], None] | None = None
    """Is given each query's text with its answer, where a library carries the queries."""
    on_query: Callable[[int, int], None] | None = None
    """Is given the beginning and the end of each query, where a library carries the queries."""
    drive: Drive | None = None
    """Drives in place of this process: several load hosts."""
    schema: str | None = SCHEMA
    """Where unqualified names lead first; None: where the user's own connection has them."""


@dataclass(slots=True)
class QueryFile:
    """Queries in a target's words, as a file that the driver reads."""

    path: Path
    labels: list[str] = field(default_factory=list)
    count: int = 0
    unnamed: IO[str] | None = None
    """The file, where the one in the run folder may not hold its secrets: it goes when it is closed."""

    def add(self, number: int, text: str, out: IO[str]) -> None:
        """Write one query to `out`, the file in the run folder, without its secrets."""
        hidden = redact(text)
        line = shown = f"[{number}, {_QUOTED(text)}]\n"
        if hidden != text:
            shown = f"[{number}, {_QUOTED(hidden)}]\n"
        if line != shown and self.unnamed is None:
            out.flush()
            self.unnamed = TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - until all are asked
            self.unnamed.write(self.path.read_text(encoding="utf-8"))
            self.path = Path(f"/proc/self/fd/{self.unnamed.fileno()}")
        out.write(shown)
        if self.unnamed is not None:
            self.unnamed.write(line)

    def close(self) -> None:
        """Remove what was kept for the driver alone."""
        if self.unnamed is not None:
            self.unnamed.close()


def write_queries(queries: Iterable[tuple[str, str]], path: Path, options: QueryOptions) -> QueryFile:
    """Write queries, each a label and a text, to a file of one JSON array a line: label's number, text.

    Where a text holds a secret, it is hidden there, and what is sent comes from a file without a name, which
    is to be closed. Raises LoadstoneError when there are none.
    """
    written = QueryFile(path)
    numbers = {label: number for number, label in enumerate(options.labels)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as out:
        for label, text in queries:
            for suffix in options.suffixes:
                number = numbers.setdefault(label + suffix, len(numbers))
                written.add(number, text, out)
            written.count += 1
    if written.unnamed is not None:
        written.unnamed.flush()
    written.labels = list(numbers)
    if not written.count:
        raise LoadstoneError(
            "there are no queries to run", "Generate some with `loadstone tsbs generate-queries`."
        )
    return written


def perform_all(
    queries: Iterable[tuple[str, str]],
    opened: OpenTarget,
    out_dir: Path,
    signals: Signals | None,
    show: Callable[[Progress], None] | None,
    options: QueryOptions,
) -> Account:
    """Ask a target queries, each a label and a text in its own words, and return the account.

    `out_dir` takes `queries.jsonl`, and with `records` `series.jsonl` and `latency.hlog`. Raises
    LoadstoneError when nothing can be run; queries that fail are counted in the account.
    """
    with closing(write_queries(queries, out_dir / QUERIES_FILE, options)) as written:
        return _ask_written(written, opened, _document(written, options, out_dir), signals, show, options)


def _ask_written(
    written: QueryFile,
    opened: OpenTarget,
    document: dict[str, Any],
    signals: Signals | None,
    show: Callable[[Progress], None] | None,
    options: QueryOptions,
) -> Account:
    connection = opened.client_connection(options.schema) if options.asker is None else None
    if connection is not None:
        if not options.binary:
            with closing(opened.connect("loadstone")) as control:
                connection = opened.engine.for_texts(control, connection)
        document["connection"] = connection_document(connection)
    if options.drive is not None:
        account = options.drive(document, show)
    else:
        library = None if connection is not None else _library(opened, document, options)
        account = perform(document, signals, show, library=library)
    if account["queries"]["answers"]:
        _renumber(account["queries"]["answers"], written, len(options.suffixes))
    return account


def _library(opened: OpenTarget, document: dict[str, Any], options: QueryOptions) -> Clients:
    """Return what clients ask through, where they are not on the wire."""
    if options.asker is None and options.on_answer is None:
        native = native_clients(opened)
        if native is not None:
            return native
    asker = options.asker or EngineAsker(opened)
    if not asker.arrow:
        document["queries"]["answers"] = "none"
    return QueryingLibrary(asker, options.on_answer, options.on_query)


def _renumber(answers: list[dict[str, Any]], written: QueryFile, runs: int) -> None:
    """Give each answer the number of the first query with its text: which of them ended first is chance."""
    first: dict[str, int] = {}
    places: list[int] = []
    with written.path.open(encoding="utf-8") as lines:
        for place, line in enumerate(lines):
            text = line.partition(",")[2]  # as JSON: two texts that are the same are written alike
            places.append(first.setdefault(text, place) // runs)
    for answer in answers:
        answer["query"] = places[answer["query"]]
    answers.sort(key=lambda answer: int(answer["query"]))


def compare_answers(
    expected: Iterable[Mapping[str, Any]], actual: Iterable[Mapping[str, Any]]
) -> list[tuple[int, str]]:
    """Return the numbers of the queries whose answers differ, with the difference in words (expected: here).

    Both are the `answers` of accounts over the same queries in the same order. A query that only one of
    them has answered is a difference, except behind the end of the shorter run.
    """
    one = {entry["query"]: entry["digest"] for entry in expected}
    other = {entry["query"]: entry["digest"] for entry in actual}
    found = []
    for number in sorted(one.keys() & other.keys()):
        words = compare(one[number], other[number])
        if words:
            found.append((number, words))
    return found


def _document(written: QueryFile, options: QueryOptions, out_dir: Path) -> dict[str, Any]:
    pace: dict[str, Any] = {"kind": options.pace.kind}
    if options.pace.rate_per_s is not None:
        pace["rate_per_s"] = options.pace.rate_per_s
    return {
        "queries": {
            "labels": written.labels,
            "file": str(written.path),
            "burn_in": options.burn_in,
            "max_queries": options.most,
            "together": len(options.suffixes),
            "loop": options.duration_s is not None,
            "binary": options.binary,
            "answers": options.answers,
            "answers_max": options.answers_most,
            "check_repeats": options.resting,
            "statements_max": options.prepared,
        },
        "clients": options.workers,
        "threads": None,
        "duration_s": options.duration_s,
        "pace": pace,
        "timeout_s": options.timeout_s,
        "reconnect": not options.brittle,
        "on_error": "abort_client" if options.brittle else "continue",
        "seed": options.seed,
        "interval_s": options.interval_s,
        "out_dir": str(out_dir) if options.records else None,
    }

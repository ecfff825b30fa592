"""`loadstone tsbs run-queries`: TSBS's tsbs_run_queries_timescaledb, against every target.

docs/tsbs.md says what each flag came to, and where this differs from TSBS.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.engines import engine as engine_named
from loadstone.errors import ExitCode, LoadstoneError
from loadstone.hosts.driving import found, refuse_library
from loadstone.hosts.places import parse_hosts
from loadstone.model import Pace
from loadstone.personalities.tsbs import observed
from loadstone.personalities.tsbs.flags import Flag, Values, parse
from loadstone.personalities.tsbs.query_answers import Answers, KnownAnswers
from loadstone.personalities.tsbs.query_lines import WARM_MARK
from loadstone.personalities.tsbs.query_run import Run, run_at
from loadstone.personalities.tsbs.query_targets import Place, load_hosts_of, places_of
from loadstone.personalities.tsbs.records import records_folder, refuse_unwritable
from loadstone.signals import InterruptedRun, Signals
from loadstone.workload.queries.execution import QueryOptions
from loadstone.workload.tsbs.queries import Query, gob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadstone.hosts.fleet import Fleet
    from loadstone.workload.queries.execution import Drive

    Write = Callable[[str], object]

PROGRAM = "loadstone tsbs run-queries"
_SECOND_NS = 10**9

FLAGS = (
    Flag("answers", "string", "", "Write a digest of each query's answer to this file"),
    Flag("burn-in", "uint", 0, "Queries to run first and exclude from every figure; needs --max-queries"),
    Flag("compare-answers", "string", "", "Compare the answers with those of this file (of --answers)"),
    Flag("db-name", "string", "benchmark", "Database to run the queries in"),
    Flag("debug", "int", 0, "Print each query that is run"),
    Flag("duration", "duration", 0, "Repeat the queries for this time, 0 = run each once", "0s"),
    Flag("file", "string", "", "File of queries (default: standard input)"),
    Flag("force-text-format", "bool", default=False, help="Request answers as text"),
    Flag("hdr-latencies", "string", "", "Write the distribution of latencies to this file"),
    Flag(
        "hosts",
        "string",
        "localhost",
        "Servers that share the queries, separated by commas; or load hosts: local:N, ssh://H1,H2, tcp://H",
    ),
    Flag("max-queries", "uint", 0, "Maximum number of queries to run, 0 = all"),
    Flag("max-rps", "uint", 0, "Queries to start per second, over all workers, 0 = no limit"),
    Flag("memprofile", "string", "", "Accepted for compatibility with TSBS; nothing is written"),
    Flag("out", "string", "", "New folder for the driver's files (drive.json, series.jsonl, latency.hlog)"),
    Flag("pass", "string", "", "Password (better: PGPASSWORD or ~/.pgpass)"),
    Flag("port", "string", "5432", "Port of the hosts"),
    Flag(
        "postgres", "string", "host=postgres user=postgres sslmode=disable", "Further connection parameters"
    ),
    Flag("prewarm-queries", "bool", default=False, help="Run each query twice, the second time warm"),
    Flag("print-interval", "uint", 100, "Report on stderr after every so many queries, 0 = never"),
    Flag("print-responses", "bool", default=False, help="Print each query with its answer, as JSON"),
    Flag(
        "rate", "float", 0.0, "Open loop: start this many queries per second, even if others have not ended"
    ),
    Flag("results-file", "string", "", "Write the figures to this file, as JSON"),
    Flag("show-explain", "bool", default=False, help="Print the plan of the first query, and run no other"),
    Flag(
        "strict-dialect",
        "bool",
        default=False,
        help="Refuse queries that cannot be translated for the target",
    ),
    Flag(
        "target",
        "string",
        "",
        "Where to run instead: pg, postgres://…, duckdb:/path, …; several are compared",
    ),
    Flag("timeout", "duration", 0, "Longest time for one query, 0 = no limit", "0s"),
    Flag("user", "string", "postgres", "User to connect as"),
    Flag("workers", "uint", 1, "Queries in flight at once"),
    *observed.FLAGS,
)


def main(arguments: Sequence[str], out: Write, err: Write) -> int:
    """Run what the arguments say; figures go to `out`, all else to `err`. Returns the exit status."""
    values = parse(PROGRAM, FLAGS, arguments)
    _check(values)
    if values.text("memprofile"):
        err(f"{PROGRAM}: --memprofile is accepted for compatibility with TSBS, but no profile is written\n")
    refuse_unwritable(values, "results-file", "hdr-latencies", "answers")
    places = places_of(values)
    hosts = load_hosts_of(values)
    if hosts is not None:
        _refuse_on_hosts(values, hosts, places)
    known = KnownAnswers.read(Path(file)) if (file := values.text("compare-answers")) else None
    _refuse_live_of_several(values, places)
    with Signals() as signals, ExitStack() as stack:
        targets = [target for place in places for target in place.targets]
        observer = stack.enter_context(observed.observing_of(values, targets, PROGRAM, err))
        if observer.figures is not None:
            observer.figures.expect(len(places))
        folder = stack.enter_context(records_folder(values.text("out")))
        drive = None if hosts is None else stack.enter_context(_driver(hosts, values, signals, err))
        source = _Source(values, several=len(places) > 1)
        used = known is not None or len(places) > 1 or bool(values.text("answers"))
        outcomes, answers = [], Answers(known, used)
        for number, place in enumerate(places):
            run = Run(
                values, _options(values, drive), place, folder / str(number) if len(places) > 1 else folder
            )
            outcomes.append(run_at(run, source.queries(answers), answers, signals, (out, err), observer))
            signals.check()
        code = _conclude(outcomes, answers, signals)
        observer.ended(code)
    if values.text("answers"):
        answers.write(Path(values.text("answers")))
    return code


def _refuse_live_of_several(values: Values, places: Sequence[Place]) -> None:
    if observed.observation_of(values).live_options.given and any(len(place.targets) > 1 for place in places):
        raise LoadstoneError(
            "--live and --openmetrics show one drive, and several --hosts have one each",
            "Use one host, or --watch, which shows all of them at the end.",
        )


def _conclude(outcomes: list[Any], answers: Answers, signals: Signals) -> int:
    if signals.received is not None:
        return InterruptedRun(signals.received).exit_code
    if answers.wrong or any(outcome.changed for outcome in outcomes):
        return ExitCode.WRONG_ANSWER
    failed = any(outcome.failed or outcome.lost for outcome in outcomes)
    return ExitCode.FAILED if failed else ExitCode.OK


def _refuse_on_hosts(values: Values, hosts: str, places: Sequence[Place]) -> None:
    """Refuse what load hosts cannot do. Raises LoadstoneError."""
    parse_hosts(hosts)
    shown = [name for name in ("show-explain", "print-responses") if values.on(name)]
    if shown or values.number("debug"):
        raise LoadstoneError(
            f"--hosts={hosts} and --{shown[0] if shown else 'debug'} exclude each other: queries and answers "
            "are shown by the process that asks",
            "Run this from one host.",
        )
    for target in (target for place in places for target in place.targets):
        refuse_library(engine_named(target.engine))


@contextmanager
def _driver(hosts: str, values: Values, signals: Signals, err: Write) -> Iterator[Drive]:
    """Find the load hosts; returns what has them drive."""

    def say(level: str, text: str) -> None:
        err(f"{PROGRAM}: {'warning: ' if level == 'warning' else ''}{text}\n")

    with found(hosts, say) as fleet:
        fleet.refuse_too_few(values.number("workers"), "--workers")
        if values.number("print-interval"):
            say("info", "the reports of --print-interval come when all load hosts have ended")
        yield partial(_drive_on, fleet, signals, say)


def _drive_on(
    fleet: Fleet, signals: Signals, say: Callable[[str, str], None], document: dict[str, Any], show: Any
) -> dict[str, Any]:
    return fleet.perform(document, signals, show, say=say)


@dataclass(slots=True)
class _Source:
    """The queries, read as they are wanted; kept only when they are wanted more than once."""

    values: Values
    several: bool
    _kept: list[Query] | None = None

    def queries(self, answers: Answers) -> Iterator[Query]:
        if not self.several:
            return answers.noting(self._read())
        if self._kept is None:
            self._kept = list(self._read())
        return answers.noting(iter(self._kept))

    def _read(self) -> Iterator[Query]:
        most = 1 if self.values.on("show-explain") else self.values.number("max-queries") or None
        path = self.values.text("file")
        if not path:
            yield from islice(gob.read(sys.stdin.buffer, "standard input"), most)
            return
        try:
            with Path(path).open("rb") as file:
                yield from islice(gob.read(file, path), most)
        except OSError as error:
            raise LoadstoneError(
                f"cannot open file for read {path}: {error.strerror}", "Choose a file of queries with --file."
            ) from error


def _check(values: Values) -> None:
    burn_in, most = values.number("burn-in"), values.number("max-queries")
    if values.number("workers") == 0:
        raise LoadstoneError("must have at least one worker", "Use --workers=1 or more.")
    if burn_in and not values.on("show-explain") and burn_in >= most:
        said = f"--max-queries={most}" if most else "no --max-queries"
        raise LoadstoneError(
            f"burn-in is larger than limit: --burn-in={burn_in} with {said} leaves nothing to measure",
            f"Set --max-queries to the total number of queries, more than {burn_in}.",
        )
    if values.number("max-rps") and values.real("rate"):
        raise LoadstoneError("--max-rps and --rate exclude each other", "Use only one of them.")
    if values.real("rate") < 0:
        raise LoadstoneError("--rate is negative", "Set queries per second.")
    if values.number("duration") and most:
        raise LoadstoneError("--duration and --max-queries exclude each other", "Use only one of them.")
    if values.number("workers") > 100_000:  # noqa: PLR2004 - as in the message
        raise LoadstoneError("--workers is above 100000", "Use fewer.")


def _options(values: Values, drive: Drive | None) -> QueryOptions:
    rate = values.real("rate") or float(values.number("max-rps"))
    duration, timeout = values.number("duration"), values.number("timeout")
    return QueryOptions(
        workers=values.number("workers"),
        pace=Pace("fixed", rate) if rate else Pace(),
        duration_s=duration / _SECOND_NS if duration else None,
        burn_in=0 if values.on("show-explain") else values.number("burn-in"),
        timeout_s=timeout / _SECOND_NS if timeout else 10 * 365 * 86400.0,
        binary=not values.on("force-text-format"),
        strict=values.on("strict-dialect"),
        answers_most=1_000_000 if values.text("answers") or values.text("compare-answers") else 10_000,
        suffixes=("", WARM_MARK) if values.on("prewarm-queries") else ("",),
        interval_s=0.2,
        drive=drive,
        schema=None,
    )

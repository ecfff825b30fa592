"""One run of the queries at one place: driven, reported in TSBS's lines, and what we know beyond them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from loadstone.errors import RunFailedError
from loadstone.personalities.tsbs import query_lines
from loadstone.personalities.tsbs.observed import bullets, served
from loadstone.personalities.tsbs.query_figures import ALL, percentile_lines
from loadstone.personalities.tsbs.query_replies import explained, of_table, plan_text, response
from loadstone.personalities.tsbs.query_targets import Place, PostgresAsker, opened_at
from loadstone.signals import Signals
from loadstone.workload.queries.clients import CHANGED, EngineAsker
from loadstone.workload.tsbs.execution import perform_queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from loadstone.personalities.observation.observer import Observer
    from loadstone.personalities.tsbs.flags import Values
    from loadstone.personalities.tsbs.query_answers import Answers
    from loadstone.target import OpenTarget
    from loadstone.workload.queries.clients import Asker
    from loadstone.workload.queries.execution import QueryOptions
    from loadstone.workload.tsbs.queries import Query

    Write = Callable[[str], object]

DriveResult = dict[str, Any]
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Run:
    """What is to be run where."""

    values: Values
    options: QueryOptions
    place: Place
    folder: Path


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    failed: int
    """Queries that failed."""
    changed: int
    """Of these, the ones whose answer was another than the first time."""
    lost: bool
    """A load host was lost: not everything was asked."""


def run_at(
    run: Run,
    queries: Iterator[Query],
    answers: Answers,
    signals: Signals,
    streams: tuple[Write, Write],
    observer: Observer,
) -> Outcome:
    """Run the queries at a place and print what there is to say; returns how it ended."""
    out, err = streams
    values = run.values
    begun_unix_s = _unix_s()
    with opened_at(run.place, run.options.workers) as opened:
        for note in chain.from_iterable(one.notes for one in opened):
            err(f"loadstone tsbs run-queries: note: {note}\n")
        parts = _parts(run, opened, queries, out)
        with observer.measuring([served(one) for one in opened], "queries"):
            samples, accounts = _perform(run, parts, signals, err, observer)
            observer.over(accounts[0]["state"])
    prewarmed = values.on("prewarm-queries")
    seconds = _seconds(accounts)
    out(query_lines.final_block(samples, seconds, run.options.workers, prewarmed=prewarmed))
    _write_latencies(values, samples, out, prewarmed=prewarmed)
    out(f"wall clock time: {seconds:f}sec\n")
    if values.text("results-file"):
        out(f"Saving results json file to {values.text('results-file')}\n")
        times = (begun_unix_s, _unix_s(), seconds)
        text = query_lines.results_json(samples, _settings(values), times, prewarmed=prewarmed)
        _write(values.text("results-file"), text)
    out(_beyond(run, opened, samples, accounts) + bullets(observer.lines()))
    compared = answers.take(opened[0].label, _answers_of(accounts))
    if compared:
        out(compared)
    errors = _errors(accounts)
    lost = any(account.get("lost_hosts") for account in accounts)
    if lost:
        err(f"loadstone tsbs run-queries: {accounts[0]['reason']}: the figures are not of all queries\n")
    changed = sum(count for (state, _), count in errors if state == CHANGED)
    return Outcome(sum(count for _, count in errors), changed, lost)


@dataclass(frozen=True, slots=True)
class _Part:
    """One host's share of the queries."""

    opened: OpenTarget
    queries: Iterator[Query]
    options: QueryOptions
    folder: Path


def _parts(run: Run, opened: Sequence[OpenTarget], queries: Iterator[Query], out: Write) -> list[_Part]:
    options = [_shown(run, one, out) for one in opened]
    if len(opened) == 1:
        return [_Part(opened[0], queries, options[0], run.folder)]
    # As with TSBS's workers: worker i has host i modulo the number of hosts.
    hosts, workers = len(opened), run.options.workers
    shares = [len(range(host, workers, hosts)) for host in range(hosts)]
    dealt: list[list[Query]] = [[] for _ in opened]
    for number, query in enumerate(queries):
        dealt[number % workers % hosts].append(query)
    return [
        _Part(
            one,
            iter(dealt[host]),
            replace(
                options[host],
                workers=shares[host],
                burn_in=run.options.burn_in * shares[host] // workers,
                pace=_share_of_pace(run.options, shares[host]),
            ),
            run.folder / f"host-{host}",
        )
        for host, one in enumerate(opened)
        if dealt[host]
    ]


def _share_of_pace(options: QueryOptions, share: int) -> Any:
    rate = options.pace.rate_per_s
    return options.pace if rate is None else replace(options.pace, rate_per_s=rate * share / options.workers)


def _shown(run: Run, opened: OpenTarget, out: Write) -> QueryOptions:
    """Return the options: where queries or answers are shown, a library of Python carries them."""
    values = run.values
    explain, debug = values.on("show-explain"), values.number("debug") > 0
    if not (explain or debug or values.on("print-responses")):
        return run.options

    def show(sql: str, answer: Any) -> None:
        reply = answer if opened.engine.wire else of_table(answer)
        if debug:
            out(f"{explained(sql) if explain else sql}\n")
        if explain:
            out(plan_text(sql, reply))
        elif values.on("print-responses"):
            out(response(sql, reply))

    return replace(run.options, asker=_asker(opened, explain=explain), on_answer=show)


def _asker(opened: OpenTarget, *, explain: bool) -> Asker:
    if opened.engine.wire is not None:
        return PostgresAsker(opened, opened.engine.wire, explain)
    return _Explaining(opened) if explain else EngineAsker(opened)


class _Explaining(EngineAsker):
    """A target behind a client library that is asked for plans."""

    def answer(self, connection: Any, sql: str) -> Any:
        return self.engine.answer(connection, explained(sql))


def _perform(
    run: Run, parts: list[_Part], signals: Signals, err: Write, observer: Observer
) -> tuple[query_lines.Samples, list[DriveResult]]:
    values = run.values
    accounts: list[DriveResult] = []
    samples = query_lines.Samples([])
    logs = [part.folder / "latency.hlog" for part in parts]
    asked = {
        "interval": values.number("print-interval"),
        "workers": run.options.workers,
        "burn_in": run.options.burn_in,
        "most": values.number("max-queries"),
    }
    lines = query_lines.IntervalLines(samples, logs, asked, prewarmed=values.on("prewarm-queries"), err=err)
    if len(parts) == 1:
        part = parts[0]
        labelled = _Labelled(part.queries, samples, part.options.suffixes)
        show = observer.showing(lines.show)
        accounts.append(
            perform_queries(labelled.each(), part.opened, part.folder, signals, show, part.options)
        )
        if part.options.drive is not None:
            lines.replay()  # what load hosts have recorded is there when all of them have ended
    else:
        accounts += _at_once(parts, samples, signals, lines, observer)
    samples.read(logs)
    lines.tell_burn_in()  # it may have ended after the last look
    return samples, accounts


class _Labelled:
    """Notes each new label as the driver numbers them."""

    def __init__(
        self, queries: Iterator[Query], samples: query_lines.Samples, suffixes: Sequence[str]
    ) -> None:
        self._queries, self._samples, self._suffixes = queries, samples, suffixes

    def each(self) -> Iterator[Query]:
        labels: dict[str, None] = dict.fromkeys(self._samples.labels)
        for query in self._queries:
            if query.label + self._suffixes[0] not in labels:
                labels |= dict.fromkeys(query.label + suffix for suffix in self._suffixes)
                self._samples.labels = list(labels)
            yield query


class _Stopper(Signals):
    """Hands one signal's wish to one of several drives."""

    def __init__(self) -> None:
        super().__init__()
        self.stop: Callable[[], None] | None = None

    def during(self, stop: Callable[[], None] | None) -> None:
        self.stop = stop


def _at_once(
    parts: list[_Part],
    samples: query_lines.Samples,
    signals: Signals,
    lines: query_lines.IntervalLines,
    observer: Observer,
) -> list[DriveResult]:
    # Every host's driver numbers the labels alike.
    every = [list(part.queries) for part in parts]
    suffixes = parts[0].options.suffixes
    names = (query.label + suffix for dealt in every for query in dealt for suffix in suffixes)
    samples.labels = list(dict.fromkeys(names))
    show = observer.showing(lambda _: None)  # what is printed is read from files
    drives = [_Drive(part, dealt, samples.labels, show) for part, dealt in zip(parts, every, strict=True)]

    def stop_all() -> None:
        for drive in drives:
            drive.stop()

    with signals.calling(stop_all):
        for drive in drives:
            drive.start()
        while any(drive.is_alive() for drive in drives):
            time.sleep(_POLL_S)
            lines.show()
            if any(drive.trouble for drive in drives):
                stop_all()
    return [drive.ended() for drive in drives]


class _Drive(threading.Thread):
    """One host's drive, beside those of others."""

    def __init__(
        self,
        part: _Part,
        queries: list[Query],
        labels: Sequence[str],
        show: Callable[[dict[str, Any]], None],
    ) -> None:
        super().__init__(name=f"queries at {part.opened.label}")
        self._show = show
        self._part, self._queries = part, queries
        self._options = replace(part.options, labels=tuple(labels))
        self._stopper = _Stopper()
        self._account: DriveResult | None = None
        self.trouble: BaseException | None = None

    def run(self) -> None:
        part = self._part
        try:
            self._account = perform_queries(
                self._queries, part.opened, part.folder, self._stopper, self._show, self._options
            )
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self.trouble = error

    def stop(self) -> None:
        if self._stopper.stop is not None:
            self._stopper.stop()

    def ended(self) -> DriveResult:
        if self.trouble is not None:
            raise self.trouble
        assert self._account is not None, "it has ended without an error"  # noqa: S101
        return self._account


def _seconds(accounts: Sequence[DriveResult]) -> float:
    begun, ended = min(a["start_ns"] for a in accounts), max(a["end_ns"] for a in accounts)
    return float(max(ended - begun, 1) / 1e9)


def _write_latencies(values: Values, samples: query_lines.Samples, out: Write, *, prewarmed: bool) -> None:
    path = values.text("hdr-latencies")
    if path:
        out(f"Saving High Dynamic Range (HDR) Histogram of Response Latencies to {path}\n")
        _write(path, percentile_lines(samples.histograms(prewarmed=prewarmed)[ALL]))


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - a name as it was given
            file.write(text)
    except OSError as error:
        raise RunFailedError(f"{path} cannot be written: {error.strerror}", "Choose another file.") from error


def _settings(values: Values) -> dict[str, Any]:
    """Return TSBS's RunnerConfig, in its order."""
    return {
        "DBName": values.text("db-name"),
        "Limit": values.number("max-queries"),
        "LimitRPS": values.number("max-rps"),
        "MemProfile": values.text("memprofile"),
        "HDRLatenciesFile": values.text("hdr-latencies"),
        "Workers": values.number("workers"),
        "PrintResponses": values.on("print-responses"),
        "Debug": values.number("debug"),
        "FileName": values.text("file"),
        "BurnIn": values.number("burn-in"),
        "PrintInterval": values.number("print-interval"),
        "PrewarmQueries": values.on("prewarm-queries"),
        "ResultsFile": values.text("results-file"),
    }


def _beyond(
    run: Run, opened: Sequence[OpenTarget], samples: query_lines.Samples, accounts: Sequence[DriveResult]
) -> str:
    histogram = samples.histograms(prewarmed=False)[ALL]
    lines = ["\nbeyond TSBS, measured by loadstone:\n", f" - target: {', '.join(o.label for o in opened)}\n"]
    if run.options.asker is not None or opened[0].client_connection() is None:
        lines.append(" - timed around the calls of the database's own driver\n")
    lines.append(query_lines.percentile_line("service time, from the real start", histogram))
    if run.options.pace.kind != "closed":
        lines.append(query_lines.percentile_line("response time, from the intended start", samples.response))
    lines += _dialect_lines(accounts)
    distinct = sum(len(_listed(account)) for account in accounts)
    if distinct:
        lines.append(f" - answers of {distinct} distinct queries were digested\n")
    for (state, message), count in _errors(accounts):
        word = "wrong" if state == CHANGED else "failed"
        lines.append(f" - {word}: {state} (x {count}): {message}\n")
    dropped = sum(account["counts"]["dropped"] for account in accounts)
    if dropped:
        lines.append(f" - dropped: {dropped} queries were due but never started\n")
    return "".join(lines)


def _dialect_lines(accounts: Sequence[DriveResult]) -> list[str]:
    translated = sum(a["queries"]["translation"]["translated"] for a in accounts)
    reasons: Counter[str] = Counter()
    for account in accounts:
        reasons.update(account["queries"]["translation"]["as_they_are"])
    lines = [f" - {translated} queries were translated into the target's SQL\n"] if translated else []
    lines += [f" - {count} queries were sent untranslated: {reason}\n" for reason, count in reasons.items()]
    return lines


def _errors(accounts: Sequence[DriveResult]) -> list[tuple[tuple[str, str], int]]:
    found: dict[str, tuple[str, int]] = {}
    for error in chain.from_iterable(account["errors"] for account in accounts):
        message, count = found.get(error["sqlstate"], (error["message"], 0))
        found[error["sqlstate"]] = (message, count + error["count"])
    return [((state, message), count) for state, (message, count) in sorted(found.items())]


def _listed(account: DriveResult) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = account["queries"].get("answers") or []
    return answers


def _answers_of(accounts: Sequence[DriveResult]) -> list[dict[str, Any]]:
    # Hosts that share the queries number their own: only one host's answers have the file's numbers.
    return _listed(accounts[0]) if len(accounts) == 1 else []


def _unix_s() -> int:
    return time.time_ns() // 10**9  # noqa: TID251 - it is shown, not subtracted

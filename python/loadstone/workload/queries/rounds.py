"""Queries in plain SQL: each by itself, with caches emptied and then warm, or all of them as a load.

Who runs them says how caches are emptied and how a server that was lost comes back (`QueryContext`). The runs
of one query go through one connection, each planned again: what the connection learns, it learns before the
first warm one. A run's time is the driver's: over the wire, from sending the text to the last row, digested;
behind a client library, from the call to the whole answer as Arrow, which is digested afterwards.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loadstone import _core
from loadstone.errors import words_of
from loadstone.scenario.sql import filled
from loadstone.workload.queries.execution import QUERIES_FILE, QueryOptions, perform_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from loadstone.engine import Caches
    from loadstone.engine.control import Control
    from loadstone.model import PlainQueries, PlainQuery
    from loadstone.signals import Signals
    from loadstone.target import OpenTarget
    from loadstone.workload.drive import Progress

Account = dict[str, Any]
"""drive.json of docs/run-folder.md, with `plain_queries`."""
Run = dict[str, Any]
"""One entry of `plain_queries.runs`."""

_NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class QueryContext:
    """What asking needs of whoever holds the target."""

    control: Callable[[], Control]
    """Gives a control connection that works; raises LoadstoneError when the server is gone for good."""
    recover: Callable[[], object]
    """Waits for a server that lost a query's connection; raises likewise."""
    cool: Callable[[], Caches]
    """Empties the caches as far as that can be done; trouble is a note."""
    signals: Signals | None
    show: Callable[[Progress], None] | None
    schema: str
    keep: Callable[[Account], None]
    """Is given the account after each query, so that a kill leaves what was learnt."""
    rows: int | None = None
    """Rows of the table, where they are known."""


def perform_in_turn(
    queries: PlainQueries, opened: OpenTarget, out_dir: Path, context: QueryContext
) -> Account:
    """Ask one query after the other, each cold and then warm; returns the account.

    A run that fails is marked with its reason, and the query's later runs are skipped; the next query
    is asked all the same. The account's state is `complete`, or `interrupted` where a signal came first.
    """
    return _Turns(queries, opened, out_dir, context).perform()


def perform_together(
    queries: PlainQueries,
    opened: OpenTarget,
    out_dir: Path,
    signals: Signals | None,
    show: Callable[[Progress], None] | None,
    options: QueryOptions,
) -> Account:
    """Let clients go round the queries with drawn numbers; returns the account.

    Of `options` count what is not the queries' own: duration, schema, what becomes of the answers.
    """
    return perform_all(texts_of(queries, opened), opened, out_dir, signals, show, options)


def texts_of(queries: PlainQueries, opened: OpenTarget) -> Iterator[tuple[str, str]]:
    """Yield name and text of each query, round by round, in the target's words.

    The numbers hang on seed and draws alone, so that every target is asked the same.
    """
    drawing = _core.GoRand(queries.seed)
    for _ in range(queries.distinct if queries.draws else 1):
        values = {d.name: d.least + drawing.int63n(d.most - d.least + 1) for d in queries.draws}
        for query in queries.queries:
            yield query.name, opened.engine.translate(filled(query.sql, values))


@dataclass(slots=True)
class _Turns:
    """ConcurrentQueries in turn, in flight."""

    queries: PlainQueries
    opened: OpenTarget
    out_dir: Path
    context: QueryContext
    caches: Caches | None = None
    runs: list[Run] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)
    outages: list[dict[str, Any]] = field(default_factory=list)
    table_bytes: int | None = None
    gone: str | None = None
    """Why nothing more can be asked; None while it can."""
    started_ns: int = 0

    def perform(self) -> Account:
        self.started_ns = time.monotonic_ns()
        self._look_at_table()
        for query in self.queries.queries:
            sql = self.opened.engine.translate(query.sql)
            self.asked.append(
                {"name": query.name, "sql": sql, "plan": None, "gpu": None, "answer": None, "wrong": None}
            )
            self._ask(query, sql)
            if self._is_interrupted():
                break
            self._explain(sql)
            self.context.keep(self._account("interrupted", "the queries after this one were not run"))
        (self.out_dir / QUERIES_FILE).unlink(missing_ok=True)
        stopped = self._is_interrupted()
        return self._account("interrupted", "stopped by a signal") if stopped else self._account("complete")

    def _ask(self, query: PlainQuery, sql: str) -> None:
        """Ask a query as often as it is to be asked."""
        kinds = [("cold", 1)] if self.queries.cold else []
        kinds += [("warm", number) for number in range(1, self.queries.warm_runs + 1)]
        blanks = [_blank(query.name, *kind) for kind in kinds]
        self.runs += blanks
        if self.gone is not None:
            _skip(blanks, self.gone)
            return
        try:
            if self.queries.cold:
                self.caches = self.context.cool()
                self.context.control()
            spans: list[tuple[int, int]] = []
            account = self._drive(blanks, sql, spans)
        except self._troubles() as error:
            self._check_signals()
            blanks[0] |= {"state": "failed", "reason": words_of(error)}
            _skip(blanks[1:], "the run before it failed")
            self._revive()
            return
        self._take(account, blanks, spans)

    def _drive(self, blanks: list[Run], sql: str, spans: list[tuple[int, int]]) -> Account:
        """Run a query on one connection, once for each of `blanks`."""
        options = QueryOptions(
            timeout_s=self.queries.timeout_s,
            seed=self.queries.seed,
            prepared=0,
            brittle=True,
            records=False,
            on_query=lambda start_ns, end_ns: spans.append((start_ns, end_ns)),
            suffixes=tuple(f"{run['kind']}-{run['number']}" for run in blanks),
            schema=self.context.schema,
        )
        signals, show = self.context.signals, self.context.show
        return perform_all([("", sql)], self.opened, self.out_dir, signals, show, options)

    def _take(self, account: Account, blanks: list[Run], spans: list[tuple[int, int]]) -> None:
        """Note what came of each run."""
        answers = account["queries"]["answers"]
        if answers:
            self.asked[-1]["answer"] = answers[0]["digest"]
        self.errors += account["errors"]
        self.outages += account["outages"]
        labels = {label["label"]: label for label in account["queries"]["labels"]}
        # The driver sends a text as soon as the answer before it is complete.
        end_ns = account["start_ns"]
        broken = None
        for place, run in enumerate(blanks):
            counts = labels[f"{run['kind']}-{run['number']}"]
            if counts["counts"]["done"]:
                seconds = counts["service"]["mean_ns"] / _NS_PER_S
                # Noted within the call, whose length the driver knows better.
                start_ns = max(end_ns, spans[place][0]) if place < len(spans) else end_ns
                end_ns = start_ns + round(seconds * _NS_PER_S)
                rows = answers[0]["digest"]["rows"] if answers else None
                run |= {"start_ns": start_ns, "end_ns": end_ns, "seconds": seconds, "rows": rows}
                run |= {"state": "done", "reason": None}
            elif counts["counts"]["failed"] and broken is None:
                broken = _first_words(account)
                start_ns, end_ns = spans[place] if place < len(spans) else (end_ns, account["end_ns"])
                run |= {"start_ns": start_ns, "end_ns": end_ns, "state": "failed", "reason": broken}
            elif broken is not None:
                _skip([run], "the run before it failed")
            else:
                _skip([run], account["reason"] or "it was not started")
        if broken is not None and not self._is_interrupted():
            self._revive()

    def _explain(self, sql: str) -> None:
        """Ask for the plan; a target that does not tell it is only noted."""
        if self.gone is not None or all(run["state"] != "done" for run in self._own_runs()):
            return
        engine = self.opened.engine
        try:
            control = self.context.control()
            with engine.at_most(control, self.queries.timeout_s):
                plan = engine.explain(control, sql)
        except self._troubles() as error:
            self._check_signals()
            self.notes.append(f"the plan of {self.asked[-1]['name']} could not be read: {words_of(error)}")
            return
        self.asked[-1] |= {"plan": plan, "gpu": engine.used_gpu(plan)}

    def _own_runs(self) -> list[Run]:
        return [run for run in self.runs if run["query"] == self.asked[-1]["name"]]

    def _look_at_table(self) -> None:
        """Read how large the table is that is asked about."""
        if not self.queries.table:
            return
        engine = self.opened.engine
        try:
            control = self.context.control()
            if self.opened.private:
                engine.checkpoint(control)  # what is only in a log has no size yet
            size = engine.tables.size(control, self.queries.table)
            # Column stores on PostgreSQL may keep nearly all of a table as long values.
            self.table_bytes = size.table_bytes + size.toast_bytes
        except self._troubles() as error:
            self._check_signals()
            self.notes.append(f"the size of {self.queries.table} could not be read: {words_of(error)}")

    def _revive(self) -> None:
        """Wait for a server that was lost; where it stays away, nothing more is asked."""
        try:
            self.context.recover()
        except self._troubles() as error:
            self._check_signals()
            self.gone = words_of(error)

    def _troubles(self) -> tuple[type[Exception], ...]:
        return self.opened.engine.troubles

    def _is_interrupted(self) -> bool:
        return self.context.signals is not None and self.context.signals.received is not None

    def _check_signals(self) -> None:
        """Raise where the error is only what is left of a signal."""
        if self.context.signals is not None:
            self.context.signals.check()

    def _account(self, state: str, reason: str | None = None) -> Account:
        counts = {"scheduled": 0, "done": 0, "failed": 0, "skipped": 0, "dropped": 0}
        for run in self.runs:
            counts["scheduled"] += 1
            counts[run["state"]] += 1
        return {
            "format": 1,
            "state": state,
            "reason": reason,
            "output_error": None,
            "clients": 1,
            "seed": self.queries.seed,
            "start_ns": self.started_ns,
            "end_ns": time.monotonic_ns(),
            "counts": counts,
            "errors": self.errors,
            "outages": self.outages,
            "plain_queries": {
                "table": self.queries.table or None,
                "rows": self.context.rows,
                "table_bytes": self.table_bytes,
                "cold": self.queries.cold,
                "caches": self.caches,
                "timeout_s": self.queries.timeout_s,
                "runs": self.runs,
                "queries": self.asked,
                "notes": self.notes,
            },
        }


def _blank(query: str, kind: str, number: int) -> Run:
    return {
        "query": query,
        "kind": kind,
        "number": number,
        "start_ns": None,
        "end_ns": None,
        "seconds": None,
        "rows": None,
        "state": "skipped",
        "reason": "it was not started",
    }


def _skip(runs: list[Run], reason: str) -> None:
    for run in runs:
        run |= {"state": "skipped", "reason": reason}


def _first_words(account: Account) -> str:
    """Return what the server said first: other errors may be its consequences."""
    if not account["errors"]:
        return str(account["reason"] or "it failed without an error message")
    error = min(account["errors"], key=lambda error: int(error["first_ns"]))
    return f"{error['message']} ({error['sqlstate']})"

"""One phase on one target: set up, measured, checked, and written down whatever happens."""

from __future__ import annotations

import dataclasses
import itertools
import time
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

from loadstone.errors import HostLostError, words_of
from loadstone.hosts.loads import performer
from loadstone.model import ROUND
from loadstone.plan.model import (
    CheckWorkload,
    PlainQueriesWorkload,
    ScriptWorkload,
    SizeWorkload,
    SqlWorkload,
    TableLoadWorkload,
    TimeSeriesLoadWorkload,
    TimeSeriesQueriesWorkload,
)
from loadstone.results.service import lost_connections
from loadstone.run.load import bulk_phase
from loadstone.run.outcome import first_error, outcome_of
from loadstone.run.phase_context import PhaseContext, PhaseOptions
from loadstone.run.queries import compare_queries, outcome_of_queries, plain_queries_phase, write
from loadstone.run.resume import why_not_on
from loadstone.run.timeseries import answers_check, committed_words, load_phase, query_phase
from loadstone.workload.drive import drive_document, perform

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.hosts.fleet import Fleet
    from loadstone.model import PlainQueries, QueryMix
    from loadstone.plan.model import PlannedPhase
    from loadstone.results.folder import RunFolder
    from loadstone.results.phase_folder import PhaseFolder
    from loadstone.run.server import Server
    from loadstone.signals import Signals
    from loadstone.workload.drive import Progress
    from loadstone.workload.load.rows import Perform

Document = dict[str, Any]


class PhaseRun:
    """Runs one phase and keeps its phase.json up to date."""

    def __init__(
        self, phase: PlannedPhase, server: Server, run: RunFolder, signals: Signals, options: PhaseOptions
    ) -> None:
        """Make the phase's folder."""
        number, _, name = phase.key.partition("-")
        self.phase = phase
        self.server = server
        self._run = run
        self._signals = signals
        self._options = options
        self.folder: PhaseFolder = server.folder.phase(int(number), name)
        self.document: Document = phase_document(phase, server.id)
        self._setting_up = False
        self.account: Document | None = None
        """drive.json, once there is one."""
        self.full: str | None = None
        """That and for what the server's disk was full, in words."""

    def keep(self) -> None:
        """Take the phase as an earlier run, which goes on, has left it."""
        self.document = self.folder.written_phase()
        self.account = self.folder.written_drive()

    def skip(self, reason: str) -> None:
        """Write down that and why the phase was not run."""
        now = time.monotonic_ns()
        self._write(state="skipped", reason=reason, start_ns=now, end_ns=now)
        self._event("info", "skip", reason)

    def perform(self, show: Callable[[Progress], None]) -> None:
        """Run the phase. Its end, however it came, is in `document`; only a signal passes through."""
        state: str = "interrupted"
        reason: str | None = "stopped by a signal"
        troubles = self.server.engine.troubles
        try:
            self.folder.begin()
            self._write(state="running", start_ns=time.monotonic_ns())
            self._event("info", "phase-start", self.phase.title)
            with self.server.watch():
                state, reason = self._measure(show)
        except HostLostError as error:
            state, reason = "failed", error.message
            raise  # nothing was measured, and the other phases need the hosts, too
        except troubles as error:
            self._signals.check()  # the error may be all that is left of what a signal's handler raised
            state, reason = self._trouble(error)
        finally:
            self._write(state=state, reason=reason, end_ns=time.monotonic_ns())
            level = "error" if state == "failed" else "info"
            self._event(level, "phase-end", f"{state}: {reason}" if reason else state)

    @property
    def state(self) -> str:
        """How the phase stands: `complete`, `failed`, `interrupted` or `skipped`."""
        return str(self.document["state"])

    @property
    def wrong(self) -> bool:
        """Whether a check found another answer than was expected."""
        return any(not check["passed"] for check in self.document["checks"])

    def _goes_on(self) -> bool:
        """Return whether the phase goes on where an earlier run stopped; what else that left is set aside."""
        begun, workload = self._options.begun, self.phase.workload
        if begun is None:
            return False
        reason: str | None = "only bulk loads can be resumed in the middle"
        if isinstance(workload, TableLoadWorkload):
            reason = why_not_on(workload.load, self.server)
        self.folder.set_aside(*(() if reason else ("steps.jsonl",)))
        if reason:
            self._event("info", "note", f"the phase starts again from its beginning: {reason}")
            return False
        self._event("info", "note", "the phase is resumed where it was interrupted")
        self._write(**{name: begun[name] for name in ("start_ns", "statements", "sizes")})
        return True

    def _measure(self, show: Callable[[Progress], None]) -> tuple[str, str | None]:
        self.server.revive()
        resume = self._goes_on()
        if self.phase.setup or self.phase.kind not in ("queries", "size", "check"):
            self.server.counted.clear()
        if not resume:
            self._set_up()
        state, reason = self._work(show, resume=resume)
        self._check_values()
        if self.wrong:
            words = "a check failed: the database does not contain what it should"
            return "failed", f"{words}; {reason}" if reason else words
        return state, reason

    def _work(self, show: Callable[[Progress], None], *, resume: bool) -> tuple[str, str | None]:
        """Do what the phase is for, once it is set up."""
        match workload := self.phase.workload:
            case ScriptWorkload():
                return self._drive(workload, show)
            case TimeSeriesLoadWorkload():
                return self._load(workload, show)
            case TableLoadWorkload():
                return self._bulk(workload, show, resume=resume)
            case PlainQueriesWorkload():
                return self._query(workload.queries, show)
            case TimeSeriesQueriesWorkload():
                return self._mix(workload.queries, show)
            case SizeWorkload():
                self._write(sizes={"before": None, "after": self.server.sizes()})
            case SqlWorkload() | CheckWorkload():
                pass  # done when it is set up, and when its checks are made
            case _:
                assert_never(workload)
        return "complete", None

    def _set_up(self) -> None:
        self._setting_up = True
        done: list[Document] = []
        try:
            for statement in self.phase.setup:
                self._signals.check()
                begin = time.monotonic()
                self.server.control.execute(statement)
                done.append({"text": statement, "seconds": round(time.monotonic() - begin, 6)})
        finally:
            self._write(statements=done)
        self._setting_up = False

    def _drive(self, workload: ScriptWorkload, show: Callable[[Progress], None]) -> tuple[str, str | None]:
        drive, check = workload.drive, workload.row_check
        if self.server.opened.private:
            # Each drive begins with nothing left to write from the one before.
            self.server.engine.checkpoint(self.server.control)
        before = self.server.sizes()
        rows = self.server.count(check.count_sql) if check else 0
        document = drive_document(drive, self.server.clients_connection(), self.folder.path, self._options.io)
        account = self.account = self._perform(document, show)
        if account["state"] != "complete" or account["in_doubt"] or lost_connections(account):
            self.server.recover()
        else:
            self.server.revive()
        self._write(sizes={"before": before, "after": self.server.sizes()})
        for outage in account["outages"]:
            self._log_outage(outage)
        if check and account.get("lost_hosts"):
            self._event("warning", "note", "the rows are not checked: what a lost load host sent is unknown")
        elif check:
            self._check_rows(account, rows, check.rows_per_transaction, self.server.count(check.count_sql))
        return outcome_of(account)

    def _perform(self, document: Document, show: Callable[[Progress], None]) -> Document:
        """Drive from this process, or from the load hosts."""
        if self._options.fleet is None:
            return perform(document, self._signals, show)
        return self._on_hosts(self._options.fleet, document, show)

    def _on_hosts(
        self, fleet: Fleet, document: Document, show: Callable[[Progress], None] | None
    ) -> Document:
        return fleet.perform(
            document, self._signals, show, say=lambda level, text: self._event(level, "note", text)
        )

    def _elsewhere(self) -> Perform | None:
        fleet = self._options.fleet
        return (
            None if fleet is None else performer(fleet, lambda level, text: self._event(level, "note", text))
        )

    def _load(
        self, workload: TimeSeriesLoadWorkload, show: Callable[[Progress], None]
    ) -> tuple[str, str | None]:
        account, before = load_phase(workload.load, workload.mixed, self._context(show))
        state, reason = self._loaded(account, before)
        return state, reason if state == "complete" else f"{reason}; {committed_words(account['load'])}"

    def _bulk(
        self, workload: TableLoadWorkload, show: Callable[[Progress], None], *, resume: bool
    ) -> tuple[str, str | None]:
        bulk = workload.load
        before = self.document["sizes"]["before"] if resume else self.server.sizes()
        # Written now, so that a run that goes on after a kill still has it.
        self._write(sizes={"before": before, "after": None})
        ignore, context = self._options.ignore_space, self._context(show)
        outcome = bulk_phase(bulk, context, workload.mixed, resume=resume, ignore_space=ignore)
        self._write(storage=outcome.account["load"]["storage"])
        state, reason = self._loaded(outcome.account, before)
        if state == "complete":
            if bulk.rows.rows and not bulk.rows.files:
                self.server.counted[bulk.table.name] = bulk.rows.rows
            return state, reason
        self.full = outcome.full
        return state, f"{outcome.full or reason}; {committed_words(outcome.account['load'])}"

    def _loaded(self, account: Document, before: Document | None) -> tuple[str, str | None]:
        """Keep what a load has left; returns state and reason."""
        self.account = account
        loaded = account["load"]
        done = [*loaded["statements"], *loaded.get("indexes", ()), *loaded["after"]]
        after = self.server.sizes(after_failure=account["state"] != "complete")
        self._write(
            statements=[*self.document["statements"], *done], sizes={"before": before, "after": after}
        )
        for note in loaded["notes"]:
            self._event("info", "note", note)
        for check in loaded["checks"]:
            self._keep_check(check)
        for outage in account["outages"]:
            self._log_outage(outage)
        return outcome_of(account)

    def _mix(self, mix: QueryMix, show: Callable[[Progress], None]) -> tuple[str, str | None]:
        account = self.account = query_phase(mix, self._context(show))
        for outage in account["outages"]:
            self._log_outage(outage)
        return outcome_of(account)

    def _query(self, queries: PlainQueries, show: Callable[[Progress], None]) -> tuple[str, str | None]:
        account = self.account = plain_queries_phase(queries, self._context(show))
        for outage in account["outages"]:
            self._log_outage(outage)
        plain_queries = account["plain_queries"]
        for run in plain_queries.get("runs", ()):
            if run["state"] == "failed":
                which = f"{run['query']}, {run['kind']} run {run['number']}"
                self._event("error", "note", f"{which} failed: {run['reason']}")
        notes = [
            *plain_queries.get("notes", ()),
            *([plain_queries["caches"]["note"]] if plain_queries.get("caches") else []),
        ]
        for note in notes:
            self._event("info", "note", note)
        return outcome_of_queries(account)

    def _context(self, show: Callable[[Progress], None]) -> PhaseContext:
        return PhaseContext(
            self.server,
            self.folder,
            self._signals,
            show,
            self._options.io,
            lambda message: self._event("info", "note", message),
            partial(self._on_hosts, self._options.fleet) if self._options.fleet is not None else None,
            self._elsewhere(),
        )

    def compare_with(self, others: Sequence[PhaseRun]) -> None:
        """Compare the answers with those of the targets before; a difference fails the phase."""
        account = self.account
        asked = [(run.server.id, run.account, run.state) for run in others if run.account is not None]
        if account is None or self.phase.kind != "queries":
            return
        if "queries" in account.get("plain_queries", ()):
            for check in compare_queries(account, [(name, found) for name, found, _ in asked]):
                self._keep_check(check)
            write(account, self.folder)
        else:
            whole = ((name, found) for name, found, state in asked if state == "complete")
            for name, found in itertools.islice(whole, 1):
                self._keep_check(answers_check(name, found, account))
        if self.wrong and self.state == "complete":
            self._write(state="failed", reason="a check failed: the answers differ between targets")

    def _check_rows(self, account: Document, before: int, per_transaction: int, after: int) -> None:
        acknowledged = account["counts"]["done"] + account["warmup_counts"]["done"]
        least = acknowledged * per_transaction
        most = least + account["in_doubt"] * per_transaction
        added = after - before
        expected = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        detail = f"{acknowledged:,} transactions acknowledged, {per_transaction:,} rows each"
        if least != most:
            detail += (
                f"; {account['in_doubt']:,} more were sent, but the connection was lost before their answer"
            )
        self._note_check(
            "rows acknowledged are in the tables", expected, f"{added:,}", least <= added <= most, detail
        )

    def _check_values(self) -> None:
        for name, sql, expected in self.phase.checks:
            actual = self.server.value(sql)
            self._note_check(name, expected, actual, actual == expected, sql)

    def _note_check(self, name: str, expected: str, actual: str, passed: bool, detail: str) -> None:  # noqa: FBT001
        self._keep_check(
            {"name": name, "expected": expected, "actual": actual, "passed": passed, "detail": detail}
        )

    def _keep_check(self, check: Document) -> None:
        self._write(checks=[*self.document["checks"], check])
        level = "info" if check["passed"] else "error"
        self._event(level, "check", f"{check['name']}: expected {check['expected']}, found {check['actual']}")

    def _log_outage(self, outage: Document) -> None:
        seconds = (outage["end_ns"] - outage["start_ns"]) / 1e9 if outage["end_ns"] else None
        length = f"for {seconds:.1f} s" if seconds is not None else "until the end"
        lost = f"{outage['clients']} client{'s' if outage['clients'] != 1 else ''} lost the connection"
        self._event("warning", "outage", f"{lost} {length}")

    def _trouble(self, error: Exception) -> tuple[str, str]:
        message = words_of(error)
        said_no = isinstance(error, self.server.engine.errors)
        lost = said_no or self.server.gone is not None
        if self.account and self.account["errors"] and lost:
            # The server did not survive the drive: what it said then tells more than its silence now.
            message += f"; the drive before it ended with{first_error(self.account)}"
        refused = said_no and not self.server.control.closed
        if self.phase.optional and self._setting_up and refused:
            return "skipped", message
        return "failed", message

    def _write(self, **changes: object) -> None:
        self.document |= changes
        self.folder.write_phase(self.document)

    def _event(self, level: Any, kind: Any, message: str) -> None:
        self._run.event(level, kind, message, target=self.server.id, phase=self.phase.key)


def phase_document(phase: PlannedPhase, target: str) -> Document:
    """Return phase.json of a phase that has not begun."""
    return {
        "number": int(phase.key.partition("-")[0]),
        "id": phase.id,
        "key": phase.key,
        "kind": phase.kind,
        "title": phase.title,
        "why": phase.why or None,
        "variant": dict(phase.variant),
        "round": phase.variant.get(ROUND),
        "repeat": phase.repeat,
        "target": target,
        "scenario": phase.scenario,
        "state": "running",
        "reason": None,
        "start_ns": None,
        "end_ns": None,
        "statements": [],
        "headline": phase.headline,
        "rows_per_transaction": phase.rows_per_transaction,
        "published": [dataclasses.asdict(figure) for figure in phase.published],
        "curves": [dataclasses.asdict(curve) for curve in phase.curves],
        "knee": phase.knee,
        "sizes": None,
        "storage": None,
        "checks": [],
    }

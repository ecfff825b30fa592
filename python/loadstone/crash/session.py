"""A server that is made to crash again and again: its load, crash, recovery and verification."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Literal

import numpy as np
import psycopg

from loadstone.crash import documents, recovery
from loadstone.crash.checks import Invariants, connected, flaws, value
from loadstone.crash.content import LIMIT_S, Extract, differences, digest
from loadstone.crash.judge import Allowed, judge
from loadstone.crash.ledger import (
    ACKNOWLEDGED,
    EMPTY,
    TABLE,
    Array,
    Records,
    Rows,
    keys,
    read_ledgers,
    read_rows,
)
from loadstone.crash.load import Load, ledgered
from loadstone.crash.moments import Watch, await_moment, until
from loadstone.crash.serverlog import without_refusals
from loadstone.engine import SCHEMA
from loadstone.errors import LoadstoneError, RunFailedError, words_of
from loadstone.host.environment import read_clocks
from loadstone.results.json_files import write_atomic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from loadstone.crash.content import TableHash
    from loadstone.crash.levels import Level
    from loadstone.crash.moments import Moment
    from loadstone.model import Drive
    from loadstone.private_server import EmbeddedServer
    from loadstone.target import OpenTarget

_AFTER_S = 1.0
"""Load after the recovery, at least."""
_AFTER_MOST_S = 15.0
_AFTER_MOST_LONGEST_S = 120.0
_LOOK_S = 0.25
_START_S = 30.0
_DELAYS = 3
"""`synchronous_commit = off` may lose what was acknowledged within so many times `wal_writer_delay`."""


class NotUpError(RunFailedError):
    """A server did not come up after a crash, or at the second restart."""

    def __init__(self, cycle: documents.Cycle, error: LoadstoneError) -> None:
        """Keep what is known of the cycle."""
        at = " at the second restart" if cycle.down_after == "second restart" else ""
        super().__init__(f"cycle {cycle.number}: the server did not come up{at}: {error.message}", error.hint)
        self.cycle = cycle


@dataclass(slots=True)
class Session:
    """One server under one load; each `cycle` goes on with the data that the one before has left."""

    opened: OpenTarget
    level: Level
    drive: Drive
    invariants: Invariants
    folder: Path
    """Of the results; ledgers are in its folder `ledger`."""
    run: int
    """Number that the ledgers bear."""
    window_s: float
    check: Callable[[], None]
    """Raises where a signal has come."""
    settled: Rows = field(default=EMPTY, init=False)
    upto: list[int] = field(default_factory=list, init=False)

    @property
    def server(self) -> EmbeddedServer:
        """The private server."""
        server = self.opened.server
        assert server is not None, "only private servers are made to crash"  # noqa: S101
        return server

    @property
    def ledgers(self) -> Path:
        """Folder of the clients' ledgers."""
        return self.folder / documents.LEDGER

    def cycle(self, number: int, moment: Moment, name: str) -> documents.Cycle:
        """Perform one cycle. Raises NotUpError, LoadstoneError, or psycopg's errors for a lost server."""
        place = self.folder / documents.CYCLES / name
        place.mkdir(parents=True)
        with Load(self._document(number, place)) as load:
            cycle, log_from = self._crash(load, number, moment, f"{documents.CYCLES}/{name}")
            self._start(cycle, log_from, place)
            start_ns = cycle.killed_ns + round(cycle.recovery.down_s * 1e9)
            self._watch_recovery(load, cycle, start_ns)
            load.stop()
        self.verify(cycle, place)
        return cycle

    def _document(self, number: int, place: Path) -> dict[str, object]:
        connection = self.opened.client_connection(SCHEMA)
        if connection is None:
            raise LoadstoneError("the server is not reached by a wire protocol", "Use a target like pg18.")
        document = ledgered(self.drive, connection, self.ledgers, self.run, place)
        return document | {"seed": self.drive.seed + number}

    def _crash(self, load: Load, number: int, moment: Moment, folder: str) -> tuple[documents.Cycle, int]:
        control = connected(self.server.connection)
        try:
            watch = Watch(control, self.server.log_file, self._begun(load), lambda: self._alive(load))
            allowed_s = _allowed_s(control)
            note = await_moment(moment, watch, self.window_s)
            log_from = self.server.log_file.stat().st_size
            crashed = self.level.crash(self.server)
        finally:
            control.close()
        self.server.stop()
        drawn = documents.Moment(kind=moment.kind, after_s=round(moment.after_s, 6), note=note)
        killed_ns, forgot = crashed.killed_ns, crashed.forgot
        cycle = documents.Cycle(
            number=number, folder=folder, moment=drawn, killed_ns=killed_ns, upto=[], allowed_s=allowed_s,
            recovery=documents.Recovery(down_s=(monotonic_ns() - killed_ns) / 1e9),
            forgot=dict(forgot) if forgot else None,
        )  # fmt: skip
        begin_ns = load.begin_ns or killed_ns
        cycle.recovery.rate_before = recovery.rate_before(read_ledgers(self.ledgers).ns, begin_ns, killed_ns)
        return cycle, log_from

    def _begun(self, load: Load) -> float:
        """Wait until transactions begin; returns when, by `time.monotonic`."""
        end = monotonic() + _START_S
        waiting = Watch(None, self.server.log_file, 0.0, lambda: self._alive(load))  # type: ignore[arg-type]
        if not until(lambda: load.begin_ns is not None, waiting, end):
            raise RunFailedError("the load does not begin", "Look at the server's log.")
        return (load.begin_ns or 0) / 1e9

    def _alive(self, load: Load) -> None:
        self.check()
        load.check()

    def _start(self, cycle: documents.Cycle, log_from: int, place: Path) -> None:
        clocks, start_ns = read_clocks(), monotonic_ns()
        cycle.recovery.down_s = (start_ns - cycle.killed_ns) / 1e9
        try:
            with self._coming_up(cycle, "crash"):
                self.server.restart()
                with connected(self.server.connection) as control:
                    cycle.recovery.connection_s = (monotonic_ns() - start_ns) / 1e9
                    value(control, "select 1")
        finally:
            log = without_refusals(self.server.log_file, log_from)
            write_atomic(place / "server.log", log)
            recovery.take_log(cycle.recovery, log, clocks.stepped_s(read_clocks()))

    @contextmanager
    def _coming_up(self, cycle: documents.Cycle, after: Literal["crash", "second restart"]) -> Iterator[None]:
        """Raise NotUpError where the server cannot be started, or nobody can log in."""
        try:
            yield
        except (LoadstoneError, psycopg.Error) as error:
            self.check()  # a signal ends statements, too
            cycle.down_after = after
            said = error if isinstance(error, LoadstoneError) else LoadstoneError(str(error).strip())
            raise NotUpError(cycle, said) from error

    def _watch_recovery(self, load: Load, cycle: documents.Cycle, start_ns: int) -> None:
        """Let the load go on until its rate is back."""
        seen = cycle.recovery
        begin = monotonic()
        # After a long load before the crash, caches take longer to be full again.
        seen.watched_s = max(_AFTER_MOST_S, min(self.window_s / 2, _AFTER_MOST_LONGEST_S))

        def is_back() -> bool:
            ns = read_ledgers(self.ledgers).ns
            seen.commit_s = recovery.first_after(ns, start_ns)
            seen.rate_s = recovery.back_at_rate(ns, start_ns, seen.rate_before)
            return seen.rate_s is not None and monotonic() - begin >= _AFTER_S

        waiting = Watch(None, self.server.log_file, 0.0, lambda: self._alive(load))  # type: ignore[arg-type]
        end = begin + seen.watched_s
        while not is_back() and monotonic() < end:
            until(lambda: False, waiting, monotonic() + _LOOK_S)
        recovery.log_in_of_clients(seen)

    def rate(self, seconds: float, name: str) -> float | None:
        """Return the commits per second of the load without a crash."""
        place = self.folder / documents.CYCLES / name
        place.mkdir(parents=True)
        with Load(self._document(0, place)) as load:
            begin_s = self._begun(load)
            waiting = Watch(None, self.server.log_file, begin_s, lambda: self._alive(load))  # type: ignore[arg-type]
            until(lambda: False, waiting, begin_s + seconds)
            end_ns = monotonic_ns()
            load.stop()
        return recovery.rate_before(read_ledgers(self.ledgers).ns, round(begin_s * 1e9), end_ns)

    def verify(self, cycle: documents.Cycle, place: Path) -> None:
        """Judge all that was begun until now, with nobody at work, and restart once more.

        Raises NotUpError where the server does not come up then.
        """
        records = read_ledgers(self.ledgers)
        cycle.upto = records.last(self.drive.clients)
        rows = EMPTY
        with self._noting("the ledger table", cycle):
            rows = read_rows(self.server.connection)
        rows.save(place / "table.npz")
        cycle.found = found_in(records, rows, self.settled, self.upto, cycle)
        with self._noting("checks", cycle), connected(self.server.connection) as control:
            for flaw in flaws(control, self.invariants):
                cycle.flaws.append(documents.Flaw(**asdict(flaw)))
        with self._noting("second restart", cycle):
            self._restart(cycle, rows)
        self.settled, self.upto = rows, cycle.upto

    @contextmanager
    def _noting(self, what: str, cycle: documents.Cycle) -> Iterator[None]:
        """Note as a flaw that the server cannot answer: it has recovered, and nobody else is at work."""
        try:
            yield
        except NotUpError:
            raise
        except (psycopg.Error, LoadstoneError) as error:
            self.check()  # a signal ends statements, too
            cycle.flaws.append(documents.Flaw(check=what, detail=words_of(error)))

    def _restart(self, cycle: documents.Cycle, rows: Rows) -> None:
        """Stop in order and start: the rows of all tables must be what they were."""
        begin_s = monotonic()
        with connected(self.server.connection) as control:
            extract = Extract.of(control)
            before = self._hashes(control, extract, cycle)
        spent_s = monotonic() - begin_s
        with self._coming_up(cycle, "second restart"):
            self.server.restart()
            connected(self.server.connection).close()
        begin_s = monotonic()
        cycle.restarted = rows.same_as(read_rows(self.server.connection))
        if before is None:
            return
        cycle.content = documents.Content(
            tables=len(before), rows=sum(one.rows for one in before.values()), bytes=extract.bytes,
            hashed_bytes=extract.hashed_bytes, before=digest(before), hash_s=spent_s,
        )  # fmt: skip
        with connected(self.server.connection) as control:
            after = self._hashes(control, extract, cycle)
        if after is None:
            return
        cycle.content.after = digest(after)
        cycle.content.hash_s = spent_s + monotonic() - begin_s
        cycle.restarted = cycle.restarted and before == after
        for changed in differences(before, after):
            cycle.flaws.append(documents.Flaw(check="second restart", detail=changed))

    def _hashes(
        self, control: psycopg.Connection, extract: Extract, cycle: documents.Cycle
    ) -> dict[str, TableHash] | None:
        """Return the hash of each table; None, with a note, where it takes too long."""
        try:
            return extract.hashes(control)
        except psycopg.errors.QueryCanceled:
            self.check()
            cycle.note = f"the tables were not compared by a hash, which took more than {LIMIT_S} s"
            return None

    def try_checker(self) -> bool | None:
        """Delete an acknowledged row; returns whether the judgement finds just that, None without any row.

        The data are of no use then.
        """
        records = read_ledgers(self.ledgers)
        before = judge(records, self.settled)
        victim = _acknowledged_row(records, self.settled)
        if victim is None:
            return None
        with connected(self.server.connection) as control:
            control.execute(_DELETE, victim)
        rows = read_rows(self.server.connection)
        settled = judge(records, rows, self.settled, _array(self.upto))
        return judge(records, rows).lost == before.lost + 1 and settled.lost == 1


_DELETE = f"delete from {TABLE} where client = %s and seq = %s".encode()  # noqa: S608 - a constant; unqualified: it is qualified


def _acknowledged_row(records: Records, rows: Rows) -> tuple[int, int] | None:
    """Return client and number of an acknowledged transaction whose row is there."""
    acknowledged = records.state == ACKNOWLEDGED
    known = keys(records.client[acknowledged], records.seq[acknowledged])
    there = np.flatnonzero(np.isin(keys(rows.client, rows.seq), known))
    if not len(there):
        return None
    at = there[len(there) // 2]
    return int(rows.client[at]), int(rows.seq[at])


def found_in(
    records: Records, rows: Rows, settled: Rows, upto: list[int], cycle: documents.Cycle
) -> documents.CommitCounts:
    """Return the judgement of what a cycle has added."""
    allowed = Allowed(cycle.killed_ns, round(cycle.allowed_s * 1e9))
    return documents.CommitCounts(**asdict(judge(records, rows, settled, _array(upto), allowed)))


def _array(upto: list[int]) -> Array:
    return np.array(upto, np.int64)


def _allowed_s(control: psycopg.Connection) -> float:
    """Return how old a lost commit may be; 0 where commits are not asynchronous."""
    if value(control, "show synchronous_commit") != "off":
        return 0.0
    delay = value(control, "select setting from pg_settings where name = 'wal_writer_delay'")
    return _DELAYS * int(delay) / 1e3

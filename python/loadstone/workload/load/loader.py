"""A load from begin to end: tables made, rows sent, content verified, all of it in one account.

`Loader` says in which order, for every content and every engine. What is loaded is for a subclass to say:
plain rows in `table_load.py`, time series in `workload/tsbs/load.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from loadstone.engine import SCHEMA
from loadstone.engine.dialect.loads import LoadDialect
from loadstone.errors import LoadstoneError, RunFailedError, words_of
from loadstone.results.service import lost_connections
from loadstone.workload.load import tables
from loadstone.workload.load.cost import Meter
from loadstone.workload.load.reconnecting_control import ReconnectingControl
from loadstone.workload.load.rows import (
    Account,
    Perform,
    keep_account,
    load_document,
    send,
    settle,
    write_account,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from loadstone.engine.control import Control, GetControl
    from loadstone.model import Drive, InOut
    from loadstone.signals import Signals
    from loadstone.target import OpenTarget
    from loadstone.workload.drive import Progress, Step
    from loadstone.workload.load.fingerprints import Check

D = TypeVar("D", bound=LoadDialect)
_NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What a load may do beside sending rows."""

    schema: str | None = SCHEMA
    """Where the tables are; None: where the user's own connection makes them."""
    replace: bool = False
    """Drop tables of these names that are there."""
    resume: bool = False
    """Go on with a load that was interrupted."""
    make_tables: bool = True
    """False: somebody else has made them, and they are empty."""
    interval_s: float = 1.0
    io: InOut = "auto"
    control: GetControl | None = None
    """Gives a control connection that works, also after the server was lost; None: one of our own."""
    elsewhere: Perform | None = None
    """Sends the rows from several hosts; None: they come from this process."""


class Loader(ABC, Generic[D]):
    """One load. `perform` is to be called once."""

    dialect: D
    """Of the schema that the load is into, as soon as that is known."""

    def __init__(self, opened: OpenTarget, options: LoadOptions, dialect: D, names: Sequence[str]) -> None:
        """Take where to load, and the names of the tables."""
        self.opened = opened
        self.engine = opened.engine
        self.dialect = dialect
        self.names = names
        self.makes_tables = options.make_tables
        self.resumed = tables.Committed(0, 0, ())
        self._options = options
        self._control = ReconnectingControl(opened, options.schema, options.control)

    # What a content says of itself, in the order in which it is asked.

    @abstractmethod
    def refuse(self, control: Control) -> list[str]:
        """Raise LoadstoneError for what the server cannot do; returns notes. Touches nothing."""

    @abstractmethod
    def about(self) -> Mapping[str, Any]:
        """Return what must not change between a broken load and its resumption."""

    def make_room(self, control: Control) -> list[str]:
        """Raise LoadstoneError where the rows will not fit; returns notes. Touches nothing."""
        del control
        return []

    @abstractmethod
    def statements(self) -> Iterable[str]:
        """Return the statements that make the tables."""

    def index(self, control: Control) -> None:
        """Make the indexes that empty tables are to have."""

    def begin(self, control: Control) -> None:
        """Tables are ready, and the first row is about to be sent."""

    @abstractmethod
    def drive(self) -> Drive:
        """Return clients, pace and limits."""

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """Return `load` of the core's specification, but for the keys that are the same for every content."""

    def on_loaded(self, account: Account) -> None:
        """All rows are sent, and nothing was verified."""

    @abstractmethod
    def entries(self) -> Mapping[str, Any]:
        """Return entries of drive.json's `load` that only this content has."""

    @abstractmethod
    def notes(self) -> Iterable[str]:
        """Return what is to be known of the tables as they were made."""

    @abstractmethod
    def complete(self, control: Control, account: Account, rows: int) -> bool:
        """Run what comes after the load, all of whose `rows` are in; False when that failed."""

    @abstractmethod
    def checks(self, control: Control, loaded: Mapping[str, Any], rows: int) -> Iterable[Check] | None:
        """Compare the tables with what was loaded; None where that is not wanted."""

    def measure(self, control: Control, loaded: dict[str, Any]) -> None:
        """Enter sizes of the loaded tables."""

    # The load.

    def perform(
        self,
        out_dir: Path,
        signals: Signals | None,
        show: Callable[[Progress], None] | None,
        on_step: Callable[[Step], None] | None = None,
    ) -> Account:
        """Load and return the account, whose `load` says how it ended and whether it was verified.

        `out_dir` takes drive.json, series.jsonl and latency.hlog. `on_step` is called for each step that is
        committed whole, before the next one begins. Raises LoadstoneError when nothing was loaded: for bad
        input before anything is touched.
        """
        with self._control:
            try:
                return self._perform(out_dir, signals, show, on_step)
            except self.engine.errors as error:
                raise RunFailedError(f"the server failed: {words_of(error)}") from error

    def is_piped(self) -> bool:
        """Return whether clients speak the wire protocol, on which several statements can be in flight."""
        return self._control.clients() is not None

    def _perform(
        self,
        out_dir: Path,
        signals: Signals | None,
        show: Callable[[Progress], None] | None,
        on_step: Callable[[Step], None] | None,
    ) -> Account:
        control = self._control.control()
        schema = self._options.schema
        self.dialect = self.dialect.where_made(control) if schema is None else self.dialect.within(schema)
        notes, made = self._prepare(control)
        self.begin(control)
        meter = Meter(self.engine, control)
        elsewhere = self._options.elsewhere
        account = send(
            self._document(out_dir), self.dialect, self.opened, signals, show, on_step, elsewhere=elsewhere
        )
        self.on_loaded(account)
        loaded: dict[str, Any] = account["load"]
        loaded |= {
            "statements": made,
            "notes": [*loaded.get("notes", ()), *notes, *self.notes()],
            "resumed": {"batches": self.resumed.batches, "rows": self.resumed.rows},
            "after": [],
            "checks": [],
            "verified": None,
            "committed": None,
            **self.entries(),
        }
        with keep_account(account, self.engine):
            self._finish(account, meter)
        write_account(account, out_dir)
        return account

    def _prepare(self, control: Control) -> tuple[list[str], list[Account]]:
        """Refuse, then make or check tables and ledger; returns notes and the statements that were run."""
        notes = self.refuse(control)
        resume = self._options.resume
        if resume:
            self.resumed = self._reopen(control)
        notes += self.make_room(control)
        if resume:
            return notes, []
        made = self._make_tables(control)
        self.index(control)
        if self.dialect.ledger:
            tables.open_ledger(control, self.dialect, self.about())
        return notes, made

    def _reopen(self, control: Control) -> tables.Committed:
        if not self.dialect.ledger:
            raise LoadstoneError(
                f"an interrupted load cannot be resumed in {self.engine.title}", "Use --replace."
            )
        return tables.reopen_ledger(control, self.dialect, self.names, self.about())

    def _make_tables(self, control: Control) -> list[Account]:
        """Make or check them; returns the statements that were run."""
        dialect, replace = self.dialect, self._options.replace
        if not self.makes_tables:
            tables.refuse_unready(control, dialect, self.names)
            if replace and dialect.ledger:
                tables.close_ledger(control, dialect)
            return []
        wanted = self.statements()
        if replace:
            tables.drop(control, dialect, self.names)
        else:
            tables.refuse_existing(control, dialect, self.names)
        return tables.make(control, dialect, self.names, wanted, self.engine.errors)

    def _document(self, out_dir: Path) -> dict[str, Any]:
        options, dialect = self._options, self.dialect
        document = load_document(
            self.drive(), self._control.clients(), out_dir, options.io, options.interval_s
        )
        usual = {
            "ledger": dialect.qualified(tables.LEDGER) if dialect.ledger else None,
            "skip": [list(found) for found in self.resumed.ranges],
            "prepared": True,
        }
        return document | {"load": usual | self.spec()}

    def _finish(self, account: Account, meter: Meter) -> None:
        """Settle what is committed; when it is all, do what comes after, verify and measure."""
        loaded = account["load"]
        loaded["cpu"] = meter.cpu(_hosts_cpu_s(account) if self._options.elsewhere else None)
        control = self._control.control(lost=lost_connections(account))
        loaded["wal_bytes"] = meter.wal_bytes(control)
        booked = tables.committed(control, self.dialect) if self.dialect.ledger else None
        if not settle(account, booked):
            return
        rows = booked.rows if booked is not None else loaded["rows"]
        if not self.complete(control, account, rows):
            return
        checks = self.checks(control, loaded, rows)
        if checks is not None:
            loaded["checks"] = list(checks)
            loaded["verified"] = all(check["passed"] for check in loaded["checks"])
        if self.dialect.ledger and loaded["verified"] is not False:
            tables.close_ledger(control, self.dialect)
        self.measure(control, loaded)


def _hosts_cpu_s(account: Account) -> float:
    """Return the CPU seconds of the threads that made and sent the rows, on all hosts."""
    used = account["client_cpu"]
    return float(used["user_ns"] + used["system_ns"]) / _NS_PER_S

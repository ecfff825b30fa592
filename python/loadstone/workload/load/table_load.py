"""One bulk load: the table made, rows sent in steps, indexes made, content verified; all in one account."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from loadstone.engine import SCHEMA
from loadstone.engine.dialect.names import quoted
from loadstone.engine.dialect.tables import TableOptions
from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.model import Drive
from loadstone.results.service import lost_connections
from loadstone.workload.load import tables
from loadstone.workload.load.content import Content, fitted, look
from loadstone.workload.load.cost import Meter
from loadstone.workload.load.disk_space import needed_bytes, refuse_without_room
from loadstone.workload.load.reconnecting import ReconnectingControl
from loadstone.workload.load.rows import (
    Account,
    chosen_method,
    load_document,
    send,
    settle,
    told,
    write_account,
)
from loadstone.workload.load.size_on_disk import StorageAccount
from loadstone.workload.load.verification import checks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from loadstone.engine import Engine
    from loadstone.engine.control import Control, GetControl
    from loadstone.engine.dialect.tables import RowTable, TableDialect
    from loadstone.model import BulkLoad, InOut, LoadMethod, RowFormat
    from loadstone.signals import Signals
    from loadstone.target import OpenTarget
    from loadstone.workload.drive import Progress, Step

_AFTER_LOAD = "after the load"
_ALL_ROWS = 1 << 62
"""Rows of the only step where it is not known how many there are."""


@dataclass(frozen=True, slots=True)
class TableLoadOptions:
    """What a bulk load may do beside sending rows."""

    schema: str | None = SCHEMA
    """Where the table is; None: where the user's own connection makes one."""
    replace: bool = False
    """Drop a table of this name that is there."""
    resume: bool = False
    """Go on with a load that was broken off."""
    make_table: bool = True
    """False: somebody else has made it, and it is empty."""
    ignore_space: bool = False
    """Begin also where the rows are not expected to fit."""
    interval_s: float = 1.0
    io: InOut = "auto"
    content: Content | None = None
    """What `look` has found."""
    control: GetControl | None = None
    """Gives a control connection that works, also after the server was lost; None: one of our own."""
    ready: Callable[[], None] | None = None
    """Told when the table is there, and its indexes that are made before, and no row was sent yet."""
    on_step: Callable[[Step], None] | None = None
    """Told of each step that is committed whole, before the next one begins."""


USUAL = TableLoadOptions()


def perform_bulk(
    bulk: BulkLoad,
    opened: OpenTarget,
    out_dir: Path,
    signals: Signals | None = None,
    show: Callable[[Progress], None] | None = None,
    options: TableLoadOptions = USUAL,
) -> Account:
    """Load plain rows and return the account, whose `load` says how it ended and whether it was verified.

    `out_dir` takes drive.json, series.jsonl and latency.hlog. Raises LoadstoneError when nothing was loaded:
    for bad input before anything is touched.
    """
    engine = opened.engine
    content = options.content or look(bulk, engine.tables)
    with ReconnectingControl(opened, options.schema, options.control) as hand:
        try:
            return _Loading(bulk, content, opened, hand, options).run(out_dir, signals, show)
        except engine.errors as error:
            raise RunFailedError(f"the server failed: {str(error).strip()}") from error


class _Loading:
    def __init__(
        self,
        bulk: BulkLoad,
        content: Content,
        opened: OpenTarget,
        hand: ReconnectingControl,
        options: TableLoadOptions,
    ) -> None:
        self.answers: TableDialect = opened.engine.tables
        """Of the schema that the load is into, as soon as that is known."""
        self.bulk = replace(bulk, method=_method(bulk, self.answers))
        self.content = content
        self.opened = opened
        self.engine: Engine = opened.engine
        self.hand = hand
        self.options = options
        self.name = bulk.table.name
        self.where = TableOptions(opened.identity["version_number"], content.first, content.rows)
        self.resumed = tables.Committed(0, 0, ())
        self.has_ledger = self.answers.ledger
        self.storage: StorageAccount | None = None

    @property
    def table(self) -> RowTable:
        return self.content.table

    def run(self, out_dir: Path, signals: Signals | None, show: Callable[[Progress], None] | None) -> Account:
        control = self.hand.control()
        self.answers = self._of_schema(control)
        notes = self._refuse(control)
        if self.options.resume:
            self.resumed = self._reopen(control)
        notes += self._room(control)
        made, indexed = ([], []) if self.options.resume else self._prepare(control)
        if self.options.ready is not None:
            self.options.ready()
        meter = Meter(self.engine, control)
        if self.bulk.storage:
            self.storage = StorageAccount(self.opened, control, self.options.schema, self.name)
        account = send(
            self._document(out_dir), self.answers, self.opened, signals, show, self.options.on_step
        )
        loaded: dict[str, Any] = account["load"]
        loaded |= {
            "table": {**self.table, "name": self.name},
            "statements": made,
            "indexes": indexed,
            "notes": [*loaded.get("notes", ()), *notes, *self.answers.notes(self.bulk.table, self.where)],
            "resumed": {"batches": self.resumed.batches, "rows": self.resumed.rows},
            "after": [], "checks": [], "verified": None, "committed": None, "storage": None,
        }  # fmt: skip
        with told(account, self.engine):
            self._finish(account, meter)
        write_account(account, out_dir)
        return account

    def _of_schema(self, control: Control) -> TableDialect:
        schema = self.options.schema
        return self.answers.where_made(control) if schema is None else self.answers.within(schema)

    def _refuse(self, control: Control) -> list[str]:
        """Refuse what the server cannot do; returns what is to be noted."""
        if self.bulk.rows.as_they_are and not self.answers.takes_files:
            raise LoadstoneError(f"{self.engine.title} cannot be loaded from files", "Load a data set.")
        notes: list[str] = []
        if not self.content.generated:
            self._fit(control)
            notes += self.answers.notes_of_files(self.table)
            if self.bulk.verify == "content":
                notes.append("what files hold is known by its number of rows only: these are compared")
        if self.bulk.transactions is not None and self.hand.clients() is None:
            notes.append("each INSERT has ended before the next one begins: there is nothing to pipeline")
        self.answers.refuse_wishes(self.table, self.bulk.table, self.where)
        self.answers.refuse(control, self.table, self.bulk.table)
        return notes

    def _fit(self, control: Control) -> None:
        """Take the columns of a table that is there for the files' rows, if it is to stay."""
        there = bool(self.answers.existing(control, [self.name]))
        if there and (self.options.resume or tables.is_empty(control, self.answers, self.name)):
            columns = self.answers.existing_columns(control, self.name)
            self.content = fitted(self.content, columns)
            self.options = replace(self.options, make_table=False)
        elif self.bulk.rows.format == "binary" and not self.options.resume:
            raise LoadstoneError(
                f"files in COPY's binary format do not say of what types their columns are, and there is no "
                f"empty table {self.name}",
                "Make it in the phase's setup, or give files as text or CSV.",
            )

    def _reopen(self, control: Control) -> tables.Committed:
        if not self.has_ledger:
            raise LoadstoneError(f"a broken load cannot go on in {self.engine.title}", "Use --replace.")
        return tables.reopen_ledger(control, self.answers, [self.name], self._about())

    def _prepare(self, control: Control) -> tuple[list[Account], list[Account]]:
        """Make or check table, indexes and ledger; returns statements for table and indexes with seconds."""
        names, wishes = [self.name], self.bulk.table
        if self.options.make_table:
            wanted = self.answers.create(self.table, wishes, self.where)
            if self.options.replace:
                tables.drop(control, self.answers, names)
            else:
                tables.refuse_existing(control, self.answers, names)
            made = tables.make(control, self.answers, names, wanted, self.engine.errors)
        else:
            tables.refuse_unready(control, self.answers, names)
            if self.options.replace and self.has_ledger:
                tables.close_ledger(control, self.answers)
            made = []
        indexed = self._index(control) if wishes.index_when == "before" else []
        if self.has_ledger:
            tables.open_ledger(control, self.answers, self._about())
        return made, indexed

    def _index(self, control: Control) -> list[Account]:
        """Make the indexes into the empty table."""
        statements = self.answers.indexes(self.table, self.bulk.table, self.where)
        try:
            return _timed(control, statements, "before")
        except self.engine.errors as error:
            if self.options.make_table:
                tables.drop(control, self.answers, [self.name])
            raise LoadstoneError(
                f"the indexes cannot be made: {str(error).strip()}", "The table is dropped again."
            ) from error

    def _room(self, control: Control) -> list[str]:
        """Refuse to begin where the rows will not fit."""
        freed = 0
        if self.options.replace and self.answers.existing(control, [self.name]):
            size = self.answers.size(control, self.name)
            freed = size.table_bytes + size.toast_bytes + size.index_bytes
        need = needed_bytes(self.bulk, self.content, self.engine, control, self.resumed.rows)
        try:
            return refuse_without_room(need, self.opened, self.bulk.table, control, freed)
        except LoadstoneError as error:
            if not self.options.ignore_space:
                raise
            return [f"{error.message}; it was begun all the same, as asked"]

    def _about(self) -> Account:
        """Return what must not change between a broken load and its resumption."""
        bulk = self.bulk
        return {
            "data": self.content.about,
            "batch size": _batch_rows(bulk),
            "step size": bulk.step_rows,
            "columns": [column["name"] for column in self.table["columns"]],
            "table": asdict(bulk.table),
            "long transactions": bulk.transactions is not None,
        }

    def _document(self, out_dir: Path) -> dict[str, Any]:
        bulk, connection = self.bulk, self.hand.clients()
        drive = Drive(scripts=(), clients=bulk.workers, timeout_s=bulk.timeout_s)
        document = load_document(drive, connection, out_dir, self.options.io, self.options.interval_s)
        columns = [quoted(column["name"]) for column in self.table["columns"]]
        load: dict[str, Any] = {
            "data": self.content.data,
            "method": bulk.method,
            "batch_rows": _batch_rows(bulk),
            "hash_workers": False,
            "limit_rows": 0 if self.content.generated else bulk.rows.rows,
            "insert_intervals": "",
            "tables": {self.table["name"]: {"name": self.answers.qualified(self.name), "columns": columns}},
            "jsonb_tags": False,
            "in_table_tag": False,
            "ledger": self.answers.qualified(tables.LEDGER) if self.has_ledger else None,
            "skip": [list(found) for found in self.resumed.ranges],
            "step_rows": bulk.step_rows or self.content.rows or _ALL_ROWS,
            "hold": self.options.on_step is not None,
            "prepared": True,
        }
        if bulk.transactions is not None:
            long = bulk.transactions
            marks = {"statement_rows": 1, "pipeline": long.pipeline, "mark_rows": long.mark_rows}
            load |= {"transaction": marks}
        return document | {"load": load}

    def _finish(self, account: Account, meter: Meter) -> None:
        """Settle what is committed; when it is all, do what comes after, measure and verify."""
        loaded = account["load"]
        loaded["cpu"] = meter.cpu()
        control = self.hand.control(lost=lost_connections(account))
        loaded["wal_bytes"] = meter.wal_bytes(control)
        booked = tables.committed(control, self.answers) if self.has_ledger else None
        if not settle(account, booked):
            return
        rows = booked.rows if booked is not None else loaded["rows"]
        if self._come_after(control, account, rows):
            loaded["checks"] = list(checks(control, self.answers, self.bulk, self.content, rows))
            loaded["verified"] = all(check["passed"] for check in loaded["checks"])
        if self.has_ledger and loaded["verified"]:
            tables.close_ledger(control, self.answers)

    def _come_after(self, control: Control, account: Account, rows: int) -> bool:
        """Make indexes and run statements, looking at the storage; False when one of them failed."""
        logical_bytes = self._logical_bytes(account["load"], rows)
        for statements, kind, when in self._blocks():
            if not self._run(control, account, statements, kind):
                return False
            if when == _AFTER_LOAD:
                # Rows not yet kept as the engine keeps them are not loaded: it is of the load's time.
                account["load"]["after"] = [
                    entry | {"part_of_load": True} for entry in account["load"]["after"]
                ]
            if self.storage is not None and when is not None:
                self.storage.look(control, when, rows, logical_bytes)
        if self.storage is not None:
            account["load"]["storage"] = self.storage.document(control, logical_bytes)
        return True

    def _blocks(self) -> Iterator[tuple[Sequence[str], str, str | None]]:
        """Yield what comes after the load: statements, where they are listed, the look behind them."""
        wishes = self.bulk.table
        if wishes.index_when == "after":
            again = self.resumed.batches > 0
            yield self.answers.indexes(self.table, wishes, self.where, again=again), "indexes", None
        yield self.answers.after_load(self.table, wishes), "after", _AFTER_LOAD
        settling = self.answers.settle(wishes) if self.bulk.settle else ()
        for statement in (*settling, *self.bulk.after):
            yield [statement], "after", f"after {statement}"

    def _run(self, control: Control, account: Account, statements: Iterable[str], kind: str) -> bool:
        """Run statements, each timed, and list them; False when one failed, which the account then says."""
        for statement in statements:
            try:
                done = _timed(control, [statement], "after")
            except self.engine.errors as error:
                said = f"the rows are in, and then `{statement}` failed: {str(error).strip()}"
                account |= {"state": "failed", "reason": said}
                return False
            account["load"][kind] += done
        return True

    def _logical_bytes(self, loaded: Account, rows: int) -> int | None:
        """Return the logical bytes of all rows in the table."""
        if not self.resumed.rows:
            return int(loaded["logical_bytes"])
        row_bytes = self.table["row_bytes"]
        return None if row_bytes is None else round(row_bytes * rows)


def _timed(control: Control, statements: Iterable[str], when: str) -> list[Account]:
    return [entry | {"when": when} for entry in tables.execute(control, statements)]


def _method(bulk: BulkLoad, answers: TableDialect) -> Any:
    """Return how rows are sent: files as they are, single rows by INSERT. Raises LoadstoneError."""
    if bulk.transactions is not None:
        if bulk.method not in ("best", "insert"):
            raise LoadstoneError(
                f"long transactions are single-row INSERTs, and {bulk.method} is asked for",
                'Leave the method out, or "insert".',
            )
        return chosen_method("insert", answers)
    if not bulk.rows.as_they_are:
        return chosen_method(bulk.method, answers)
    if bulk.method not in ("best", _COPIES[bulk.rows.format]):
        raise LoadstoneError(
            f"files in the format {bulk.rows.format} are sent as they are, not by {bulk.method}",
            'Leave the method out, or "best".',
        )
    return _COPIES[bulk.rows.format]


_COPIES: Mapping[RowFormat, LoadMethod] = {
    "text": "copy_text", "csv": "copy_text", "binary": "copy_binary",
}  # fmt: skip
"""Whichever COPY it is, rows of a file go as they are."""


def _batch_rows(bulk: BulkLoad) -> int:
    return bulk.transactions.rows if bulk.transactions is not None else bulk.batch_rows

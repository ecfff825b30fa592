"""Bulk loads of one plain table, in steps: indexes made before or after, the storage accounted for."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from loadstone.engine.dialect.tables import TableDialect, TableFacts
from loadstone.errors import LoadstoneError, words_of
from loadstone.model import Drive
from loadstone.sqltext import quoted
from loadstone.workload.load import tables
from loadstone.workload.load.content import Content, fitted, look
from loadstone.workload.load.disk_space import needed_bytes, refuse_without_room
from loadstone.workload.load.loader import Loader, LoadOptions
from loadstone.workload.load.rows import Account, chosen_method
from loadstone.workload.load.size_on_disk import StorageAccount
from loadstone.workload.load.verification import checks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from loadstone.engine.control import Control
    from loadstone.engine.dialect.tables import RowTable
    from loadstone.model import BulkLoad, LoadMethod, RowFormat
    from loadstone.signals import Signals
    from loadstone.target import OpenTarget
    from loadstone.workload.drive import Progress, Step
    from loadstone.workload.load.fingerprints import Check

_AFTER_LOAD = "after the load"
_ALL_ROWS = 1 << 62
"""Rows of the only step where it is not known how many there are."""


@dataclass(frozen=True, slots=True)
class TableLoadOptions(LoadOptions):
    """What a bulk load may do beside sending rows."""

    ignore_space: bool = False
    """Begin also where the rows are not expected to fit."""
    content: Content | None = None
    """What `look` has found."""
    ready: Callable[[], None] | None = None
    """Called when the table is there, and its indexes that are made before, and no row was sent yet."""
    on_step: Callable[[Step], None] | None = None
    """Called for each step that is committed whole, before the next one begins."""


USUAL = TableLoadOptions()


def perform_bulk(
    bulk: BulkLoad,
    opened: OpenTarget,
    out_dir: Path,
    signals: Signals | None = None,
    show: Callable[[Progress], None] | None = None,
    options: TableLoadOptions = USUAL,
) -> Account:
    """Load plain rows and return the account, as `Loader.perform` does."""
    content = options.content or look(bulk, opened.engine.tables)
    return _TableLoader(bulk, content, opened, options).perform(out_dir, signals, show, options.on_step)


class _TableLoader(Loader[TableDialect]):
    """Rows of one plain table, in steps."""

    def __init__(
        self, bulk: BulkLoad, content: Content, opened: OpenTarget, options: TableLoadOptions
    ) -> None:
        super().__init__(opened, options, opened.engine.tables, [bulk.table.name])
        self.bulk = replace(bulk, method=_method(bulk, self.dialect))
        self.content = content
        self.options = options
        self.name = bulk.table.name
        self.where = TableFacts(opened.identity["version_number"], content.first, content.rows)
        self.indexed: list[Account] = []
        self.storage: StorageAccount | None = None

    @property
    def table(self) -> RowTable:
        return self.content.table

    def refuse(self, control: Control) -> list[str]:
        if self.bulk.rows.as_they_are and not self.dialect.takes_files:
            raise LoadstoneError(f"Loadstone cannot load files into {self.engine.title}", "Load a data set.")
        notes: list[str] = []
        if not self.content.generated:
            self._fit(control)
            notes += self.dialect.notes_of_files(self.table)
            if self.bulk.verify == "content":
                notes.append("the content of the files is unknown, so only numbers of rows are compared")
        if self.bulk.transactions is not None and not self.is_piped():
            notes.append("each INSERT ends before the next one begins, so pipelining has no effect")
        self.dialect.refuse_options(self.table, self.bulk.table, self.where)
        self.dialect.refuse(control, self.table, self.bulk.table)
        self.dialect.refuse_method(control, self.bulk.method)
        return notes

    def _fit(self, control: Control) -> None:
        """Take the columns of a table that is there for the files' rows, if it is to stay."""
        there = bool(self.dialect.existing(control, [self.name]))
        if there and (self.options.resume or tables.is_empty(control, self.dialect, self.name)):
            columns = self.dialect.existing_columns(control, self.name)
            self.content = fitted(self.content, columns)
            self.makes_tables = False
        elif self.bulk.rows.format == "binary" and not self.options.resume:
            raise LoadstoneError(
                "files in COPY's binary format do not contain the types of their columns, and there is "
                f"no empty table '{self.name}'",
                "Create it in the phase's setup, or use files as text or CSV.",
            )

    def make_room(self, control: Control) -> list[str]:
        freed = 0
        if self.options.replace and self.dialect.existing(control, [self.name]):
            size = self.dialect.size(control, self.name)
            freed = size.table_bytes + size.toast_bytes + size.index_bytes
        need = needed_bytes(self.bulk, self.content, self.engine, control, self.resumed.rows)
        try:
            return refuse_without_room(need, self.opened, self.bulk.table, control, freed)
        except LoadstoneError as error:
            if not self.options.ignore_space:
                raise
            return [f"{error.message}; the load was started anyway, as requested"]

    def about(self) -> Account:
        bulk = self.bulk
        return {
            "data": self.content.about,
            "batch size": _batch_rows(bulk),
            "step size": bulk.step_rows,
            "columns": [column["name"] for column in self.table["columns"]],
            "table": asdict(bulk.table),
            "long transactions": bulk.transactions is not None,
        }

    def statements(self) -> Sequence[str]:
        return self.dialect.create(self.table, self.bulk.table, self.where)

    def index(self, control: Control) -> None:
        if self.bulk.table.index_when != "before":
            return
        statements = self.dialect.indexes(self.table, self.bulk.table, self.where)
        try:
            self.indexed += _timed(control, statements, "before")
        except self.engine.errors as error:
            if self.makes_tables:
                tables.drop(control, self.dialect, self.names)
            raise LoadstoneError(
                f"the indexes cannot be created: {words_of(error)}", "The table is dropped again."
            ) from error

    def begin(self, control: Control) -> None:
        if self.options.ready is not None:
            self.options.ready()
        if self.bulk.storage:
            self.storage = StorageAccount(self.opened, control, self.options.schema, self.name)

    def drive(self) -> Drive:
        return Drive(scripts=(), clients=self.bulk.workers, timeout_s=self.bulk.timeout_s)

    def spec(self) -> dict[str, Any]:
        bulk = self.bulk
        columns = [quoted(column["name"]) for column in self.table["columns"]]
        load: dict[str, Any] = {
            "data": self.content.data,
            "method": bulk.method,
            "batch_rows": _batch_rows(bulk),
            "hash_workers": False,
            "limit_rows": 0 if self.content.generated else bulk.rows.rows,
            "insert_intervals": "",
            "tables": {self.table["name"]: {"name": self.dialect.qualified(self.name), "columns": columns}},
            "jsonb_tags": False,
            "in_table_tag": False,
            "step_rows": bulk.step_rows or self.content.rows or _ALL_ROWS,
            "hold": self.options.on_step is not None,
        }
        if bulk.transactions is not None:
            long = bulk.transactions
            marks = {"statement_rows": 1, "pipeline": long.pipeline, "mark_rows": long.mark_rows}
            load |= {"transaction": marks}
        return load

    def entries(self) -> dict[str, Any]:
        return {"table": {**self.table, "name": self.name}, "indexes": self.indexed, "storage": None}

    def notes(self) -> Sequence[str]:
        return self.dialect.notes(self.bulk.table, self.where)

    def checks(self, control: Control, loaded: Mapping[str, Any], rows: int) -> Iterable[Check]:
        del loaded
        return checks(control, self.dialect, self.bulk, self.content, rows)

    def complete(self, control: Control, account: Account, rows: int) -> bool:
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
        options = self.bulk.table
        if options.index_when == "after":
            again = self.resumed.batches > 0
            yield self.dialect.indexes(self.table, options, self.where, again=again), "indexes", None
        yield self.dialect.after_load(self.table, options), "after", _AFTER_LOAD
        settling = self.dialect.settle(options) if self.bulk.settle else ()
        for statement in (*settling, *self.bulk.after):
            yield [statement], "after", f"after {statement}"

    def _run(self, control: Control, account: Account, statements: Iterable[str], kind: str) -> bool:
        """Run statements, each timed, and list them; False when one failed, which the account then says."""
        for statement in statements:
            try:
                done = _timed(control, [statement], "after")
            except self.engine.errors as error:
                said = f"the rows were loaded, but then `{statement}` failed: {words_of(error)}"
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


def _method(bulk: BulkLoad, dialect: TableDialect) -> LoadMethod:
    """Return how rows are sent: files as they are, single rows by INSERT. Raises LoadstoneError."""
    if bulk.transactions is not None:
        if bulk.method not in ("best", "insert"):
            raise LoadstoneError(
                f"long transactions are single-row INSERTs, but the method is {bulk.method}",
                'Remove the method, or set "insert".',
            )
        return chosen_method("insert", dialect)
    if not bulk.rows.as_they_are:
        return chosen_method(bulk.method, dialect)
    if bulk.method not in ("best", _COPIES[bulk.rows.format]):
        raise LoadstoneError(
            f"files in the format {bulk.rows.format} are sent unchanged, not by {bulk.method}",
            'Remove the method, or set "best".',
        )
    return _COPIES[bulk.rows.format]


_COPIES: Mapping[RowFormat, LoadMethod] = {
    "text": "copy_text", "csv": "copy_text", "binary": "copy_binary",
}  # fmt: skip
"""Whichever COPY it is, rows of a file go as they are."""


def _batch_rows(bulk: BulkLoad) -> int:
    return bulk.transactions.rows if bulk.transactions is not None else bulk.batch_rows

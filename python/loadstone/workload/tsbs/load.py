"""A load: tables made, rows sent, content verified, all of it in one account.

`perform_load` serves command lines and scenarios alike, for engines that the core's driver reaches and for
those behind a client library.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from loadstone.engine import SCHEMA
from loadstone.engine.dialect.names import quoted
from loadstone.engine.dialect.timeseries import ADDITIONAL, TableOptions, device_column, fields, names
from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.model import Drive
from loadstone.results.service import lost_connections
from loadstone.workload.load import tables
from loadstone.workload.load.cost import Meter
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
from loadstone.workload.tsbs.content import Content, content_of
from loadstone.workload.tsbs.verification import checks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loadstone.engine import Engine
    from loadstone.engine.control import Control, GetControl
    from loadstone.engine.dialect.timeseries import Dataset, TimeSeriesDialect
    from loadstone.model import InOut, Load
    from loadstone.signals import Signals
    from loadstone.target import OpenTarget
    from loadstone.workload.drive import Progress


@dataclass(frozen=True, slots=True)
class TimeSeriesLoadOptions:
    """What a load may do beside sending rows."""

    schema: str | None = SCHEMA
    """Where the tables are; None: where the user's own connection makes them."""
    replace: bool = False
    """Drop tables of these names that are there."""
    resume: bool = False
    """Go on with a load that was broken off."""
    make_tables: bool = True
    """False: somebody else has made them, and they are empty."""
    verify: bool = True
    """Compare counts and fingerprints at the end."""
    span_us: tuple[int, int] | None = None
    """First and last time of the rows where the data itself does not say."""
    content: Content | None = None
    """What looking at the data has found; standard input can be looked at once only."""
    interval_s: float = 1.0
    io: InOut = "auto"
    on_loaded: Callable[[Account], object] | None = None
    """Told of the account as soon as the rows are in, before anything is verified."""
    control: GetControl | None = None
    """Gives a control connection that works, also after the server was lost; None: one of our own."""


USUAL = TimeSeriesLoadOptions()


def perform_load(
    load: Load,
    opened: OpenTarget,
    out_dir: Path,
    signals: Signals | None = None,
    show: Callable[[Progress], None] | None = None,
    options: TimeSeriesLoadOptions = USUAL,
) -> Account:
    """Load a data set and return the account, whose `load` says how it ended and whether it was verified.

    `out_dir` takes drive.json, series.jsonl and latency.hlog. Raises LoadstoneError when nothing was loaded:
    for bad input before anything is touched.
    """
    engine = opened.engine
    content = options.content or content_of(load)
    with ReconnectingControl(opened, options.schema, options.control) as hand:
        try:
            return _Loading(load, content, opened, hand, options).run(out_dir, signals, show)
        except engine.errors as error:
            raise RunFailedError(f"the server failed: {str(error).strip()}") from error


def circumstances(opened: OpenTarget, span_us: tuple[int, int] | None = None) -> TableOptions:
    """Return what the form of the tables depends on at an open target."""
    return TableOptions(opened.identity["version_number"], span_us)


class _Loading:
    def __init__(
        self,
        load: Load,
        content: Content,
        opened: OpenTarget,
        hand: ReconnectingControl,
        options: TimeSeriesLoadOptions,
    ) -> None:
        self.load = replace(load, method=chosen_method(load.method, opened.engine.series))
        self.content = content
        self.dataset: Dataset = content.dataset
        self.names = names(content.dataset)
        self.opened = opened
        self.engine: Engine = opened.engine
        self.series: TimeSeriesDialect = opened.engine.series
        self.hand = hand
        self.options = options
        self.where = circumstances(opened, options.span_us or content.span_us)
        self.resumed = tables.Committed(0, 0, ())
        self.has_ledger = self.series.ledger

    def run(self, out_dir: Path, signals: Signals | None, show: Callable[[Progress], None] | None) -> Account:
        control = self.hand.control()
        self.series.refuse(control)
        self.series = self._of_schema(control)
        made = self._prepare(control)
        meter = Meter(self.engine, control)
        account = send(self._document(out_dir), self.series, self.opened, signals, show)
        if self.options.on_loaded is not None:
            self.options.on_loaded(account)
        loaded: dict[str, Any] = account["load"]
        loaded |= {
            "statements": made,
            "notes": [*loaded.get("notes", ()), *self.series.notes(self.load.tables, self.where)],
            "resumed": {"batches": self.resumed.batches, "rows": self.resumed.rows},
            "after": [], "checks": [], "verified": None, "compression": None,
            "committed": None, "tables_bytes": None,
        }  # fmt: skip
        with told(account, self.engine):
            self._finish(account, meter)
        write_account(account, out_dir)
        return account

    def _of_schema(self, control: Control) -> TimeSeriesDialect:
        schema = self.options.schema
        return self.series.where_made(control) if schema is None else self.series.within(schema)

    def _prepare(self, control: Control) -> list[dict[str, Any]]:
        """Make or check tables and ledger; returns the statements that were run."""
        about = self._about()
        if self.options.resume:
            if not self.has_ledger:
                raise LoadstoneError(f"a broken load cannot go on in {self.engine.title}", "Use --replace.")
            self.resumed = tables.reopen_ledger(control, self.series, self.names, about)
            return []
        if not self.options.make_tables:
            tables.refuse_unready(control, self.series, self.names)
            made = []
        else:
            wanted = self.series.tables(self.dataset, self.load.tables, self.where)
            if self.options.replace:
                tables.drop(control, self.series, self.names)
            else:
                tables.refuse_existing(control, self.series, self.names)
            made = tables.make(control, self.series, self.names, wanted, self.engine.errors)
        if self.has_ledger:
            tables.open_ledger(control, self.series, about)
        return made

    def _about(self) -> dict[str, Any]:
        """Return what must not change between a broken load and its resumption."""
        load = self.load
        workers = load.workers if load.hash_workers else 0
        return {
            "data": self.content.about,
            "batch size": load.batch_rows,
            "limit": load.limit_rows,
            "workers, as rows are hashed to them": workers,
            "jsonb tags": load.tables.jsonb_tags,
            "in-table tag": load.tables.in_table_tag,
        }

    def _document(self, out_dir: Path) -> dict[str, Any]:
        load, connection = self.load, self.hand.clients()
        drive = Drive(
            scripts=(), clients=load.workers, pace=load.pace, timeout_s=load.timeout_s, seed=load.seed
        )
        document = load_document(drive, connection, out_dir, self.options.io, self.options.interval_s)
        return document | {
            "load": {
                "data": self.content.data,
                "method": load.method,
                "batch_rows": load.batch_rows,
                "hash_workers": load.hash_workers,
                "limit_rows": load.limit_rows,
                "insert_intervals": load.insert_intervals,
                "tables": self._columns(),
                "jsonb_tags": load.tables.jsonb_tags,
                "in_table_tag": load.tables.in_table_tag,
                "ledger": self.series.qualified(tables.LEDGER) if self.has_ledger else None,
                "skip": [list(found) for found in self.resumed.ranges],
                "prepared": True,
            }
        }

    def _columns(self) -> dict[str, Any]:
        """Return name and columns of each table as SQL writes them, in the order that rows are sent."""
        wishes, tags = self.load.tables, self.dataset["tags"]
        found: dict[str, Any] = {"tags": None}
        device = [quoted(device_column(self.dataset, wishes))] if wishes.in_table_tag else []
        for table in self.dataset["tables"]:
            columns = [*device, quoted("time"), quoted("tags_id"), *map(quoted, fields(table))]
            if any(column["name"] == ADDITIONAL for column in table["columns"]):
                columns.append(quoted(ADDITIONAL))
            found[table["name"]] = {"name": self.series.qualified(table["name"]), "columns": columns}
        if tags:
            listed = [quoted(column["name"]) for column in tags["columns"]]
            columns = [quoted("id"), quoted("tagset")] if wishes.jsonb_tags else listed
            found["tags"] = {"name": self.series.qualified(tags["name"]), "columns": columns}
        return found

    def _finish(self, account: Account, meter: Meter) -> None:
        """Settle what is committed; when it is all, do what comes after, verify and measure."""
        loaded = account["load"]
        loaded["cpu"] = meter.cpu()
        control = self.hand.control(lost=lost_connections(account))
        loaded["wal_bytes"] = meter.wal_bytes(control)
        if not settle(account, tables.committed(control, self.series) if self.has_ledger else None):
            return
        loaded["after"] = tables.execute(control, self.series.after_load(self.dataset, self.load.tables))
        if self.options.verify:
            loaded["checks"] = list(checks(control, self.series, self.dataset, loaded))
            loaded["verified"] = all(check["passed"] for check in loaded["checks"])
        if self.has_ledger and loaded["verified"] is not False:
            tables.close_ledger(control, self.series)
        self._measure(control, loaded)

    def _measure(self, control: Control, loaded: dict[str, Any]) -> None:
        # Those of an earlier load that this one continues are in the fingerprint alone.
        rows = {t["name"]: int((t.get("fingerprint") or t)["rows"]) for t in loaded["tables"]}
        sizes, before, after = [], 0, 0
        for name in self.names:
            size = self.series.size(control, name)
            compression = self.series.compression(control, name) if name in rows else None
            if compression is not None:
                before, after = before + compression.before_bytes, after + compression.after_bytes
            count = rows.get(name) or (
                loaded.get("tags_total", loaded["tags_rows"]) if name not in rows else 0
            )
            total = size.table_bytes + size.index_bytes
            sizes.append(
                {
                    "name": name,
                    "rows": count,
                    "table_bytes": size.table_bytes,
                    "index_bytes": size.index_bytes,
                    "bytes_per_row": total / count if count else None,
                    "compression": compression.ratio if compression else None,
                    "outside": self.series.strays(control, name) if name in rows else None,
                }
            )
        loaded |= {"tables_bytes": sizes, "compression": before / after if after else None}

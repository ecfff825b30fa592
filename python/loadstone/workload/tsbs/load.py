"""Loads of time series: TSBS's data sets, into a table for each kind of measurement and one of tags."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from loadstone.engine.dialect.timeseries import (
    ADDITIONAL,
    TableFacts,
    TimeSeriesDialect,
    device_column,
    fields,
    names,
)
from loadstone.model import Drive
from loadstone.sqltext import quoted
from loadstone.workload.load import tables
from loadstone.workload.load.loader import Loader, LoadOptions
from loadstone.workload.load.rows import Account, chosen_method
from loadstone.workload.tsbs.content import Content, content_of
from loadstone.workload.tsbs.verification import checks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from loadstone.engine.control import Control
    from loadstone.engine.dialect.timeseries import Dataset
    from loadstone.model import Load
    from loadstone.signals import Signals
    from loadstone.target import OpenTarget
    from loadstone.workload.drive import Progress
    from loadstone.workload.load.fingerprints import Check


@dataclass(frozen=True, slots=True)
class TimeSeriesLoadOptions(LoadOptions):
    """What a load may do beside sending rows."""

    verify: bool = True
    """Compare counts and fingerprints at the end."""
    span_us: tuple[int, int] | None = None
    """First and last time of the rows where the data itself does not say."""
    content: Content | None = None
    """What looking at the data has found; standard input can be looked at once only."""
    on_loaded: Callable[[Account], object] | None = None
    """Called with the account as soon as the rows are in, before anything is verified."""


USUAL = TimeSeriesLoadOptions()


def perform_load(
    load: Load,
    opened: OpenTarget,
    out_dir: Path,
    signals: Signals | None = None,
    show: Callable[[Progress], None] | None = None,
    options: TimeSeriesLoadOptions = USUAL,
) -> Account:
    """Load a data set and return the account, as `Loader.perform` does."""
    content = options.content or content_of(load)
    return _TimeSeriesLoader(load, content, opened, options).perform(out_dir, signals, show)


def table_options(opened: OpenTarget, span_us: tuple[int, int] | None = None) -> TableFacts:
    """Return what the form of the tables depends on at an open target."""
    return TableFacts(opened.identity["version_number"], span_us)


class _TimeSeriesLoader(Loader[TimeSeriesDialect]):
    """Rows of a data set's tables, in batches over all of them."""

    def __init__(
        self, load: Load, content: Content, opened: OpenTarget, options: TimeSeriesLoadOptions
    ) -> None:
        super().__init__(opened, options, opened.engine.series, names(content.dataset))
        self.load = replace(load, method=chosen_method(load.method, self.dialect))
        self.content = content
        self.dataset: Dataset = content.dataset
        self.options = options
        self.where = table_options(opened, options.span_us or content.span_us)

    def refuse(self, control: Control) -> list[str]:
        self.dialect.refuse(control)
        self.dialect.refuse_method(control, self.load.method)
        return []

    def about(self) -> dict[str, Any]:
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

    def statements(self) -> Sequence[str]:
        return self.dialect.tables(self.dataset, self.load.tables, self.where)

    def drive(self) -> Drive:
        load = self.load
        return Drive(
            scripts=(), clients=load.workers, pace=load.pace, timeout_s=load.timeout_s, seed=load.seed
        )

    def spec(self) -> dict[str, Any]:
        load = self.load
        return {
            "data": self.content.data,
            "method": load.method,
            "batch_rows": load.batch_rows,
            "hash_workers": load.hash_workers,
            "limit_rows": load.limit_rows,
            "insert_intervals": load.insert_intervals,
            "tables": self._columns(),
            "jsonb_tags": load.tables.jsonb_tags,
            "in_table_tag": load.tables.in_table_tag,
        }

    def _columns(self) -> dict[str, Any]:
        """Return name and columns of each table as SQL writes them, in the order that rows are sent."""
        options, tags = self.load.tables, self.dataset["tags"]
        found: dict[str, Any] = {"tags": None}
        device = [quoted(device_column(self.dataset, options))] if options.in_table_tag else []
        for table in self.dataset["tables"]:
            columns = [*device, quoted("time"), quoted("tags_id"), *map(quoted, fields(table))]
            if any(column["name"] == ADDITIONAL for column in table["columns"]):
                columns.append(quoted(ADDITIONAL))
            found[table["name"]] = {"name": self.dialect.qualified(table["name"]), "columns": columns}
        if tags:
            listed = [quoted(column["name"]) for column in tags["columns"]]
            columns = [quoted("id"), quoted("tagset")] if options.jsonb_tags else listed
            found["tags"] = {"name": self.dialect.qualified(tags["name"]), "columns": columns}
        return found

    def on_loaded(self, account: Account) -> None:
        if self.options.on_loaded is not None:
            self.options.on_loaded(account)

    def entries(self) -> dict[str, Any]:
        return {"compression": None, "tables_bytes": None}

    def notes(self) -> Sequence[str]:
        return self.dialect.notes(self.load.tables, self.where)

    def complete(self, control: Control, account: Account, rows: int) -> bool:
        del rows
        statements = self.dialect.after_load(self.dataset, self.load.tables)
        account["load"]["after"] = tables.execute(control, statements)
        return True

    def checks(self, control: Control, loaded: Mapping[str, Any], rows: int) -> Iterable[Check] | None:
        del rows
        return checks(control, self.dialect, self.dataset, loaded) if self.options.verify else None

    def measure(self, control: Control, loaded: dict[str, Any]) -> None:
        # Those of an earlier load that this one continues are in the fingerprint alone.
        rows = {t["name"]: int((t.get("fingerprint") or t)["rows"]) for t in loaded["tables"]}
        sizes, before, after = [], 0, 0
        for name in self.names:
            size = self.dialect.size(control, name)
            compression = self.dialect.compression(control, name) if name in rows else None
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
                    "outside": self.dialect.strays(control, name) if name in rows else None,
                }
            )
        loaded |= {"tables_bytes": sizes, "compression": before / after if after else None}

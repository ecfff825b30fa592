"""A load: tables made, rows sent, content verified, all of it in one account.

`perform_load` serves command lines and scenarios alike, for engines that the core's driver reaches and for
those behind a Python driver.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from loadstone.drive import drive_document, perform
from loadstone.engine import SCHEMA
from loadstone.engine.family import PostgresFamily
from loadstone.engine.series import ADDITIONAL, Circumstances, device_column, fields, names, quoted
from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.jsonfile import to_json, write_atomic
from loadstone.model import Connection, Drive
from loadstone.procfs import ProcessTree, own_process
from loadstone.tsbs import tables
from loadstone.tsbs.content import Content, content_of
from loadstone.tsbs.verify import checks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from loadstone.drive import Progress
    from loadstone.engine import Engine
    from loadstone.engine.control import Control
    from loadstone.engine.series import Dataset, SeriesAnswers
    from loadstone.model import InOut, Load, LoadMethod
    from loadstone.signals import Signals
    from loadstone.target import OpenTarget

Account = dict[str, Any]
"""drive.json of docs/run-folder.md, with `load`."""


@dataclass(frozen=True, slots=True)
class LoadManner:
    """What a load may do beside sending rows."""

    schema: str | None = SCHEMA
    """Where unqualified names lead first; None: where the user's own connection has them."""
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
    driven: Callable[[Account], object] | None = None
    """Told of the account as soon as the rows are in, before anything is verified."""
    control: Callable[[], Control] | None = None
    """Gives a control connection that works, also after the server was lost; None: one of our own."""


USUAL = LoadManner()
_RECOVERY_S = 10.0
_PAUSE_S = 0.25
_NOWHERE = Connection(host="", port=0, user="", database="")


def perform_load(
    load: Load,
    opened: OpenTarget,
    out_dir: Path,
    signals: Signals | None = None,
    show: Callable[[Progress], None] | None = None,
    manner: LoadManner = USUAL,
) -> Account:
    """Load a data set and return the account, whose `load` says how it ended and whether it was verified.

    `out_dir` takes drive.json, series.jsonl and latency.hlog. Raises LoadstoneError when nothing was loaded:
    for bad input before anything is touched.
    """
    engine = opened.engine
    content = manner.content or content_of(load)
    with _Hand(opened, manner) as hand:
        try:
            return _Loading(load, content, opened, hand, manner).run(out_dir, signals, show)
        except engine.errors as error:
            raise RunFailedError(f"the server failed: {str(error).strip()}") from error


def circumstances(opened: OpenTarget, span_us: tuple[int, int] | None = None) -> Circumstances:
    """Return what the form of the tables depends on at an open target."""
    return Circumstances(opened.identity["version_number"], span_us)


class _Hand(contextlib.AbstractContextManager["_Hand"]):
    """The control connection, opened anew when the server was lost."""

    def __init__(self, opened: OpenTarget, manner: LoadManner) -> None:
        self._opened = opened
        self._schema = manner.schema
        self._borrow = manner.control
        self._own: Control | None = None
        self._met = False

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            self._own.close()

    def control(self) -> Control:
        """Return a connection that works; raises LoadstoneError when there is none to be had."""
        if self._borrow is not None:
            return self._borrow()
        if self._own is not None:
            try:
                self._own.execute("select 1")
            except self._opened.engine.errors:
                self._own.close()
                self._own = None
        if self._own is None:
            self._own = self._patiently() if self._met else self._connect()
            self._met = True
        return self._own

    def clients(self) -> Connection | None:
        """Return how the driver's clients connect; None where they are behind a Python driver."""
        connection, engine = self._opened.connection, self._opened.engine
        if connection is None or not isinstance(engine, PostgresFamily):
            return None
        return connection if self._schema is None else engine.with_schema(connection, self._schema)

    def _patiently(self) -> Control:
        """Wait for a server that recovers from a crash."""
        deadline = time.monotonic() + _RECOVERY_S
        while True:
            try:
                return self._connect()
            except LoadstoneError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_S)

    def _connect(self) -> Control:
        connection, engine = self._opened.connection, self._opened.engine
        if self._schema is None and connection is not None and isinstance(engine, PostgresFamily):
            return engine.connect(connection)
        return self._opened.connect("loadstone")


class _Loading:
    def __init__(
        self, load: Load, content: Content, opened: OpenTarget, hand: _Hand, manner: LoadManner
    ) -> None:
        self.load = replace(load, method=_method(load.method, opened.engine.series))
        self.content = content
        self.dataset: Dataset = content.dataset
        self.opened = opened
        self.engine: Engine = opened.engine
        self.series: SeriesAnswers = opened.engine.series
        self.hand = hand
        self.manner = manner
        self.where = circumstances(opened, manner.span_us or content.span_us)
        self.resumed = tables.Committed(0, 0, ())
        self.has_ledger = self.series.ledger

    def run(self, out_dir: Path, signals: Signals | None, show: Callable[[Progress], None] | None) -> Account:
        control = self.hand.control()
        self.series.refuse(control)
        made = self._prepare(control)
        meter = _Meter(self.engine, control)
        account = self._drive(out_dir, signals, show)
        if self.manner.driven is not None:
            self.manner.driven(account)
        loaded: dict[str, Any] = account["load"]
        loaded |= {
            "statements": made,
            "notes": [*loaded.get("notes", ()), *self.series.notes(self.load.tables, self.where)],
            "resumed": {"batches": self.resumed.batches, "rows": self.resumed.rows},
            "after": [], "checks": [], "verified": None, "compression": None,
            "committed": None, "tables_bytes": None,
        }  # fmt: skip
        with _told(account, self.engine):
            self._finish(account, meter)
        write_atomic(out_dir / "drive.json", to_json(account, indent=1))
        return account

    def _prepare(self, control: Control) -> list[dict[str, Any]]:
        """Make or check tables and ledger; returns the statements that were run."""
        about = self._about()
        if self.manner.resume:
            if not self.has_ledger:
                raise LoadstoneError(f"a broken load cannot go on in {self.engine.title}", "Use --replace.")
            self.resumed = tables.reopen_ledger(control, self.series, self.dataset, about)
            return []
        if not self.manner.make_tables:
            tables.refuse_unready(control, self.series, self.dataset)
            made = []
        else:
            wanted = self.series.tables(self.dataset, self.load.tables, self.where)
            if self.manner.replace:
                tables.drop(control, self.series, self.dataset)
            else:
                tables.refuse_existing(control, self.series, self.dataset)
            made = self._make(control, wanted)
        if self.has_ledger:
            tables.open_ledger(control, about)
        return made

    def _make(self, control: Control, wanted: tuple[str, ...]) -> list[dict[str, Any]]:
        done: list[dict[str, Any]] = []
        try:
            for statement in wanted:
                done += tables.execute(control, [statement])
        except self.engine.errors as error:
            with contextlib.suppress(*self.engine.errors):
                tables.drop_made(control, self.series, self.dataset, [entry["text"] for entry in done])
            raise LoadstoneError(
                f"the tables cannot be made: {str(error).strip()}", "Those made so far are dropped again."
            ) from error
        return done

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

    def _drive(
        self, out_dir: Path, signals: Signals | None, show: Callable[[Progress], None] | None
    ) -> Account:
        document = self._document(out_dir)
        if document["connection"] is not None:
            return perform(document, signals, show)
        del document["connection"]
        stopped: list[bool] = []
        if signals is not None:
            signals.during(lambda: stopped.append(True))
        try:
            account = self.series.perform(document, self.opened.connect, lambda: bool(stopped), show)
        finally:
            if signals is not None:
                signals.during(None)
        if account is None:
            raise LoadstoneError(f"{self.engine.title} cannot be loaded", "Name another target.")
        return account

    def _document(self, out_dir: Path) -> dict[str, Any]:
        load, connection = self.load, self.hand.clients()
        drive = Drive(scripts=(), clients=load.workers, pace=load.pace, timeout_s=load.timeout_s)
        document = _without_scripts(drive, connection, out_dir, self.manner)
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
                "ledger": quoted(tables.LEDGER) if self.has_ledger else None,
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
            found[table["name"]] = {"name": quoted(table["name"]), "columns": columns}
        if tags:
            listed = [quoted(column["name"]) for column in tags["columns"]]
            columns = [quoted("id"), quoted("tagset")] if wishes.jsonb_tags else listed
            found["tags"] = {"name": quoted(tags["name"]), "columns": columns}
        return found

    def _finish(self, account: Account, meter: _Meter) -> None:
        """Settle what is committed; when it is all, do what comes after, verify and measure."""
        loaded = account["load"]
        loaded["cpu"] = meter.cpu()
        control = self.hand.control()
        loaded["wal_bytes"] = meter.wal_bytes(control)
        whole = account["state"] == "complete" and not account["in_doubt"]
        if self.has_ledger:
            booked = tables.committed(control)
            loaded["committed"] = {"batches": booked.batches, "rows": booked.rows}
            batches = loaded["batches"] + loaded["skipped_batches"]
            whole = account["state"] == "complete" and booked.batches == batches
        if not whole:
            if account["state"] == "complete":
                account |= {"state": "failed", "reason": "not every batch was committed"}
            return
        loaded["after"] = tables.execute(control, self.series.after_load(self.dataset, self.load.tables))
        if self.manner.verify:
            loaded["checks"] = list(checks(control, self.series, self.dataset, loaded))
            loaded["verified"] = all(check["passed"] for check in loaded["checks"])
        if self.has_ledger and loaded["verified"] is not False:
            tables.close_ledger(control, self.series)
        self._measure(control, loaded)

    def _measure(self, control: Control, loaded: dict[str, Any]) -> None:
        # Those of an earlier load that this one continues are in the fingerprint alone.
        rows = {t["name"]: int((t.get("fingerprint") or t)["rows"]) for t in loaded["tables"]}
        sizes, before, after = [], 0, 0
        for name in names(self.dataset):
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


class _Meter:
    """What the load costs: CPU time of both sides, WAL."""

    def __init__(self, engine: Engine, control: Control) -> None:
        self._engine = engine
        pid = None if engine.in_process else engine.server_pids(control).pid
        self._tree = ProcessTree(pid) if pid is not None else None
        self._server = self._tree.sample() if self._tree else None
        self._client = own_process()
        self._wal = self._position(control)

    def cpu(self) -> dict[str, float | bool | None]:
        """Return the CPU seconds of both sides since the beginning, and our share of the two."""
        server = _cpu_s(self._server, self._tree.sample() if self._tree else None)
        client = _cpu_s(self._client, own_process())
        both = server + client if server is not None and client is not None else None
        share = client / both if both and client is not None else None
        own = self._engine.in_process
        return {"server_s": server, "client_s": client, "client_share": share, "in_process": own}

    def wal_bytes(self, control: Control) -> int | None:
        """Return how much WAL was written since the beginning, by everybody."""
        now = self._position(control)
        return None if now is None or self._wal is None else now - self._wal

    def _position(self, control: Control) -> int | None:
        try:
            return self._engine.sizes(control)["wal_lsn_bytes"]
        except self._engine.errors:
            return None


def _cpu_s(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> float | None:
    if before is None or after is None:
        return None
    return float(sum(after[name] - before[name] for name in ("cpu_user_s", "cpu_system_s")))


@contextlib.contextmanager
def _told(account: Account, engine: Engine) -> Iterator[None]:
    """Keep the account of what was loaded when the server is no longer there to be asked."""
    troubles: tuple[type[Exception], ...] = (LoadstoneError, *engine.errors)
    try:
        yield
    except troubles as error:
        said = error.message if isinstance(error, LoadstoneError) else str(error).strip()
        if account["state"] == "complete":
            account |= {"state": "failed", "reason": f"what was loaded cannot be looked at: {said}"}
        account["load"]["notes"].append(f"the server could not be asked afterwards: {said}")


def _method(wanted: LoadMethod, series: SeriesAnswers) -> LoadMethod:
    if wanted == "best":
        return series.methods[0]
    if wanted not in series.methods:
        raise LoadstoneError(
            f"{series.title} cannot be loaded by {wanted}", f"It can by {', '.join(series.methods)}."
        )
    return wanted


def _without_scripts(
    drive: Drive, connection: Connection | None, out_dir: Path, manner: LoadManner
) -> dict[str, Any]:
    stand_in = connection or _NOWHERE
    document = drive_document(drive, stand_in, out_dir, manner.io) | {"interval_s": manner.interval_s}
    del document["scripts"], document["mode"]
    return document if connection is not None else document | {"connection": None}

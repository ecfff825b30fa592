"""QuestDB: columns by time, in a server that speaks PostgreSQL's wire protocol and little of its SQL."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg

from loadstone.engine import SCHEMA, not_one_value, one
from loadstone.engine.answers import Observation, ServerProcesses, sized, version_number
from loadstone.engine.dialect.timeseries import TimeSeriesDialect
from loadstone.engine.library.engine import LibraryEngine, Place
from loadstone.engine.library.packages import install
from loadstone.engine.library.places import listener, server_place
from loadstone.engine.observe.storage import Storage, table_storage
from loadstone.engines.questdb.control import quest
from loadstone.engines.questdb.server import DATABASE, PINNED, QuestDatabase, reached
from loadstone.engines.questdb.tables import OURS, QuestTables, made
from loadstone.errors import LoadstoneError, words_of
from loadstone.sqltext import literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from loadstone.engine.answers import Caches, Durability, Identity, RelationSize, Setting, Sizes
    from loadstone.engine.control import Control
    from loadstone.engines.questdb.control import QuestControl

_PORT = 8812
_PASSWORD = "QUESTDB_PASSWORD"  # noqa: S105 - the name of a variable
_USUAL_PASSWORD = "quest"  # noqa: S105 - what every QuestDB begins with
_WORTH_RECORDING = (
    "cairo.commit.mode", "cairo.sql.parallel.filter.enabled", "cairo.sql.parallel.groupby.enabled",
    "cairo.wal.apply.parallel.sql.enabled", "cairo.wal.segment.rollover.row.count", "query.timeout",
    "shared.worker.count", "wal.apply.worker.count", "ram.usage.limit.bytes",
)  # fmt: skip
_SETTINGS = "select property_path as name, value, value_source as source, sensitive from (show parameters)"
_STORAGE = (
    "select tableName as name, rowCount as rows, diskSize as bytes from table_storage() order by 3 desc"
)
_MEMORY = "select memory_tag as name, bytes as value from memory_metrics()"
_WRITERS = "select count() as open from writer_pool() where table_name in ({names})"
_CLOSED_S = 10.0
_POLL_S = 0.1
_LAG = "select coalesce(sum(sequencerTxn - writerTxn), 0) as waiting from wal_tables()"


class QuestSeries(TimeSeriesDialect):
    """Says no."""

    title = "QuestDB"

    def refuse(self, control: Control) -> None:
        """Raise LoadstoneError: tables of this shape were not made for QuestDB."""
        del control
        raise LoadstoneError(
            "Loadstone supports only plain tables in QuestDB, not data of TSBS",
            "Load a plain data set, or use another target.",
        )


class QuestDB(LibraryEngine):
    """QuestDB, private or the user's own."""

    name = "questdb"
    title = "QuestDB"
    schemes = ("questdb",)
    errors = (psycopg.Error,)
    status = "verified against QuestDB 9.3.4, on Linux"
    needs = f"Java 17 or later (JAVA_HOME, in PATH, or: {install('questdb')}); Loadstone downloads QuestDB"
    series = QuestSeries()
    tables: QuestTables = QuestTables()
    no_counters = "QuestDB does not show in SQL what it has done so far"

    @property
    def target_forms(self) -> tuple[str, ...]:
        """A private server, the user's own."""
        return ("questdb:", "questdb://")

    def place(self, text: str) -> Place:
        """Understand what follows `questdb:`; the password may also be in QUESTDB_PASSWORD."""
        if text in ("", "//"):
            return Place("questdb", "a private server", "questdb:", needs_folder=True, private=True)
        place = server_place("questdb", text, port=_PORT, user="admin", database=DATABASE, variable=_PASSWORD)
        assert place.server is not None  # noqa: S101 - it names one
        server = replace(place.server, password=place.server.password or _USUAL_PASSWORD)
        return replace(place, server=server)

    def open(self, place: Place, folder: Path | None, settings: Mapping[str, str]) -> QuestDatabase:
        """Start a private server, or reach the user's."""
        return QuestDatabase(place.server, folder, settings)

    def control(self, connection: Control) -> QuestControl:
        """Return a control connection as QuestDB's own."""
        return quest(connection)

    def version(self, connection: Control) -> Identity:
        """Ask the server what it is."""
        text = str(one(connection, "select build() as build")["build"])
        match = re.search(r"QuestDB (\d+(?:\.\d+)*)", text)
        version = match.group(1) if match else ""
        return {
            "version": version,
            "version_text": text,
            "version_number": version_number(version),
            "standby": False,
        }

    def identify(self, connection: Control) -> Identity:
        """Ask the server what it is, and refuse it when it is not QuestDB or too old."""
        try:
            identity = self.version(connection)
        except psycopg.Error as error:
            raise LoadstoneError(
                f"the server does not answer like QuestDB: {words_of(error)}",
                "Put the right engine into the URL's scheme; `loadstone engines` lists them.",
            ) from error
        if identity["version_number"] < _OLDEST:
            raise LoadstoneError(
                f"the server is {identity['version_text']}", "Loadstone needs version 9 or later."
            )
        return identity

    def claim_workspace(self, connection: Control, schema: str = SCHEMA, mark: str = "") -> bool:
        """Say yes: QuestDB has no locks that outlast a statement and end with a connection."""
        del connection, schema, mark
        return True

    def has_workspace(self, connection: Control, schema: str = SCHEMA) -> bool:
        """Return whether the table is there that lists ours."""
        del schema
        return bool(self.tables.existing(connection, [OURS]))

    def create_workspace(self, connection: Control, schema: str = SCHEMA, *, replace: bool = False) -> None:
        """Drop what an earlier run made, and begin a new list; nobody else's table is touched."""
        del replace
        self.drop_workspace(connection, schema)
        # unqualified: QuestDB has no schemas
        connection.execute(f"create table {OURS} (name varchar)")

    def drop_workspace(
        self, connection: Control, schema: str = SCHEMA, *, lock_wait_s: float | None = None
    ) -> None:
        """Drop the tables that are booked as ours, then the list of them."""
        del schema, lock_wait_s
        for name in sorted(made(connection)):
            connection.execute(self.tables.drop(name))
        connection.execute(self.tables.drop(OURS))

    def settings(self, connection: Control) -> list[Setting]:
        """Read the settings that are not at their defaults, and those worth recording anyway."""
        found: list[Setting] = []
        for row in connection.execute(_SETTINGS):
            name, source = str(row["name"]), str(row["source"])
            if source == "default" and name not in _WORTH_RECORDING:
                continue
            ours = source != "default" and name in PINNED
            hidden = row["sensitive"] or "password" in name
            value = "***" if hidden else str(row["value"] or "")
            found.append({"name": name, "value": value, "source": "Loadstone" if ours else source})
        return found

    def durability(self, connection: Control, schema: str = SCHEMA) -> list[Durability]:
        """Judge the setting that decides whether a commit survives a crash."""
        del schema
        values = {row["name"]: row["value"] for row in self.settings(connection)}
        mode = values.get("cairo.commit.mode", "nosync")
        forced = mode in ("sync", "adaptive")
        why = (
            "a commit is acknowledged after its files are on disk"
            if forced
            else "a commit is acknowledged before its files are on disk: a crash of the machine loses it"
        )
        return [{"setting": "cairo.commit.mode", "value": mode, "durable": forced, "why": why}]

    def sizes(self, connection: Control, schema: str = SCHEMA) -> Sizes:
        """Read what the files of each of our tables take."""
        del schema
        ours = made(connection)
        rows = connection.execute(_STORAGE).fetchall()
        relations: list[RelationSize] = [
            {
                "name": row["name"],
                "kind": "table",
                "table": row["name"],
                "bytes": int(row["bytes"]),
                "rows_estimate": int(row["rows"]),
            }
            for row in rows
            if row["name"] in ours
        ]
        return sized(sum(int(row["bytes"]) for row in rows), None, relations)

    def storage(
        self,
        connection: Control,
        tables: Sequence[str],
        data_directory: Path | None = None,
        schema: str = SCHEMA,
    ) -> Storage:
        """Account for the files of tables; QuestDB does not tell columns and indexes apart."""
        del data_directory, schema
        note = "files that are being written are up to 16 MiB per column longer than their content"
        notes = [] if self._closes_files(connection) else [note]
        return Storage(
            [table_storage(name, self.tables.size(connection, name).table_bytes) for name in tables], notes
        )

    def checkpoint(self, connection: Control) -> str | None:
        """Wait until a private server has closed the files that it has written."""
        self._closes_files(connection)
        return None

    def _closes_files(self, connection: Control) -> bool:
        """Wait until a private server has closed the files of our tables, which cuts them to what they hold.

        Returns whether it has: another server keeps them open, for ten minutes unless it is set otherwise.
        """
        if reached(connection).folder is None:
            return False
        names = ", ".join(literal(name) for name in made(connection)) or "''"
        end = time.monotonic() + _CLOSED_S
        while one(connection, _WRITERS.format(names=names))["open"]:
            if time.monotonic() > end:
                return False
            time.sleep(_POLL_S)
        return True

    def gauges(self, connection: Control, schema: str = SCHEMA) -> Observation:
        """Read what memory it takes, and how many transactions cannot be seen yet."""
        del schema
        memory = {row["name"]: int(row["value"]) for row in connection.execute(_MEMORY)}
        waiting = one(connection, _LAG)["waiting"]
        return Observation(
            {
                "memory_bytes": memory.get("TOTAL_USED"),
                "transactions_not_visible": int(waiting),
            }
        )

    def server_pids(self, connection: Control) -> ServerProcesses:
        """Find the server's process: our own, or the one that listens at the user's port."""
        database = reached(connection)
        return ServerProcesses(database.pid) if database.pid is not None else listener(database.server)

    def flush_caches(self, connection: Control) -> Caches:
        """Start a private server again, with the system's pages of its files forgotten."""
        if not reached(connection).restart():
            note = "QuestDB has no cache of its own, and Loadstone cannot empty that of its operating system"
            return {"emptied": False, "note": note, "restart_would_help": True}
        note = (
            "the server was restarted, and the system was asked to drop its files from the page cache; "
            "Java also compiles again"
        )
        return {"emptied": True, "note": note}

    def refuse_too_many_clients(self, connection: Control, clients: int) -> None:
        """Raise LoadstoneError when the server takes fewer connections."""
        rows = connection.execute(f"{_SETTINGS} where property_path = 'pg.net.connection.limit'")
        row = rows.fetchone()
        hint = "Use fewer clients, or raise pg.net.connection.limit: on a private server, with --setting."
        self.refuse_above(int(row["value"]) if row is not None else 0, clients, "connections", hint)

    def text_value(self, connection: Control, sql: str) -> str | None:
        """Run a query that gives one value; returns it as QuestDB writes it, None for null."""
        found = quest(connection).text(sql)
        if len(found) != 1 or len(found[0]) != 1:
            raise not_one_value(len(found), len(found[0]) if found else 0, sql)
        return found[0][0]

    def answer(self, connection: Control, sql: str) -> pa.Table:
        """Run a query and return its whole answer."""
        return quest(connection).table(sql)


_OLDEST = 90000


ENGINE = QuestDB()

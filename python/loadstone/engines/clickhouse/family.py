"""ClickHouse's answers: the base of its server and of chDB, the library."""

from __future__ import annotations

import contextlib
import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from loadstone.engine import SCHEMA, not_one_value, one
from loadstone.engine.answers import Observation, ServerProcesses, sized, version_number
from loadstone.engine.library.engine import LibraryEngine, only_value
from loadstone.engine.observe.storage import Storage, table_storage
from loadstone.engines.clickhouse import statements
from loadstone.engines.clickhouse.control import HAS_DATABASE, SESSION, ClickError, click
from loadstone.engines.clickhouse.tables import DURABLE, ClickTables
from loadstone.engines.clickhouse.timeseries import ClickSeries
from loadstone.errors import LoadstoneError
from loadstone.sqltext import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any

    import pyarrow as pa

    from loadstone.engine.answers import Durability, Identity, Setting, Sizes
    from loadstone.engine.control import Control
    from loadstone.engine.observe.storage import TableStorage
    from loadstone.engines.clickhouse.control import ClickControl

MARK = "made by Loadstone, which drops it with everything in it"
_OLDEST = 230800
"""Version 23.8, a long-term release: the engines of 23.6 and 23.10 (chDB 0.15 and 1.0.2) understand our
statements, but for those that ask for parts and metrics, which these libraries do not have."""


class ClickFamily(LibraryEngine):
    """What ClickHouse answers, by whichever line it is asked."""

    errors = (ClickError,)
    limits: Mapping[str, str] = MappingProxyType({"max_concurrent_queries": "queries at once"})
    """What limits the clients, by the server's settings: what each counts."""
    series = ClickSeries()
    tables: ClickTables = ClickTables()

    def control(self, connection: Control) -> ClickControl:
        """Return a control connection as ClickHouse's own."""
        return click(connection)

    def version(self, connection: Control) -> Identity:
        """Ask the engine what it is."""
        version = str(one(connection, statements.VERSION)["version"])
        return {
            "version": version,
            "version_text": f"{self.title}: ClickHouse {version}",
            "version_number": version_number(version),
            "standby": False,
        }

    def identify(self, connection: Control) -> Identity:
        """Ask the engine what it is, and refuse it when it is too old."""
        identity = self.version(connection)
        refuse_too_old(identity["version"])
        return identity

    def claim_workspace(self, connection: Control, schema: str = SCHEMA, mark: str = "") -> bool:
        """Say yes: ClickHouse has no locks that outlast a statement and end with a connection."""
        del connection, schema, mark
        return True

    def has_workspace(self, connection: Control, schema: str = SCHEMA) -> bool:
        """Return whether the database is there and marked as ours."""
        return _comment(connection, schema) == MARK

    def create_workspace(self, connection: Control, schema: str = SCHEMA, *, replace: bool = False) -> None:
        """Make the database, empty and marked as ours; refuse one with somebody else's tables in it."""
        found = _comment(connection, schema)
        held = self._tables_in(connection, schema)
        if held and found != MARK and not replace:
            raise LoadstoneError(
                f"the database '{schema}' contains {len(held)} tables that Loadstone did not create",
                "Use another server, or add --replace to drop that database with everything in it.",
            )
        click(connection).use("default")
        if found is not None:
            connection.execute(f"drop database {quoted(schema)} sync")
        connection.execute(f"create database {quoted(schema)} comment {literal(MARK)}")
        click(connection).use(schema)

    def drop_workspace(
        self, connection: Control, schema: str = SCHEMA, *, lock_wait_s: float | None = None
    ) -> None:
        """Drop the database with everything in it, if it is ours; nobody holds locks for which to wait."""
        del lock_wait_s
        found = _comment(connection, schema)
        if found is None:
            return
        if found != MARK:
            raise LoadstoneError(
                f"the database '{schema}' is not marked as created by Loadstone and was not dropped",
                "Drop it yourself if nobody needs it.",
            )
        click(connection).use("default")
        connection.execute(f"drop database {quoted(schema)} sync")

    def settings(self, connection: Control) -> list[Setting]:
        """Read the settings that are not at their defaults, and those worth recording anyway."""
        given = click(connection).database.settings
        found: list[Setting] = []
        for row in connection.execute(statements.SETTINGS):
            name = row["name"]
            ours = "Loadstone" if name in SESSION else "--setting" if name in given else "server"
            source = ours if row["changed"] else "default"
            found.append({"name": name, "value": str(row["value"]), "source": source})
        found += [
            {"name": f"merge_tree.{name}", "value": str(value), "source": "Loadstone"}
            for name, value in DURABLE.items()
        ]
        return found

    def durability(self, connection: Control, schema: str = SCHEMA) -> list[Durability]:
        """Judge the settings that decide whether rows that were taken survive a crash."""
        rows = connection.execute(statements.TABLES.format(schema=literal(schema))).fetchall()
        loose = [row["name"] for row in rows if "fsync_after_insert = 1" not in row["engine_full"]]
        return [
            {
                "setting": "fsync_after_insert",
                "value": f"off for {', '.join(loose)}" if loose else "1",
                "durable": not loose,
                "why": "an insert is acknowledged before it is on disk: a crash of the machine loses it"
                if loose
                else "an insert is acknowledged after its files and their folder are on disk",
            },
            {
                "setting": "min_rows_to_fsync_after_merge",
                "value": "0 for some" if loose else "1",
                "durable": not loose,
                "why": "a merge replaces its parts before it is on disk"
                if loose
                else "a merge is on disk before it replaces its parts",
            },
        ]

    def sizes(self, connection: Control, schema: str = SCHEMA) -> Sizes:
        """Read what the active parts of each table take on disk."""
        rows = connection.execute(statements.PARTS.format(schema=literal(schema))).fetchall()
        relations = [
            {
                "name": row["name"],
                "kind": "table",
                "table": row["name"],
                "bytes": int(row["bytes"]),
                "rows_estimate": int(row["rows"]),
            }
            for row in rows
        ]
        whole = one(connection, statements.ALL_PARTS)
        return sized(int(whole["bytes"] or 0), None, relations)  # type: ignore[arg-type]

    def storage(
        self,
        connection: Control,
        tables: Sequence[str],
        data_directory: Path | None = None,
        schema: str = SCHEMA,
    ) -> Storage:
        """Account for the active parts of tables; what merges have left behind counts nowhere."""
        del data_directory
        found = Storage([])
        for name in tables:
            names = {"schema": literal(schema), "table": literal(name)}
            row = one(connection, statements.STORAGE.format(**names))
            found.tables.append(_stored(name, row))
            packed, plain = int(row["packed"] or 0), int(row["plain"] or 0)
            if packed:
                found.notes.append(
                    f"{name}: {int(row['parts']):,} parts; columns of {plain:,} bytes are compressed "
                    f"{plain / packed:.2f}:1"
                )
        found.notes.append("parts that a merge has replaced remain for eight minutes and are not counted")
        return found

    def counters(self, connection: Control) -> Observation:
        """Read the cumulative events that tell of loads, merges and queries."""
        return _observed(connection, statements.EVENTS)

    def gauges(self, connection: Control, schema: str = SCHEMA) -> Observation:
        """Read memory, parts, merges and queries in flight."""
        del schema
        return _observed(connection, statements.METRICS)

    def server_pids(self, connection: Control) -> ServerProcesses:
        """Return the engine's process where it is ours to know."""
        pid = click(connection).database.pid
        reason = None if pid is not None else "ClickHouse does not show its process id in SQL"
        return ServerProcesses(pid, reason)

    def refuse_too_many_clients(self, connection: Control, clients: int) -> None:
        """Raise LoadstoneError when the server takes fewer; a limit of 0 is none."""
        names = ", ".join(map(literal, self.limits))
        for row in connection.execute(statements.LIMITS.format(names=names)):
            hint = f"Use fewer clients, or raise {row['name']} in its configuration."
            self.refuse_above(int(row["value"]), clients, self.limits[row["name"]], hint)

    def text_value(self, connection: Control, sql: str) -> str | None:
        """Run a query that gives one value; returns it as ClickHouse writes it, None for null."""
        found = self.answer(connection, f"select columns('.*') apply toString from (\n{sql}\n)")  # noqa: S608
        return only_value(found, sql)

    def answer(self, connection: Control, sql: str) -> pa.Table:
        """Run a query and return its whole answer."""
        found = click(connection).table(sql)
        if found is None:
            raise not_one_value(0, 0, sql)
        return found

    def explain(self, connection: Control, sql: str) -> str | None:
        """Return the plan, with what its indexes leave out, without running the query."""
        return super().explain(connection, f"indexes = 1 {sql}")

    def _tables_in(self, connection: Control, schema: str) -> list[str]:
        rows = connection.execute(statements.TABLES.format(schema=literal(schema)))
        return [str(row["name"]) for row in rows]


def refuse_too_old(version: str | None) -> None:
    """Raise LoadstoneError when a server of this version does not understand us; None: not known."""
    if version is not None and version_number(version) < _OLDEST:
        raise LoadstoneError(
            f"the server is ClickHouse {version}, which is too old", "Loadstone needs version 23.8 or later."
        )


def drop_caches(connection: Control) -> list[str]:
    """Empty the engine's own caches, those that this version has; returns their names."""
    emptied = []
    for cache in statements.CACHES:
        with contextlib.suppress(ClickError):
            connection.execute(f"system drop {cache} cache")
            emptied.append(cache)
    return emptied


def _comment(connection: Control, schema: str) -> str | None:
    """Return a database's comment; None when there is no such database."""
    text = HAS_DATABASE.replace("1 as one", "comment").format(name=literal(schema))
    row = connection.execute(text).fetchone()
    return None if row is None else str(row["comment"])


def _observed(connection: Control, statement: str) -> Observation:
    try:
        rows = connection.execute(statement).fetchall()
    except ClickError as error:
        if error.code is None:
            raise
        return Observation(None, f"ClickHouse refuses the statement: {error}")
    return Observation({_snake(row["name"]): int(row["value"]) for row in rows})


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _stored(name: str, row: Any) -> TableStorage:
    indexes, maps = int(row["indexes"] or 0), int(row["marks"] or 0)
    found = table_storage(name, int(row["bytes"] or 0) - indexes - maps, free=0)
    found["index_bytes"], found["map_bytes"] = indexes, maps  # of all indexes together: no names
    return found

"""Vertica: a server, or a cluster, that keeps columns in sorted projections.

Its protocol descends from PostgreSQL's version 3, with another start-up, other logins and other messages of
COPY: a driver for PostgreSQL does not get in, so Vertica's own is used (PyPI vertica-python).
"""

from __future__ import annotations

import importlib.util
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from loadstone.engine import SCHEMA, not_one_value, one
from loadstone.engine.answers import Caches, Observation, sized
from loadstone.engine.library.engine import LibraryEngine, Place
from loadstone.engine.library.packages import install
from loadstone.engine.library.places import listener, server_place
from loadstone.engine.observe.storage import Storage, table_storage
from loadstone.engines.vertica.errors import VerticaError
from loadstone.engines.vertica.tables import VerticaTables
from loadstone.errors import LoadstoneError
from loadstone.sqltext import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from loadstone.engine.answers import Durability, Identity, RelationSize, ServerProcesses, Setting, Sizes
    from loadstone.engine.control import Control, Row
    from loadstone.engines.vertica.control import VerticaControl, VerticaDatabase

MARK = "made by Loadstone, which drops it with everything in it"
_OLDEST = 100000
"""Vertica 10: since then rows go into files at once (ROS), and arrays are a type."""

_OBJECTS = """
select (select count(*) from v_catalog.schemata where schema_name = {schema}) as schemas,
       (select count(*) from v_catalog.all_tables where schema_name = {schema}) as objects,
       (select max(comment) from v_catalog.comments
        where object_type = 'SCHEMA' and object_name = {schema}) as comment
"""
_SETTINGS = """
select distinct parameter_name as name, current_value as value, default_value
from v_monitor.configuration_parameters
where current_value <> default_value or parameter_name = 'MaxClientSessions' order by 1
"""
_RELATIONS = """
select anchor_table_name as name, sum(used_bytes) as bytes, max(row_count) as row_count
from v_monitor.projection_storage where anchor_table_schema = {schema} group by 1 order by 2 desc
"""
_GAUGES = """
select (select count(*) from v_monitor.sessions) as connections,
       (select sum(memory_inuse_kb) * 1024 from v_monitor.resource_pool_status) as memory_bytes
"""
_SAFETY = "select current_fault_tolerance as k from v_monitor.system"
_ROOM = """
select (select max(current_value)::int from v_monitor.configuration_parameters
        where parameter_name = 'MaxClientSessions') as most,
       (select count(*) from v_monitor.sessions) as used
"""
_GRAPH = re.compile(r"^-+\s*\nPLAN:.*", re.MULTILINE | re.DOTALL)
"""EXPLAIN gives the plan a second time, as a graph to be drawn."""


class Vertica(LibraryEngine):
    """A Vertica database."""

    name = "vertica"
    title = "Vertica"
    schemes = ("vertica",)
    errors = (VerticaError,)
    status = "not yet run"
    needs = f"a Vertica server 10 or later, and the Python package vertica-python: {install('vertica')}"
    tables: VerticaTables = VerticaTables()
    no_counters = "Loadstone does not read counters of Vertica"
    no_waits = "Loadstone does not read wait events of Vertica"

    @property
    def target_forms(self) -> tuple[str, ...]:
        """Its own protocol, by its own driver."""
        return ("vertica://",)

    def place(self, text: str) -> Place:
        """Understand what follows `vertica:`; the password may also be in VERTICA_PASSWORD."""
        return server_place(
            "vertica", text, port=5433, user="dbadmin", database="VMart", variable="VERTICA_PASSWORD"
        )

    def open(self, place: Place, folder: Path | None, settings: Mapping[str, str]) -> VerticaDatabase:
        """Make ready to connect. Raises LoadstoneError when the driver is not there."""
        del folder, settings
        if importlib.util.find_spec("vertica_python") is None:
            raise LoadstoneError(
                "Vertica's driver is not installed: the Python package vertica-python is missing",
                f"Install it: {install('vertica')}",
            )
        from loadstone.engines.vertica.control import VerticaDatabase  # noqa: PLC0415 - only where it is there

        if place.server is None:
            raise TypeError("a place of Vertica's has a server")
        return VerticaDatabase(place.server)

    def control(self, connection: Control) -> VerticaControl:
        """Return a control connection as Vertica's own."""
        from loadstone.engines.vertica.control import vertica  # noqa: PLC0415 - only where the driver is there

        return vertica(connection)

    def version(self, connection: Control) -> Identity:
        """Ask the server what it is."""
        text = str(one(connection, "select version() as version", column=True))
        numbers = re.search(r"v(\d+)\.(\d+)\.(\d+)", text)
        if numbers is None or "vertica" not in text.lower():
            raise LoadstoneError(f"the server is not Vertica: its version is '{text}'", "Use another server.")
        major, minor, patch = (int(part) for part in numbers.groups())
        return {
            "version": f"{major}.{minor}.{patch}",
            "version_text": text,
            "version_number": major * 10000 + minor * 100 + patch,
            "standby": False,
        }

    def identify(self, connection: Control) -> Identity:
        """Refuse a server that is too old."""
        identity = self.version(connection)
        if identity["version_number"] < _OLDEST:
            raise LoadstoneError(
                f"the server is Vertica {identity['version']}", "Loadstone needs version 10 or later."
            )
        return identity

    def claim_workspace(self, connection: Control, schema: str = SCHEMA, mark: str = "") -> bool:
        """Take our schema for this target; what other processes do there Vertica gives no lock for."""
        del mark
        return self.control(connection).database.claim_workspace(schema)

    def has_workspace(self, connection: Control, schema: str = SCHEMA) -> bool:
        """Return whether the schema is there and marked as ours."""
        return bool(_look(connection, schema)["comment"] == MARK)

    def create_workspace(self, connection: Control, schema: str = SCHEMA, *, replace: bool = False) -> None:
        """Make the schema, empty and marked as ours; refuse one with somebody else's objects in it."""
        found = _look(connection, schema)
        if found["objects"] and found["comment"] != MARK and not replace:
            raise LoadstoneError(
                f"the schema '{schema}' contains {found['objects']} objects that Loadstone did not create",
                "Use another database, or add --replace to drop that schema with everything in it.",
            )
        for statement in (
            f"drop schema if exists {quoted(schema)} cascade",
            f"create schema {quoted(schema)}",
            f"comment on schema {quoted(schema)} is {literal(MARK)}",
            f"set search_path to {quoted(schema)}",
        ):
            connection.execute(statement)

    def drop_workspace(
        self, connection: Control, schema: str = SCHEMA, *, lock_wait_s: float | None = None
    ) -> None:
        """Drop the schema with everything in it, if it is ours."""
        del lock_wait_s
        found = _look(connection, schema)
        if not found["schemas"]:
            return
        if found["comment"] != MARK:
            raise LoadstoneError(
                f"the schema '{schema}' is not marked as created by Loadstone and was not dropped",
                "Drop it yourself if nobody needs it.",
            )
        connection.execute(f"drop schema {quoted(schema)} cascade")

    def settings(self, connection: Control) -> list[Setting]:
        """Read the parameters that are not at their defaults."""
        return [
            {
                "name": str(row["name"]),
                "value": "***" if "password" in str(row["name"]).lower() else str(row["value"]),
                "source": "database" if row["value"] != row["default_value"] else "default",
            }
            for row in connection.execute(_SETTINGS)
        ]

    def durability(self, connection: Control, schema: str = SCHEMA) -> list[Durability]:
        """Judge by how many nodes may fall away: Vertica has no log, and recovers from other nodes."""
        del schema
        safety = int(one(connection, _SAFETY, column=True) or 0)
        return [
            {
                "setting": "K-safety",
                "value": str(safety),
                "durable": safety > 0,
                "why": "other nodes have the rows of a node that fails"
                if safety
                else "a commit is acknowledged when its rows are in files, and there is no log: a crash "
                "of a single node may go back to the last good epoch",
            }
        ]

    def sizes(self, connection: Control, schema: str = SCHEMA) -> Sizes:
        """Read what the projections of our tables take."""
        relations: list[RelationSize] = [
            {
                "name": str(row["name"]),
                "kind": "table",
                "table": str(row["name"]),
                "bytes": int(row["bytes"]),
                "rows_estimate": int(row["row_count"]),
            }
            for row in connection.execute(_RELATIONS.format(schema=literal(schema)))
        ]
        return sized(sum(relation["bytes"] for relation in relations), None, relations)

    def storage(
        self,
        connection: Control,
        tables: Sequence[str],
        data_directory: Path | None = None,
        schema: str = SCHEMA,
    ) -> Storage:
        """Account for tables' projections."""
        del data_directory
        rows = connection.execute(_RELATIONS.format(schema=literal(schema))).fetchall()
        found = Storage(
            [], [("the size includes all projections of a table on all nodes, also the copies for K-safety")]
        )
        found.tables += [
            table_storage(str(row["name"]), int(row["bytes"])) for row in rows if row["name"] in tables
        ]
        return found

    def gauges(self, connection: Control, schema: str = SCHEMA) -> Observation:
        """Read how many sessions there are, and what memory they take."""
        del schema
        row = one(connection, _GAUGES)
        return Observation({name: None if row[name] is None else int(row[name]) for name in row})

    def server_pids(self, connection: Control) -> ServerProcesses:
        """Find the process that listens where we connect, when that is this machine."""
        return listener(self.control(connection).database.server)

    def flush_caches(self, connection: Control) -> Caches:
        """Empty the server's own caches; those of its operating system stay."""
        try:
            connection.execute("select clear_caches()")
        except VerticaError as error:
            return {"emptied": False, "note": f"Vertica's caches cannot be emptied: {error}"}
        return {
            "emptied": False,
            "note": "Vertica's caches were emptied; the system still caches the files",
        }

    def refuse_too_many_clients(self, connection: Control, clients: int) -> None:
        """Raise LoadstoneError when the server has no room for that many more sessions."""
        row = one(connection, _ROOM)
        free = int(row["most"] or 0) - int(row["used"] or 0)
        if row["most"] is not None and clients + 1 > free:
            raise LoadstoneError(
                f"{clients} clients need {clients + 1} sessions, and {free} of {row['most']} are free",
                "Raise MaxClientSessions, or use fewer clients.",
            )

    def text_value(self, connection: Control, sql: str) -> str | None:
        """Run a query that gives one value; returns it as text, None for null."""
        names, rows = self.control(connection).rows(sql)
        if (len(rows), len(names)) != (1, 1):
            raise not_one_value(len(rows), len(names), sql)
        value = rows[0][0]
        return None if value is None else str(value)

    def answer(self, connection: Control, sql: str) -> pa.Table:
        """Run a query and return its whole answer; the driver brings it as Python values."""
        names, rows = self.control(connection).rows(sql)
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
        return pa.Table.from_arrays([_array(values) for values in columns], names=names)

    def explain(self, connection: Control, sql: str) -> str | None:
        """Return the plan in words."""
        return _GRAPH.sub("", super().explain(connection, sql) or "").strip()


def _look(connection: Control, schema: str) -> Row:
    row = connection.execute(_OBJECTS.format(schema=literal(schema))).fetchone()
    return row or {"schemas": 0, "objects": 0, "comment": None}


def _array(values: Sequence[Any]) -> pa.Array:
    """Turn values into Arrow: exact numbers of any precision become doubles, as answers are compared."""
    if any(isinstance(value, Decimal) for value in values):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array(values)


ENGINE = Vertica()

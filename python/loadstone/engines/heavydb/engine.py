"""HeavyDB (MapD, OmniSci): a server that keeps columns, and runs queries on GPUs or CPU cores."""

from __future__ import annotations

import importlib.util
import re
from typing import TYPE_CHECKING

from loadstone.engine import SCHEMA
from loadstone.engine.answers import Caches, Observation, sized
from loadstone.engine.library.engine import LibraryEngine, Place, only_value
from loadstone.engine.library.packages import install
from loadstone.engine.library.places import listener, server_place
from loadstone.engine.observe.storage import Storage, table_storage
from loadstone.engines.heavydb.control import HeavyDatabase, HeavyError, heavy
from loadstone.engines.heavydb.tables import HeavyTables, details, dictionaries, file_bytes, used_bytes
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from loadstone.engine.answers import Durability, Identity, RelationSize, ServerProcesses, Setting, Sizes
    from loadstone.engine.control import Control
    from loadstone.engines.heavydb.control import HeavyControl

MARK = "made_by_loadstone"
"""A table of this name marks a database as ours: databases take no comments."""

_OLDEST = (6, 1)
"""Since then sessions choose their device by SQL, and system tables tell the size of dictionaries."""
_PACKAGE = "heavydb"
_DEVICE = re.compile(r"IR for the ([CG]PU)")
"""What EXPLAIN begins with: the device whose code it shows."""


class HeavyDB(LibraryEngine):
    """HeavyDB as it is started: on its GPUs."""

    name = "heavydb"
    title = "HeavyDB"
    schemes: tuple[str, ...] = ("heavydb",)
    errors = (HeavyError,)
    status = "not yet run"
    needs = (
        "a HeavyDB server 6.1 or later with an NVIDIA GPU, and the Python package pyheavydb: "
        f"{install('heavydb')}"
    )
    tables: HeavyTables = HeavyTables()
    no_counters = "HeavyDB does not count what it has done so far"
    no_waits = "HeavyDB does not show what its threads wait for"
    device: str | None = None
    """What sessions are told to use; None: the server's own choice, which is the GPU where it has one."""
    needs_gpu = True
    workspace_suffix = ""
    """Behind the name of our database: the same server may be measured on both devices in one run."""

    @property
    def target_forms(self) -> tuple[str, ...]:
        """Its binary Thrift protocol."""
        return (f"{self.schemes[0]}://",)

    def place(self, text: str) -> Place:
        """Understand what follows `heavydb:`; the password may also be in HEAVYDB_PASSWORD."""
        return server_place(
            self.schemes[0], text, port=6274, user="admin", database="heavyai", variable="HEAVYDB_PASSWORD"
        )

    def open(self, place: Place, folder: Path | None, settings: Mapping[str, str]) -> HeavyDatabase:
        """Make ready to connect. Raises LoadstoneError when the driver is not there."""
        del folder, settings
        if any(importlib.util.find_spec(name) is None for name in (_PACKAGE, "thrift")):
            raise LoadstoneError(
                "HeavyDB's driver is not installed: the Python package pyheavydb is missing",
                f"Install it: {install('heavydb')}",
            )
        from loadstone.engines.heavydb.link import ThriftLink  # noqa: PLC0415 - only where its package is

        if place.server is None:
            raise TypeError("a place of HeavyDB's has a server")
        return HeavyDatabase(place.server, SCHEMA + self.workspace_suffix, self.device, ThriftLink)

    def control(self, connection: Control) -> HeavyControl:
        """Return a control connection as HeavyDB's own."""
        return heavy(connection)

    def version(self, connection: Control) -> Identity:
        """Ask the server what it is."""
        control = heavy(connection)
        text = control.call(lambda link: link.version())
        gpus, threads = control.call(lambda link: link.hardware())
        numbers = [int(part) for part in re.findall(r"\d+", text)[:3]]
        major, minor, patch = numbers + [0] * (3 - len(numbers))
        return {
            "version": f"{major}.{minor}.{patch}",
            "version_text": f"HeavyDB {text}, {gpus} GPUs, {threads} CPU threads",
            "version_number": major * 10000 + minor * 100 + patch,
            "standby": False,
        }

    def identify(self, connection: Control) -> Identity:
        """Refuse a server that is too old, or that has no GPU where one is to be measured."""
        identity = self.version(connection)
        oldest = _OLDEST[0] * 10000 + _OLDEST[1] * 100
        if identity["version_number"] < oldest:
            raise LoadstoneError(
                f"the server is HeavyDB {identity['version']}",
                f"Loadstone needs {'.'.join(map(str, _OLDEST))} or later.",
            )
        gpus, _ = heavy(connection).call(lambda link: link.hardware())
        if self.needs_gpu and not gpus:
            raise LoadstoneError(
                "the HeavyDB server does not use a GPU: it has none, or was started with --cpu-only",
                "Start it on a machine where nvidia-smi shows a GPU, or measure it on the CPU: "
                "heavydb-cpu://…",
            )
        return identity

    def claim_workspace(self, connection: Control, schema: str = SCHEMA, mark: str = "") -> bool:
        """Take our database for this target; what other processes do there HeavyDB gives no lock for."""
        del schema, mark
        return heavy(connection).database.claim_workspace()

    def has_workspace(self, connection: Control, schema: str = SCHEMA) -> bool:
        """Return whether our database is there and marked as ours."""
        del schema
        found = MARK in (_objects(connection) or ())
        heavy(connection).database.made = found
        return found

    def create_workspace(self, connection: Control, schema: str = SCHEMA, *, replace: bool = False) -> None:
        """Make our database, empty and marked as ours; refuse one with somebody else's objects in it."""
        del schema
        control, found = heavy(connection), _objects(connection)
        name, home = control.database.workspace, control.database.server.database
        if found and MARK not in found and not replace:
            raise LoadstoneError(
                f"the database '{name}' contains {len(found)} tables that Loadstone did not create",
                "Use another server, or add --replace to drop that database with everything in it.",
            )
        control.database.made = False
        if found is not None:
            control.call(lambda link: link.use(home))
            control.execute(f"drop database {name}")
        try:
            control.execute(f"create database {name}")
        except HeavyError as error:
            raise LoadstoneError(
                f"the database '{name}' cannot be created: {error}",
                "Use a superuser, or a user with the privilege CREATE on databases.",
            ) from error
        control.call(lambda link: link.use(name))
        control.database.made = True
        # unqualified: SQL names no database there; the session is in ours
        control.execute(f"create table {MARK} (note text)")

    def drop_workspace(
        self, connection: Control, schema: str = SCHEMA, *, lock_wait_s: float | None = None
    ) -> None:
        """Drop our database with everything in it, if it is ours."""
        del schema, lock_wait_s
        control, found = heavy(connection), _objects(connection)
        name, home = control.database.workspace, control.database.server.database
        if found is None:
            return
        if MARK not in found:
            raise LoadstoneError(
                f"the database '{name}' is not marked as created by Loadstone and was not dropped",
                "Drop it yourself if nobody needs it.",
            )
        control.database.made = False
        control.call(lambda link: link.use(home))
        control.execute(f"drop database {name}")

    def settings(self, connection: Control) -> list[Setting]:
        """Say what a session may know: the server's own flags are not told by SQL."""
        gpus, threads = heavy(connection).call(lambda link: link.hardware())
        chosen = self.device is not None
        return [
            {
                "name": "EXECUTOR_DEVICE",
                "value": self.device or ("GPU" if gpus else "CPU"),
                "source": "session" if chosen else "default",
            },
            {"name": "GPUs", "value": str(gpus), "source": "server"},
            {"name": "CPU threads", "value": str(threads), "source": "server"},
        ]

    def durability(self, connection: Control, schema: str = SCHEMA) -> list[Durability]:
        """Say when rows are safe: there is nothing to set."""
        del connection, schema
        why = "each import ends with a checkpoint: its table's files are synced before it is acknowledged"
        return [{"setting": "checkpoint", "value": "each import", "durable": True, "why": why}]

    def sizes(self, connection: Control, schema: str = SCHEMA) -> Sizes:
        """Read the files of our tables, and of their dictionaries."""
        del schema
        relations: list[RelationSize] = []
        words = dictionaries(connection) or {}
        for row in details(connection):
            name, used = str(row["table_name"]), used_bytes(row)
            parts = {
                "table": used,
                "dictionaries": words.get(name, 0),
                "free pages": file_bytes(row) - used,
            }
            relations += [_relation(name, kind, size) for kind, size in parts.items() if size]
        relations.sort(key=lambda relation: -relation["bytes"])
        return sized(sum(relation["bytes"] for relation in relations), None, relations)

    def storage(
        self,
        connection: Control,
        tables: Sequence[str],
        data_directory: Path | None = None,
        schema: str = SCHEMA,
    ) -> Storage:
        """Account for tables' files: columns as heap, dictionaries as out-of-line values."""
        del data_directory, schema
        words = dictionaries(connection)
        found = Storage(
            [],
            [
                (
                    "columns are in pages of files that are created at full length: free bytes are the "
                    "unused pages"
                )
            ],
        )
        if words is None:
            found.notes.append(
                "the size of the dictionaries is unknown: the user may not read information_schema"
            )
        for row in details(connection):
            name, used = str(row["table_name"]), used_bytes(row)
            if name in tables:
                of_words = (words or {}).get(name, 0)
                found.tables.append(
                    table_storage(
                        name,
                        used,
                        toast=of_words,
                        free=file_bytes(row) - used,
                        allocated=file_bytes(row) + of_words if words is not None else None,
                    )
                )
        return found

    def gauges(self, connection: Control, schema: str = SCHEMA) -> Observation:
        """Read what its buffer pools have taken, and hold in use."""
        del schema
        control = heavy(connection)
        cpu, cpu_used = control.call(lambda link: link.memory("cpu"))
        gpu, gpu_used = control.call(lambda link: link.memory("gpu"))
        values: dict[str, float | int | None] = {
            "cpu_pool_bytes": cpu,
            "cpu_pool_used_bytes": cpu_used,
            "gpu_pool_bytes": gpu,
            "gpu_pool_used_bytes": gpu_used,
        }
        return Observation(values)

    def server_pids(self, connection: Control) -> ServerProcesses:
        """Find the process that listens where we connect, when that is this machine."""
        return listener(heavy(connection).database.server)

    def flush_caches(self, connection: Control) -> Caches:
        """Empty the buffer pools of GPU and CPU; the operating system keeps its pages of the files."""
        emptied = []
        for level in ("GPU", "CPU"):
            try:
                connection.execute(f"ALTER SYSTEM CLEAR {level} MEMORY")
            except HeavyError as error:
                return {
                    "emptied": False,
                    "note": f"the buffer pool of the {level} cannot be emptied: {error}",
                }
            emptied.append(level)
        note = (
            f"HeavyDB's buffer pools ({' and '.join(emptied)}) were emptied; the system still caches "
            "the files"
        )
        return {"emptied": False, "note": note}

    def refuse_too_many_clients(self, connection: Control, clients: int) -> None:
        """Refuse none: HeavyDB has no limit of sessions."""

    def text_value(self, connection: Control, sql: str) -> str | None:
        """Run a query that gives one value; returns it as text, None for null."""
        return only_value(self.answer(connection, sql), sql)

    def answer(self, connection: Control, sql: str) -> pa.Table:
        """Run a query and return its whole answer, which comes as Arrow."""
        return heavy(connection).call(lambda link: link.table(sql))

    def explain(self, connection: Control, sql: str) -> str | None:
        """Return for which device code is made, and the relational plan."""
        code = _text(connection, f"explain {sql}")
        devices = dict.fromkeys(f"IR for the {found}" for found in _DEVICE.findall(code))
        return "\n".join([*devices, _text(connection, f"explain calcite {sql}").strip()])

    def used_gpu(self, plan: str | None) -> bool | None:
        """Return for which device the code was made; None when the plan does not say."""
        found = set(_DEVICE.findall(plan or ""))
        return "GPU" in found if found else None


def _objects(connection: Control) -> list[str] | None:
    """Return the tables of our database; None when it is not there."""
    control = heavy(connection)
    name = control.database.workspace
    if name not in control.call(lambda link: link.databases()):
        return None
    control.call(lambda link: link.use(name))
    return [str(row["table_name"]) for row in connection.execute("show tables")]


def _text(connection: Control, sql: str) -> str:
    """Return all that a statement answers, as one text."""
    rows = connection.execute(sql).fetchall()
    return "\n".join(str(value) for row in rows for value in row.values())


def _relation(table: str, kind: str, size: int) -> RelationSize:
    name = table if kind == "table" else f"{table} ({kind})"
    return {"name": name, "kind": kind, "table": table, "bytes": size, "rows_estimate": None}

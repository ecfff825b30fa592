"""What a MariaDB or MySQL server says of itself: settings, sizes, counters, gauges, waits."""

# ruff: noqa: S608 - values are written by `literal`
from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from loadstone.engine.answers import Observation, ServerProcesses, sized
from loadstone.engine.observe.storage import BLOCK_BYTES, Storage, table_storage
from loadstone.engines.mariadb.control import ServerError
from loadstone.engines.mariadb.session import MARK_TABLE
from loadstone.sqltext import literal, qualified

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.engine.answers import RelationSize, Setting, Sizes
    from loadstone.engine.control import Control
    from loadstone.engine.observe.storage import TableStorage
    from loadstone.engines.mariadb.control import MariaControl

WORTH_RECORDING = (
    "autocommit", "binlog_format", "character_set_server", "collation_server", "innodb_buffer_pool_size",
    "innodb_doublewrite", "innodb_file_per_table", "innodb_flush_log_at_trx_commit", "innodb_flush_method",
    "innodb_io_capacity", "innodb_io_capacity_max", "innodb_log_buffer_size", "innodb_log_file_size",
    "innodb_page_size", "innodb_redo_log_capacity", "local_infile", "log_bin", "max_allowed_packet",
    "max_connections", "performance_schema", "query_cache_type", "read_only", "sql_mode", "sync_binlog",
    "table_open_cache", "thread_handling", "time_zone", "transaction_isolation", "tx_isolation",
)  # fmt: skip
_COUNTERS = {
    "blks_read": "Innodb_buffer_pool_reads",
    "read_requests": "Innodb_buffer_pool_read_requests",
    "wal_bytes": "Innodb_os_log_written",
    "tup_inserted": "Innodb_rows_inserted",
    "tup_updated": "Innodb_rows_updated",
    "tup_deleted": "Innodb_rows_deleted",
    "deadlocks": "Innodb_deadlocks",
    "temp_files": "Created_tmp_disk_tables",
}
_ALSO = ("Questions", "Slow_queries", "Innodb_data_fsyncs", "Innodb_row_lock_waits", "Innodb_pages_written")
_GAUGES = (
    "Threads_running",
    "Threads_connected",
    "Innodb_buffer_pool_pages_dirty",
    "Innodb_history_list_length",
)
_IDLE = "command in ('Sleep', 'Daemon', 'Binlog Dump')"


def variables(control: MariaControl) -> dict[str, str]:
    """Return the variables of the server by name, in lower case."""
    return {str(row[0]).lower(): str(row[1]) for row in control.texts("show global variables")}


def settings(control: MariaControl) -> list[Setting]:
    """Return the settings worth recording, and those that are not as compiled in, where the server tells."""
    known = variables(control)
    chosen = {name: "server" for name in WORTH_RECORDING if name in known}
    with contextlib.suppress(ServerError):  # MySQL has this elsewhere
        rows = control.texts(
            "select lower(variable_name), global_value_origin from information_schema.system_variables "
            "where global_value_origin not in ('COMPILE-TIME', 'AUTO') and global_value is not null"
        )
        chosen |= {str(row[0]): str(row[1]).lower() for row in rows if str(row[0]) in known}
    hidden = {name for name in chosen if "password" in name or "secret" in name}
    return [
        {"name": name, "value": "***" if name in hidden and known[name] else known[name], "source": source}
        for name, source in sorted(chosen.items())
    ]


def status(control: MariaControl) -> dict[str, int]:
    """Return the server's counters that are whole numbers."""
    rows = control.texts("show global status")
    return {str(row[0]): int(str(row[1])) for row in rows if str(row[1]).isdecimal()}


def counters(control: MariaControl) -> Observation:
    """Return the cumulative counters, by PostgreSQL's names where they mean the same."""
    seen = status(control)
    values: dict[str, float | int | None] = {
        name: seen[own] for name, own in _COUNTERS.items() if own in seen
    }
    if "read_requests" in values:
        values["blks_hit"] = max(0, int(values.pop("read_requests") or 0) - int(values["blks_read"] or 0))
    return Observation(values | {name.lower(): seen[name] for name in _ALSO if name in seen})


def gauges(control: MariaControl) -> Observation:
    """Return the momentary figures."""
    seen = status(control)
    return Observation({name.lower(): seen[name] for name in _GAUGES if name in seen})


def waits(control: MariaControl) -> Observation:
    """Count the sessions that work by what the server says they do: not always a wait."""
    rows = control.execute(
        "select coalesce(nullif(state, ''), command) as state, count(*) as sessions from "
        f"information_schema.processlist where not {_IDLE} and id <> connection_id() group by 1"
    )
    return Observation({str(row["state"]): row["sessions"] for row in rows})


def has_md5(control: Control) -> bool:
    """Return whether the server has the function: since MySQL 9.6 it is in a component."""
    try:
        control.execute("select md5('') as value")
    except ServerError:
        return False
    return True


def sizes(control: MariaControl, schema: str) -> Sizes:
    """Return the sizes of the schema's tables and indexes, as InnoDB's statistics have them."""
    with contextlib.suppress(
        ServerError
    ):  # MariaDB has no such variable; MySQL's answers are up to a day old
        control.execute("set session information_schema_stats_expiry = 0")
    rows = control.execute(
        "select table_name as name, table_rows as estimate, data_length as data, index_length as indexes "
        f"from information_schema.tables where table_schema = {literal(schema)} "
        f"and table_type = 'BASE TABLE' and table_name <> '{MARK_TABLE}'"
    ).fetchall()
    found: list[RelationSize] = []
    for row in rows:
        found.append(_relation(row, "table", row["name"], row["data"], row["estimate"]))
        if row["indexes"]:
            found.append(_relation(row, "index", f"{row['name']} (indexes)", row["indexes"], None))
    found.sort(key=lambda relation: (-relation["bytes"], relation["name"]))
    return sized(sum(relation["bytes"] for relation in found), _lsn(control), found)


def storage(control: MariaControl, tables: Sequence[str], schema: str, folder: Path | None) -> Storage:
    """Account for tables: rows (the primary key's tree), secondary indexes, and files where visible."""
    notes = [
        "sizes are those of InnoDB's pages: each index is a tree of them, and rows are in the primary key's"
    ]
    return Storage([_table(control, name, schema, folder) for name in tables], notes)


def processes(control: MariaControl, own: int | None, *, local: bool) -> ServerProcesses:
    """Find the server's process: our own, or the one whose number it has written into its file."""
    if own is not None:
        return ServerProcesses(own)
    if not local:
        return ServerProcesses(None, "the server is not on this machine")
    path = Path(variables(control).get("pid_file", ""))
    try:
        pid = int(path.read_text().strip())
        if psutil.Process(pid).name() in ("mariadbd", "mysqld"):
            return ServerProcesses(pid)
    except (OSError, ValueError, psutil.Error):
        pass
    return ServerProcesses(None, f"the server's process cannot be found from here: {path}")


def write_pages(control: MariaControl, schema: str) -> None:
    """Have every changed page of the schema's tables written. Raises ServerError."""
    rows = control.execute(
        f"select table_name as name from information_schema.tables where table_schema = {literal(schema)} "
        "and engine = 'InnoDB'"
    )
    names = [qualified(schema, str(row["name"])) for row in rows]
    if names:
        control.execute(f"flush tables {', '.join(names)} for export")
        control.execute("unlock tables")


def refresh(control: MariaControl, schema: str, table: str) -> None:
    """Have the server count a table's pages anew."""
    control.texts(f"analyze table {qualified(schema, table)}")


def table_bytes(control: MariaControl, schema: str, table: str) -> tuple[int, int]:
    """Return the bytes of a table's rows and of its secondary indexes, counted anew."""
    refresh(control, schema, table)
    row = control.execute(
        "select data_length as data, index_length as indexes from information_schema.tables "
        f"where table_schema = {literal(schema)} and table_name = {literal(table)}"
    ).fetchone() or {"data": 0, "indexes": 0}
    return int(row["data"] or 0), int(row["indexes"] or 0)


def _relation(row: Any, kind: str, name: str, size: object, estimate: object) -> RelationSize:
    return {
        "name": str(name),
        "kind": kind,
        "table": str(row["name"]),
        "bytes": int(str(size or 0)),
        "rows_estimate": None if estimate is None else int(str(estimate)),
    }


def _lsn(control: MariaControl) -> int | None:
    seen = status(control)
    return seen.get("Innodb_lsn_current", seen.get("Innodb_redo_log_current_lsn"))


def _table(control: MariaControl, name: str, schema: str, folder: Path | None) -> TableStorage:
    refresh(control, schema, name)
    row = control.execute(
        "select data_length as data, index_length as indexes, data_free as free "
        "from information_schema.tables "
        f"where table_schema = {literal(schema)} and table_name = {literal(name)}"
    ).fetchone() or {"data": 0, "indexes": 0, "free": 0}
    return table_storage(
        name,
        int(row["data"] or 0),
        indexes=_indexes(control, schema, name) or [("(all indexes)", int(row["indexes"] or 0))],
        free=int(row["free"] or 0),
        allocated=_allocated(folder, schema, name),
    )


def _indexes(control: MariaControl, schema: str, table: str) -> list[tuple[str, int | None]]:
    """Return the secondary indexes with their bytes; none where the statistics may not be read."""
    text = (
        "select index_name as name, stat_value * @@innodb_page_size as bytes from mysql.innodb_index_stats "
        f"where database_name = {literal(schema)} and table_name = {literal(table)} and stat_name = 'size' "
        "and index_name not in ('PRIMARY', 'GEN_CLUST_INDEX') order by 1"
    )
    try:
        return [(str(row["name"]), int(row["bytes"])) for row in control.execute(text)]
    except ServerError:
        return []


def _allocated(folder: Path | None, schema: str, table: str) -> int | None:
    """Return what the file system holds for the table's files; None where they cannot be seen."""
    if folder is None:
        return None
    files = [*(folder / schema).glob(f"{table}.ibd"), *(folder / schema).glob(f"{table}#P#*.ibd")]
    with contextlib.suppress(OSError):
        return sum(path.stat().st_blocks * BLOCK_BYTES for path in files) or None
    return None

"""openGauss and what is built on its kernel (MogDB, Uqbar): PostgreSQL 9.2's catalog, own partitions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loadstone.engine import one
from loadstone.engine.answers import Observation, ServerProcesses, Sizes, sized
from loadstone.engine.dialect import partitions, tables
from loadstone.engine.dialect.tables import TableDialect
from loadstone.engine.dialect.timeseries import (
    USUAL,
    TableFacts,
    TableSize,
    TimeSeriesDialect,
    chunk_bounds,
    common_notes,
    device_column,
    index_keys,
    stamp,
    stamp_literal,
)
from loadstone.engine.observe.storage import Storage, table_storage
from loadstone.engine.postgres import connections
from loadstone.engine.postgres.family import PostgresFamily
from loadstone.engines.opengauss.auth_proxy import OpenGaussAuthProxy
from loadstone.errors import LoadstoneError
from loadstone.sqltext import literal, qualified, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from loadstone import model
    from loadstone.engine import Identity
    from loadstone.engine.control import Control
    from loadstone.engine.dialect.tables import RowTable
    from loadstone.engine.dialect.timeseries import Dataset, Table
    from loadstone.engine.observe.storage import TableStorage
    from loadstone.engine.postgres.connections import PostgresControl
    from loadstone.engine.postgres.sessions import Needs
    from loadstone.model import PlainTable, SeriesTables, TableForm

_SIGNS = ("opengauss", "mogdb", "uqbar", "gaussdb")
_LOG_IN = ("authentication method", "SASL", "sha256")

_IDENTITY = """
select version() as version_text, current_setting('server_version_num')::int as number,
       pg_is_in_recovery() as standby
"""
_WAL = "select pg_xlog_location_diff(pg_current_xlog_location(), '0/0')::bigint as bytes"
_DATABASE = "select pg_database_size(current_database())::bigint as bytes"
_RELATIONS = """
select c.relname as name, case when c.relkind = 'i' then 'index' else 'table' end as kind,
       coalesce(t.relname, c.relname) as table, c.reltuples::bigint as rows_estimate,
       (case when c.relkind = 'i' then pg_relation_size(c.oid) else pg_table_size(c.oid) end)::bigint as bytes
from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_index i on i.indexrelid = c.oid
     left join pg_class t on t.oid = i.indrelid
where n.nspname = %(schema)s and c.relkind in ('r', 'i') order by bytes desc, name
"""
_STORAGE = """
select pg_relation_size(%(table)s::regclass)::bigint as heap,
       pg_table_size(%(table)s::regclass)::bigint as whole,
       pg_indexes_size(%(table)s::regclass)::bigint as indexes
"""
_STORAGE_INDEXES = """
select c.relname as name, pg_relation_size(c.oid)::bigint as bytes
from pg_index i join pg_class c on c.oid = i.indexrelid where i.indrelid = %(table)s::regclass order by 1
"""
_COUNTERS = """
select pg_xlog_location_diff(pg_current_xlog_location(), '0/0')::bigint as wal_bytes,
       xact_commit, xact_rollback, tup_inserted, tup_updated, tup_deleted, tup_returned, tup_fetched,
       blks_read, blks_hit, temp_bytes, deadlocks
from pg_stat_database where datname = current_database()
"""
_ROOM = """
select current_setting('max_connections')::int as allowed, (select count(*) from pg_stat_activity) as used
"""


class OpenGaussSeries(TimeSeriesDialect):
    """Range partitions by time, each split by a hash of the device, in one statement."""

    title = "openGauss"

    def tags_table(self, tags: Table, options: SeriesTables) -> Iterator[str]:
        """Yield the statements that make the table of devices; jsonb cannot be unique here."""
        name = self.qualified(tags["name"])
        if not options.jsonb_tags:
            yield from super().tags_table(tags, options)
            return
        yield f"create table {name} (id serial primary key, tagset {self.json_type})"
        yield f"create index idxginp on {name} using gin (tagset)"

    def series_table(
        self, table: Table, dataset: Dataset, options: SeriesTables, where: TableFacts
    ) -> Iterator[str]:
        """Yield the statements that make one table with its partitions and indexes."""
        device, name = device_column(dataset, options), self.qualified(table["name"])
        split = self._split(options, where, device)
        yield f"create table {name} ({self.columns(table, dataset, options)}){split}"
        local = " local" if split else ""
        yield from (f"create index on {name} {keys}{local}" for keys in index_keys(table, options, device))

    def notes(self, options: SeriesTables, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Say what is done otherwise than asked."""
        del where
        found = list(common_notes(options))
        if options.compress or options.compress_after_s is not None:
            found.append(
                "Loadstone does not use compression of openGauss's tables yet: nothing is compressed"
            )
        if options.chunk_time_s is not None and not options.hash_partitions:
            found.append("partitions are created by interval, as rows arrive")
        if options.jsonb_tags:
            found.append("there is no unique index over sets of tags")
        return tuple(found)

    def size(self, control: Control, table: str) -> TableSize:
        """Read what a table takes on disk; the functions count its partitions in."""
        name = literal(self.qualified(table))
        row = one_of(
            control,
            f"select pg_table_size({name}::regclass)::bigint as table_bytes, "
            f"pg_indexes_size({name}::regclass)::bigint as index_bytes",
        )
        return TableSize(int(row["table_bytes"]), int(row["index_bytes"]))

    def strays(self, control: Control, table: str) -> int | None:
        """Partitions are no tables of their own here: it is not told how many rows are outside."""
        del control, table
        return None

    def _split(self, options: SeriesTables, where: TableFacts, device: str) -> str:
        parts = options.hash_partitions
        time, device = quoted("time"), quoted(device)
        if options.chunk_time_s is None:
            listed = ", ".join(f"partition h{part}" for part in range(parts))
            return f" partition by hash ({device}) ({listed})" if parts else ""
        bounds = chunk_bounds(options, where)
        if not parts:
            first = f"partition p0 values less than ({stamp_literal(bounds[1])})"
            span = literal(f"{options.chunk_time_s:g} seconds")
            return f" partition by range ({time}) interval ({span}) ({first})"
        listed = ", ".join(
            [
                *(
                    f"partition p{stamp(high):%Y%m%d_%H%M%S} values less than ({stamp_literal(high)}) "
                    f"({_subpartitions(f'p{stamp(high):%Y%m%d_%H%M%S}', parts)})"
                    for high in bounds[1:]
                ),
                f"partition p_after values less than (maxvalue) ({_subpartitions('p_after', parts)})",
            ]
        )
        return f" partition by range ({time}) subpartition by hash ({device}) ({listed})"


class OpenGaussTables(TableDialect):
    """Partitions in one statement, columns by their orientation."""

    title = "openGauss"
    forms: tuple[TableForm, ...] = ("default", "columnar")

    def refuse(self, control: Control, table: RowTable, options: PlainTable) -> None:
        """Refuse a tablespace that is not there; what else is wrong, the server says when it is made."""
        del table
        for name in {options.tablespace, options.index_tablespace} - {""}:
            self.refuse_tablespace(control, name)

    def create(
        self, table: RowTable, options: PlainTable, where: tables.TableFacts = tables.USUAL
    ) -> tuple[str, ...]:
        """Return the statements that make the table with its partitions."""
        whole = super().create(table, replace(options, partition_rows=0), where)
        self.refuse_options(table, options, where)
        end = " with (orientation = column)" if options.form == "columnar" else ""
        place = f" tablespace {quoted(options.tablespace)}" if options.tablespace else ""
        split = self._split_rows(table, options, where)
        columns = self.columns(table, options, where)
        first = f"create table {self.qualified(options.name)} ({columns}){end}{place}{split}"
        return (first, *whole[1:])

    def indexes(
        self,
        table: RowTable,
        options: PlainTable,
        where: tables.TableFacts = tables.USUAL,
        *,
        again: bool = False,
    ) -> tuple[str, ...]:
        """Return the statements that make the indexes; each partition has its part."""
        split = partitions.is_split(options, where)
        unsplit = replace(options, partition_rows=0, index_tablespace="")
        space = f" tablespace {quoted(options.index_tablespace)}" if options.index_tablespace else ""
        made = super().indexes(table, unsplit, where, again=again)
        return tuple(f"{text}{' local' if split else ''}{space}" for text in made)

    def notes(self, options: PlainTable, where: tables.TableFacts = tables.USUAL) -> tuple[str, ...]:
        """Say what is done otherwise than asked."""
        if partitions.is_split(options, where):
            return ("one more partition, _after, contains rows after the range of the data",)
        return ()

    def size(self, control: Control, table: str) -> tables.TableSize:
        """Read what a table takes on disk; the functions count partitions and long values in."""
        name = literal(self.qualified(table))
        row = one_of(
            control,
            f"select pg_table_size({name}::regclass)::bigint as table_bytes, "
            f"pg_indexes_size({name}::regclass)::bigint as index_bytes",
        )
        return tables.TableSize(int(row["table_bytes"]), int(row["index_bytes"]), 0)

    def _split_rows(self, table: RowTable, options: PlainTable, where: tables.TableFacts) -> str:
        if not partitions.is_split(options, where):
            return ""
        listed = ", ".join(
            f"partition {quoted(name)} values less than "
            f"({'maxvalue' if high is None else self.value(table, high)})"
            for name, low, high in partitions.ranges(table, options, where)
            if low is not None
        )
        return f" partition by range ({quoted(options.partition_column)}) ({listed})"


class OpenGauss(PostgresFamily):
    """openGauss 3 and later, MogDB, Uqbar."""

    name = "opengauss"
    title = "openGauss"
    schemes = ("opengauss", "uqbar", "mogdb")
    embedded_prefix = None
    relatives: Mapping[str, str] = {}
    needs = "openGauss 3 or later, MogDB or Uqbar; the user's password stored as SHA-256 or MD5"
    series = OpenGaussSeries()
    tables = OpenGaussTables()

    def connect(
        self, connection: model.Connection, *, autocommit: bool = True, needs: Needs = "session"
    ) -> PostgresControl:
        """Open a control connection; where the server wants openGauss's own way to log in, by a proxy."""
        try:
            return super().connect(connection, autocommit=autocommit, needs=needs)
        except LoadstoneError as error:
            if not any(sign in error.message for sign in _LOG_IN):
                raise
        proxy = OpenGaussAuthProxy(connection)
        try:
            return super().connect(proxy.connection, autocommit=autocommit, needs=needs)
        except LoadstoneError as error:
            said = proxy.trouble or error
            place = connections.place(connection)
            raise LoadstoneError(f"cannot connect to {place}: {said.message}", said.hint) from error
        finally:
            proxy.close()

    def server_pids(self, connection: Control) -> ServerProcesses:
        """Find nothing: the server is one process, and its sessions are threads."""
        del connection
        return ServerProcesses(
            None, "openGauss is one process with many threads, which Loadstone does not observe yet"
        )

    def version(self, connection: Control) -> Identity:
        """Ask the server what it is; `version_number` is that of the PostgreSQL it stems from."""
        row = one(connection, _IDENTITY)
        text = str(row["version_text"])
        return {
            "version": _own_version(text),
            "version_text": text,
            "version_number": int(row["number"]),
            "standby": bool(row["standby"]),
        }

    def identify(self, connection: Control) -> Identity:
        """Ask the server what it is, and refuse what is not built on openGauss."""
        identity = self.version(connection)
        if not any(sign in identity["version_text"].lower() for sign in _SIGNS):
            raise LoadstoneError(
                f"the server is not openGauss: {identity['version_text']}",
                "Put the right engine into the URL's scheme; `loadstone engines` lists them.",
            )
        if identity["standby"]:
            raise LoadstoneError(
                "the server is a standby and accepts no writes", "Use the primary as the target."
            )
        return identity

    def capabilities(self, connection: Control) -> frozenset[str]:
        """Return what scenarios may require; its parallel query has other settings than PostgreSQL's."""
        return super().capabilities(connection) - {"parallel query"}

    def sizes(self, connection: Control, schema: str = "loadstone") -> Sizes:
        """Read sizes on disk and the WAL's position."""
        rows = connection.execute(_RELATIONS, {"schema": schema}).fetchall()
        database, wal = one(connection, _DATABASE, column=True), one(connection, _WAL, column=True)
        return sized(int(database), int(wal), [_relation(row) for row in rows])

    def storage(
        self,
        connection: Control,
        tables: Sequence[str],
        data_directory: Path | None = None,
        schema: str = "loadstone",
    ) -> Storage:
        """Account for what its functions tell, which count partitions in."""
        del data_directory
        refused = self.checkpoint(connection)
        notes = [
            (
                "openGauss: long values and maps are one figure; Loadstone does not read free and "
                "allocated bytes yet"
            )
        ]
        found = [_table_storage(connection, schema, name) for name in tables]
        return Storage(found, [*([refused] if refused else []), *notes])

    def counters(self, connection: Control) -> Observation:
        """Read the cumulative counters that a catalog of this age has."""
        return Observation(dict(one(connection, _COUNTERS)))

    def gauges(self, connection: Control, schema: str = "loadstone") -> Observation:
        """Nothing yet."""
        del connection, schema
        return Observation(None, "Loadstone does not read momentary figures of openGauss yet")

    def waits(self, connection: Control) -> Observation:
        """Nothing yet."""
        del connection
        return Observation(None, "Loadstone does not read wait events of openGauss yet")

    def refuse_too_many_clients(self, connection: Control, clients: int) -> None:
        """Raise LoadstoneError when the server has no room for that many more connections."""
        row = one(connection, _ROOM)
        free = int(row["allowed"]) - int(row["used"]) - 1
        if free < clients:
            raise LoadstoneError(
                f"{clients} clients are requested, but the server can accept only {max(free, 0)}",
                f"Use fewer clients, or set max_connections to {row['allowed'] + clients - free} or more.",
            )


def one_of(control: Control, statement: str) -> dict[str, Any]:
    """Run a statement made at run time that answers with one row."""
    return control.execute(statement).fetchone() or {}


def _table_storage(control: Control, schema: str, name: str) -> TableStorage:
    place = {"table": qualified(schema, name)}
    row = one(control, _STORAGE, place)
    indexes = control.execute(_STORAGE_INDEXES, place).fetchall()
    heap = int(row["heap"])
    found = table_storage(
        name,
        heap,
        toast=int(row["whole"]) - heap,
        indexes=[(index["name"], int(index["bytes"])) for index in indexes],
    )
    found["index_bytes"] = int(row["indexes"])
    return found


def _subpartitions(partition: str, parts: int) -> str:
    return ", ".join(f"subpartition {partition}_h{part}" for part in range(parts))


def _own_version(text: str) -> str:
    """Return the version of `(openGauss 5.0.0 build …)` or `PostgreSQL 9.2.4 (MogDB 3.1 …)`."""
    words = text.replace("(", " ").replace(")", " ").split()
    for place, word in enumerate(words[:-1]):
        if word.lower().startswith(_SIGNS) and words[place + 1][:1].isdecimal():
            return words[place + 1]
    return words[1] if len(words) > 1 else text


def _relation(row: Mapping[str, Any]) -> Any:
    return {name: row[name] for name in ("name", "kind", "table", "bytes", "rows_estimate")}


ENGINE = OpenGauss()

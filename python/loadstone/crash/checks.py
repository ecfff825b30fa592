"""What is asked of a server that has recovered: the scenario's invariants, and the state of its files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg

from loadstone.crash.ledger import CREATE, TABLE
from loadstone.plan.model import ScriptWorkload

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.model import Connection, RowCheck
    from loadstone.plan.model import PlannedPhase

_SUMS = """
select 'abalance ' || (select coalesce(sum(abalance), 0) from loadstone.pgbench_accounts)
    || ', tbalance ' || (select coalesce(sum(tbalance), 0) from loadstone.pgbench_tellers)
    || ', bbalance ' || (select coalesce(sum(bbalance), 0) from loadstone.pgbench_branches)
    || ', delta ' || (select coalesce(sum(delta), 0) from loadstone.pgbench_history)
"""
_TABLES_OF_PGBENCH = """
select count(*) = 4 from pg_class where relnamespace = 'loadstone'::regnamespace
    and relname in ('pgbench_accounts', 'pgbench_tellers', 'pgbench_branches', 'pgbench_history')
"""
_AMCHECK = "create extension if not exists amcheck"
_INDEXES = """
select bt_index_check(c.oid, false), count(*) over () from pg_index i join pg_class c on c.oid = i.indexrelid
    join pg_am am on am.oid = c.relam
    where am.amname = 'btree' and c.relkind = 'i' and c.relpersistence <> 't' and i.indisready
        and i.indisvalid
"""
_HEAPS = """
select format('%s: block %s, offset %s, column %s: %s', c.oid::regclass, h.blkno, h.offnum, h.attnum, h.msg)
    from pg_class c cross join lateral verify_heapam(c.oid) h
    where c.relkind in ('r', 'm', 't') and c.relpersistence <> 't' limit 5
"""
_HEAPS_SINCE = 140000
_LIMIT = "set statement_timeout = '30min'"


@dataclass(frozen=True, slots=True)
class Invariants:
    """Statements of a scenario that must give the same value however the server was treated."""

    checks: Sequence[tuple[str, str, str]]
    """(name, SQL giving one value, expected value as text)."""
    rows: RowCheck | None
    """Rows that each transaction adds, where it adds any."""
    rows_before: int = 0


@dataclass(frozen=True, slots=True)
class Flaw:
    """A check that failed."""

    check: str
    detail: str


def connected(connection: Connection) -> psycopg.Connection:
    """Connect as the private server's own user, by its unix socket."""
    return psycopg.connect(
        host=connection.host, hostaddr="", port=connection.port, user=connection.user,
        dbname=connection.database, options="", sslmode="disable", connect_timeout=10, autocommit=True,
        application_name="loadstone crash",
    )  # fmt: skip


def value(control: psycopg.Connection, sql: str) -> str:
    """Return the one value of a statement as text, `null` for a null."""
    row = control.execute(sql.encode()).fetchone()
    return "null" if row is None or row[0] is None else str(row[0])


def invariants_of(phases: Sequence[PlannedPhase], measured: PlannedPhase) -> Invariants:
    """Return what the measured phase, and phases of checks behind it, ask of the database."""
    behind = phases[phases.index(measured) + 1 :]
    checks = [*measured.checks]
    for phase in behind:
        if phase.kind == "check" and phase.skip is None:
            checks += phase.checks
    rows = measured.workload.row_check if isinstance(measured.workload, ScriptWorkload) else None
    return Invariants(checks, rows)


def prepare(control: psycopg.Connection, invariants: Invariants) -> Invariants:
    """Make the ledger table, and count the rows that are there before the first transaction."""
    control.execute(CREATE)
    before = int(value(control, invariants.rows.count_sql)) if invariants.rows else 0
    return Invariants(invariants.checks, invariants.rows, before)


def flaws(control: psycopg.Connection, invariants: Invariants) -> Iterator[Flaw]:
    """Yield what does not hold. Raises psycopg's errors where the server cannot be asked."""
    control.execute(_LIMIT)
    for name, sql, expected in invariants.checks:
        found = value(control, sql)
        if found not in (expected, {"true": "True", "false": "False"}.get(expected)):
            yield Flaw(name, f"expected {expected}, found {found}")
    yield from _row_flaws(control, invariants)
    yield from _sum_flaws(control)
    yield from _file_flaws(control)


def _row_flaws(control: psycopg.Connection, invariants: Invariants) -> Iterator[Flaw]:
    """Yield a flaw unless the rows of transactions are there exactly where their rows of the ledger are."""
    check = invariants.rows
    if check is None or not check.rows_per_transaction:
        return
    counted = int(value(control, check.count_sql)) - invariants.rows_before
    booked = int(value(control, f"select count(*) from {TABLE}")) * check.rows_per_transaction  # noqa: S608
    if counted != booked:
        yield Flaw("rows of transactions", f"{booked:,} by the ledger table, {counted:,} in the table")


def _sum_flaws(control: psycopg.Connection) -> Iterator[Flaw]:
    if value(control, _TABLES_OF_PGBENCH) != "True":
        return
    found = value(control, _SUMS)
    if len({part.rpartition(" ")[2] for part in found.split(", ")}) != 1:
        yield Flaw("the four sums of pgbench's tables", found)


def can_check_files(control: psycopg.Connection) -> str | None:
    """Return why the files cannot be checked; None when they can, and from now on may be."""
    try:
        control.execute(_AMCHECK)
    except psycopg.Error as error:
        return str(error).strip().partition("\n")[0]
    return None


def _file_flaws(control: psycopg.Connection) -> Iterator[Flaw]:
    if value(control, "select count(*) from pg_extension where extname = 'amcheck'") == "0":
        return
    try:
        control.execute(_INDEXES)
    except psycopg.Error as error:
        if error.diag.sqlstate is None:
            raise
        yield Flaw("amcheck, indexes", str(error).strip())
    if control.info.server_version >= _HEAPS_SINCE:
        for (text,) in control.execute(_HEAPS):
            yield Flaw("amcheck, tables", str(text))

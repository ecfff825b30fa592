"""pgbench's statements: tables, keys, vacuum. Names are pgbench's and lead where the search path leads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.sqltext import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.personalities.pgbench.initialization.settings import InitSettings

ROWS_PER_BRANCH = {"pgbench_branches": 1, "pgbench_tellers": 10, "pgbench_accounts": 100_000}
"""Rows of each table for each unit of scale, in the order of filling: what is referenced comes first."""
ACCOUNTS = "pgbench_accounts"

# unqualified: pgbench's tables belong where the search path leads
DROP = "drop table if exists pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers"
# unqualified: as above
TRUNCATE = "truncate table pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers"
VACUUM = tuple(
    f"vacuum analyze pgbench_{table}"  # unqualified: as above
    for table in ("branches", "tellers", "accounts", "history")
)
FOREIGN_KEYS = tuple(
    f"alter table pgbench_{table} add constraint pgbench_{table}_{column}_fkey "  # unqualified: as above
    f"foreign key ({column}) references pgbench_{referenced}"
    for table, column, referenced in (
        ("tellers", "bid", "branches"),
        ("accounts", "bid", "branches"),
        ("history", "bid", "branches"),
        ("history", "tid", "tellers"),
        ("history", "aid", "accounts"),
    )
)
FREEZE_VERSION = 140_000
"""`COPY … FREEZE` marks pages as all visible from PostgreSQL 14 on."""

_BIG_SCALE = 20_000
"""From this scale on the number of an account is a bigint."""
_LOGGED_PARENT_VERSION = 180_000
"""From PostgreSQL 18 on a partitioned table cannot be unlogged, nor refer to a table that is."""


def create_tables(settings: InitSettings, scale: int, server_version: int) -> Iterator[str]:
    """Yield the statements that make the four tables; `server_version` is a number such as 180006."""
    aid = "bigint" if scale >= _BIG_SCALE else "   int"
    columns = {
        "history": f"tid int,bid int,aid {aid},delta int,mtime timestamp,filler char(22)",
        "tellers": "tid int not null,bid int,tbalance int,filler char(84)",
        "accounts": f"aid {aid} not null,bid int,abalance int,filler char(84)",
        "branches": "bid int not null,bbalance int,filler char(88)",
    }
    must_be_logged = settings.method is not None and server_version >= _LOGGED_PARENT_VERSION
    unlogged = "" if must_be_logged else _unlogged(settings)
    for table, declared in columns.items():
        is_partitioned = table == "accounts" and settings.method is not None
        # unqualified: pgbench's tables belong where the search path leads
        made = f"create{unlogged} table pgbench_{table}({declared})"
        if is_partitioned:
            made += f" partition by {settings.method} (aid)"
        elif table != "history":
            made += f" with (fillfactor={settings.fillfactor})"
        if settings.tablespace is not None:
            made += f" tablespace {quoted(settings.tablespace)}"
        yield made


def create_partitions(settings: InitSettings, scale: int) -> Iterator[str]:
    """Yield the statements that make the partitions of pgbench_accounts."""
    for number in range(1, settings.partitions + 1):
        yield (
            # unqualified: pgbench's tables belong where the search path leads
            f"create{_unlogged(settings)} table pgbench_accounts_{number}\n  partition of pgbench_accounts\n"
            f"  for values {_bounds(settings, scale, number)} with (fillfactor={settings.fillfactor})"
        )


def primary_keys(settings: InitSettings) -> Iterator[str]:
    """Yield the statements that add the primary keys."""
    where = ""
    if settings.index_tablespace is not None:
        where = f" using index tablespace {quoted(settings.index_tablespace)}"
    for table, column in (("branches", "bid"), ("tellers", "tid"), ("accounts", "aid")):
        # unqualified: pgbench's tables belong where the search path leads
        yield f"alter table pgbench_{table} add primary key ({column}){where}"


def fill_on_server(scale: int) -> Iterator[str]:
    """Yield the statements with which the server fills the tables itself."""
    # unqualified: pgbench's tables belong where the search path leads
    branches = "insert into pgbench_branches(bid,bbalance) select bid, 0"
    yield f"{branches} from generate_series(1, {scale}) as bid"
    # unqualified: as above
    tellers = "insert into pgbench_tellers(tid,bid,tbalance) select tid, (tid - 1) / 10 + 1, 0"
    yield f"{tellers} from generate_series(1, {10 * scale}) as tid"
    # unqualified: as above
    accounts = "insert into pgbench_accounts(aid,bid,abalance,filler)"
    rows = "select aid, (aid - 1) / 100000 + 1, 0, ''"
    yield f"{accounts} {rows} from generate_series(1, {100_000 * scale}) as aid"


def truncate(table: str) -> str:
    """Return the statement that empties one table."""
    return f"truncate table {table}"  # unqualified: pgbench's tables belong where the search path leads


def range_partitions(settings: InitSettings, scale: int) -> Iterator[tuple[str, range]]:
    """Yield the name of each partition by range, with its rows as numbers from 0."""
    rows, size = 100_000 * scale, _partition_rows(settings, scale)
    for number in range(settings.partitions):
        first = min(rows, number * size)
        yield f"pgbench_accounts_{number + 1}", range(first, min(rows, first + size))


def copy(table: str, *, freeze: bool) -> str:
    """Return the statement that fills a table from the client."""
    # unqualified: pgbench's tables belong where the search path leads
    return f"copy {table} from stdin{' with (freeze on)' if freeze else ''}"


def _unlogged(settings: InitSettings) -> str:
    return " unlogged" if settings.unlogged else ""


def _bounds(settings: InitSettings, scale: int, number: int) -> str:
    if settings.method == "hash":
        return f"with (modulus {settings.partitions}, remainder {number - 1})"
    size = _partition_rows(settings, scale)
    first = "minvalue" if number == 1 else str((number - 1) * size + 1)
    end = "maxvalue" if number == settings.partitions else str(number * size + 1)
    return f"from ({first}) to ({end})"


def _partition_rows(settings: InitSettings, scale: int) -> int:
    """Return how many numbers a partition by range holds: the last may have fewer rows, or none."""
    return (100_000 * scale + settings.partitions - 1) // settings.partitions

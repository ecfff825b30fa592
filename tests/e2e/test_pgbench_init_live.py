"""`loadstone pgbench -i` against a real server, and beside PostgreSQL's own pgbench."""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
import signal
import subprocess
from threading import Event
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.sandbox import COMMAND, TIMEOUT_S, Database, wait_until

from loadstone.engine.postgres import connections
from loadstone.personalities import pgbench
from loadstone.personalities.pgbench.initialization.rows import Chunks
from loadstone.personalities.pgbench.initialization.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadstone.private_server import EmbeddedServer

PEER = shutil.which("pgbench")
TABLES = {"branches": "bid", "tellers": "tid", "accounts": "aid", "history": "tid"}
CATALOG = """
    select c.relname, c.relkind, c.relpersistence, c.reloptions, c.relispartition,
           pg_get_expr(c.relpartbound, c.oid), pg_get_partkeydef(c.oid), c.relpages, c.reltuples,
           (select array_agg((a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull)
                             order by a.attnum)
              from pg_attribute as a where a.attrelid = c.oid and a.attnum > 0),
           (select array_agg((k.conname, pg_get_constraintdef(k.oid)) order by k.conname)
              from pg_constraint as k where k.conrelid = c.oid)
      from pg_class as c where c.relnamespace = 'public'::regnamespace order by c.relname"""
VIEWED = "create view seen as select aid from pgbench_accounts"
STOP = """
    create function stop() returns trigger language plpgsql as $$
    begin
        if new.aid = 150000 then raise 'no room left' using hint = 'Make some.'; end if;
        return new;
    end $$;
    create trigger stop before insert on pgbench_accounts for each row execute function stop()"""
WAITING = "select count(*) from pg_stat_activity where query like 'copy%' and state = 'active'"


@pytest.fixture(scope="module")
def bank(postgres: EmbeddedServer) -> Iterator[Database]:
    """A database for all examples: each makes its tables again."""
    admin = Database(postgres, postgres.connection.database)
    # What it would count of a table just made is in the catalog, and no two tables would be alike.
    admin.execute("alter system set autovacuum = off")
    admin.execute("select pg_reload_conf()")
    admin.execute("create database bank_init")
    yield Database(postgres, "bank_init")
    admin.execute("drop database bank_init with (force)")
    admin.execute("alter system reset autovacuum")
    admin.execute("select pg_reload_conf()")


def ours(database: Database, arguments: str) -> tuple[int, str]:
    out: list[str] = []
    err: list[str] = []
    code = pgbench.main(["-i", *shlex.split(arguments), database.socket_url], out.append, err.append)
    assert out == []
    return code, "".join(err)


def peer(database: Database, arguments: str) -> tuple[int, str]:
    if PEER is None:
        pytest.skip("PostgreSQL's own pgbench is not installed: nothing to compare with")
    there = database.socket_url.replace("postgres://", "postgresql://")
    command = [PEER, "-i", *shlex.split(arguments), there]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stderr


def form(text: str) -> str:
    """Leave of the messages what does not change from run to run."""
    return re.sub(r"\d+\.\d\d s", "T s", text)


def made(database: Database) -> tuple[list[object], dict[str, str]]:
    """Return the catalog's rows of all tables and indexes, and a digest of what is in each table."""
    with database.connect() as connection:
        catalog: list[object] = [*connection.execute(CATALOG).fetchall()]
        digests = {}
        for table, key in TABLES.items():
            copy = f"copy (select * from pgbench_{table} order by {key}) to stdout"
            digest = hashlib.md5(usedforsecurity=False)
            with connection.cursor().copy(copy.encode()) as stream:
                for data in stream:
                    digest.update(data)
            digests[table] = digest.hexdigest()
    return catalog, digests


def both(database: Database, arguments: str) -> None:
    """Assert that messages, catalog and rows are the same whoever makes the tables."""
    peer(database, "-I d")
    theirs = peer(database, arguments)
    expected = made(database)
    peer(database, "-I d")
    found = ours(database, f"--emulate 15 {arguments}")
    assert (found[0], form(found[1])) == (theirs[0], form(theirs[1]))
    assert made(database) == expected


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    scale=st.integers(1, 3),
    fillfactor=st.integers(40, 100),
    partitions=st.integers(0, 4),
    method=st.sampled_from(("range", "hash")),
    steps=st.sampled_from(("dtgvp", "dtGvp", "d t g v p f", "tg")),
    further=st.sets(st.sampled_from(("--foreign-keys", "-q", "--unlogged-tables"))),
)
def test_tables_are_as_pgbench_makes_them(  # noqa: PLR0917 - Hypothesis gives them by name
    bank: Database,
    scale: int,
    fillfactor: int,
    partitions: int,
    method: str,
    steps: str,
    further: set[str],
) -> None:
    arguments = f"-s {scale} -F {fillfactor} -I '{steps}' --partitions={partitions}"
    if partitions:
        arguments += f" --partition-method={method}"
        further -= {"--unlogged-tables"}  # pgbench 15 cannot, on a server of 18
    if "p" not in steps:
        further -= {"--foreign-keys"}
    both(bank, " ".join([arguments, *further]))


def test_a_scale_that_needs_large_numbers_has_them(bank: Database) -> None:
    both(bank, "-I dtvpf -s 20000")


@pytest.mark.parametrize("options", ["", "--partitions=5", "--partitions=2 --partition-method=hash"])
def test_several_connections_make_the_same_rows(bank: Database, options: str) -> None:
    peer(bank, f"-n -s 3 {options}")
    _, expected = made(bank)
    code, err = ours(bank, f"-n -s 3 -j 3 {options}")
    assert (code, made(bank)[1]) == (0, expected)
    # A second time foreign keys refer to the tables.
    assert ours(bank, f"-I fg -s 3 -j 3 {options}")[0] == 0
    assert made(bank)[1] == expected
    assert "300000 of 300000 tuples (100%) of pgbench_accounts done" in err


@pytest.mark.parametrize(("version", "of"), [("15", ""), ("16", ""), ("17", " of pgbench_accounts")])
def test_progress_has_the_form_of_the_emulated_version(database: Database, version: str, of: str) -> None:
    code, err = ours(database, f"--emulate={version} -I dtg")
    assert code == 0
    (line,) = [line for line in err.splitlines() if " tuples " in line]
    assert line.startswith(f"100000 of 100000 tuples (100%){of} done (elapsed ")


@pytest.mark.parametrize(
    "arguments", ["--tablespace=nowhere", "-I dtp --index-tablespace='no where'", "-I g", "-I pp", "-I f"]
)
def test_the_first_error_ends_it_in_pgbenchs_words(database: Database, arguments: str) -> None:
    theirs = peer(database, arguments)
    ours(database, "-I d")
    found = ours(database, arguments)
    assert found[0] == theirs[0] == 1
    assert "query failed: ERROR:  " in found[1]
    assert form(found[1]) == form(theirs[1])


def test_unlogged_partitions_can_have_foreign_keys(database: Database) -> None:
    code, err = ours(database, "--unlogged-tables --partitions=2 --foreign-keys")
    assert code == 0, err
    partition = "select relpersistence::text from pg_class where relname = 'pgbench_accounts_2'"
    assert database.value(partition) == "u"


def test_no_connection_is_told_and_nothing_is_said_of_steps(tmp_path: Path) -> None:
    err: list[str] = []
    code = pgbench.main(["-i", "-h", str(tmp_path), "nowhere"], lambda _: None, err.append)
    assert code == 1
    assert "No such file or directory" in err[0]
    assert err[0].count("pgbench: error: could not create connection for initialization\n") == 1
    assert "dropping" not in "".join(err)


def test_too_many_connections_are_refused_before_anything_is_dropped(database: Database) -> None:
    database.execute("create table pgbench_accounts (mine int)")
    code, err = ours(database, "-j 5000")
    assert code == 1
    assert "could not create connection for initialization" in err
    assert "dropping" not in err
    assert database.value("select count(*) from pgbench_accounts") == 0


def test_only_pgbenchs_tables_are_dropped(database: Database) -> None:
    database.execute("create table pgbench_own (id int); create table other (id int)")
    assert ours(database, "-s 1 -q")[0] == 0
    assert ours(database, "-I d")[0] == 0
    left = "select string_agg(relname, ' ' order by relname) from pg_class where relkind = 'r' and {}"
    assert database.value(left.format("relnamespace = 'public'::regnamespace")) == "other pgbench_own"


def test_what_depends_on_the_tables_keeps_them(database: Database) -> None:
    ours(database, "-I dt")
    database.execute(VIEWED)
    code, err = ours(database, "")
    assert code == 1
    assert "ERROR:  cannot drop desired object(s) because other objects depend on them" in err
    assert "view seen depends on table pgbench_accounts" in err


@pytest.mark.parametrize("jobs", [1, 3])
def test_an_error_of_the_server_midway_leaves_no_rows(database: Database, jobs: int) -> None:
    ours(database, "-I dt")
    database.execute(STOP)
    code, err = ours(database, f"-I g -s 3 -j {jobs}")
    assert code == 1
    assert "pgbench: error: PQendcopy failed: ERROR:  no room left\nHINT:  Make some.\n" in err
    assert database.value("select count(*) from pgbench_accounts") == 0


@pytest.mark.parametrize(("jobs", "act"), [(1, "signal"), (3, "signal"), (1, "terminate"), (3, "terminate")])
def test_the_end_comes_at_once_and_leaves_no_rows(database: Database, jobs: int, act: str) -> None:
    ours(database, "-I dt")
    # A lock in a trigger holds up the server in the middle of its work, for as long as the test needs.
    database.execute(
        STOP.replace("raise 'no room left' using hint = 'Make some.'", "perform pg_advisory_xact_lock(7)")
    )
    command = [str(COMMAND), "pgbench", "-i", "-I", "g", "-s", "3", "-j", str(jobs), database.socket_url]
    with database.connect() as holder:
        holder.execute("select pg_advisory_lock(7)")
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            locked = "from pg_locks where locktype = 'advisory' and not granted"
            wait_until(lambda: database.value(f"select count(*) {locked}"), "a connection waits")
            if act == "signal":
                process.send_signal(signal.SIGINT)
            else:
                database.execute(f"select pg_terminate_backend(pid) {locked}")
            err = process.communicate(timeout=TIMEOUT_S)[1]
    if act == "signal":
        assert process.returncode == 130
        assert err.endswith("pgbench: error: initialization was stopped by a signal\n")
    else:
        assert process.returncode == 1
        assert "\npgbench: error: PQputline failed: server closed the connection unexpectedly\n" in err
        assert "ignored" not in err
    wait_until(lambda: not database.value(WAITING), "no connection is left that copies")
    assert database.value("select count(*) from pgbench_accounts") == 0


def test_rows_do_not_gather_in_memory(database: Database) -> None:
    ours(database, "-I dt")
    kept: list[int] = []
    with connections.connect(database.server.connection, needs="nothing") as control:
        control.execute(
            "create temp table pgbench_accounts (aid int, bid int, abalance int, filler char(84))"
        )
        session = Session(control, lambda _: None)
        chunks = Chunks(
            "pgbench_accounts", range(300_000), lambda _: kept.append(control.pgconn.flush()), Event()
        )
        session.copy("copy pgbench_accounts from stdin", chunks)
    assert set(kept) == {0}


def test_a_relative_of_postgresql_is_named_by_its_own_scheme(database: Database) -> None:
    err: list[str] = []
    there = database.socket_url.replace("postgres://", "polardb://")
    assert pgbench.main(["-i", "-q", there], lambda _: None, err.append) == 0
    out: list[str] = []
    assert pgbench.main(["-S", "-t", "2", there], out.append, err.append) == 0
    assert "number of transactions actually processed: 2/2" in out[0]
    assert pgbench.main(["-i", "clickhouse://there/db"], out.append, err.append) == 1
    assert "is not a URL of a server with PostgreSQL's protocol" in err[-1]

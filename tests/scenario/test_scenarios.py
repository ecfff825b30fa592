"""The built-in scenarios say what was published, and their SQL runs on a real server."""

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from support.workloads import drive_of, is_table_load, mixed_queries, plain_queries, table_load

from loadstone._core import builtin_script
from loadstone.model import LongTransactions
from loadstone.plan.model import PlannedPhase, ScriptWorkload
from loadstone.plan.plan import PlanTarget, estimated_seconds, make_plan
from loadstone.private_server import EmbeddedServer, ServerSpec
from loadstone.scenario.builtin import builtin_scenarios
from loadstone.scenario.scenario import find_scenario
from loadstone.scenario.sql import split_statements

TARGET = PlanTarget("pg", "postgres", "postgres://localhost/x")
NAMES = list(builtin_scenarios())
VARIABLES = ("suffix", "userid", "id1", "id2", "aid", "bid", "tid", "delta", "id", "k", "word")


def phases(name: str, size: str, **overrides: str) -> dict[str, PlannedPhase]:
    """Give a scenario's phases by key without the number."""
    plan = make_plan([find_scenario(name)], [TARGET], size, overrides)
    return {phase.key[4:]: phase for phase in plan.targets[0].phases}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Start a private server from what is installed: these tests need no download."""
    with EmbeddedServer(ServerSpec("pg:system")) as embedded:
        there = embedded.connection
        where = f"host={there.host} port={there.port} user={there.user} dbname={there.database}"
        with psycopg.connect(where, autocommit=True) as control:
            control.execute("create schema loadstone")
        yield f"{where} options=-csearch_path=loadstone"


@pytest.fixture
def connection(server: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(server, autocommit=True) as control:
        yield control


def one_value(connection: psycopg.Connection, query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def transact(connection: psycopg.Connection, text: str) -> None:
    """Run a script's SQL once, its random variables set to 1, as the driver would (prepared)."""
    sql = " ".join(line for line in text.splitlines() if not line.startswith("\\"))
    for variable in VARIABLES:
        sql = re.sub(rf":{variable}\b", "1", sql)
    for statement in split_statements(sql, "script"):
        connection.execute(statement.encode(), prepare=True)


def published(script: str) -> str:
    """Give a script as it was published: ours says in which schema its tables and functions are."""
    return script.replace("loadstone.", "")


def run_phase(connection: psycopg.Connection, phase: PlannedPhase) -> None:
    for statement in phase.setup:
        connection.execute(statement.encode())
    if isinstance(phase.workload, ScriptWorkload):
        run_scripts(connection, phase.workload)
    for name, query, expected in phase.checks:
        assert str(one_value(connection, query)) == expected, name


def run_scripts(connection: psycopg.Connection, workload: ScriptWorkload) -> None:
    check = workload.row_check
    before = one_value(connection, check.count_sql) if check else 0
    for script in workload.drive.scripts:
        for _ in range(3 if script.weight else 0):
            transact(connection, script.text)
    if check:
        after = one_value(connection, check.count_sql)
        assert after - before == 3 * check.rows_per_transaction, check.count_sql


def run_all(connection: psycopg.Connection, found: dict[str, PlannedPhase]) -> None:
    for phase in found.values():
        run_phase(connection, phase)


SQL_ONLY = [
    name for name in NAMES if not any(is_table_load(phase) for phase in phases(name, "tiny").values())
]
"""Bulk loads make their tables themselves: those scenarios run whole in e2e/test_run_bulk_scenarios.py."""


@pytest.mark.parametrize("name", SQL_ONLY)
def test_every_statement_runs_and_every_row_is_counted(connection: psycopg.Connection, name: str) -> None:
    for _ in range(2):
        run_all(connection, phases(name, "tiny"))
    assert (
        one_value(
            connection,
            "select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace "
            "where n.nspname in ('public', 'loadstone')",
        )
        == 0
    )


@pytest.mark.parametrize(
    ("name", "table"),
    [("iot-feed", "feed"), ("session-oltp", "user_info"), ("pgbench-grid", "pgbench_accounts")],
)
def test_a_table_that_is_not_ours_survives(connection: psycopg.Connection, name: str, table: str) -> None:
    connection.execute(f"create table {table} (mine int)".encode())
    try:
        with pytest.raises(psycopg.errors.DuplicateTable):
            run_all(connection, phases(name, "tiny"))
        run_phase(connection, phases(name, "tiny")["clean-up"])
        assert one_value(connection, f"select count(mine) from {table}") == 0
    finally:
        connection.execute(f"drop table {table}".encode())


def test_a_crashed_run_with_more_tables_leaves_nothing_to_the_next(connection: psycopg.Connection) -> None:
    many = phases("iot-feed", "tiny", tables="600")
    for key in ("prepare", "many-tables-single"):
        run_phase(connection, many[key])
    run_all(connection, phases("iot-feed", "tiny"))
    assert one_value(connection, "select count(*) from pg_class where relname like 'feed%'") == 0


def test_iot_feed_indexes_are_what_they_are_called(connection: psycopg.Connection) -> None:
    for index in ("none", "brin", "btree"):
        swept = phases("iot-feed", "tiny", index=index)
        run_phase(connection, swept["prepare"])
        run_phase(connection, swept["many-tables-single"])
        query = (
            "select string_agg(distinct amname, ' ') || ' ' || count(*) from pg_index i join pg_class c "
            "on c.oid = i.indexrelid join pg_am a on a.oid = c.relam "
            "where indrelid::regclass::text like 'feed%'"
        )
        assert one_value(connection, query) == (None if index == "none" else f"{index} 5")
        run_phase(connection, swept["clean-up"])


def test_iot_feed_in_a_tablespace_of_its_own(connection: psycopg.Connection) -> None:
    connection.execute("set allow_in_place_tablespaces = on")
    connection.execute("create tablespace \"my tbs1\" location ''")
    try:
        for phase in phases("iot-feed", "tiny", tablespace="my tbs1", index="brin").values():
            run_phase(connection, phase)
            if phase.kind == "script":
                query = "select count(*) > 0 from pg_indexes where tablespace = 'my tbs1'"
                assert one_value(connection, query) is True
    finally:
        connection.execute(b'drop tablespace "my tbs1"')


def test_iot_feed_at_full_size_is_the_published_test() -> None:
    full = phases("iot-feed", "full")
    drives = {key: drive_of(phase) for key, phase in full.items() if phase.kind == "script"}
    assert list(drives) == [
        "one-table-single-index-none",
        "one-table-single-index-brin",
        "one-table-single-index-btree",
        "many-tables-single",
        "one-table-batch-index-none",
        "one-table-batch-index-brin",
        "one-table-batch-index-btree",
        "many-tables-batch",
    ]
    assert {(d.mode, d.clients, d.threads, d.duration_s, d.warmup_s) for d in drives.values()} == {
        ("prepared", 56, 56, 300, 0)
    }
    texts = {key: published(drive.scripts[0].text) for key, drive in drives.items()}
    assert texts["one-table-single-index-brin"] == "insert into feed (id, val) values (1,0.1);\n"
    assert texts["many-tables-single"] == "\\set suffix random(1,1024)\nselect ins(:suffix)\n"
    assert (
        texts["one-table-batch-index-brin"]
        == "insert into feed (id, val) select 1, 0.1 from generate_series(1,1000);\n"
    )
    assert texts["many-tables-batch"] == "\\set suffix random(1,1024)\nselect ins_batch(:suffix, 1000)\n"


def test_iot_feed_shows_published_figures_where_they_belong() -> None:
    full = phases("iot-feed", "full")
    found = {
        key: {figure.metric: figure.value for figure in phase.published}
        for key, phase in full.items()
        if phase.published
    }
    # Latency and tps determine each other: clients / latency = tps, but for rounding.
    for key, figures in found.items():
        assert 56 / figures["latency_avg"] * 1000 == pytest.approx(figures["tps"], rel=0.01), key
        rows = full[key].rows_per_transaction
        assert rows is not None
        assert figures["rows_per_s"] == pytest.approx(figures["tps"] * rows)
    assert set(found) == {
        "one-table-single-index-brin",
        "many-tables-single",
        "one-table-batch-index-brin",
        "many-tables-batch",
    }


def test_session_oltp_at_full_size_is_the_published_test() -> None:
    full = phases("session-oltp", "full")
    drives = {key: drive_of(phase) for key, phase in full.items() if phase.kind == "script"}
    assert {(d.mode, d.clients, d.threads, d.duration_s) for d in drives.values()} == {("prepared", 4, 2, 60)}
    assert published(drives["log-out"].scripts[0].text) == (
        "\\setrandom userid 1 5000000\nSELECT f_user_logout(:userid);\n"
    )
    assert published(drives["oltp-function"].scripts[0].text) == (
        "\\setrandom id1 1 500000000\n\\set id2 :id1 + 10\nselect oltp_test(:id1, :id2);\n"
    )
    assert full["warm-cache"].optional


def test_pgbench_grid_is_pgbenchs_own_workload_over_the_published_tables() -> None:
    full = phases("pgbench-grid", "full")
    drives = [drive_of(phase) for phase in full.values() if phase.id == "grid" and phase.kind == "script"]
    assert {drive.transactions_per_client for drive in drives} == {10000}
    assert {drive.duration_s for drive in drives} == {None}
    assert len(drives) == 2 * 2 * 9
    assert {int(drive.variables["scale"]) * 100000 for drive in drives} == {10**7, 10**8}
    for name in ("tpcb-like", "select-only"):
        texts = {
            published(s.text) for d in drives for s in d.scripts if s.weight and s.name == f"{name}.pgbench"
        }
        assert texts == {builtin_script(name)[2]}


def test_pgbench_grid_fills_a_scale_once_for_all_its_cells(connection: psycopg.Connection) -> None:
    cells = phases("pgbench-grid", "tiny", scale="1,2", clients="1,2")
    filled = []
    for phase in cells.values():
        run_phase(connection, phase)
        if phase.kind == "script":
            rows = one_value(connection, "select count(*) from pgbench_accounts")
            filled.append((rows, one_value(connection, "select 'pgbench_accounts'::regclass::oid::text")))
    assert [rows for rows, _ in filled] == [100000] * 10 + [200000] * 4
    assert len({table for _, table in filled}) == 2


def test_pgbench_grid_fills_again_what_was_broken_off(connection: psycopg.Connection) -> None:
    cell = phases("pgbench-grid", "tiny", clients="1", workload="select-only")[
        "protocols-mode-simple-threads-1"
    ]
    for statement in cell.setup[:2]:
        connection.execute(statement.encode())
    connection.execute("delete from pgbench_accounts where aid > 10")
    run_phase(connection, cell)
    assert one_value(connection, "select count(*) from pgbench_accounts") == 100000
    run_phase(connection, phases("pgbench-grid", "tiny")["clean-up"])


def test_index_import_at_full_size_is_the_published_test() -> None:
    full = phases("index-import", "full")
    imports = [phase for phase in full.values() if phase.id == "import"]
    bulks = [table_load(phase) for phase in imports if is_table_load(phase)]
    assert [bulk.table.indexes for bulk in bulks] == ["0", "1", "3", "5"]
    assert {(bulk.table.name, bulk.step_rows) for bulk in bulks} == {("test", 10**7)}
    for phase, bulk in zip(imports, bulks, strict=True):
        longest = max(phase.curves, key=lambda curve: len(curve.seconds))
        assert bulk.rows.rows == len(longest.seconds) * longest.step_rows
        assert phase.knee
    assert [[len(curve.seconds) for curve in phase.curves] for phase in imports] == [
        [37],
        [37],
        [20, 14],
        [17, 10],
    ]


def test_index_import_shortens_what_comes_to_its_knee_sooner() -> None:
    small = phases("index-import", "small", indexes="2;(a,b),c;a,b:brin,f;1,2,3,4;a,b,f,i,l;7;")
    rows = [
        table_load(phase).rows.rows
        for phase in small.values()
        if is_table_load(phase) and phase.id == "import"
    ]
    most, three, five = 760000, 340000, 290000
    assert rows == [most, three, three, three, five, five]


def test_index_import_takes_files_in_place_of_rows() -> None:
    found = phases("index-import", "tiny", files="a.csv,b.csv", format="csv", header="true", indexes="1")
    for phase in found.values():
        if is_table_load(phase):
            rows = table_load(phase).rows
            assert (rows.set, rows.files, rows.format, rows.header) == ("", ("a.csv", "b.csv"), "csv", True)
            assert table_load(phase).method == "best"


def test_index_import_gives_a_small_private_server_little_memory() -> None:
    demands = [
        make_plan([find_scenario("index-import")], [TARGET], size).scenarios[0].private_server
        for size in ("small", "full")
    ]
    assert [demand.memory_bytes for demand in demands] == [80 << 20, None]


def test_index_import_makes_and_removes_its_tablespace(connection: psycopg.Connection) -> None:
    found = phases("index-import", "tiny", storage_path="/nowhere/at all", maintenance_work_mem="64MB")
    assert {table_load(phase).table.tablespace for phase in found.values() if is_table_load(phase)} == {
        "loadstone_import"
    }
    with pytest.raises(psycopg.Error, match="does not exist"):
        run_phase(connection, found["prepare"])
    connection.execute(
        found["indexes-after-indexes-5-index_when-after-maintenance_work_mem-64mb"].setup[0].encode()
    )
    assert one_value(connection, "show maintenance_work_mem") == "64MB"
    connection.execute("set allow_in_place_tablespaces = on")
    connection.execute("create tablespace loadstone_import location ''")
    with pytest.raises(psycopg.Error, match="that Loadstone did not create"):
        run_phase(connection, found["clean-up"])
    connection.execute("comment on tablespace loadstone_import is 'made by Loadstone'")
    connection.execute("create table test (mine int) tablespace loadstone_import")
    run_phase(connection, found["clean-up"])
    assert one_value(connection, "select count(*) from pg_tablespace where spcname = 'loadstone_import'") == 0


def test_storage_types_has_the_seven_published_tables() -> None:
    full = phases("storage-types", "full")
    bulks = [table_load(phase) for phase in full.values() if is_table_load(phase) and phase.id == "types"]
    names = ("bigint", "int", "float", "json", "text", "varchar", "union")
    assert [bulk.table.name for bulk in bulks[::3]] == [f"table_{name}" for name in names]
    assert {bulk.rows.rows for bulk in bulks} == {40_000_000}
    assert all(bulk.storage and bulk.table.primary_key == "id" for bulk in bulks)
    assert {bulk.rows.options["distribution"] for bulk in bulks} == {"random", "compressible", "repeated"}


def test_big_transaction_at_full_size_is_the_published_test() -> None:
    full = phases("big-transaction", "full")
    longs = [table_load(phase).transactions for phase in full.values() if is_table_load(phase)]
    assert longs == [LongTransactions(500000, pipeline, 1000) for pipeline in (False, True)]
    assert {table_load(phase).rows.rows for phase in full.values() if is_table_load(phase)} == {5_000_000}


def test_count_loop_is_the_published_function(connection: psycopg.Connection) -> None:
    found = phases("count-loop", "full", counts_per_call="100", parallel="0,2")
    count = found["count-parallel-2"]
    assert drive_of(count).transactions_per_client == 1
    assert "WHILE I <= 100 LOOP" in count.setup[0].upper()
    connection.execute("create table table_union (id int primary key)")
    try:
        told: list[str] = []
        connection.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        for statement in count.setup:
            connection.execute(statement.encode())
        transact(connection, drive_of(count).scripts[0].text)
        assert told[0] == "Iteration: 1, Table Count: 0"
        assert len(told) == 100
        run_phase(connection, found["clean-up"])
    finally:
        connection.execute("drop table table_union")


def test_count_loop_sets_beside_ours_the_rows_that_were_counted_in_a_second() -> None:
    count = phases("count-loop", "full")["count-parallel-0"]
    assert [figure.value for figure in count.published] == [42099601 * 100 // 431]
    assert count.rows_per_transaction
    calls = drive_of(count).transactions_per_client
    assert calls
    assert count.rows_per_transaction * calls == 4209960100


def test_flights_at_full_size_is_the_published_test() -> None:
    full = phases("flights", "full")
    bulks = [table_load(phase) for phase in full.values() if is_table_load(phase)]
    assert {bulk.rows.rows for bulk in bulks} == {210_000_000}
    assert [bulk.workers for bulk in bulks] == [2, 4, 1, 1]
    assert {bulk.table.name for bulk in bulks} == {"flights"}
    beside = [mixed for phase in full.values() if (mixed := mixed_queries(phase)) is not None]
    assert [[query.name for query in asked.queries] for asked in beside] == [["Sql5"]]
    asked = plain_queries(full["queries-round-1"])
    assert asked is not None
    assert [" ".join(query.sql.split()) for query in asked.queries] == [
        "select count(*) from flights",
        "select count(*) from flights where origin_country = 'USA'",
        "select count(*) as cnt, avg(distance) as dis from flights where flight_month = 10",
        (
            "select origin_city, dest_city, count(*) as cnt, avg(airtime) as atime from flights "
            "group by origin_city, dest_city order by cnt desc, atime"
        ),
        (
            "select origin_state, dest_state, count(*) as cnt, avg(airtime) as atime from flights "
            "where distance < 175 group by origin_state, dest_state"
        ),
    ]
    # At least 3 cold and 10 warm runs of each.
    turns = [plain_queries(phase) for phase in full.values() if phase.id == "queries"]
    assert len(turns) == 3
    assert sum(turn.warm_runs for turn in turns) >= 10
    assert all(turn.cold for turn in turns)


def test_flights_shows_every_published_figure_once() -> None:
    full = phases("flights", "full")
    figures = full["queries-round-1"].published
    assert len({(f.metric, f.system, f.query) for f in figures}) == len(figures) == 2 * 7 * 5
    # PostgreSQL reads its rows from the disk either way; a GPU's memory is what makes MapD fast.
    found = {(f.metric, f.system, f.query): f.value for f in figures}
    for name in ("Sql1", "Sql2", "Sql3", "Sql4", "Sql5"):
        cold, warm = (found[metric, "PostgreSQL", name] for metric in ("cold_ms", "warm_ms"))
        assert warm == pytest.approx(cold, rel=0.03)
        cold, warm = (found[metric, "MapD (GPU and CPU)", name] for metric in ("cold_ms", "warm_ms"))
        assert warm < 0.05 * cold
    imports = {(f.metric, f.system): f.value for f in full["import"].published}
    for system in ("MapD (GPU and CPU)", "Vertica", "PG-Strom", "cstore_fdw"):
        assert imports["ratio", system] == pytest.approx(84e9 / imports["table_bytes", system], rel=0.01)
    together = [phase.published for phase in full.values() if phase.id == "concurrency"]
    assert [[figure.value for figure in published] for published in together] == [[7.9], [8.5], [8.5], [8.4]]


def test_flights_takes_files_in_place_of_rows() -> None:
    found = phases("flights", "tiny", files="a.csv,b.csv", header="false")
    for phase in found.values():
        if is_table_load(phase):
            rows = table_load(phase).rows
            assert (rows.set, rows.files, rows.format) == ("flights", ("a.csv", "b.csv"), "csv")
            assert (rows.header, rows.rows, table_load(phase).method) == (False, 0, "best")
            assert table_load(phase).verify == "count"


@pytest.mark.parametrize("name", NAMES)
def test_small_takes_no_more_than_minutes(name: str) -> None:
    plan = make_plan([find_scenario(name)], [TARGET], "small")
    assert estimated_seconds(plan) < 150

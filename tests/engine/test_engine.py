"""What PostgreSQL answers, asked of real servers: oldest and newest that we know, and an installed one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.engine import MARK, SCHEMA, Engine
from loadstone.engine.answers import RELATIONS_MAX
from loadstone.engine.postgres import connections, durability
from loadstone.engines import all_engines, engine, engine_of_scheme, known_schemes
from loadstone.engines.postgres import ENGINE as POSTGRES
from loadstone.errors import LoadstoneError
from loadstone.private_server import EmbeddedServer, ServerSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.engine.postgres.connections import PostgresControl as Control

COUNTERS = {
    "wal_bytes", "wal_records", "wal_fpi", "xact_commit", "xact_rollback", "tup_inserted", "tup_updated",
    "tup_deleted", "tup_returned", "tup_fetched", "blks_read", "blks_hit", "temp_bytes", "deadlocks",
    "checkpoints_timed", "checkpoints_requested", "buffers_checkpoint", "buffers_clean", "buffers_backend",
    "checkpoint_write_ms", "checkpoint_sync_ms",
}  # fmt: skip
"""As docs/run-folder.md lists them."""


@pytest.fixture(
    scope="module",
    params=["pg10", "pg11", "pg12", "pg13", "pg14", "pg15", "pg16", "pg17", "pg18", "pg:system"],
)
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(ServerSpec(request.param, settings={"autovacuum": "off"})) as running:
        yield running


@pytest.fixture
def control(server: EmbeddedServer) -> Iterator[Control]:
    with POSTGRES.connect(POSTGRES.with_schema(server.connection)) as connection:
        POSTGRES.create_workspace(connection)
        yield connection
        if not connection.closed:
            POSTGRES.drop_workspace(connection)


@pytest.fixture
def visitor(server: EmbeddedServer, control: Control) -> Iterator[Control]:
    """A connection of a user without any special right."""
    control.execute("create role visitor login")
    with POSTGRES.connect(replace(server.connection, user="visitor")) as connection:
        yield connection
    control.execute("drop role visitor")


def test_it_knows_which_version_answers(server: EmbeddedServer, control: Control) -> None:
    identity = POSTGRES.identify(control)
    assert identity["version"] == server.installation.version
    assert identity["version_number"] // 10000 == server.installation.major
    assert POSTGRES.label(identity) == f"PostgreSQL {server.installation.version}"


def test_every_counter_of_the_run_folder_is_read_and_grows(control: Control) -> None:
    before = POSTGRES.counters(control).values
    assert before is not None
    control.execute("create table t as select generate_series(1, 50000) as i")
    assert POSTGRES.checkpoint(control) is None
    after = before
    for _ in range(200):  # sessions report once a second
        after = POSTGRES.counters(control).values or {}
        if (after["wal_bytes"] or 0) - (before["wal_bytes"] or 0) > 1_000_000:
            break
        control.execute("select pg_sleep(0.02)")
    assert set(before) == set(after) == COUNTERS
    is_old = control.info.server_version < 140000
    assert {name for name, value in after.items() if value is None} == (
        {"wal_records", "wal_fpi"} if is_old else set()
    )
    assert (after["wal_bytes"] or 0) - (before["wal_bytes"] or 0) > 1_000_000


def test_gauges_count_this_schemas_tuples_and_all_sessions(server: EmbeddedServer, control: Control) -> None:
    control.execute("create table t as select generate_series(1, 1000) as i")
    control.execute("delete from t where i <= 100")
    seen: dict[str, float | int | None] = {}
    for _ in range(200):  # before 15, statistics arrive up to half a second late
        seen = POSTGRES.gauges(control).values or {}
        if seen.get("dead_tuples"):
            break
        control.execute("select pg_sleep(0.02)")
    assert (seen["live_tuples"], seen["dead_tuples"]) == (900, 100)
    with POSTGRES.connect(server.connection) as other:
        assert other.info.status == psycopg.pq.ConnStatus.OK
        more = POSTGRES.gauges(control).values or {}
        for _ in range(200):  # sessions of other tests may still be ending
            if more["connections"] == 2:
                break
            control.execute("select pg_sleep(0.02)")
            more = POSTGRES.gauges(control).values or {}
    assert (more["connections"], more["active"]) == (2, 1)


def test_waits_are_counted_by_what_is_waited_for(server: EmbeddedServer, control: Control) -> None:
    control.execute("create table t (i int)")
    with POSTGRES.connect(POSTGRES.with_schema(server.connection), autocommit=False) as holder:
        holder.execute("lock table t")
        with POSTGRES.connect(POSTGRES.with_schema(server.connection)) as waiter:
            waiter.pgconn.send_query(b"select * from t")
            seen: dict[str, float | int | None] = {}
            for _ in range(200):
                seen = POSTGRES.waits(control).values or {}
                if seen:
                    break
                control.execute("select pg_sleep(0.01)")
            assert seen == {"Lock:relation": 1}
            waiter.close()


def test_sizes_name_table_index_and_toast(control: Control) -> None:
    control.execute("create table t (i int primary key, s text)")
    control.execute("insert into t select g, 'x' from generate_series(1, 10000) g")
    control.execute("analyze t")
    sizes = POSTGRES.sizes(control)
    found = {(r["kind"], r["table"]): r for r in sizes["relations"]}
    assert set(found) == {("table", "t"), ("index", "t"), ("toast", "t")}
    assert found["table", "t"]["rows_estimate"] == 10000
    total = control.execute("select pg_total_relation_size('t') as bytes").fetchone()
    assert total is not None
    assert sum(r["bytes"] for r in sizes["relations"]) == total["bytes"]
    assert (sizes["database_bytes"] or 0) > total["bytes"]
    assert (sizes["wal_lsn_bytes"] or 0) > 1_000_000
    assert sizes["relations_left_out"] == 0


def test_more_relations_than_can_be_listed_are_summed(control: Control) -> None:
    for number in range(150):
        control.execute(f"create table t{number} (i int primary key)".encode())
    sizes = POSTGRES.sizes(control)
    listed = [r for r in sizes["relations"] if r["name"] != "(others)"]
    others = [r for r in sizes["relations"] if r["name"] == "(others)"]
    assert len(listed) == RELATIONS_MAX
    assert sizes["relations_left_out"] == 300 - RELATIONS_MAX
    assert others
    assert [r["bytes"] for r in listed] == sorted((r["bytes"] for r in listed), reverse=True)
    assert sum(r["bytes"] for r in sizes["relations"]) == 150 * 8192


def test_settings_hold_what_was_set_and_hide_what_may_be_secret(control: Control) -> None:
    found = {setting["name"]: setting for setting in POSTGRES.settings(control)}
    assert found["autovacuum"] == {"name": "autovacuum", "value": "off", "source": "configuration file"}
    assert found["wal_level"]["value"] == "replica"
    assert "work_mem" in found, "worth recording even at its default"
    assert "application_name" not in found, "that is our own session's"
    control.execute("alter system set archive_command = 'copy --password=secret %p'")
    control.execute("select pg_reload_conf()")
    shown: dict[str, str] = {}
    for _ in range(200):
        shown = {setting["name"]: setting["value"] for setting in POSTGRES.settings(control)}
        if shown.get("archive_command") == "***":
            break
        control.execute("select pg_sleep(0.01)")
    assert shown["archive_command"] == "***"
    control.execute("alter system reset archive_command")


def test_durability_is_judged_with_reasons(control: Control) -> None:
    judged = {line["setting"]: line for line in POSTGRES.durability(control)}
    assert all(line["durable"] and line["why"] for line in judged.values())
    control.execute("create unlogged table u (i int)")
    control.execute("set synchronous_commit = off")
    control.execute("alter database loadstone set synchronous_commit = off")
    judged = {line["setting"]: line for line in POSTGRES.durability(control)}
    assert not judged["unlogged tables"]["durable"]
    control.execute("alter database loadstone reset synchronous_commit")


@pytest.mark.parametrize(
    ("setting", "value"),
    [("fsync", "off"), ("full_page_writes", "off"), ("synchronous_commit", "off"), ("unlogged tables", "2")],
)
def test_what_can_lose_commits_is_called_not_durable(setting: str, value: str) -> None:
    [line] = durability.judge({setting: value})
    assert not line["durable"]
    assert "crash" in line["why"] or "torn" in line["why"]


def test_a_workspace_of_ours_is_made_new_and_leaves_nothing(control: Control) -> None:
    control.execute("create table t (i int)")
    POSTGRES.create_workspace(control)
    assert POSTGRES.sizes(control)["relations"] == []
    POSTGRES.drop_workspace(control)
    POSTGRES.drop_workspace(control)
    found = control.execute("select 1 from pg_namespace where nspname = %s", [SCHEMA]).fetchone()
    assert found is None


def test_somebody_elses_schema_is_refused_unless_it_is_to_be_replaced(control: Control) -> None:
    control.execute("create schema theirs")
    control.execute("create table theirs.thesis (i int)")
    with pytest.raises(LoadstoneError, match="objects that Loadstone did not create"):
        POSTGRES.create_workspace(control, "theirs")
    with pytest.raises(LoadstoneError, match="was not dropped"):
        POSTGRES.drop_workspace(control, "theirs")
    control.execute("select * from theirs.thesis")
    POSTGRES.create_workspace(control, "theirs", replace=True)
    marked = control.execute("select obj_description('theirs'::regnamespace) as mark").fetchone()
    assert marked == {"mark": MARK}
    POSTGRES.drop_workspace(control, "theirs")


@pytest.mark.parametrize(
    "made",
    ['collation theirs.sorted from "C"', "text search configuration theirs.words (copy = simple)"],
)
def test_a_schema_without_tables_may_hold_something_all_the_same(control: Control, made: str) -> None:
    control.execute("create schema theirs")
    control.execute(f"create {made}")
    with pytest.raises(LoadstoneError, match="contains 1 objects that Loadstone did not create"):
        POSTGRES.create_workspace(control, "theirs")
    control.execute("drop schema theirs cascade")


def test_an_empty_schema_that_waits_for_us_is_used(control: Control) -> None:
    control.execute("create schema prepared")
    POSTGRES.create_workspace(control, "prepared")
    assert POSTGRES.has_workspace(control, "prepared"), "it is marked as ours"
    POSTGRES.drop_workspace(control, "prepared")
    assert not schemas(control, "prepared")


def test_a_schemas_name_may_hold_anything(control: Control) -> None:
    name = 'a"; drop table loadstone.x; --'
    control.execute("create table loadstone.x (i int)")
    POSTGRES.create_workspace(control, name)
    assert schemas(control, name)
    assert POSTGRES.claim_workspace(control, name)
    POSTGRES.drop_workspace(control, name)
    assert not schemas(control, name)
    assert control.execute("select * from loadstone.x").fetchall() == [], "the other table stays"


def schemas(control: Control, name: str) -> list[dict[str, Any]]:
    return control.execute("select 1 from pg_namespace where nspname = %(name)s", {"name": name}).fetchall()


def test_a_user_without_rights_is_told_what_is_missing(visitor: Control) -> None:
    with pytest.raises(LoadstoneError, match="cannot be created: permission denied") as refused:
        POSTGRES.create_workspace(visitor, "wanted")
    assert "grant create" in refused.value.hint
    observed = POSTGRES.observe(visitor)
    assert observed.part["waits"] is None
    assert observed.reasons == [
        "the server shows what sessions wait for only to members of pg_read_all_stats"
    ]
    assert set(observed.part["counters"] or {}) == COUNTERS
    assert "permission denied" in (POSTGRES.checkpoint(visitor) or "") or "must be" in (
        POSTGRES.checkpoint(visitor) or ""
    )


def test_an_empty_schema_of_somebody_else_is_not_used(visitor: Control, control: Control) -> None:
    control.execute("create schema prepared")
    with pytest.raises(LoadstoneError, match="'prepared' cannot be used: must be owner") as refused:
        POSTGRES.create_workspace(visitor, "prepared")
    assert "alter schema prepared owner to" in refused.value.hint
    control.execute("drop schema prepared")


def test_unqualified_names_mean_the_schemas_objects(server: EmbeddedServer, control: Control) -> None:
    control.execute("create table t as select 42 as answer")
    with_option = replace(server.connection, parameters={"options": "-c work_mem=1MB", "lock_timeout": "7s"})
    with POSTGRES.connect(POSTGRES.with_schema(with_option)) as other:
        assert other.execute("select answer from t").fetchone() == {"answer": 42}
        assert other.execute("show work_mem").fetchone() == {"work_mem": "1MB"}
        assert other.execute("show lock_timeout").fetchone() == {"lock_timeout": "7s"}


@pytest.mark.parametrize("parameters", [{"search_path": "public"}, {"options": "-csearch_path=public"}])
@pytest.mark.usefixtures("control")
def test_no_schema_but_ours_is_searched_whatever_the_user_asked_for(
    server: EmbeddedServer, parameters: dict[str, str]
) -> None:
    asked = replace(server.connection, parameters=parameters)
    with POSTGRES.connect(POSTGRES.with_schema(asked)) as other:
        found = other.execute("select current_schemas(false)::text as path").fetchone()
    assert found == {"path": "{loadstone}"}


def test_the_servers_first_process_is_found_by_socket_and_by_loopback(server: EmbeddedServer) -> None:
    for where in (server.connection, server.tcp_connection):
        with POSTGRES.connect(where) as connection:
            assert POSTGRES.server_pids(connection).pid == server.pid


def test_sessions_are_ended_by_name(server: EmbeddedServer, control: Control) -> None:
    with POSTGRES.connect(replace(server.connection, application_name="loadstone-7")) as client:
        client.pgconn.send_query(b"select pg_sleep(60)")
        assert POSTGRES.cancel(control, "loadstone-7") == 1
        assert POSTGRES.cancel(control, "loadstone-8") == 0
        client.close()


def test_capabilities_are_those_of_the_server(control: Control) -> None:
    found = POSTGRES.capabilities(control)
    assert {"sql", "plpgsql", "brin", "btree", "generate_series", "extension:pg_prewarm"} <= found
    assert "extension:no_such_thing" not in found
    missing = POSTGRES.missing(control, frozenset({"sql", "columnar", "extension:no_such_thing"}))
    assert missing == {
        "columnar": "PostgreSQL does not support 'columnar' here",
        "extension:no_such_thing": "the server does not have the extension 'no_such_thing'",
    }


def test_emptying_caches_says_what_it_did_not_do(control: Control) -> None:
    caches = POSTGRES.flush_caches(control)
    assert not caches["emptied"]
    assert "shared buffers" in caches["note"]


def test_clients_that_do_not_fit_are_refused_with_the_figures(
    server: EmbeddedServer, control: Control
) -> None:
    allowed = int(server.settings["max_connections"])
    _alone(control)
    POSTGRES.refuse_too_many_clients(control, allowed - 2)
    with pytest.raises(LoadstoneError, match=f"can accept only {allowed - 2} ") as refused:
        POSTGRES.refuse_too_many_clients(control, allowed - 1)
    assert f"max_connections to {allowed + 1}" in refused.value.hint


def test_a_roles_own_limit_counts(visitor: Control, control: Control) -> None:
    control.execute("alter role visitor connection limit 5")
    POSTGRES.refuse_too_many_clients(visitor, 3)
    with pytest.raises(LoadstoneError, match="the role may have only 5 connections"):
        POSTGRES.refuse_too_many_clients(visitor, 4)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("PostgreSQL 11.2-YB-2.18.0.0-b0 on x86_64-pc-linux-gnu", "YugabyteDB"),
        ("CockroachDB CCL v23.1.0 (x86_64-pc-linux-gnu)", "CockroachDB"),
        ("PostgreSQL 8.0.2 on i686-pc-linux-gnu, Redshift 1.0.12", "Redshift"),
    ],
)
def test_relatives_are_called_by_their_name(text: str, name: str) -> None:
    with pytest.raises(LoadstoneError, match=f"the server is {name}, not PostgreSQL"):
        POSTGRES.refuse_relatives(text)


def test_engines_are_found_by_their_place() -> None:
    assert all_engines()["postgres"] is POSTGRES
    assert isinstance(POSTGRES, Engine)
    assert POSTGRES.status.startswith("verified against")
    assert engine_of_scheme("PostgreSQL") is POSTGRES
    assert engine_of_scheme("gopher") is None
    assert {"postgres", "postgresql"} <= set(known_schemes())
    with pytest.raises(LoadstoneError, match="no engine 'oracle'"):
        engine("oracle")


@given(
    st.dictionaries(
        st.sampled_from(["application_name", "search_path"]),
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20),
    )
)
def test_start_up_options_are_escaped_so_that_each_stays_one_word(settings: dict[str, str]) -> None:
    for name, value in settings.items():
        written = connections.option(name, value)
        assert written.startswith(f"-c {name}=")
        words = _backend_split(written)
        assert words == ["-c", f"{name}={value}"]


def _alone(control: Control) -> None:
    """Wait until the server has done away with the sessions that earlier tests closed."""
    for _ in range(200):
        sessions = control.execute(
            "select count(*) as n from pg_stat_activity where backend_type = 'client backend'"
        ).fetchone()
        if sessions == {"n": 1}:
            return
        control.execute("select pg_sleep(0.01)")
    pytest.fail("sessions of earlier tests stay")


def _backend_split(text: str) -> list[str]:
    """Split as the server does (pg_split_opts): at white space, a backslash keeps the next character."""
    words: list[str] = []
    letters = iter(text)
    is_open = False
    for letter in letters:
        if letter in " \t\n\r\v\f":
            is_open = False
            continue
        if not is_open:
            words.append("")
            is_open = True
        words[-1] += next(letters, "") if letter == "\\" else letter
    return words

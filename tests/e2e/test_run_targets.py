"""How targets are named, refused and left alone; passwords are nowhere to be seen."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from support.sandbox import COUNTED, Database

if TYPE_CHECKING:
    from support.sandbox import Ended, Sandbox


def refused(ended: Ended, *words: str) -> None:
    """Check that a run was refused before anything was measured, in words, and left no folder."""
    assert ended.code == 1, ended.err
    for word in words:
        assert word in ended.err, ended.err
    assert not ended.folder.exists()
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("way", ["url", "socket_url"])
def test_a_url_by_tcp_or_socket(sandbox: Sandbox, database: Database, way: str) -> None:
    ended = sandbox.measure(sandbox.inserts(), "--target", getattr(database, way))
    assert ended.code == 0, ended.err
    assert ended.phases()["insert"]["checks"][0]["passed"]
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0


def test_the_variables_of_libpq_are_understood(sandbox: Sandbox, database: Database) -> None:
    there = database.server.tcp_connection
    variables = {"PGHOST": there.host, "PGPORT": str(there.port), "PGUSER": there.user}
    variables |= {"PGPASSWORD": database.password, "PGDATABASE": database.name}
    ended = sandbox.measure(sandbox.inserts(), "--target", "postgres://", env=variables)
    assert ended.code == 0, ended.err
    assert database.name in ended.summary["targets"][0]["url"]
    assert sandbox.holding(database.password) == []


@pytest.mark.slow
def test_the_password_file_is_read_unless_others_can_read_it_too(
    sandbox: Sandbox, database: Database
) -> None:
    file = sandbox.home / ".pgpass"
    file.write_text(f"*:*:{database.name}:*:{database.password}\n")
    file.chmod(0o600)
    ended = sandbox.measure(sandbox.inserts(), "--target", database.bare_url)
    assert ended.code == 0, ended.err
    assert sandbox.holding(database.password) == [file]
    file.chmod(0o644)
    again = sandbox.measure("own", "--target", database.bare_url, out="again")
    refused(again, "a password is needed", "PGPASSWORD", "can be read by others and was ignored")


@pytest.mark.slow
def test_a_password_is_nowhere_to_be_seen(sandbox: Sandbox, database: Database) -> None:
    running = sandbox.begin(sandbox.inserts(seconds=2), "--target", database.url)
    running.wait_for_drive("insert")
    shown = subprocess.run(["ps", "-eww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    ended = running.finish()
    assert ended.code == 0, ended.err
    assert "loadstone run own --target postgres://loadstone:***@" in shown.replace(
        str(sandbox.work) + "/", ""
    )
    for secret in (database.password, quote(database.password)):
        assert secret not in shown
        assert sandbox.holding(secret) == []
    assert database.bare_url.split("@")[1] in " ".join(ended.run["command"])


def test_a_wrong_password(sandbox: Sandbox, database: Database) -> None:
    ended = sandbox.measure(
        sandbox.inserts(), "--target", database.url.replace(database.password, "wr0ngsecret")
    )
    refused(ended, "wrong password", "Check the user and password")
    assert "wr0ngsecret" not in ended.err


def test_a_wrong_database(sandbox: Sandbox, database: Database) -> None:
    ended = sandbox.measure(sandbox.inserts(), "--target", database.url.replace(database.name, "nowhere"))
    refused(ended, "the database 'nowhere' does not exist", "create it first")


def test_nobody_listens(sandbox: Sandbox) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        ended = sandbox.measure(sandbox.inserts(), "--target", f"postgres://u:pw@127.0.0.1:{port}/d")
    refused(ended, "connection refused", "Check that the server is running")


def test_no_such_socket(sandbox: Sandbox) -> None:
    ended = sandbox.measure(sandbox.inserts(), "--target", f"host={sandbox.work} dbname=d user=u")
    refused(ended, "there is no such socket", str(sandbox.work))


def test_a_server_without_tls(sandbox: Sandbox, database: Database) -> None:
    ended = sandbox.measure(sandbox.inserts(), "--target", f"{database.url}?sslmode=require")
    refused(ended, "the server does not support TLS", "sslmode=prefer")


def test_a_listener_that_says_nothing_is_given_up(sandbox: Sandbox) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"postgres://u@127.0.0.1:{silent.getsockname()[1]}/d?connect_timeout=2&sslmode=disable"
        ended = sandbox.measure(sandbox.inserts(), "--target", url)
    refused(ended, "the server does not answer", "connect_timeout")
    assert ended.seconds < 60


def test_too_few_connections_are_refused_before_anything_is_touched(
    sandbox: Sandbox, database: Database
) -> None:
    scenario = sandbox.scenario(("many", "select 1;\n", "duration_s = 1"))
    text = (scenario / "scenario.toml").read_text().replace("clients = 2", "clients = 5000")
    (scenario / "scenario.toml").write_text(text)
    ended = sandbox.measure(scenario, "--target", database.url)
    refused(ended, "5000 clients are requested", "set max_connections to")
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0


def test_when_one_target_is_refused_the_others_are_not_touched(sandbox: Sandbox, database: Database) -> None:
    other = f"postgres://u@127.0.0.1:1/{database.name}"
    ended = sandbox.measure(sandbox.inserts(), "--target", database.url, "--target", other)
    refused(ended, "connection refused")
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0


def test_a_schema_with_somebodys_tables_is_refused_unless_told_to_replace(
    sandbox: Sandbox, database: Database
) -> None:
    database.execute("create schema loadstone create table mine (a int)")
    ended = sandbox.measure(sandbox.inserts(), "--target", database.url)
    refused(ended, "the schema 'loadstone' contains", "--replace")
    assert database.value("select count(*) from loadstone.mine") == 0
    again = sandbox.measure("own", "--target", database.url, "--replace")
    assert again.code == 0, again.err
    assert database.value("select to_regclass('loadstone.mine')") is None


@pytest.mark.slow
def test_what_a_killed_run_left_is_replaced_without_asking(sandbox: Sandbox, database: Database) -> None:
    running = sandbox.begin(sandbox.inserts(seconds=30), "--target", database.url)
    running.wait_for_drive("insert")
    running.send(9)
    running.finish()
    database.wait_until_left()
    assert database.value("select count(*) > 0 from loadstone.t")
    again = sandbox.measure(
        sandbox.scenario(("one", "select 1;\n", "duration_s = 1"), name="other"),
        "--target",
        database.url,
        out="again",
    )
    assert again.code == 0, again.err
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0


@pytest.mark.slow
def test_one_database_serves_one_run_at_a_time(sandbox: Sandbox, database: Database) -> None:
    running = sandbox.begin(sandbox.inserts(seconds=20), "--target", database.url)
    running.wait_for_drive("insert")
    second = sandbox.measure("own", "--target", database.socket_url, out="second")
    refused(second, "another run of Loadstone uses the schema", "use another database")
    running.send(2)
    first = running.finish()
    assert first.code == 130, first.err
    assert first.phases()["insert"]["checks"][0]["passed"]
    twice = sandbox.measure("own", "--target", database.url, "--target", database.socket_url, out="twice")
    refused(twice, "another run of Loadstone uses the schema", "a target only once")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("pg9", ("there is no private PostgreSQL 'pg9'", "pg18")),
        ("pg:/nowhere/bin", ("has no postgres", "Use the folder with initdb")),
        ("oracle://scott@host/x", ("there is no engine for 'oracle://'", "postgres://")),
        ("localhost", ("'localhost' is not a target", "postgres://")),
        ("scott:tiger@localhost", ("what was given is not a target", "postgres://")),
        ("postgres://u@h1,h2/d", ("several hosts", "Write one host")),
        ("postgres://u@h:99999/d", ("the port in the target is not a number from 1 to 65535",)),
        ("postgres://u@h/d?sslmode=maybe", ("'maybe' is not an sslmode", "verify-full")),
        (
            "postgres://u@h/d?nonsense=1",
            ("libpq does not accept the target as a connection string", "percent-encoded"),
        ),
    ],
)
def test_a_target_that_cannot_be_is_refused_in_words(
    sandbox: Sandbox, target: str, words: tuple[str, ...]
) -> None:
    ended = sandbox.quick("--target", target)
    refused(ended, *words)
    assert "tiger" not in ended.err


def test_the_run_of_a_user_who_is_not_allowed_to_make_a_schema(sandbox: Sandbox, database: Database) -> None:
    with database.connect() as admin:
        admin.execute("create role weak login password 'weakpass'")
        try:
            url = database.url.replace(quote(database.password), "weakpass").replace("//loadstone", "//weak")
            ended = sandbox.measure(sandbox.inserts(), "--target", url)
            refused(ended, "the schema 'loadstone' cannot be created", "grant create on database")
            admin.execute(f"grant create on database {database.name} to weak".encode())
            ended = sandbox.measure("own", "--target", url)
            assert ended.code == 0, ended.err
            assert ended.phases()["insert"]["checks"][0]["passed"]
        finally:
            admin.execute("drop owned by weak")
            admin.execute("drop role weak")


def test_a_database_that_converts_texts_is_refused_for_tables_before_anything_is_touched(
    sandbox: Sandbox, database: Database
) -> None:
    name = f"{database.name}_latin"
    database.execute(f"create database {name} template template0 encoding 'LATIN1' locale 'C'")
    latin = Database(database.server, name)
    try:
        ended = sandbox.quick("flights", "--size", "tiny", "--target", latin.url)
        assert ended.code == 1, ended.err
        assert f"the encoding of the database {name} is LATIN1" in ended.err
        assert "encoding 'UTF8'" in ended.err
        assert not ended.folder.exists()
        assert latin.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0
        plain = sandbox.quick(sandbox.scenario(), "--target", latin.url)
        assert plain.code == 0, plain.err
    finally:
        database.execute(f"drop database {name} with (force)")


def test_texts_are_utf_8_whatever_the_role_has_set_for_its_sessions(
    sandbox: Sandbox, database: Database
) -> None:
    odd = "client_encoding = 'LATIN1'"
    database.execute(f"alter role {database.server.connection.user} in database {database.name} set {odd}")
    settings = COUNTED.format(seconds=0.3).replace("from t", "from t where id = 2")
    scenario = sandbox.scenario(("insert", "insert into t values (octet_length('é'));\n", settings))
    ended = sandbox.measure(scenario, "--target", database.url)
    assert ended.code == 0, ended.err
    assert ended.phases()["insert"]["checks"][0]["passed"]


def test_the_folder_given_as_storage_is_looked_at_first(sandbox: Sandbox) -> None:
    missing = sandbox.measure(sandbox.inserts(), "--storage", Path("nowhere"))
    refused(missing, "the storage 'nowhere' does not exist", "mkdir -p")
    (sandbox.storage / "mine").touch()
    full = sandbox.measure("own", "--storage", sandbox.storage)
    refused(full, "is not empty: it contains mine", "Use an empty folder")
    (sandbox.storage / "mine").unlink()

"""Targets: what each spelling means, and what is said when one cannot be used."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.engine.postgres.conninfo import resolve
from loadstone.engine.postgres.passfile import match_password, service_of, split_line
from loadstone.errors import LoadstoneError
from loadstone.private_server import EmbeddedServer, ServerSpec
from loadstone.target import Target, is_local, open_target, parse_target, parse_targets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadstone.model import Connection

VARIABLES = (
    "PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGPASSFILE", "PGSERVICE",
    "PGSERVICEFILE", "PGSYSCONFDIR", "PGOPTIONS", "PGAPPNAME", "PGSSLMODE", "PGSSLROOTCERT",
    "PGCONNECT_TIMEOUT",
)  # fmt: skip

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without any of libpq's files, an environment without its variables."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(ServerSpec("pg18", clients=5)) as running:
        yield running


def connection_of(text: str) -> Connection:
    connection = parse_target(text).connection
    assert connection is not None
    return connection


def url_of(where: Connection, **changed: object) -> str:
    c = replace(where, **changed)  # type: ignore[arg-type]
    return f"postgres://{c.user}:{quote(c.password or '')}@{c.host}:{c.port}/{c.database}?sslmode={c.sslmode}"


def check_refused(url: str, problem: str, clients: int = 1) -> LoadstoneError:
    with pytest.raises(LoadstoneError, match=problem) as refused, open_target(parse_target(url), clients):
        pass
    assert refused.value.hint
    return refused.value


@given(user=TEXT, password=TEXT, database=TEXT, port=st.integers(1, 65535))
def test_a_url_says_what_was_put_into_it(user: str, password: str, database: str, port: int) -> None:
    shown_user, shown_password, path = (quote(text, safe="") for text in (user, password, database))
    target = parse_target(f"postgres://{shown_user}:{shown_password}@h.example:{port}/{path}")
    found = target.connection
    assert found is not None
    assert (found.user, found.password, found.database) == (user, password, database)
    assert (found.host, found.port) == ("h.example", port)
    again = resolve(target.url.replace("postgres:", "postgresql:")).connection
    assert again == replace(found, password=None), "the URL for reports means the same, without the password"


@given(user=TEXT, password=TEXT)
def test_a_libpq_string_says_what_was_put_into_it(user: str, password: str) -> None:
    def quoted(value: str) -> str:
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    found = connection_of(f"host=h.example user={quoted(user)} password = {quoted(password)}")
    assert (found.user, found.password, found.database) == (user, password, user)


@given(password=st.text(st.characters(categories=["Lu", "Ll", "Nd"]), min_size=8))
def test_no_password_is_shown(password: str) -> None:
    secret = f"Pw{password}"
    target = parse_target(f"postgres://u:{secret}@h/d?application_name=x")
    assert secret not in repr(target)
    assert secret not in target.url
    for wrong in (f"postgres://u:{secret}%zz@h/d", f"u:{secret}@h/d", f"gopher://u:{secret}@h"):
        with pytest.raises(LoadstoneError) as refused:
            parse_target(wrong)
        assert secret not in str(refused.value), wrong


def test_the_grammar_of_urls_is_libpqs() -> None:
    found = connection_of("postgresql://[2001:db8::1]:77/d?connect_timeout=3&options=-c%20work_mem%3D1MB")
    assert (found.host, found.port, found.connect_timeout_s) == ("2001:db8::1", 77, 3.0)
    assert found.parameters == {"options": "-c work_mem=1MB"}
    by_socket = connection_of("postgres:///d?host=%2Fvar%2Frun&user=u")
    assert (by_socket.host, by_socket.user, by_socket.sslmode) == ("/var/run", "u", "disable")
    assert connection_of("postgres://%2Fvar%2Frun/d").host == "/var/run"
    assert connection_of("postgres://h/d?ssl=true").sslmode == "require"


def test_what_the_url_leaves_out_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "from-environment")
    monkeypatch.setenv("PGPORT", "7")
    monkeypatch.setenv("PGUSER", "somebody")
    monkeypatch.setenv("PGPASSWORD", "word")
    monkeypatch.setenv("PGSSLMODE", "require")
    monkeypatch.setenv("PGAPPNAME", "me")
    found = connection_of("postgres://")
    assert (found.host, found.port, found.user) == ("from-environment", 7, "somebody")
    assert (found.database, found.password, found.sslmode) == ("somebody", "word", "require")
    assert found.application_name == "me"
    assert connection_of("postgres://other-host/d").host == "other-host"


def test_a_server_on_this_machine_is_sought_at_the_usual_sockets(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert connection_of("postgres://:5999/d").host == "localhost"
    folder = tmp_path_factory.mktemp("s")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / ".s.PGSQL.5999"))
        monkeypatch.setattr("loadstone.engine.postgres.conninfo.SOCKET_FOLDERS", (folder,))
        assert connection_of("postgres://:5999/d").host == str(folder)


def test_the_password_file_is_used_and_one_that_others_can_read_is_not(home: Path) -> None:
    file = home / ".pgpass"
    file.write_text("# mine\nh:5432:*:u:right\n*:*:*:*:any\n")
    file.chmod(0o600)
    assert connection_of("postgres://u@h/d").password == "right"
    assert connection_of("postgres://v@h/d").password == "any"
    assert connection_of("postgres://u:given@h/d").password == "given"
    file.chmod(0o640)
    target = parse_target("postgres://u@h/d")
    assert target.connection is not None
    assert target.connection.password is None
    assert "chmod 600" in target.notes[0]


def test_another_password_file_can_be_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home / "elsewhere"
    file.write_text("h:*:*:*:there\n")
    file.chmod(0o600)
    assert connection_of(f"host=h passfile={file}").password == "there"
    monkeypatch.setenv("PGPASSFILE", str(file))
    assert connection_of("host=h").password == "there"


@given(st.lists(TEXT, min_size=5, max_size=5))
def test_what_is_escaped_in_a_password_file_is_found_again(fields: list[str]) -> None:
    line = ":".join(field.replace("\\", "\\\\").replace(":", "\\:") for field in fields)
    literal = line if fields[0][0] != "#" else "\\" + line
    assert match_password([literal], fields[:4]) == fields[4]
    assert match_password(["", "#" + literal, "a:b", literal + "\r\n"], fields[:4]) == fields[4]
    assert match_password([literal], [*fields[:3], fields[3] + "x"]) is None or fields[3] == "*"
    assert match_password(["*:*:*:*:word"], fields[:4]) == "word"


@given(st.text(max_size=40))
def test_no_line_of_a_password_file_upsets_us(line: str) -> None:
    assert 1 <= len(split_line(line)) <= 5
    match_password([line], ("h", "1", "d", "u"))


def test_a_service_stands_between_the_url_and_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".pg_service.conf").write_text(
        "[other]\nhost=x\n\n# c\n[mine]\nhost=h\nport=7\nuser=u\n[z]\nport=9\n"
    )
    monkeypatch.setenv("PGUSER", "environment")
    found = connection_of("postgres:///d?service=mine&port=8")
    assert (found.host, found.port, found.user, found.database) == ("h", 8, "u", "d")
    monkeypatch.setenv("PGSERVICE", "mine")
    assert connection_of("postgres:///d").port == 7
    with pytest.raises(LoadstoneError, match="service 'none'"):
        parse_target("service=none")


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.from_regex(r"[a-z= ]{0,8}[a-z]", fullmatch=True)
    )
)
def test_a_service_file_gives_back_what_was_written(values: dict[str, str]) -> None:
    section = [f"{name}={value}" for name, value in values.items()]
    assert service_of(["[a]", "x=1", "[mine]", *section, "[z]", "y=2"], "mine") == values
    assert service_of(["[a]", "x=1"], "mine") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("postgres://a,b/d", "several hosts"),
        ("host=a port=1,2", "several hosts"),
        ("postgres://h:99999/d", "the port in the target"),
        ("postgres://h:x/d", "the port in the target"),
        ("postgres://h/d?sslmode=maybe", "not an sslmode"),
        ("postgres://h/d?nonsense=1", "does not accept the target as a connection string"),
        ("host='open", "does not accept the target as a connection string"),
        ("postgres://h/d?connect_timeout=soon", "not a connect_timeout"),
        ("postgres://h/d?sslmode=verify-full", "certificate of an authority"),
        ("postgres://h/d?sslmode=require&sslrootcert=/nonexistent", "sslrootcert does not exist"),
        ("postgres://h/d?target_session_attrs=read-only", "the connection parameter target_session_attrs"),
        ("postgres://h/d?replication=database", "does not support the connection parameter replication"),
        ("postgres://h/d?sslcrl=/some/file", "does not support the connection parameter sslcrl"),
        ("host=@abstract", "abstract unix sockets"),
        ("gopher://h/d", "there is no engine for 'gopher://'"),
        ("mydb", "'mydb' is not a target"),
        ("", "is not a target"),
        ("pg7", "no private PostgreSQL 'pg7'"),
    ],
)
def test_what_cannot_be_is_refused_with_a_mend(text: str, problem: str) -> None:
    with pytest.raises(LoadstoneError, match=problem) as refused:
        parse_target(text)
    assert refused.value.hint


def test_the_files_of_tls_are_found_where_libpq_looks(home: Path) -> None:
    folder = home / ".postgresql"
    folder.mkdir()
    for name in ("root.crt", "postgresql.crt", "postgresql.key"):
        (folder / name).touch()
    found = connection_of("postgres://h/d?sslmode=verify-full")
    assert found.sslrootcert == str(folder / "root.crt")
    assert (found.sslcert, found.sslkey) == (str(folder / "postgresql.crt"), str(folder / "postgresql.key"))
    assert connection_of("postgres://h/d?sslmode=verify-full&sslrootcert=system").sslrootcert == "system"


def test_ids_are_short_names_of_folders_and_each_its_own() -> None:
    texts = [
        "pg",
        "pg18",
        "pg17",
        "pg:system",
        "postgres://My.Host/My%20DB",
        "postgres://my-host/my-db",
        "pg18",
    ]
    ids = [target.id for target in parse_targets(texts)]
    assert ids == ["pg18", "pg18-2", "pg17", "pg-system", "my-host-my-db", "my-host-my-db-2", "pg18-3"]


def test_ids_of_servers_that_differ_by_port_name_it() -> None:
    texts = ["host=db port=5433 dbname=a", "host=db port=5432 dbname=a", "host=db port=5432 dbname=b"]
    assert [target.id for target in parse_targets(texts)] == ["db-5433-a", "db-5432-a", "db-b"]


def test_an_id_says_which_engine_is_measured() -> None:
    texts = [
        "postgres:///bench?host=/run/pg",
        "citus-columnar:///bench?host=/run/columnar",
        "cstore:///bench?host=/run/cstore",
        "cstore-fdw:///bench?host=/run/other",
        "citus://127.0.0.1/bench",
        "mogdb://db.example/bench",
    ]
    assert [target.id for target in parse_targets(texts)] == [
        "socket-bench",
        "citus-columnar-bench",
        "cstore-fdw-bench",
        "cstore-fdw-bench-2",
        "citus-127-0-0-1-bench",
        "opengauss-db-example-bench",
    ]


@given(
    st.lists(
        st.sampled_from(["pg", "pg18", "host=a", "host=a-2", "host=é", "host=é dbname=/", "citus://a/b"]),
        max_size=8,
    )
)
def test_ids_never_clash(texts: list[str]) -> None:
    ids = [target.id for target in parse_targets(texts)]
    assert len(set(ids)) == len(texts)
    assert all(found and "/" not in found for found in ids)


def test_a_private_server_is_opened_and_gone_afterwards() -> None:
    with open_target(parse_target("pg"), 3, settings={"work_mem": "7MB"}) as opened:
        assert opened.server is not None
        data = opened.server.data_directory
        assert data.exists()
        assert opened.local
        assert opened.label == "PostgreSQL 18.6 (embedded)"
        assert opened.build is not None
        assert "zonky" in opened.build
        assert opened.url.startswith("postgres://loadstone@/loadstone?host=/")
        with contextlib.closing(opened.connect("looking")) as control:
            assert control.execute("show work_mem").fetchone() == {"work_mem": "7MB"}
    assert not data.exists()


def test_a_server_by_url_is_looked_at_and_left_alone(server: EmbeddedServer) -> None:
    where = server.tcp_connection
    with open_target(parse_target(url_of(where)), 3) as opened:
        assert opened.server is None
        assert opened.local
        assert opened.identity["version"] == server.installation.version
        assert opened.label == f"PostgreSQL 18.6 at 127.0.0.1:{where.port}, database loadstone"
        assert str(server.tcp_connection.password) not in opened.url
    assert server.is_running()


def test_what_keeps_clients_from_connecting_is_told(server: EmbeddedServer) -> None:
    where = server.tcp_connection
    assert "wrong password" in check_refused(url_of(where, password="wrong"), "cannot connect").message
    assert "Zebra7" not in str(check_refused(url_of(where, password="Zebra7"), "cannot connect"))
    check_refused(url_of(where, database="none"), "the database 'none' does not exist")
    check_refused(url_of(where, sslmode="require"), "the server does not support TLS")
    check_refused(url_of(where, user="nobody-there"), "wrong password")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    check_refused(url_of(where, port=free), "connection refused")
    check_refused("postgres:///d?host=/nonexistent", "no such socket")
    check_refused("postgres://no-such-host.invalid/d", "the host is unknown")


@pytest.mark.slow
def test_a_server_that_keeps_silent_is_given_up() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        check_refused(f"postgres://127.0.0.1:{port}/d?connect_timeout=2", "does not answer")


def test_too_many_clients_are_refused_before_anything_is_touched(server: EmbeddedServer) -> None:
    check_refused(url_of(server.tcp_connection), "100 clients are requested", clients=100)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("/tmp", True),
        ("localhost", True),
        ("127.0.0.2", True),
        ("::1", True),
        ("192.0.2.1", False),
        ("x.invalid", False),
    ],
)
def test_local_is_what_runs_on_this_machine(host: str, local: bool) -> None:  # noqa: FBT001
    assert is_local(host) is local


def test_a_target_is_a_value() -> None:
    assert (
        parse_target("pg17")
        == parse_target(" pg17 ")
        == Target("pg17", "private server pg17", "pg17", "postgres", "pg17")
    )


@pytest.mark.parametrize("text", ["postgres://\udcff@h/d", "host=h user=\udcff"])
def test_a_target_that_is_not_utf8_is_refused(text: str) -> None:
    with pytest.raises(LoadstoneError, match="the target is not UTF-8 text"):
        parse_targets([text])

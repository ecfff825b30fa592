"""ClickHouse behind HTTP, by its own driver: the engine is chDB's, the interface is made here."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from support.serving import serving
from support.table_loads import IMPORT, UNION, USUAL, load, value

from loadstone.engines.clickhouse import ENGINE as CLICKHOUSE
from loadstone.engines.clickhouse import statements
from loadstone.engines.clickhouse.control import ClickError
from loadstone.engines.clickhouse.server import ClickServer
from loadstone.errors import LoadstoneError
from loadstone.model import BulkLoad, PlainTable
from loadstone.target import open_target, parse_target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.model import Rows
    from loadstone.target import OpenTarget

BULK = BulkLoad(rows=IMPORT, table=PlainTable("test", indexes="a:bloom_filter"), batch_rows=5_000, workers=2)
SLOW = "select count(*) from numbers(100000000000) where sipHash64(number) = 7"


@pytest.fixture(scope="module")
def clickhouse_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("clickhouse")
    command = [sys.executable, "-m", "support.fake_clickhouse", str(folder)]
    pipe, tests = subprocess.PIPE, Path(__file__).parents[1]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=tests, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.communicate(timeout=120)  # it ends with its standard input


@pytest.fixture
def target(clickhouse_port: int) -> Iterator[OpenTarget]:
    with open_target(parse_target(f"clickhouse://me:sec%3Aret@127.0.0.1:{clickhouse_port}"), 4) as opened:
        with closing(opened.connect("test")) as control:
            CLICKHOUSE.create_workspace(control)
        yield opened


@pytest.mark.parametrize("rows", [IMPORT, UNION], ids=["import", "types"])
def test_what_was_generated_is_in_the_table(target: OpenTarget, tmp_path: Path, rows: Rows) -> None:
    table = PlainTable("test", indexes="a:bloom_filter" if rows is IMPORT else "0", index_when="after")
    bulk = BulkLoad(rows=rows, table=table, batch_rows=5_000, workers=2, storage=True)
    account = load(target, bulk, tmp_path, USUAL)
    assert (account["state"], account["load"]["verified"]) == ("complete", True), account["load"]["checks"]
    assert value(target, "select count(*) from test") == str(rows.rows)
    with closing(target.connect("looking")) as control:
        assert CLICKHOUSE.explain(control, "select count(*) from test where 1 = 1")
        assert all(line["durable"] for line in CLICKHOUSE.durability(control))
        caches = CLICKHOUSE.flush_caches(control)
        assert not caches["emptied"]
        assert "operating system" in caches["note"]


def test_a_query_that_takes_too_long_is_killed(target: OpenTarget) -> None:
    with closing(target.connect("slow")) as control:
        begun = time.monotonic()
        with CLICKHOUSE.at_most(control, 0.5), pytest.raises(ClickError):
            CLICKHOUSE.answer(control, SLOW)
        assert time.monotonic() - begun < 60, "it ran to its end"
        assert CLICKHOUSE.text_value(control, "select 1") == "1"


@pytest.mark.parametrize(
    ("limit", "words"),
    [("max_connections", "connections"), ("max_concurrent_queries", "queries at once")],
)
def test_more_clients_than_the_server_takes_are_refused_before_anything_is_touched(
    target: OpenTarget, clickhouse_port: int, monkeypatch: pytest.MonkeyPatch, limit: str, words: str
) -> None:
    # chDB's own limits cannot be set; here it tells others.
    told = f"select name, if(name = '{limit}', '7', '0') as value from system.server_settings"
    monkeypatch.setattr(statements, "LIMITS", told + " where name in ({names})")
    with closing(target.connect("asking")) as control:
        CLICKHOUSE.refuse_too_many_clients(control, 5)
    url = f"clickhouse://me:sec%3Aret@127.0.0.1:{clickhouse_port}"
    with pytest.raises(LoadstoneError, match=f"6 clients .* allows 7 {words}") as refused:
        open_target(parse_target(url), 6).__enter__()
    assert limit in refused.value.hint


def test_a_server_that_does_not_tell_its_limits_refuses_nobody(
    clickhouse_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "LIMITS", "select * from system.nowhere where name in ({names})")
    with open_target(
        parse_target(f"clickhouse://me:sec%3Aret@127.0.0.1:{clickhouse_port}"), 1_000_000
    ) as opened:
        assert value(opened, "select 1") == "1"


def test_errors_bear_the_numbers_of_clickhouse(target: OpenTarget) -> None:
    with closing(target.connect("wrong")) as control, pytest.raises(ClickError, match="nonsense") as raised:
        control.execute("select nonsense")
    assert raised.value.sqlstate == "code 47"


def test_somebody_elses_tables_are_not_touched(target: OpenTarget) -> None:
    with closing(target.connect("other")) as control:
        control.execute("create database others")
        control.execute("create table others.theirs (a Int32) engine = MergeTree order by a")
        with pytest.raises(LoadstoneError, match="contains 1 tables that Loadstone did not create"):
            CLICKHOUSE.create_workspace(control, "others")
        with pytest.raises(LoadstoneError, match="not marked"):
            CLICKHOUSE.drop_workspace(control, "others")
        control.execute("drop database others sync")


class Old(BaseHTTPRequestHandler):
    """What ClickHouse 18.16 of Debian answers to the driver's queries at the beginning."""

    def do_POST(self) -> None:
        self.answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode())

    def do_GET(self) -> None:
        self.answer(parse_qs(urlsplit(self.path).query)["query"][0])

    def answer(self, sql: str) -> None:
        refusal = "Code: 47, e.displayText() = DB::Exception: Unknown identifier: readonly"
        known = {"SELECT version(), timezone()": "18.16.1\tUTC\n", "select version()": "18.16.1\n"}
        content = known.get(sql, refusal).encode()
        self.send_response(200 if sql in known else 404)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def test_a_server_that_is_too_old_for_the_driver_is_told_so() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Old) as server, serving(server):
        target = parse_target(f"clickhouse://me:sec%3Aret@127.0.0.1:{server.server_port}")
        with pytest.raises(LoadstoneError, match=r"is ClickHouse 18\.16\.1, which is too old") as refused:
            open_target(target, 2).__enter__()
    assert "23.8 or later" in refused.value.hint


def test_a_server_that_is_too_old_for_our_settings_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    client = SimpleNamespace(server_version="20.3.21.2", close=lambda: None)
    monkeypatch.setattr(ClickServer, "_client", lambda _: client)
    with pytest.raises(LoadstoneError, match=r"is ClickHouse 20\.3\.21\.2, which is too old"):
        open_target(parse_target("clickhouse://me:secret@127.0.0.1:1"), 2).__enter__()


def test_the_password_shows_nowhere(clickhouse_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    target = parse_target(f"clickhouse://me:sec%3Aret@127.0.0.1:{clickhouse_port}")
    assert "sec" not in f"{target}{target.url}"
    monkeypatch.setenv("CLICKHOUSE_PASSWORD", "elsewhere")
    place = parse_target("clickhouse://host").place
    assert place is not None
    assert place.server is not None
    assert (place.server.password, place.server.port, place.server.user) == ("elsewhere", 8123, "default")


@pytest.mark.parametrize("text", ["clickhouse:", "clickhouse://", "clickhouse://h:x", "clickhouse://h/a/b"])
def test_what_names_no_server_is_refused(text: str) -> None:
    with pytest.raises(LoadstoneError):
        parse_target(text)


def test_a_server_that_is_not_there_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    refused = pytest.raises(LoadstoneError, match=f"cannot connect to 127.0.0.1:{port}")
    with refused, open_target(parse_target(f"clickhouse://me:secret@127.0.0.1:{port}"), 4):
        pass


def test_a_missing_driver_is_told_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    place = parse_target("clickhouse://host").place
    assert place is not None
    with pytest.raises(LoadstoneError, match="clickhouse-connect is missing") as refused:
        CLICKHOUSE.open(place, None, {})
    assert "pip install clickhouse-connect==" in refused.value.hint

"""HeavyDB: what is sent and read, against a stand-in made of its client's own Thrift classes.

No HeavyDB server can be had from a registry: that it understands the SQL is not proved here.
"""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.fake_heavydb import PAGE, FakeHeavyDB, listening
from support.table_loads import UNION, load, opened_at

from loadstone.engine.library.packages import install
from loadstone.engine.library.places import listener
from loadstone.engines import engine, engine_of_scheme
from loadstone.engines.heavydb.control import HeavyControl, HeavyError
from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.model import BulkLoad, Connection, PlainTable, Rows
from loadstone.target import open_target, parse_target
from loadstone.workload.load import TableLoadOptions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadstone.target import OpenTarget

GPU, CPU = engine("heavydb"), engine("heavydb_cpu")
BULK = BulkLoad(
    rows=Rows(set="import", rows=20_000),
    table=PlainTable("test"),
    step_rows=5_000,
    batch_rows=1_000,
    workers=2,
)


@pytest.fixture
def server() -> FakeHeavyDB:
    return FakeHeavyDB()


@pytest.fixture
def port(server: FakeHeavyDB) -> Iterator[int]:
    with listening(server) as port:
        yield port


@pytest.fixture
def target(port: int) -> Iterator[OpenTarget]:
    with opened_at(f"heavydb://admin:secret@127.0.0.1:{port}") as opened:
        yield opened


@pytest.fixture
def control(target: OpenTarget) -> Iterator[HeavyControl]:
    with contextlib.closing(target.connect("test")) as control:
        assert isinstance(control, HeavyControl)
        yield control


def opened(
    port: int, scheme: str = "heavydb", more: str = ""
) -> contextlib.AbstractContextManager[OpenTarget]:
    return open_target(parse_target(f"{scheme}://admin:secret@127.0.0.1:{port}{more}"), 2)


def test_both_devices_are_found_by_their_place() -> None:
    assert engine_of_scheme("heavydb") is GPU
    assert engine_of_scheme("heavydb-cpu") is CPU
    assert GPU.status == CPU.status == "not yet run"
    assert "pip install importlib-metadata==" in GPU.needs


def test_a_target_has_defaults_and_shows_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEAVYDB_PASSWORD", "from the variable")
    place = parse_target("heavydb://example.org").place
    assert place is not None
    assert place.server == Connection("example.org", 6274, "admin", "heavyai", "from the variable", "disable")
    assert place.url == "heavydb://admin@example.org:6274/heavyai"
    whole = parse_target("heavydb-cpu://us%40er:p%3Aw@[::1]:99/base?sslmode=require")
    assert whole.place is not None
    assert whole.place.server == Connection("::1", 99, "us@er", "base", "p:w", "require")
    assert whole.url == "heavydb-cpu://us@er@[::1]:99/base?sslmode=require"
    assert "p:w" not in repr(whole)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("heavydb:", "is not followed by a server"),
        ("heavydb://", "is not followed by a server"),
        ("heavydb://host:port", "is not followed by a server"),
        ("heavydb://host/a/b", "is not followed by a server"),
        ("heavydb://host?gpu=1", "heavydb does not support gpu"),
        ("heavydb://host?sslmode=maybe", "not support sslmode maybe"),
        (
            "heavydb://host?sslmode=verify-full&sslrootcert=/nowhere.pem",
            "the file '/nowhere.pem' does not exist",
        ),
    ],
)
def test_what_names_no_server_is_refused(text: str, words: str) -> None:
    with pytest.raises(LoadstoneError, match=words):
        parse_target(text)


@pytest.mark.slow
def test_without_its_package_everything_else_works(tmp_path: Path) -> None:
    for name in ("heavydb", "thrift", "vertica_python"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('not installed')\n")
    text = (
        "import importlib.util, sys\n"
        "real = importlib.util.find_spec\n"
        "lacking = ('heavydb', 'thrift', 'vertica_python')\n"
        "importlib.util.find_spec = lambda name, *more: None if name in lacking else real(name, *more)\n"
        "from loadstone.engines import all_engines\n"
        "from loadstone.target import open_target, parse_target\n"
        "print(len(all_engines()))\n"
        "for url in ('heavydb://host', 'heavydb-cpu://host', 'vertica://host'):\n"
        "    try:\n"
        "        open_target(parse_target(url), 1).__enter__()\n"
        "    except Exception as error:\n"
        "        print(type(error).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert int(lines[0]) >= 8
    said = "\n".join(lines[1:])
    assert said.count("HeavyDB's driver is not installed") == 2
    assert said.count("Vertica's driver is not installed") == 1
    assert said.count(install("heavydb")) == 2


def test_no_number_of_clients_is_refused_for_no_limit_is_known(port: int) -> None:
    with open_target(parse_target(f"heavydb://admin:secret@127.0.0.1:{port}"), 1_000_000) as opened:
        assert opened.engine is GPU


def test_no_server_a_wrong_one_and_a_wrong_password_are_told_apart(port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        free = silent.getsockname()[1]
    with (
        pytest.raises(LoadstoneError, match=f"no HeavyDB server can be reached at 127.0.0.1:{free}"),
        opened(free),
    ):
        pass
    with pytest.raises(LoadstoneError, match="Authentication failure") as refused:
        open_target(parse_target(f"heavydb://admin:wrong@127.0.0.1:{port}"), 1).__enter__()
    assert "HEAVYDB_PASSWORD" in refused.value.hint
    assert "wrong" not in str(refused.value)
    with pytest.raises(LoadstoneError, match="Database name elsewhere does not exist"):
        opened(port, more="/elsewhere").__enter__()


def test_a_server_of_another_kind_is_no_heavydb() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            client, _ = other.accept()
            client.recv(64)
            client.sendall(b"E\0\0\0\x20SFATAL\0C08P01\0Mwrong protocol\0\0")
            client.close()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(LoadstoneError, match="no HeavyDB server can be reached"):
            opened(other.getsockname()[1]).__enter__()
        thread.join(10)


def test_a_server_without_gpu_is_measured_on_the_cpu_only() -> None:
    with listening(FakeHeavyDB(gpus=0)) as port:
        with pytest.raises(LoadstoneError, match="does not use a GPU") as refused, opened(port):
            pass
        assert "heavydb-cpu://" in refused.value.hint
        with opened(port, "heavydb-cpu") as target:
            assert target.label.startswith("HeavyDB (CPU only) 8.1.0")
            assert target.identity["version_text"] == "HeavyDB 8.1.0-20250101-abcdef, 0 GPUs, 16 CPU threads"
            assert target.local


def test_an_old_server_is_refused() -> None:
    with (
        listening(FakeHeavyDB(version="5.10.2-20220101-abc")) as port,
        pytest.raises(LoadstoneError, match=r"the server is HeavyDB 5\.10\.2"),
        opened(port),
    ):
        pass


def test_every_session_of_the_cpu_engine_is_told_so_and_the_plan_says_what_ran(
    server: FakeHeavyDB, port: int
) -> None:
    query = "select count(*) from flights"
    for scheme, device, used in (("heavydb-cpu", "CPU", False), ("heavydb", "GPU", True)):
        with opened(port, scheme) as target, contextlib.closing(target.connect("x")) as control:
            plan = target.engine.explain(control, query)
            assert plan == f"IR for the {device}\nLogicalAggregate(group=[{{}}])"
            assert target.engine.used_gpu(plan) is used
            (chosen,) = [
                found for found in target.engine.settings(control) if found["name"] == "EXECUTOR_DEVICE"
            ]
            assert chosen["value"] == device
    assert set(server.devices.values()) == {"CPU"}
    assert GPU.used_gpu(None) is None
    assert GPU.used_gpu("LogicalAggregate") is None


def test_our_database_is_made_marked_emptied_and_dropped(server: FakeHeavyDB, port: int) -> None:
    with opened(port) as target, contextlib.closing(target.connect("x")) as control:
        engine = target.engine
        assert not engine.has_workspace(control)
        engine.create_workspace(control)
        assert engine.has_workspace(control)
        control.execute("create table t (i integer)")
        with contextlib.closing(target.connect("y")) as other:
            assert other.execute("select count(*) as n from t").fetchone() == {"n": 0}
        engine.create_workspace(control)
        assert engine.tables.existing(control, ["t", "u"]) == []
        engine.drop_workspace(control)
        engine.drop_workspace(control)
        assert list(server.databases) == ["heavyai"]


def test_a_database_that_is_somebody_elses_stays_unless_replaced(server: FakeHeavyDB, port: int) -> None:
    server._databases("create", "loadstone")
    server.databases["loadstone"].execute("create table precious (i integer)")
    with opened(port) as target, contextlib.closing(target.connect("x")) as control:
        with pytest.raises(
            LoadstoneError, match="'loadstone' contains 1 tables that Loadstone did not create"
        ):
            target.engine.create_workspace(control)
        with pytest.raises(LoadstoneError, match="is not marked as created by Loadstone and was not dropped"):
            target.engine.drop_workspace(control)
        assert "loadstone" in server.databases
        target.engine.create_workspace(control, replace=True)
        assert target.engine.has_workspace(control)


def test_one_server_is_measured_on_both_devices_at_once_and_on_each_once(port: int) -> None:
    with opened(port) as one, opened(port) as again, opened(port, "heavydb-cpu") as cpu:
        controls = [target.connect("x") for target in (one, again, cpu)]
        claims = [
            target.engine.claim_workspace(control)
            for target, control in zip((one, again, cpu), controls, strict=True)
        ]
        assert claims == [True, False, True]
        assert one.engine.claim_workspace(controls[0]), "a connection that comes back has it still"
    with opened(port) as later, contextlib.closing(later.connect("x")) as control:
        assert later.engine.claim_workspace(control)


def test_rows_go_in_as_arrow_and_are_compared_by_sums(
    server: FakeHeavyDB, target: OpenTarget, tmp_path: Path
) -> None:
    account = load(target, BULK, tmp_path)
    loaded = account["load"]
    assert (account["state"], loaded["rows"], loaded["verified"]) == ("complete", 20_000, True)
    (check,) = loaded["checks"]
    assert "the engine's SQL cannot hash" in check["detail"]
    assert check["expected"].startswith("20,000 rows, ")
    (made,) = [text for text in server.statements if text.startswith('create table "test"')]
    assert made.endswith("with (fragment_size = 32000000)")
    assert [step["rows"] for step in loaded["steps"]] == [5_000] * 4


def test_every_type_goes_in_and_is_compared(target: OpenTarget, tmp_path: Path) -> None:
    loaded = load(target, replace(BULK, rows=UNION, step_rows=0), tmp_path)["load"]
    assert loaded["verified"] is True, loaded["checks"]
    kinds = {column["type"] for column in loaded["table"]["columns"]}
    assert kinds >= {"int32", "float64", "text", "json"}


def test_that_empty_texts_become_null_is_said_of_files_only(target: OpenTarget, tmp_path: Path) -> None:
    path = tmp_path / "own.parquet"
    pq.write_table(pa.table({"a": pa.array([1, 2], pa.int32()), "word": ["", "x"]}), path)
    rows = Rows(files=(str(path),), format="parquet")
    for name in ("own", "made"):
        (tmp_path / name).mkdir()
    own = load(target, replace(BULK, rows=rows, step_rows=0, workers=1), tmp_path / "own")["load"]
    said = [note for note in own["notes"] if "empty text as NULL" in note]
    assert len(said) == 1
    assert "empty texts of the files in word are NULL" in said[0]
    generated = replace(BULK, table=PlainTable("generated"), step_rows=0)
    made = load(target, generated, tmp_path / "made")["load"]
    assert not any("empty text" in note for note in made["notes"])


@pytest.mark.parametrize(
    "change",
    [
        "delete from test where rowid = 7",
        "update test set {number} = {number} + 1 where rowid = 7",
        "update test set {text} = 'another' where rowid in (7, 8)",
        "update test set {number} = null where rowid = 7",
    ],
)
def test_content_that_differs_fails_the_check(
    server: FakeHeavyDB, target: OpenTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    real = server.load_table_binary_arrow

    def spoil(session: str, *more: Any) -> None:
        real(session, *more)
        database = server._database(session)
        kinds = {name: kind for name, kind, *_ in database.execute("describe test").fetchall()}
        number = next(name for name, kind in kinds.items() if kind in ("INTEGER", "BIGINT"))
        (made,) = [said for said in server.statements if said.startswith('create table "test"')]
        text = re.findall(r'"(\w+)" text encoding dict', made)[0]
        database.execute(change.format(number=f'"{number}"', text=text))

    monkeypatch.setattr(server, "load_table_binary_arrow", spoil)
    loaded = load(target, replace(BULK, rows=replace(UNION, rows=1_000), step_rows=0, workers=1), tmp_path)[
        "load"
    ]
    assert loaded["verified"] is False
    (check,) = loaded["checks"]
    assert "; different: " in check["detail"]


def test_a_refused_batch_ends_the_load(
    server: FakeHeavyDB, target: OpenTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        from heavydb.thrift.ttypes import TDBException  # noqa: PLC0415

        raise TDBException(error_msg="Expected int16 type")

    monkeypatch.setattr(server, "load_table_binary_arrow", refuse)
    account = load(target, BULK, tmp_path)
    assert account["state"] == "aborted"
    assert "Expected int16 type" in account["reason"]
    assert account["errors"][0]["sqlstate"] == "refused"


def test_what_it_does_not_have_is_refused_before_anything_is_made(
    server: FakeHeavyDB, target: OpenTarget, tmp_path: Path
) -> None:
    for table in (
        PlainTable("test", indexes="1"),
        PlainTable("test", primary_key="id"),
        PlainTable("test", tablespace="fast"),
    ):
        with pytest.raises(LoadstoneError, match="HeavyDB does not support"):
            load(target, replace(BULK, table=table), tmp_path)
    with pytest.raises(LoadstoneError, match="does not support the load method insert"):
        load(target, replace(BULK, method="insert"), tmp_path)
    with pytest.raises(LoadstoneError, match="an interrupted load cannot be resumed"):
        load(target, BULK, tmp_path, TableLoadOptions(resume=True))
    assert not any(text.startswith('create table "test"') for text in server.statements)


def test_an_answer_comes_as_arrow_and_a_value_as_text(control: HeavyControl) -> None:
    found = GPU.answer(control, "select 41 + 1 as n, 'x' as t")
    assert isinstance(found, pa.Table)
    assert found.to_pylist() == [{"n": 42, "t": "x"}]
    assert GPU.text_value(control, "select 2.5") == "2.5"
    assert GPU.text_value(control, "select cast(null as integer)") is None
    with pytest.raises(RunFailedError, match="2 rows of 1 columns:"):
        GPU.text_value(control, "select * from (values (1), (2)) as v(i)")
    with pytest.raises(HeavyError, match="SQL Error") as refused:
        control.execute("select nothing from nowhere")
    assert refused.value.sqlstate == "refused"
    rows = control.execute("select true as b, null::integer as i, 1.5::double as d, 'a' as t").fetchall()
    assert rows == [{"b": True, "i": None, "d": 1.5, "t": "a"}]


def test_sizes_count_pages_in_use_and_say_what_is_not_told(control: HeavyControl) -> None:
    control.execute("create table t (i integer)")
    used = 6 * PAGE + 4096
    assert GPU.tables.size(control, "t").table_bytes == used
    sizes = GPU.sizes(control)
    assert sizes["database_bytes"] == 2 * (256 * PAGE + 4 * 4096), "the mark's table too"
    assert {(r["kind"], r["bytes"]) for r in sizes["relations"]} == {
        ("table", used),
        ("free pages", 250 * PAGE + 3 * 4096),
    }
    storage = GPU.storage(control, ["t"])
    assert [table["heap_bytes"] for table in storage.tables] == [used]
    assert any("information_schema" in note for note in storage.notes)


def test_columns_of_a_table_that_is_there(control: HeavyControl) -> None:
    control.execute("create table c (a smallint, b bigint, f real, d double, s text, k date, t timestamp)")
    assert [column["type"] for column in GPU.tables.existing_columns(control, "c")] == [
        "int16", "int64", "float32", "float64", "text", "date", "timestamp",
    ]  # fmt: skip


def test_gauges_are_of_both_buffer_pools(control: HeavyControl) -> None:
    part = GPU.observe(control).part
    assert part["gauges"] == {
        "cpu_pool_bytes": 5120,
        "cpu_pool_used_bytes": 1536,
        "gpu_pool_bytes": 2048,
        "gpu_pool_used_bytes": 1536,
    }
    assert part["counters"] is None


def test_caches_are_emptied_as_far_as_that_can_be_done(server: FakeHeavyDB, control: HeavyControl) -> None:
    found = GPU.flush_caches(control)
    assert (found["emptied"], "GPU and CPU" in found["note"]) == (False, True)
    server.super_user = False
    assert "Super user" in GPU.flush_caches(control)["note"]


@pytest.mark.parametrize("deaf", [False, True])
def test_a_query_that_takes_too_long_is_interrupted_and_cut_off_if_need_be(
    server: FakeHeavyDB, control: HeavyControl, monkeypatch: pytest.MonkeyPatch, *, deaf: bool
) -> None:
    server.deaf = deaf
    real = HeavyControl.interrupt
    monkeypatch.setattr(HeavyControl, "interrupt", lambda self: real(self, 0.3 if deaf else 30.0))
    begin = time.monotonic()
    with pytest.raises(HeavyError) as ended, GPU.at_most(control, 0.2):
        GPU.answer(control, "select hang()")
    assert time.monotonic() - begin < 55, "the stand-in hangs for a minute"
    assert ended.value.lost is deaf
    assert ("interrupted" in str(ended.value)) is not deaf
    assert GPU.text_value(control, "select 1") == "1", "the connection goes on, by another session if need be"


def test_a_dropped_database_takes_its_sessions_along_and_they_come_back(
    server: FakeHeavyDB, target: OpenTarget, control: HeavyControl
) -> None:
    with contextlib.closing(target.connect("y")) as other:
        assert other.execute("select 1 as one").fetchone() == {"one": 1}
        GPU.drop_workspace(control)
        with pytest.raises(HeavyError, match="Session not valid") as lost:
            other.execute("select 1 as one")
        assert lost.value.lost
        assert other.execute("select 1 as one").fetchone() == {"one": 1}
    assert server.databases.keys() == {"heavyai"}


def test_no_session_falls_back_to_the_users_database_once_ours_was_made(
    server: FakeHeavyDB, target: OpenTarget
) -> None:
    del server.databases["loadstone"]
    with pytest.raises(LoadstoneError, match="the database 'loadstone' is gone:"):
        target.connect("y")


def test_the_process_behind_a_port_is_found_only_here(port: int) -> None:
    import os  # noqa: PLC0415 - the stand-in serves in this very process

    assert listener(Connection("127.0.0.1", port, "", "")).pid == os.getpid()
    assert listener(Connection("192.0.2.1", port, "", "")).reason == "the server is not on this machine"

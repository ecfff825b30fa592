"""What DuckDB answers, asked of DuckDB itself: files, memory, locks, sizes, interruption."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from loadstone.engine import SCHEMA, Engine
from loadstone.engine.library.engine import LibraryEngine
from loadstone.engine.postgres.family import PostgresFamily
from loadstone.engines import engine, engine_of_scheme
from loadstone.engines.duckdb import ENGINE as DUCKDB
from loadstone.engines.duckdb import MARK
from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.private_server import PrivateFolder
from loadstone.target import open_target, parse_target, parse_targets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadstone import _core
    from loadstone.engines.duckdb.database import DuckControl, DuckDatabase
    from loadstone.target import OpenTarget


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "own.duckdb"


@pytest.fixture
def database(file: Path) -> Iterator[DuckDatabase]:
    with contextlib.closing(DUCKDB.open(DUCKDB.place(str(file)), None, {})) as opened:
        yield opened


@pytest.fixture
def control(database: DuckDatabase) -> DuckControl:
    control = database.connect("loadstone")
    DUCKDB.create_workspace(control)
    return control


def fill(control: DuckControl, rows: int = 300_000) -> None:
    control.execute("create table t (i bigint, x double, s text)")
    control.execute(f"insert into t select i, random(), 'v' || i % 100 from range({rows}) r(i)")


def test_a_file_that_is_called_as_our_schema_is_refused(tmp_path: Path) -> None:
    place = DUCKDB.place(str(tmp_path / "Loadstone.duckdb"))
    with contextlib.closing(DUCKDB.open(place, None, {})) as database:
        control = database.connect("loadstone")
        with pytest.raises(LoadstoneError, match="named 'loadstone', like the schema") as refused:
            DUCKDB.create_workspace(control)
        assert "Rename the file" in refused.value.hint


def opened(text: str, **given: object) -> contextlib.AbstractContextManager[OpenTarget]:
    return open_target(parse_target(text), 4, **given)  # type: ignore[arg-type]


def test_it_is_found_by_its_place_and_is_no_kin_of_postgresql() -> None:
    assert engine("duckdb") is DUCKDB
    assert engine_of_scheme("DuckDB") is DUCKDB
    assert isinstance(DUCKDB, LibraryEngine | Engine)
    assert not isinstance(engine("duckdb"), PostgresFamily)
    assert DUCKDB.in_process
    assert DUCKDB.errors == (duckdb.Error,)


def test_it_knows_which_version_answers(control: DuckControl) -> None:
    identity = DUCKDB.identify(control)
    assert identity["version"] == duckdb.__version__
    assert identity["version_text"].startswith(f"DuckDB v{duckdb.__version__} (")
    major, minor, patch = (int(part) for part in duckdb.__version__.split("."))
    assert identity["version_number"] == major * 10000 + minor * 100 + patch
    assert DUCKDB.label(identity) == f"DuckDB {duckdb.__version__}"
    assert DUCKDB.postgres_version(identity) is None


@pytest.mark.parametrize(
    ("text", "id_", "url", "private"),
    [
        ("duckdb:", "duckdb", "duckdb:", True),
        ("duckdb://", "duckdb", "duckdb:", True),
        ("duckdb::memory:", "duckdb-memory", "duckdb::memory:", True),
        ("duckdb:{}/a b.duckdb", "duckdb-a-b", "duckdb:{}/a b.duckdb", False),
        ("duckdb://{}/x.db", "duckdb-x", "duckdb:{}/x.db", False),
    ],
)
def test_what_each_spelling_means(tmp_path: Path, text: str, id_: str, url: str, private: bool) -> None:  # noqa: FBT001
    target = parse_target(text.format(tmp_path))
    assert target.place is not None
    assert (target.id, target.url, target.engine) == (id_, url.format(tmp_path), "duckdb")
    assert target.place.private is private
    assert target.connection is None
    assert target.embedded is None


def test_several_targets_get_ids_of_their_own() -> None:
    assert [target.id for target in parse_targets(["duckdb:", "duckdb:", "pg"])] == [
        "duckdb",
        "duckdb-2",
        "pg18",
    ]


def test_a_missing_folder_and_a_folder_in_place_of_a_file_are_refused(
    tmp_path: Path,
) -> None:
    with pytest.raises(LoadstoneError, match="does not exist") as refused:
        parse_target(f"duckdb:{tmp_path}/nowhere/x.duckdb")
    assert "mkdir -p" in refused.value.hint
    with pytest.raises(LoadstoneError, match="is a folder"):
        parse_target(f"duckdb:{tmp_path}")
    assert list(tmp_path.iterdir()) == []


def test_a_private_file_is_there_while_it_is_open_and_gone_afterwards(tmp_path: Path) -> None:
    with opened("duckdb:", storage=tmp_path) as target:
        folder = target.data_directory
        assert folder is not None
        assert folder.parent == tmp_path
        assert (folder / "private.duckdb").exists()
        assert folder.stat().st_mode & 0o077 == 0, "nobody else may look"
        assert target.private
        assert target.local
        assert target.connection is None
        assert target.label == f"DuckDB {duckdb.__version__}, a private file"
        with contextlib.closing(target.connect("looking")) as control:
            assert control.execute("select 41 + 1 as answer").fetchone() == {"answer": 42}
    assert list(tmp_path.iterdir()) == []


def test_a_private_file_is_kept_on_request(tmp_path: Path) -> None:
    with opened("duckdb:", storage=tmp_path, keep=True) as target:
        farewell = target.farewell()
        folder = target.data_directory
    assert folder is not None
    assert farewell is not None
    assert f"rm -r {folder}" in farewell
    assert (folder / "private.duckdb").exists()


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path) -> None:
    text = (
        "import os, pathlib, sys\n"
        "from loadstone.private_server import PrivateFolder\n"
        "folder = PrivateFolder(pathlib.Path(sys.argv[1])).__enter__()\n"
        "(folder.path / 'private.duckdb').touch()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", text, str(tmp_path)], check=False)
    assert done.returncode == -9
    (left,) = tmp_path.iterdir()
    with PrivateFolder(tmp_path) as folder:
        assert not left.exists()
        assert any(str(left) in said for said in folder.reaped)
    assert list(tmp_path.iterdir()) == []


def test_the_users_file_is_made_if_it_is_not_there_and_never_removed(file: Path) -> None:
    with opened(f"duckdb:{file}") as target:
        assert not target.private
        assert target.farewell() is None
        with contextlib.closing(target.connect("loadstone")) as control:
            control.execute("create table mine as select 7 as seven")
    with opened(f"duckdb:{file}") as target, contextlib.closing(target.connect("loadstone")) as control:
        assert control.execute("select seven from mine").fetchone() == {"seven": 7}


def test_a_file_serves_one_run_and_one_process_at_a_time(database: DuckDatabase, file: Path) -> None:
    with (
        pytest.raises(LoadstoneError, match="already in use by this run") as refused,
        opened(f"duckdb:{file}"),
    ):
        pass
    assert "a target only once" in refused.value.hint
    assert not database.closed
    text = (
        "import sys\n"
        "from loadstone.target import open_target, parse_target\n"
        "from loadstone.errors import LoadstoneError\n"
        "try:\n"
        "    with open_target(parse_target('duckdb:' + sys.argv[1]), 1): pass\n"
        "except LoadstoneError as error: print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", text, str(file)], check=True, capture_output=True, text=True)
    assert f"is in use by process {os.getpid()}" in said.stdout
    assert "one process" in said.stdout


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(file: Path) -> None:
    file.write_bytes(b"some text, long enough to be looked at\n" * 1000)
    before = file.read_bytes()
    with pytest.raises(LoadstoneError, match="is not a DuckDB database"), opened(f"duckdb:{file}"):
        pass
    assert file.read_bytes() == before


def test_settings_are_for_every_database_and_checked(file: Path) -> None:
    with opened("duckdb::memory:", settings={"threads": "3"}) as target:
        with contextlib.closing(target.connect("loadstone")) as control:
            found = {setting["name"]: setting for setting in DUCKDB.settings(control)}
        assert found["threads"] == {"name": "threads", "value": "3", "source": "--setting"}
        assert found["autoinstall_known_extensions"]["source"] == "Loadstone"
        assert found["memory_limit"]["source"] == "default"
        assert found["TimeZone"]["value"] == "UTC"
    with pytest.raises(LoadstoneError, match=r"refuses a setting \(nonsense=1\)") as refused:
        opened("duckdb::memory:", settings={"nonsense": "1"}).__enter__()
    assert "--setting" in refused.value.hint
    with pytest.raises(LoadstoneError, match=r"refuses a setting \(nonsense=1\)"):
        opened(f"duckdb:{file}", settings={"nonsense": "1"}).__enter__()


def test_no_extension_is_fetched_and_no_variable_of_ours_is_a_table(control: DuckControl) -> None:
    hidden = [1, 2, 3]  # noqa: F841 - it must not be found
    with pytest.raises(duckdb.CatalogException, match="hidden"):
        control.execute("select * from hidden")
    with pytest.raises(duckdb.Error, match=r"(?i)extension"):
        control.execute("select * from st_read('x')")
    assert "extension:icu" in DUCKDB.capabilities(control)
    assert "extension:spatial" not in DUCKDB.capabilities(control)
    assert DUCKDB.missing(control, frozenset({"sql", "plpgsql"})) == {
        "plpgsql": "DuckDB does not support 'plpgsql' here"
    }


def test_unqualified_names_mean_the_schemas_objects_on_every_connection(
    database: DuckDatabase, control: DuckControl
) -> None:
    control.execute("create table main.outside as select 1 as a")
    control.execute("create table t as select 42 as answer")
    other = database.connect("other")
    assert other.execute("select answer from t").fetchone() == {"answer": 42}
    assert other.execute("select a from outside").fetchone() == {"a": 1}
    assert other.execute("select current_schema() as here").fetchone() == {"here": SCHEMA}


def test_rows_are_dictionaries_of_python_values(control: DuckControl) -> None:
    found = control.execute(
        "select timestamptz '2016-01-01 00:00:00+00' as t, $n::bigint as n, null as nothing", {"n": 5}
    )
    row = found.fetchone()
    assert row is not None
    assert (row["t"].isoformat(), row["n"], row["nothing"]) == ("2016-01-01T00:00:00+00:00", 5, None)
    assert found.fetchone() is None
    assert [row["i"] for row in control.execute("select i from range(3) r(i)")] == [0, 1, 2]
    assert control.execute("create table u (i int)").fetchall() == []


def test_a_workspace_of_ours_is_made_new_and_leaves_nothing(control: DuckControl) -> None:
    fill(control, 10)
    DUCKDB.create_workspace(control)
    assert DUCKDB.sizes(control)["relations_left_out"] == 0
    with pytest.raises(duckdb.CatalogException):
        control.execute("select * from t")
    DUCKDB.drop_workspace(control)
    DUCKDB.drop_workspace(control)
    count = "select count(*) as n from duckdb_schemas() where schema_name = 'loadstone'"
    assert control.execute(count).fetchone() == {"n": 0}


def test_somebody_elses_schema_is_refused_unless_it_is_to_be_replaced(control: DuckControl) -> None:
    control.execute("create schema theirs")
    control.execute("create table theirs.thesis (i int)")
    with pytest.raises(LoadstoneError, match="1 objects that Loadstone did not create"):
        DUCKDB.create_workspace(control, "theirs")
    with pytest.raises(LoadstoneError, match="was not dropped"):
        DUCKDB.drop_workspace(control, "theirs")
    control.execute("select * from theirs.thesis")
    DUCKDB.create_workspace(control, "theirs", replace=True)
    assert DUCKDB.text_value(control, f"select count(*) from theirs.{MARK}") == "1"
    DUCKDB.drop_workspace(control, "theirs")


def test_a_schemas_name_may_hold_anything(control: DuckControl) -> None:
    name = 'a"; drop table loadstone.x; --'
    count = "select count(*) as n from duckdb_schemas() where schema_name = $name"
    control.execute("create table loadstone.x (i int)")
    DUCKDB.create_workspace(control, name)
    assert control.execute(count, {"name": name}).fetchone() == {"n": 1}
    DUCKDB.drop_workspace(control, name)
    assert control.execute(count, {"name": name}).fetchone() == {"n": 0}
    assert control.execute("select * from loadstone.x").fetchall() == [], "the other table stays"


def test_durability_is_judged_with_reasons(control: DuckControl) -> None:
    judged = {line["setting"]: line for line in DUCKDB.durability(control)}
    assert judged["fsync_mode"]["durable"]
    assert all(line["why"] for line in judged.values())
    control.execute("set global fsync_mode = 'NONE'")
    judged = {line["setting"]: line for line in DUCKDB.durability(control)}
    assert not judged["fsync_mode"]["durable"]
    assert "crash" in judged["fsync_mode"]["why"]
    with opened("duckdb::memory:") as target, contextlib.closing(target.connect("x")) as memory:
        (line,) = DUCKDB.durability(memory)
        assert not line["durable"]
        assert DUCKDB.sizes(memory)["database_bytes"] is None


def test_a_commit_is_there_after_the_process_was_killed(file: Path) -> None:
    text = (
        "import os, sys, duckdb\n"
        "c = duckdb.connect(sys.argv[1])\n"
        "c.execute('create table t as select range as i from range(5000)').fetchall()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", text, str(file)], check=False)
    assert file.with_name("own.duckdb.wal").exists(), "what was committed is in the WAL only"
    with opened(f"duckdb:{file}") as target, contextlib.closing(target.connect("x")) as control:
        assert DUCKDB.text_value(control, "select count(*) from t") == "5000"


def test_sizes_add_up_to_the_files(control: DuckControl, file: Path) -> None:
    fill(control)
    control.execute("create index by_i on t (i)")
    assert DUCKDB.checkpoint(control) is None
    sizes = DUCKDB.sizes(control)
    found = {relation["name"]: relation for relation in sizes["relations"]}
    assert sizes["database_bytes"] == file.stat().st_size
    assert found["t"]["rows_estimate"] == 300_000
    assert found["t"]["bytes"] >= 300_000 * 8, "random doubles cannot be compressed"
    assert found["(indexes, metadata)"]["bytes"] > 1_000_000
    headers = 3 * 4096
    assert sum(relation["bytes"] for relation in sizes["relations"]) == file.stat().st_size - headers
    assert [r["bytes"] for r in sizes["relations"]] == sorted(
        (r["bytes"] for r in sizes["relations"]), reverse=True
    )


def test_the_wal_is_told_and_a_checkpoint_empties_it(control: DuckControl) -> None:
    control.execute("create table t as select 1 as i")
    observed = DUCKDB.observe(control)
    gauges = observed.part["gauges"]
    assert gauges is not None
    assert (gauges["wal_file_bytes"] or 0) > 0
    assert (gauges["memory_bytes"] or 0) > 0
    assert observed.part["counters"] is None
    assert len(observed.reasons) == 2
    assert DUCKDB.checkpoint(control) is None
    assert (DUCKDB.gauges(control).values or {})["wal_file_bytes"] == 0


def test_one_value_is_given_as_duckdb_writes_it(control: DuckControl) -> None:
    assert DUCKDB.text_value(control, "with a as (select 12 as n) select sum(n) from a") == "12"
    assert DUCKDB.text_value(control, "select null") is None
    assert (
        DUCKDB.text_value(control, "select timestamptz '2016-01-01 00:00:00+00' -- begin")
        == "2016-01-01 00:00:00+00"
    )
    with pytest.raises(RunFailedError, match="2 rows of 1 columns"):
        DUCKDB.text_value(control, "select * from range(2)")
    with pytest.raises(RunFailedError, match="1 rows of 2 columns"):
        DUCKDB.text_value(control, "select 1, 2")


ENDLESS = "select max(a.i * b.i) from range(10000000) a(i), range(10000000) b(i)"


def test_a_statement_is_cut_off_after_a_while(control: DuckControl) -> None:
    begin = time.monotonic()
    with pytest.raises(duckdb.InterruptException), DUCKDB.at_most(control, 0.3):
        control.execute(ENDLESS)
    assert time.monotonic() - begin < 60
    assert DUCKDB.text_value(control, "select 1") == "1"


def test_statements_are_cancelled_by_the_name_of_their_connection(
    database: DuckDatabase, control: DuckControl
) -> None:
    client, other = database.connect("loadstone-7"), database.connect("loadstone-8")
    failures: list[Exception] = []

    def work(connection: DuckControl) -> None:
        try:
            connection.execute(ENDLESS)
        except duckdb.Error as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(each,)) for each in (client, other)]
    for thread in threads:
        thread.start()
    assert DUCKDB.cancel(control, "loadstone-9") == 0
    for thread, name in zip(threads, ("loadstone-7", "loadstone-8"), strict=True):
        while thread.is_alive():  # what has not begun yet is not cancelled
            assert DUCKDB.cancel(control, name) == 1
            thread.join(0.1)
        assert threads[1].is_alive() == (name == "loadstone-7")
    assert isinstance(failures[0], duckdb.InterruptException)


def test_emptying_caches_opens_the_file_anew_and_connections_live_on(
    database: DuckDatabase, control: DuckControl
) -> None:
    other = database.connect("other")
    fill(control)
    caches = DUCKDB.flush_caches(control)
    assert caches["emptied"]
    assert DUCKDB.text_value(other, "select count(*) from t") == "300000"
    assert DUCKDB.text_value(control, "select current_schema()") == SCHEMA


def test_its_processes_are_our_own(control: DuckControl) -> None:
    found = DUCKDB.server_pids(control)
    assert found.pid is None
    assert "own process" in (found.reason or "")
    DUCKDB.refuse_too_many_clients(control, 10_000)


def test_a_closed_connection_says_so(database: DuckDatabase, control: DuckControl) -> None:
    other = database.connect("other")
    control.close()
    control.close()
    assert control.closed
    with pytest.raises(duckdb.Error, match="closed"):
        control.execute("select 1")
    assert other.execute("select 1 as one").fetchone() == {"one": 1}
    database.close()
    database.close()
    assert other.closed
    with pytest.raises(LoadstoneError, match="cannot be used"):
        database.connect("late")


ENDLESS = "select max(a.i * b.i) from range(10000000) a(i), range(10000000) b(i)"


@pytest.mark.parametrize("handed_over", [False, True])
def test_a_signal_while_a_statement_is_handed_over_leaves_it_not_running(
    database: DuckDatabase, monkeypatch: pytest.MonkeyPatch, *, handed_over: bool
) -> None:
    control = database.connect("a run")
    submit = database.helper.submit

    def interrupted(*given: Any) -> None:
        if handed_over:
            submit(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(database.helper, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        control.execute(ENDLESS)
    free = submit(lambda: True)
    try:
        assert free.result(timeout=60)
    finally:
        while not free.done():
            control.interrupt()


def test_what_the_main_thread_wants_of_duckdb_is_done_by_another(
    database: DuckDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal is not handled before the main thread comes back to Python."""
    control = database.connect("a run")
    control.forget()  # as when the database was opened again
    make, makers = database.connection, []

    def made() -> _core.DuckConnection:
        makers.append(threading.current_thread())
        return make()

    monkeypatch.setattr(database, "connection", made)
    control.execute("select 1")
    assert makers
    assert threading.main_thread() not in makers

"""DuckDB's clients in the core: many at once, without Python's lock, and one database for all."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from support.table_loads import BULK, IMPORT, UNION, check_whole, load, opened_at, value

from loadstone.engines.duckdb import ENGINE as DUCKDB
from loadstone.engines.duckdb.library import opened
from loadstone.model import Load, PlainTable, Rows, Series
from loadstone.target import open_target, parse_target
from loadstone.workload.load import TableLoadOptions
from loadstone.workload.queries.execution import QueryOptions, perform_all
from loadstone.workload.tsbs.load import perform_load

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

CLIENTS = 50
FLIGHTS = Rows(set="flights", rows=3_000)
MEETING = f"""
with recursive waiting(arrived) as (
    select nextval('main.arrivals') union all
    select currval('main.arrivals') from waiting where arrived < {CLIENTS}
) select max(arrived) as arrived from waiting
"""
"""A query that ends when so many of them are in flight."""


def test_fifty_clients_are_inside_their_queries_at_once(tmp_path: Path) -> None:
    """Also: a database in memory is the same one for all of them and for the control connection."""
    with open_target(parse_target("duckdb::memory:"), CLIENTS) as target:
        with closing(target.connect("test")) as control:
            control.execute("create sequence main.arrivals")
        options = QueryOptions(workers=CLIENTS, timeout_s=50.0, resting=False)
        account = perform_all([("", MEETING)] * CLIENTS, target, tmp_path, None, None, options)
    assert (account["state"], account["counts"]["done"]) == ("complete", CLIENTS), account["errors"]


def test_clients_need_no_lock_of_python(tmp_path: Path) -> None:
    """The main thread keeps Python's lock until a client has reached the last query of the list."""
    text = (
        "import ctypes, json, os, pathlib, sys\n"
        "from loadstone import _core\n"
        "from loadstone.engines.duckdb.library import opened\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "pipe, out = str(folder / 'pipe'), folder / 'out'\n"
        "queries = [[0, f'select {n} as n'] for n in range(500)]\n"
        "last = f\"copy (select 'here' as word) to '{pipe}' (use_tmp_file false, header false)\"\n"
        "queries = {'labels': ['a'], 'queries': [*queries, [0, last]]}\n"
        "document = {'queries': queries, 'clients': 50, 'pace': {'kind': 'closed'}, 'interval_s': 0.1,\n"
        "    'out_dir': str(out), 'timeout_s': 50.0, 'seed': 1}\n"
        "drive = _core.Drive(json.dumps(document), opened(None, {}).clients('{\"begin\": []}'))\n"
        "drive.start()\n"
        "end = ctypes.PyDLL(None).open(pipe.encode(), os.O_RDONLY)\n"
        "print(os.read(end, 100).decode().strip(), json.loads(drive.wait(200))['counts']['done'])\n"
    )
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "out").mkdir()
    command = [sys.executable, "-c", text, str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=240)
    assert done.stdout == "here 501\n"


def test_no_committed_row_is_lost_whoever_wrote_it(tmp_path: Path) -> None:
    """Clients that load, clients that run statements and a control connection write one file at once."""
    path = tmp_path / "all.duckdb"
    series = Series(use_case="cpu-only", start="2016-01-01T00:00:00Z", end="2016-01-01T04:00:00Z", scale=10)
    rows = Load(data=series, method="arrow", batch_rows=200, workers=3)
    folders = [tmp_path / name for name in ("load", "statements")]
    loaded: list[dict[str, Any]] = []
    noted = 0
    with opened_at(f"duckdb:{path}") as target, closing(target.connect("test")) as control:
        DUCKDB.create_workspace(control)
        for table in ("stated", "noted"):
            control.execute(f"create table main.{table} (i int)")

        def note(_: object) -> None:
            nonlocal noted
            control.execute("insert into main.noted values (1)")
            noted += 1

        for folder in folders:
            folder.mkdir()
        loading = threading.Thread(
            target=lambda: loaded.append(perform_load(rows, target, folders[0], show=note))
        )
        loading.start()
        options = QueryOptions(workers=4, resting=False)
        statement = ("", "insert into main.stated values (1)")
        stated = perform_all([statement] * 200, target, folders[1], None, None, options)
        loading.join()
    assert (stated["counts"]["done"], stated["state"]) == (200, "complete"), stated["errors"]
    (account,) = loaded
    assert (account["state"], account["load"]["verified"]) == ("complete", True)
    assert noted > 0
    with duckdb.connect(str(path), read_only=True) as package:
        counted = [
            package.sql(f"select count(*) from {table}").fetchall()[0][0]
            for table in ("loadstone.cpu", "main.stated", "main.noted")
        ]
    assert counted == [account["load"]["rows"], 200, noted]


@pytest.mark.parametrize("method", ["arrow", "insert"])
@pytest.mark.parametrize("rows", [IMPORT, UNION, FLIGHTS], ids=["import", "types", "flights"])
def test_rows_of_every_type_come_in_as_they_are(tmp_path: Path, rows: Rows, method: Any) -> None:
    """More rows at once than one of DuckDB's vectors holds; count and fingerprint are compared."""
    bulk = replace(BULK, rows=rows, table=PlainTable("t"), method=method, batch_rows=2_500, step_rows=0)
    with opened_at("duckdb:") as target:
        assert check_whole(load(target, bulk, tmp_path))["rows"] == rows.rows


def test_a_large_batch_keeps_its_order_and_its_rows_leave_no_view_behind(tmp_path: Path) -> None:
    """Several threads read a batch of three groups of rows; one view serves each load that comes after."""
    path, rows = tmp_path / "large.duckdb", 260_000
    bulk = replace(
        BULK, rows=replace(IMPORT, rows=rows), table=PlainTable("t"), batch_rows=rows, step_rows=0, workers=1
    )
    with opened_at(f"duckdb:{path}?setting.threads=4") as target:
        for number in range(2):
            folder = tmp_path / str(number)
            folder.mkdir()
            assert check_whole(load(target, bulk, folder, TableLoadOptions(replace=True)))["batches"] == 1
        views = "select count(*)::varchar from duckdb_views() where database_name = '__loadstone_rows'"
        assert value(target, f"{views} and not internal") == "1"
        ordered = "select count(*)::varchar from (select l, lag(l) over () as before from loadstone.t)"
        assert value(target, f"{ordered} where l > before") == str(rows - 1)
    with duckdb.connect(str(path), read_only=True) as package:
        found = package.sql("select view_name from duckdb_views() where not internal").fetchall()
    assert found == [("made_by_loadstone",)]


def test_a_file_that_is_still_in_use_here_is_not_opened_again(tmp_path: Path) -> None:
    with (
        opened_at(f"duckdb:{tmp_path}/own.duckdb"),
        pytest.raises(duckdb.ConnectionException, match="is open in this process"),
    ):
        opened(tmp_path / "own.duckdb", {})

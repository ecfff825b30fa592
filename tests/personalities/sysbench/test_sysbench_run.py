"""Scripts run by `loadstone sysbench`, with and without a server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from loadstone.personalities import sysbench
from loadstone.personalities.sysbench.distribution import CLASSES, class_of

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Database


def run(*arguments: str) -> tuple[int, str, str]:
    out: list[str] = []
    err: list[str] = []
    code = sysbench.main(arguments, out.append, err.append)
    return code, "".join(out), "".join(err)


def place(database: Database) -> tuple[str, ...]:
    there = database.server.connection
    server = ("--db-driver=pgsql", f"--pgsql-host={there.host}", f"--pgsql-port={there.port}")
    return (*server, f"--pgsql-user={there.user}", f"--pgsql-db={database.name}", "--table-size=500")


def script(folder: Path, text: str) -> str:
    path = folder / "own.lua"
    path.write_text(text)
    return str(path)


def test_a_workload_is_prepared_run_and_cleaned_up(database: Database) -> None:
    where = place(database)
    code, out, _ = run(*where, "--tables=2", "oltp_read_write", "prepare")
    assert (code, "Inserting 500 records into 'sbtest2'" in out) == (0, True)
    for table in ("sbtest1", "sbtest2"):
        rows = (
            f"select array[count(*), count(distinct id), min(id), max(id)] from {table} where length(c) = 119"
        )
        assert database.value(rows) == [500, 500, 1, 500]
    code, out, _ = run(*where, "--tables=2", "--threads=3", "--events=30", "oltp_read_write", "run")
    assert code == 0
    figures = dict(
        re.findall(r"^ +(read|write|transactions|total number of events): +(\d+)", out, re.MULTILINE)
    )
    assert figures["transactions"] == figures["total number of events"] == "30"
    assert int(figures["read"]) >= 30 * 14
    code, out, _ = run(*where, "--tables=2", "oltp_read_write", "cleanup")
    assert (code, out.count("Dropping table")) == (0, 2)
    assert database.value("select to_regclass('sbtest1')") is None


def test_an_error_names_file_line_and_client(tmp_path: Path) -> None:
    own = script(tmp_path, "function event()\n  local none\n  return none.x\nend\n")
    code, out, err = run(own, "run")
    assert code == 1
    assert re.search(
        r"^FATAL: `thread_run' function failed: .*own\.lua:3: attempt to index", out, re.MULTILINE
    )
    assert "General statistics" not in out
    assert "client 0" in err
    assert "traceback" in err


def test_what_is_printed_before_an_error_of_loading_is_shown(tmp_path: Path) -> None:
    code, out, _ = run(script(tmp_path, "print('so far')\nlocal x = nil + 1"), "run")
    assert code == 1
    assert re.search(r"^so far\nFATAL: .*own\.lua:2: ", out, re.MULTILINE)


def test_an_error_that_the_script_catches_ends_nothing(database: Database, tmp_path: Path) -> None:
    text = (
        "function event() pcall(function() sysbench.sql.driver():connect():query('select nothing') end) end"
    )
    code, out, _ = run(*place(database)[:-1], script(tmp_path, text), "--events=1", "run")
    assert code == 0
    assert "total number of events:              1" in out


def test_a_server_that_is_not_there_ends_the_run(tmp_path: Path) -> None:
    where = ("--db-driver=pgsql", f"--pgsql-host={tmp_path}", "--pgsql-port=1")
    code, out, _ = run(*where, "oltp_point_select", "run")
    assert code == 1
    assert "FATAL: " in out


def test_a_dry_run_is_refused() -> None:
    code, out, _ = run("--mysql-dry-run", "oltp_point_select", "run")
    assert code == 1
    assert "FATAL: --mysql-dry-run is not supported" in out


def test_options_without_an_effect_are_named(tmp_path: Path) -> None:
    own = script(tmp_path, "function event() end")
    code, _, err = run(own, "--events=1", "--report-checkpoints=5", "--forced-shutdown=3", "run")
    assert (code, err.count("has no effect")) == (0, 2)


@pytest.mark.parametrize("name", ["nothing", "help"])
def test_a_driver_that_does_not_exist_is_refused(name: str) -> None:
    code, out, _ = run(f"--db-driver={name}", "oltp_read_write", "cleanup")
    assert code == 1
    assert f"FATAL: invalid database driver name: '{name}'" in out


def test_a_histogram_and_percentiles_have_all_events(tmp_path: Path) -> None:
    own = script(tmp_path, "function event() end")
    code, out, _ = run(own, "--events=200", "--histogram", "--percentiles=50,99.99", "run")
    assert code == 0
    block = out[out.index("Latency histogram") : out.index("General statistics")]
    counts = [int(line.split()[-1]) for line in block.splitlines() if "|" in line]
    assert sum(counts) == 200
    assert re.search(r"^p50 \(ms\): +[0-9.]+$", out, re.MULTILINE)
    assert re.search(r"^p99\.99 \(ms\): +-$", out, re.MULTILINE)


def test_the_mean_of_clients_is_known_and_no_spread_is_invented(tmp_path: Path) -> None:
    own = script(tmp_path, "function event() end")
    _, alone, _ = run(own, "--events=6", "run")
    assert "events (avg/stddev):           6.0000/0.00\n" in alone
    _, several, _ = run(own, "--events=6", "--threads=2", "run")
    assert re.search(r"events \(avg/stddev\): +3\.0000/(nan|[0-9.]+)$", several, re.MULTILINE)


def test_classes_are_those_of_sysbench() -> None:
    assert [class_of(value_ms) for value_ms in (0.0, 0.001, 1e9)] == [0, 0, CLASSES - 1]
    assert class_of(2.0) == class_of(2.001)
    assert class_of(2.0) < class_of(2.05)

"""Scripts run by `loadstone sysbench`, with and without a server."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from support.sysbench import place, run, script

from loadstone.personalities.sysbench.distribution import CLASSES, class_of

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Database


def test_a_workload_is_prepared_run_and_cleaned_up(database: Database) -> None:
    where = (*place(database), "--table-size=500")
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
    code, out, err = run(own, "--verbosity=4", "run")
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
    code, out, _ = run(*place(database), script(tmp_path, text), "--events=1", "run")
    assert code == 0
    assert "total number of events:              1" in out


REPEATING = """
function event()
   tries = (tries or 0) + 1
   sysbench.sql.driver():connect():query("INSERT INTO once VALUES (" .. (tries < 3 and 1 or tries) .. ")")
end
"""


def test_what_was_ignored_is_counted_by_its_sqlstate(database: Database, tmp_path: Path) -> None:
    database.execute("create table once (id int primary key); insert into once values (1)")
    own = script(tmp_path, REPEATING)
    code, out, err = run(*place(database), own, "--events=1", "--verbosity=4", "run")
    assert code == 0, out
    assert re.search(r"ignored errors: +2 ", out)
    assert "sysbench: ignored errors: 23505 (x 2): duplicate key" in err


def test_a_report_counts_what_was_ignored(database: Database, tmp_path: Path) -> None:
    database.execute("create table once (id int primary key); insert into once values (1)")
    own, folder = script(tmp_path, REPEATING), tmp_path / "kept"
    code, out, _ = run(*place(database), own, "--events=1", f"--report={folder}", "run")
    assert code == 0, out
    (driven,) = folder.glob("targets/*/phases/*/drive.json")
    summary = json.loads((folder / "summary.json").read_text())
    shown = summary["phases"][0]["drive"]["operations"]
    assert shown == {
        name: value
        for name, value in json.loads(driven.read_text())["operations"].items()
        if name != "percentile_ns"
    }
    assert [(error["sqlstate"], error["count"]) for error in shown["ignored"]] == [("23505", 2)]
    page = (folder / "report.html").read_text()
    table = page.partition("<caption>Ignored errors by SQLSTATE</caption>")[2].partition("</table>")[0]
    assert re.findall(r"<code>(\w+)</code>.*?>(\d+)</td>.*?>(duplicate key)[^<]*<", table, re.DOTALL) == [
        ("23505", "2", "duplicate key")
    ]


def test_a_server_that_is_not_there_ends_the_run(tmp_path: Path) -> None:
    where = ("--db-driver=pgsql", f"--pgsql-host={tmp_path}", "--pgsql-port=1")
    code, out, _ = run(*where, "oltp_point_select", "run")
    assert code == 1
    assert "FATAL: " in out


def test_a_dry_run_needs_no_server_and_counts_its_statements() -> None:
    where = ("--mysql-dry-run", "--mysql-host=none.invalid", "--threads=2")
    code, out, err = run(*where, "--events=10", "oltp_read_write", "run")
    assert (code, err) == (0, "")
    assert "        other:                           200\n" in out
    assert "    transactions:                        10 " in out
    code, out, _ = run("--mysql-dry-run", "--mysql-host=none.invalid", "oltp_read_write", "prepare")
    assert (code, "Inserting 10000 records" in out) == (0, True)


HOOKS = """
local function line(kind)
   return function(stat)
      local is_timed = stat.time_interval > 0
      print(kind, stat.threads_running, stat.events, stat.other, is_timed, stat.latency_pct >= 0)
   end
end
print("loaded")
function event() db_query("SELECT 1") end
sysbench.hooks.report_intermediate, sysbench.hooks.report_cumulative = line("part"), line("all")
"""


def test_a_scripts_own_reports_take_the_place_of_ours(tmp_path: Path) -> None:
    own = script(tmp_path, HOOKS)
    code, out, _ = run(
        "--mysql-dry-run", "--verbosity=1", "--time=1", "--report-interval=1", "--threads=2", own, "run"
    )
    assert code == 0
    lines = [line.split("\t") for line in out.splitlines()]
    # Once before all clients, and once for each of them.
    assert lines[:3] == [["loaded"]] * 3
    part, whole = lines[3:]
    assert (part[:2], whole[:2]) == (["part", "2"], ["all", "0"])
    assert 0 < int(part[2]) <= int(whole[2])
    assert part[4:] == whole[4:] == ["true", "true"]


@pytest.mark.parametrize(
    ("body", "why"),
    [("error('oops')", "oops"), ("db_query('SELECT 1')", "a hook for reports has no database")],
)
def test_a_hook_that_fails_is_reported_and_ends_nothing(tmp_path: Path, body: str, why: str) -> None:
    own = script(tmp_path, f"function event() end function sysbench.hooks.report_cumulative() {body} end")
    code, out, _ = run("--events=1", own, "run")
    assert code == 0
    assert re.search(f"^FATAL: `report_cumulative' function failed: .*{why}$", out, re.MULTILINE)


def test_what_json_reports_open_they_close(tmp_path: Path) -> None:
    own = script(tmp_path, "function event() end sysbench.hooks.report_cumulative = sysbench.report_json")
    code, out, _ = run("--events=5", "--verbosity=1", own, "run")
    assert code == 0
    (row,) = json.loads(out)
    assert (row["time"], row["threads"], row["qps"]["total"]) == (0, 0, 0)


@pytest.mark.slow
def test_a_checkpoint_reports_and_begins_again(tmp_path: Path) -> None:
    own = script(tmp_path, "function event() db_query('SELECT 1') end")
    code, out, _ = run("--mysql-dry-run", "--time=2", "--report-checkpoints=1", own, "run")
    assert code == 0
    assert out.count("[ 1s ] Checkpoint report:\nSQL statistics:\n") == 1
    # In each part its own events, over its own length, and the time since the start.
    parts = re.findall(
        r"transactions: +([0-9]+) +\(([0-9.]+) per sec.*?total time: +([0-9.]+)s", out, re.DOTALL
    )
    assert len(parts) == 2
    assert [round(float(total_s)) for _, _, total_s in parts] == [1, 2]
    assert [int(events) / float(rate) for events, rate, _ in parts] == pytest.approx([1.0, 1.0], rel=0.4)
    least = [float(found) for found in re.findall(r"min: +([0-9.]+)", out)]
    assert all(value < 1.0 for value in least)


def test_a_forced_shutdown_says_how_many_events_it_has_cut_off(database: Database, tmp_path: Path) -> None:
    own = script(tmp_path, "function event() db_query('SELECT pg_sleep(60)') end")
    options = ("--time=1", "--forced-shutdown=0", "--threads=2")
    code, out, _ = run(*place(database), *options, own, "run")
    assert code == 2
    assert "Forcing shutdown in 1 seconds\n" in out
    assert "FATAL: The --max-time limit has expired, forcing shutdown...\nSQL statistics:\n" in out
    assert "\nNumber of unfinished transactions on forced shutdown: 2\n\nGeneral" in out


def test_a_script_may_use_the_database_while_it_is_loaded(database: Database, tmp_path: Path) -> None:
    own = script(tmp_path, "print(sysbench.sql.driver():connect():query_row('SELECT 42'))")
    code, out, _ = run(*place(database), "--verbosity=1", own)
    assert (code, out) == (0, "42\n")


def test_a_script_that_sleeps_holds_up_nobody_else(tmp_path: Path) -> None:
    text = """
    ffi.cdef("int usleep(unsigned int); int poll(void *, unsigned long, int);")
    function event()
       local sum = 0
       for i = 1, 2e6 do sum = sum + i end -- computing of one delays the others' turn, and shortens no sleep
       assert(ffi.C.usleep(200000) == 0 and ffi.C.poll(nil, 0, 200) == 0 and os.execute("sleep 0.2") == 0)
    end
    """
    options = ("--mysql-dry-run", "--threads=20", "--load-threads=1", "--events=20")
    code, out, _ = run(*options, script(tmp_path, text), "run")
    assert code == 0
    (least,), (total,) = (re.findall(rf"{name}: +([0-9.]+)", out) for name in ("min", "total time"))
    assert float(least) >= 600
    assert float(total) < 10, "twelve seconds one after the other"


KIB = """
require("oltp_point_select")
local ready = thread_init
function thread_init()
   ready()
   collectgarbage() collectgarbage()
   print("KiB", collectgarbage("count"))
end
"""


def test_a_client_takes_little_memory(tmp_path: Path) -> None:
    options = ("--mysql-dry-run", "--threads=101", "--load-threads=1", "--events=1")
    code, out, _ = run(*options, script(tmp_path, KIB), "run")
    assert code == 0
    taken = [float(text) for text in re.findall(r"^KiB\t([0-9.]+)$", out, re.MULTILINE)]
    assert len(taken) == 101
    assert (taken[-1] - taken[0]) / 100 < 11


def test_what_a_script_computes_is_in_its_latency(tmp_path: Path) -> None:
    text = "ffi.cdef('int usleep(unsigned int);') function event() ffi.C.usleep(20000) end"
    code, out, _ = run("--events=4", "--threads=2", script(tmp_path, text), "run")
    assert code == 0
    least, most = (float(re.findall(name + r": +([0-9.]+)", out)[0]) for name in ("min", "max"))
    assert 20 <= least <= most


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


def test_clients_are_compared_by_what_each_has_done(tmp_path: Path) -> None:
    own = script(tmp_path, "function event() end")
    _, alone, _ = run(own, "--events=6", "run")
    assert "events (avg/stddev):           6.0000/0.00\n" in alone
    # One of the two leaves at once, and the other does all the rest.
    own = script(tmp_path, "function event() if sysbench.tid == 1 then return true end end")
    _, several, _ = run(own, "--events=7", "--threads=2", "--load-threads=1", "run")
    found = re.search(r"events \(avg/stddev\): +([0-9.]+)/([0-9.]+)$", several, re.MULTILINE)
    assert found is not None, several
    assert found[1] == f"{float(found[2]):.4f}"
    assert float(found[1]) >= 2


def test_classes_are_those_of_sysbench() -> None:
    assert [class_of(value_ms) for value_ms in (0.0, 0.001, 1e9)] == [0, 0, CLASSES - 1]
    assert class_of(2.0) == class_of(2.001)
    assert class_of(2.0) < class_of(2.05)

"""Runs that load plain rows in steps: whole, on a full disk, cut short in and between steps, gone on with."""

from __future__ import annotations

import json
import os
import signal
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from support.sandbox import fill, read_json, small_disk, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Database, Ended, Running, Sandbox

SCENARIO = """
id = "own"
title = "own"
version = "1"
why = "A test."
parameters.rows = {{ type = "integer", default = {rows}, help = "Rows" }}
parameters.indexes = {{ type = "string", default = "1", help = "Indexes" }}

[[phase]]
id = "import"
kind = "load"
title = "import"
sweep = {{ indexes = ["1", "3"] }}
data = {{ {data} }}
table = {{ name = "test", indexes = "{{{{ indexes }}}}" }}
step_rows = {step_rows}
batch_rows = {batch_rows}
{more}

[[phase]]
id = "look"
kind = "check"
title = "look"
checks = [{{ name = "it answers", sql = "select 1", expected = "1" }}]
"""
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")


def own(
    sandbox: Sandbox,
    rows: int = 20_000,
    step_rows: int = 2_000,
    batch_rows: int = 500,
    more: str = "",
    data: str = 'set = "import", rows = "{{ rows }}"',
) -> Path:
    """Write a scenario that imports with one index and with three, and looks at the server after that."""
    folder = sandbox.work / "own"
    folder.mkdir()
    text = SCENARIO.format(rows=rows, step_rows=step_rows, batch_rows=batch_rows, more=more, data=data)
    (folder / "scenario.toml").write_text(text)
    return folder


def lines(path: Path) -> list[dict[str, Any]]:
    """Read what may be in the middle of being written."""
    if not path.exists():
        return []
    whole = path.read_text().rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def folder_of(ended: Ended | Running, indexes: str) -> Path:
    (path,) = ended.folder.glob(f"targets/*/phases/*-import-indexes-{indexes}")
    return path


def steps_of(ended: Ended | Running, indexes: str = "1") -> list[dict[str, Any]]:
    return lines(folder_of(ended, indexes) / "steps.jsonl")


def phases_of(ended: Ended) -> list[dict[str, Any]]:
    paths = sorted(ended.folder.glob("targets/*/phases/*/phase.json"), key=lambda p: p.parent.name)
    return [read_json(path) for path in paths]


def wait_for_steps(running: Running, count: int) -> None:
    """Wait until so many steps of the first import have ended."""
    found = "targets/*/phases/*-import-indexes-1/steps.jsonl"
    running.wait_for(
        lambda: any(len(lines(p)) >= count for p in running.folder.glob(found)), f"{count} steps"
    )


def is_contiguous(steps: list[dict[str, Any]], rows: int, step_rows: int) -> bool:
    """Return whether the steps hold all rows, each once."""
    begins = [step["rows_before"] for step in steps]
    return begins == list(range(0, rows, step_rows)) and sum(step["rows"] for step in steps) == rows


@pytest.mark.parametrize("engine", ["postgres", "duckdb"])
def test_each_step_is_written_down_with_what_it_took_and_cost(
    sandbox: Sandbox, database: Database, engine: str
) -> None:
    curve = '{ name = "RAID", step_rows = 9, seconds = [2, 3.5], when = { indexes = "3" } }'
    more = f'knee = true\nstorage = true\nafter = ["analyze test"]\ncurves = [{curve}]'
    target = database.url if engine == "postgres" else "duckdb:"
    ended = sandbox.measure(own(sandbox, more=more), "--target", target)
    assert ended.code == 0, ended.err
    one, three, look = phases_of(ended)
    assert [one["state"], three["state"], look["state"]] == ["complete"] * 3
    assert (one["curves"], one["knee"]) == ([], True)
    assert three["curves"] == [{"name": "RAID", "step_rows": 9, "seconds": [2.0, 3.5], "note": ""}]
    assert one["headline"] == "rows_per_s"
    assert one["checks"]
    assert all(check["passed"] for check in one["checks"])
    assert [seen["when"] for seen in one["storage"]["looks"]] == ["after the load", "after analyze test"]
    assert any(statement["text"] == "analyze test" for statement in one["statements"])
    for indexes in ("1", "3"):
        steps = steps_of(ended, indexes)
        assert is_contiguous(steps, 20_000, 2_000)
        assert {step["state"] for step in steps} == {"complete"}
        assert all(before["end_ns"] <= after["start_ns"] for before, after in pairwise(steps))
        assert all(
            step["seconds"] * 1e9 == pytest.approx(step["end_ns"] - step["start_ns"]) for step in steps
        )
        assert all(step["client_cpu_s"] >= 0 for step in steps)
        if engine == "postgres":
            sizes = [step["sizes"] for step in steps]
            assert sizes[-1]["table_bytes"] > 9 * sizes[0]["table_bytes"] / 2
            assert all(step["counters"]["wal_bytes"] > 180 * 2_000 for step in steps)
            assert all(step["server_cpu_s"] is not None for step in steps)
    if engine == "postgres":
        assert steps_of(ended, "3")[-1]["sizes"]["index_bytes"] > steps_of(ended)[-1]["sizes"]["index_bytes"]


def test_a_stepped_phases_rate_is_that_of_its_steps(sandbox: Sandbox, database: Database) -> None:
    """The time between steps, in which the driver holds, is no time of the import."""
    ended = sandbox.measure(own(sandbox), "--target", database.url, "--set", "indexes=1")
    assert ended.code == 0, ended.err
    steps = steps_of(ended)
    rate = sum(step["rows"] for step in steps) / sum(step["seconds"] for step in steps)
    drive = next(phase for phase in ended.summary["phases"] if phase["id"] == "import")["drive"]
    assert drive["rows_per_s"]["value"] == pytest.approx(rate)


def test_rows_of_files_are_loaded_in_steps(sandbox: Sandbox, database: Database) -> None:
    path = sandbox.work / "rows.csv"
    path.write_text("a,b\n" + "".join(f"{number},text {number}\n" for number in range(5_000)))
    data = 'files = "rows.csv", format = "csv", header = true'
    scenario = own(sandbox, data=data, step_rows=1_000)
    ended = sandbox.measure(scenario, "--target", database.url, "--set", "indexes=1")
    assert ended.code == 0, ended.err
    steps = steps_of(ended)
    assert is_contiguous(steps, 5_000, 1_000)
    assert phases_of(ended)[0]["checks"][0]["passed"]


ASKED = """queries.table = "test"
queries.statements = [
  {{ name = "all", sql = "select count(*) from test" }}, {{ name = "{name}", sql = "{sql}" }}
]
"""


@pytest.mark.parametrize("engine", ["postgres", "duckdb"])
def test_queries_go_round_while_rows_come_in(sandbox: Sandbox, database: Database, engine: str) -> None:
    more = ASKED.format(name="some", sql="select count(*) from test where k = '2G'")
    url = database.url if engine == "postgres" else "duckdb:"
    # The queries connect while the first rows come in: the load must last longer than that.
    ended = sandbox.measure(own(sandbox, rows=200_000, more=more), "--target", url, "--set", "indexes=0")
    assert ended.code == 0, ended.err
    loaded = read_json(folder_of(ended, "0") / "drive.json")
    assert (loaded["load"]["rows"], loaded["load"]["verified"]) == (200_000, True)
    asked = read_json(folder_of(ended, "0") / "queries" / "drive.json")
    assert [label["label"] for label in asked["queries"]["labels"]] == ["all", "some"]
    assert asked["plain_queries"]["table"] == "test"
    assert asked["counts"]["done"] > 0
    assert asked["counts"]["failed"] == 0
    # They begin with the first row and end with the last.
    assert loaded["start_ns"] - 10**9 < asked["start_ns"] < loaded["end_ns"]
    assert loaded["start_ns"] < asked["end_ns"]


def test_a_query_that_is_refused_is_told_and_spoils_no_load(sandbox: Sandbox, database: Database) -> None:
    more = ASKED.format(name="wrong", sql="select nothing from test")
    ended = sandbox.measure(
        own(sandbox, rows=100_000, more=more), "--target", database.url, "--set", "indexes=0"
    )
    assert ended.code == 0, ended.err
    (told,) = [words for words in ended.told("note") if "during the load" in words]
    assert "nothing" in told
    assert "42703" in told
    assert read_json(folder_of(ended, "0") / "drive.json")["load"]["verified"]


def test_ctrl_c_ends_a_load_and_the_queries_beside_it(sandbox: Sandbox, database: Database) -> None:
    more = ASKED.format(name="some", sql="select count(*) from test where k = '2G'")
    running = sandbox.begin(own(sandbox, rows=50_000_000, more=more), "--target", database.url)
    running.wait_for_drive("import-indexes-1/queries")
    running.send(signal.SIGINT)
    ended = running.finish()
    assert ended.code == 130, ended.err
    asked = read_json(folder_of(ended, "1") / "queries" / "drive.json")
    assert asked["counts"]["done"] > 0
    assert "Traceback" not in ended.err


def test_a_step_of_which_nothing_is_committed_has_no_time(sandbox: Sandbox, database: Database) -> None:
    # Beyond the lines that are looked at before anything is touched.
    (sandbox.work / "rows.csv").write_text("1,text\n" * 1900 + "none,text\n" * 100)
    made = 'setup = ["drop table if exists test", "create table test (a integer, b text)"]'
    scenario = own(
        sandbox, data='files = "rows.csv", format = "csv"', step_rows=2000, batch_rows=2000, more=made
    )
    ended = sandbox.measure(scenario, "--target", database.url, "--set", "indexes=0")
    assert ended.code == 2, ended.err
    (step,) = steps_of(ended, "0")
    assert (step["state"], step["rows"], step["seconds"]) == ("failed", 0, None)
    assert "invalid input syntax" in step["reason"]
    assert (ended.folder / "report.html").is_file()


@ROOT
@pytest.mark.slow
def test_a_disk_that_is_full_in_a_step_fails_it_with_its_bytes_and_skips_the_rest_of_the_sweep(
    sandbox: Sandbox,
) -> None:
    with small_disk(sandbox.base / "disk", 700) as disk:
        disk.chmod(0o777)
        scenario = own(sandbox, rows=3_000_000, step_rows=20_000, batch_rows=5_000)
        running = sandbox.begin(scenario, "--storage", disk, "--ignore-space")
        wait_for_steps(running, 3)
        fill(disk, 12 << 20)
        ended = running.finish()
        assert ended.code == 2, ended.err
        assert "Traceback" not in ended.err
        assert [entry.name for entry in disk.iterdir()] == ["ballast"]
    one, three, look = phases_of(ended)
    assert one["state"] == "failed"
    for words in ("the server's disk is full", "the step needed about", "MiB for WAL"):
        assert words in one["reason"], one["reason"]
    # A server that finds no room for its next segment of WAL ends itself, and cannot start again to be asked.
    asked = look["state"] == "complete"
    assert one["reason"].endswith("are committed" if asked else "were acknowledged"), one["reason"]
    assert three["state"] == "skipped"
    assert three["reason"].startswith("the previous variant filled the disk: the server's disk is full")
    assert look["id"] == "look"
    steps = steps_of(ended)
    assert len(steps) >= 3
    assert [step["state"] for step in steps[-2:]] == ["complete", "failed"]
    assert "the step needed about" in steps[-1]["reason"]
    assert "disk is full" in ended.report


def test_rows_that_will_not_fit_are_refused_before_anything_is_made(
    sandbox: Sandbox, database: Database
) -> None:
    ended = sandbox.measure(own(sandbox, rows=4_000_000_000, step_rows=0), "--target", database.url)
    assert ended.code == 1, ended.err
    assert "phase 'import'" in ended.err
    assert "--ignore-space" in ended.err
    assert not ended.folder.exists()
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0


@pytest.mark.slow
def test_a_server_killed_in_a_step_fails_the_step_and_tells_what_is_committed(sandbox: Sandbox) -> None:
    running = sandbox.begin(own(sandbox, rows=4_000_000, step_rows=200_000, batch_rows=200))
    wait_for_steps(running, 2)
    server = sandbox.private_server()
    # In the middle of a step, which has a thousand commits.
    running.wait_for(
        lambda: 20_000 < server.value("select count(*) from loadstone.test") % 200_000 < 100_000, "a step"
    )
    os.kill(server.pid, signal.SIGKILL)
    running.wait_for(lambda: len(phases(running)) > 1, "the next variant")
    running.send(signal.SIGINT)
    ended = running.finish()
    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    one, three, *_ = phases_of(ended)
    assert one["state"] == "failed"
    assert "are committed" in one["reason"], "; ".join(ended.told("note"))
    assert three["state"] == "interrupted"
    *whole, last = steps_of(ended)
    assert len(whole) >= 2
    assert {step["state"] for step in whole} == {"complete"}
    assert last["state"] == "failed"
    assert last["reason"]
    assert any("had died" in message for message in ended.told("note"))


def phases(running: Running) -> list[Path]:
    return list(running.folder.glob("targets/*/phases/*/phase.json"))


@pytest.mark.parametrize("delay_s", [0.0, 0.03, 0.1])
def test_ctrl_c_in_and_between_steps_ends_the_load_in_order(
    sandbox: Sandbox, database: Database, delay_s: float
) -> None:
    """Without delay the driver holds, or has just been told to go on."""
    running = sandbox.begin(own(sandbox, rows=1_000_000, batch_rows=200), "--target", database.url)
    wait_for_steps(running, 2)
    time.sleep(delay_s)  # at which moment it comes is what is tried
    running.send(signal.SIGINT)
    ended = running.finish()
    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    (phase,) = phases_of(ended)
    assert phase["state"] == "interrupted"
    steps = steps_of(ended)
    assert [step["step"] for step in steps] == list(range(len(steps)))
    assert {step["state"] for step in steps[:-1]} == {"complete"}
    assert steps[-1]["state"] in ("complete", "interrupted")
    assert "Incomplete" in ended.report
    query = "select count(*) from pg_stat_activity where application_name like 'loadstone%'"
    wait_until(lambda: database.value(query) == 0, "no session of ours is left")
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0


def resume(sandbox: Sandbox, *arguments: object) -> Ended:
    return sandbox.run("run", *arguments, "--size", "tiny", "--no-calibrate", "--resume", "out")


def gone_on(ended: Ended, rows: int, step_rows: int) -> None:
    """Check that a run that went on with its first import is whole."""
    assert ended.code == 0, ended.err
    assert [phase["state"] for phase in phases_of(ended)] == ["complete"] * 3
    assert all(check["passed"] for phase in phases_of(ended) for check in phase["checks"])
    drive = read_json(folder_of(ended, "1") / "drive.json")
    assert drive["load"]["verified"] is True
    assert drive["load"]["resumed"]["rows"] >= 2 * step_rows
    assert drive["load"]["resumed"]["rows"] + drive["load"]["rows"] == rows
    steps = steps_of(ended)
    numbers = [step["step"] for step in steps]
    assert numbers == sorted(set(numbers))
    # The step whose line the kill has swallowed may be missing, never another.
    assert len(numbers) >= rows // step_rows - 1
    assert [step["state"] for step in steps].count("resumed") <= 1
    assert all(step["rows"] == step_rows for step in steps if step["state"] == "complete")
    assert is_contiguous(steps_of(ended, "3"), rows, step_rows)
    assert any("is resumed where it was interrupted" in note for note in ended.told("note"))
    assert "Incomplete" not in ended.report
    assert ended.run["state"] == "complete"


def test_a_run_killed_in_a_step_goes_on_where_the_server_has_got_to(
    sandbox: Sandbox, database: Database
) -> None:
    scenario = own(sandbox, rows=100_000, step_rows=5_000, batch_rows=100)
    running = sandbox.begin(scenario, "--target", database.url)
    wait_for_steps(running, 3)
    running.send(signal.SIGKILL)
    running.finish()
    database.wait_until_left()
    before = steps_of(running)
    assert 3 <= len(before) < 19
    gone_on(ended := resume(sandbox, scenario, "--target", database.url), 100_000, 5_000)
    assert steps_of(ended)[: len(before)] == before
    assert (folder_of(ended, "1") / "before-1" / "series.jsonl").exists()


@pytest.mark.slow
def test_the_private_server_of_a_killed_run_is_gone_on_with(sandbox: Sandbox) -> None:
    scenario = own(sandbox, rows=100_000, step_rows=5_000, batch_rows=100)
    running = sandbox.begin(scenario)
    wait_for_steps(running, 3)
    running.send(signal.SIGKILL)
    running.finish()
    gone_on(resume(sandbox, scenario), 100_000, 5_000)


def test_a_load_whose_table_is_gone_begins_again(sandbox: Sandbox, database: Database) -> None:
    scenario = own(sandbox, rows=100_000, step_rows=5_000, batch_rows=100)
    running = sandbox.begin(scenario, "--target", database.url)
    wait_for_steps(running, 3)
    running.send(signal.SIGKILL)
    running.finish()
    database.wait_until_left()
    database.execute("drop schema loadstone cascade")
    ended = resume(sandbox, scenario, "--target", database.url)
    assert ended.code == 0, ended.err
    assert is_contiguous(steps_of(ended), 100_000, 5_000)
    assert any("starts again from its beginning: " in note for note in ended.told("note"))
    assert len(lines(folder_of(ended, "1") / "before-1" / "steps.jsonl")) >= 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('set = "import"', 'set = "imprt"'), ("phase 'import'", "imprt", "import")),
        (('["1", "3"]', '["1", "13"]'), ("phase 'import'", "13", "12")),
        (('["1", "3"]', '["a", "nix"]'), ("phase 'import'", "nix")),
        (("step_rows = 2000", "step_rows = 10000\nknee = true"), ("are 2 steps", "a knee needs")),
        (('set = "import", rows = "{{ rows }}"', 'files = "none.csv"'), ("phase 'import'", "none.csv")),
    ],
)
def test_what_cannot_be_loaded_is_refused_before_anything_is_touched(
    sandbox: Sandbox, change: tuple[str, str], words: tuple[str, ...]
) -> None:
    path = own(sandbox) / "scenario.toml"
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change))
    ended = sandbox.quick("own/", "--target", "pg")
    assert ended.code == 1, ended.err
    for word in words:
        assert word in ended.err, ended.err
    assert "Traceback" not in ended.err
    assert not ended.folder.exists()
    assert sandbox.servers() == []

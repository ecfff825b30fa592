"""Runs that load and query time series, from the command line: whole, side by side, cut short, refused."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from support.described import undescribed
from support.sandbox import read_json, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Database, Ended, Running, Sandbox

HEAD = """
id = "own"
title = "own"
version = "1"
why = "A test."
"""
PHASE = """
[[phase]]
id = "{id}"
kind = "{kind}"
title = "{id}"
"""
DATA = """
data.use_case = "iot"
data.start = "2016-01-01T00:00:00Z"
data.span_s = {span_s}
data.scale = 10
data.interval_s = 10
"""
KINDS = '["last-loc", "single-last-loc", "low-fuel", "avg-load", "stationary-trucks"]'


@dataclass(frozen=True)
class Part:
    """A phase of a scenario of the user's own."""

    id: str
    kind: str
    text: str

    def __str__(self) -> str:
        return PHASE.format(id=self.id, kind=self.kind) + self.text


def load(id_: str, span_s: int = 1000, more: str = "") -> Part:
    """About 2 rows of 10 trucks every 10 seconds, as fast as it goes."""
    return Part(
        id_, "load", DATA.format(span_s=span_s) + f'method = "best"\nbatch_rows = 100\nworkers = 2\n{more}\n'
    )


def slow_load(id_: str, seconds: int, more: str = "") -> Part:
    """20 batches of 100 rows a second, which is half an hour and more of the trucks' time."""
    return load(id_, span_s=10000 * seconds // 10, more=f'pace = "fixed"\nrate_per_s = 20\n{more}')


def queries(id_: str = "ask", kinds: str = KINDS, span_s: int = 1000) -> Part:
    return Part(id_, "queries", DATA.format(span_s=span_s) + f"queries.kinds = {kinds}\nqueries.count = 3\n")


def own(sandbox: Sandbox, *parts: Part) -> Path:
    folder = sandbox.work / "own"
    folder.mkdir()
    (folder / "scenario.toml").write_text(HEAD + "".join(map(str, parts)))
    return folder


BESIDE = """
queries.kinds = ["last-loc", "single-last-loc"]
queries.count = 5
queries.pace = "fixed"
queries.rate_per_s = 10
"""


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def targets(ended: Ended) -> dict[str, str]:
    """Give the targets' ids by the name of their engine."""
    paths = ended.folder.glob("targets/*/target.json")
    return {read_json(path)["engine"]: path.parent.name for path in paths}


def folder_of(ended: Ended | Running, phase: str) -> Path:
    (path,) = ended.folder.glob(f"targets/*/phases/*-{phase}")
    return path


def test_a_load_is_verified_and_answers_are_compared(sandbox: Sandbox, database: Database) -> None:
    folder = own(sandbox, load("fill"), queries())
    ended = sandbox.measure(folder, "--target", database.url, "--target", "duckdb:")
    assert ended.code == 0, ended.err
    assert undescribed(ended.folder) == []
    ids = targets(ended)
    for target in ids.values():
        phases = ended.phases(target)
        assert [phase["state"] for phase in phases.values()] == ["complete", "complete"]
        filled = phases["fill"]
        assert len(filled["checks"]) >= 3, filled["checks"]  # two tables and the devices
        assert all(check["passed"] for check in filled["checks"])
        assert filled["sizes"]["after"] is not None
    drives = [read_json(path) for path in sorted(ended.folder.glob("targets/*/phases/*-fill/drive.json"))]
    assert drives[0]["load"]["verified"] is True
    assert 1500 < drives[0]["load"]["rows"] <= 2000
    assert drives[0]["load"]["tables"] == drives[1]["load"]["tables"]
    assert all(drive["load"]["marks"] > 10 for drive in drives)
    first, second = (ended.phases(ids[engine])["ask"]["checks"] for engine in ("postgres", "duckdb"))
    assert first == []
    assert [check["name"] for check in second] == [f"answers are those of {ids['postgres']}"]
    assert second[0]["passed"]
    assert second[0]["expected"] == second[0]["actual"]
    assert int(second[0]["actual"].split()[0]) >= 5  # one of each kind at least: some have no parameter
    for words in (
        "answers are those of",
        "metrics/s",
        "last location per truck",
        "rows that were generated",
    ):
        assert words in ended.report, words


def test_an_answer_that_differs_between_targets_fails_the_run(sandbox: Sandbox, database: Database) -> None:
    """Both engines know version(), so that one statement changes the rows of one of them only."""
    spoil = "update diagnostics set current_load = current_load + 1 where version() like 'PostgreSQL%'"
    kinds = '["avg-load", "last-loc"]'
    folder = own(sandbox, load("fill"), Part("spoil", "sql", f'setup = ["{spoil}"]\n'), queries(kinds=kinds))
    ended = sandbox.measure(folder, "--target", "duckdb:", "--target", database.url)
    assert ended.code == 3, ended.err
    ids = targets(ended)
    assert ended.phases(ids["duckdb"])["ask"]["state"] == "complete"
    asked = ended.phases(ids["postgres"])["ask"]
    assert (asked["state"], asked["reason"]) == (
        "failed",
        "a check failed: the answers differ between targets",
    )
    (check,) = asked["checks"]
    assert not check["passed"]
    assert check["expected"] != check["actual"]
    assert check["detail"].startswith("query ")
    assert "the answers differ between targets" in ended.err
    assert "the answers differ between targets" in ended.report
    assert ended.run["exit_code"] == 3


@pytest.mark.parametrize("engine", ["postgres", "duckdb"])
def test_reads_while_writing_are_measured_on_one_time_axis(
    sandbox: Sandbox, database: Database, engine: str
) -> None:
    target = database.url if engine == "postgres" else "duckdb:"
    ended = sandbox.measure(own(sandbox, slow_load("both", 4, BESIDE)), "--target", target)
    assert ended.code == 0, ended.err
    assert undescribed(ended.folder) == []
    phase = folder_of(ended, "both")
    drive, beside = read_json(phase / "drive.json"), read_json(phase / "queries" / "drive.json")
    assert drive["load"]["verified"] is True
    assert beside["counts"]["failed"] == 0, beside["errors"]
    assert 8 <= beside["counts"]["done"] <= 60  # 40 were to begin; on a busy machine some come too late
    assert drive["start_ns"] - 2e9 < beside["start_ns"] < beside["end_ns"] < drive["end_ns"] + 2e9
    asked = lines(phase / "queries" / "series.jsonl")
    loaded = lines(phase / "series.jsonl")
    for series in (asked, loaded):
        assert len(series) >= 3
        assert series[0]["start_ns"] > drive["start_ns"] - 2e9
        assert series[-1]["end_ns"] < drive["end_ns"] + 2e9
    seen = [line["value"] for line in lines(phase / "probe" / "probe.jsonl") if line["value"] is not None]
    assert len(seen) > 8
    assert seen == sorted(seen)
    _fresh(next(p for p in ended.summary["phases"] if p["folder"] == phase.name))
    for words in ("Freshness", "last location per truck"):
        assert words in ended.report


def _fresh(summary: dict[str, Any]) -> None:
    fresh = summary["freshness"]
    assert fresh["count"] >= 30
    assert fresh["never_seen"] < 20  # the last ones, when the probe has ended with the load
    assert 0 < fresh["mean_ns"] < 5e9
    assert fresh["mean_ns"] <= fresh["max_ns"]
    assert (
        0 < fresh["probe_every_ns"] < 5e9
    )  # due every 50 ms, answered when the server can: late ones at once
    assert len(summary["mixed"]["queries"]) == 2


def test_a_server_killed_in_the_middle_of_a_load_ends_its_phase_in_order(sandbox: Sandbox) -> None:
    running = sandbox.begin(own(sandbox, slow_load("fill", 20), load("again"), queries()))
    running.wait_for_drive("fill")
    os.kill(sandbox.private_server().pid, signal.SIGKILL)
    ended = running.finish()
    assert ended.code == 2, ended.err
    assert "Traceback" not in ended.err
    phases = ended.phases()
    assert [phase["state"] for phase in phases.values()] == ["failed", "complete", "complete"]
    drive = ended.drive("fill")
    assert drive["state"] != "complete"
    booked = drive["load"]["committed"]
    assert 0 < booked["rows"] < 40_000
    kept = f"{booked['rows']:,} rows in {booked['batches']:,} batches are committed"
    assert kept in phases["fill"]["reason"]
    assert kept in ended.err
    assert kept in ended.report
    assert any("had died" in message for message in ended.told("note"))


@pytest.mark.parametrize("engine", ["postgres", "duckdb"])
def test_ctrl_c_while_reads_and_writes_are_under_way(
    sandbox: Sandbox, database: Database, engine: str
) -> None:
    target = database.url if engine == "postgres" else "duckdb:"
    running = sandbox.begin(own(sandbox, slow_load("both", 60, BESIDE), queries()), "--target", target)
    running.wait_for_drive("both/queries")
    running.send(signal.SIGINT)
    ended = running.finish()
    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    assert ended.run["state"] == "interrupted"
    (phase,) = ended.phases().values()
    assert phase["state"] == "interrupted"
    assert "rows in " in phase["reason"]
    assert read_json(folder_of(ended, "both") / "queries" / "drive.json")["state"] == "interrupted"
    assert "Incomplete" in ended.report
    assert "not reached" in ended.report
    if engine == "postgres":
        query = "select count(*) from pg_stat_activity where application_name like 'loadstone%'"
        wait_until(lambda: database.value(query) == 0, "no session of ours is left")
        assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (queries(kinds='["last-loc", "last-lok"]'), ("phase 'ask'", "last-lok", "Did you mean 'last-loc'?")),
        (queries(kinds='["lastpoint"]'), ("lastpoint", "for devops")),
        (queries(kinds='["long-driving-sessions"]'), ("needs 4 hours", "later end")),
        (
            Part(
                "ask",
                "queries",
                DATA.format(span_s=172800).replace("iot", "devops")
                + 'queries.kinds = ["cpu-max-all-32-24"]\n',
            ),
            ("needs 32 hosts", "has 10", "larger scale"),
        ),
    ],
)
def test_queries_that_cannot_be_are_refused_before_anything_is_touched(
    sandbox: Sandbox, part: Part, said: tuple[str, ...]
) -> None:
    folder = own(sandbox, load("fill"), part)
    for ended in (sandbox.run("plan", folder, "--target", "pg"), sandbox.quick(folder)):
        assert ended.code == 1, ended.err
        for words in said:
            assert words in ended.err
        assert "Traceback" not in ended.err
        assert not ended.folder.exists()
    assert sandbox.servers() == []


@pytest.mark.slow
def test_a_built_in_scenario_runs_whole_on_two_engines_with_equal_answers(sandbox: Sandbox) -> None:
    ended = sandbox.begin("tsbs-iot", "--target", "pg", "--target", "duckdb:").finish(280)
    assert ended.code == 0, ended.err
    asked = 0
    for target in targets(ended).values():
        phases = ended.phases(target)
        assert {phase["state"] for phase in phases.values()} == {"complete"}
        assert {"load", "queries"} <= {phase["kind"] for phase in phases.values()}
        assert phases["load"]["checks"]
        checks = [check for phase in phases.values() for check in phase["checks"]]
        assert all(check["passed"] for check in checks)
        asked += sum(check["name"].startswith("answers are those of") for check in checks)
    assert asked == 1
    answered = [read_json(path) for path in ended.folder.glob("targets/*/phases/*-queries/drive.json")]
    assert [drive["counts"]["done"] for drive in answered] == [13 * 2] * 2
    assert [drive["counts"]["failed"] for drive in answered] == [0, 0]

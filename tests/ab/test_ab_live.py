"""`loadstone ab` with real servers: a regression found, and every way in which it ends early."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from click.testing import CliRunner
from support.sandbox import small_disk
from support.watchers import Follower

from loadstone.ab.documents import Experiment
from loadstone.cli.group import loadstone
from loadstone.errors import RunFailedError
from loadstone.private_server.provision import copy_data

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Ended, Running, Sandbox

PAUSE = "select pg_sleep(current_setting('app.pause')::float8);\n"
SELECT = "select 1;\n"
FAST, SLOW = "app.pause=0.010", "app.pause=0.060"
"""So far apart that what a busy machine adds to each sleep does not hide the difference."""


def begin(sandbox: Sandbox, scenario: Path, *arguments: object) -> Running:
    sides = ("--a", "pg18", "--b", "pg18", "--a-setting", FAST, "--setting", "fsync=off")
    return sandbox.start("ab", scenario, *sides, *arguments, "--out", "out")


def document(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "ab.json").read_text())
    msgspec.convert(found, Experiment)
    return dict(found)


@pytest.mark.slow
def test_a_regression_is_found_and_the_other_phase_stays_untouched(sandbox: Sandbox) -> None:
    # A trial that the machine holds up for half a second still has most of its transactions.
    scenario = sandbox.scenario(("pause", PAUSE, "duration_s = 1.5"), ("select", SELECT, "duration_s = 0.5"))
    unsafe = ["--b-setting", "synchronous_commit=off"]
    given = [
        *unsafe,
        "--b-setting",
        SLOW,
        "--looks",
        "2,3",
        "--no-aa",
        "--matters",
        "50%",
        "--format",
        "json",
    ]
    ended = begin(sandbox, scenario, *given, "--save", sandbox.work / "ab.md", "--fail-on", "worse").finish()
    assert ended.code == 4, ended.err
    found = document(ended.folder)
    rows = {row["phase"]: row for row in found["comparison"]["rows"] if row["primary"]}
    assert rows["pause"]["verdict"] == "worse"
    assert 0.1 < rows["pause"]["ratio"] < 0.4
    assert rows["select"]["verdict"] not in ("worse", "better")
    assert json.loads(ended.out)["comparison"]["rows"] == found["comparison"]["rows"]
    assert (found["state"], found["looks"]) == ("complete", [2, 3])
    check_trials(ended.folder, found)
    check_outputs(ended, (sandbox.work / "ab.md").read_text())
    added = sandbox.run("history", "add", ended.folder, "--commit", "abc")
    assert added.code == 0, added.err
    (line,) = map(json.loads, (sandbox.work / "history.jsonl").read_text().splitlines())
    rates = {p["id"]: m for p in line["phases"] for m in p["metrics"] if m["primary"]}
    assert len(rates["pause"]["values"]) == len(found["orders"])
    assert rates["pause"]["aa_spread"] is None
    assert "block 1 of at most 3" in ended.err


def check_trials(folder: Path, found: dict[str, Any]) -> None:
    orders = ["".join(order) for order in found["orders"]]
    assert sorted(orders[:2]) == ["AB", "BA"]
    trials = found["trials"]
    assert [trial["number"] for trial in trials] == list(range(1, len(trials) + 1))
    ports = set()
    for trial in trials:
        target = next((folder / trial["folder"]).glob("targets/*/target.json"))
        ports.add(json.loads(target.read_text())["url"].partition("port=")[2])
        assert (folder / trial["folder"] / "summary.json").is_file()
        assert trial["cpu_us"] > 0
        assert trial["fsync_us"] > 0
    assert len(ports) == 1


def check_outputs(ended: Ended, text: str) -> None:
    assert "🔴 **worse**" in text
    assert "Looks after 2, 3 blocks (fewer than the usual 6 before the first)" in text
    assert "app.pause=0.060 against pg18, app.pause=0.010" in text
    assert "nothing shows that this set-up finds no difference" in text
    assert "<table" in (ended.folder / "ab.html").read_text()
    assert "differences are found from" in ended.err
    assert "Only B runs with synchronous\\_commit = off" in text
    assert ended.err.splitlines()[-1] == "Results: out"


STAGES = {
    "template": lambda running: running.wait_for_words("loading the data of B"),
    "drive": lambda running: running.wait_for(
        lambda: list(running.folder.glob("trials/*/targets/*/phases/*/series.jsonl")), "a trial's drive"
    ),
    "second block": lambda running: running.wait_for_words("block 1 of at most"),
}


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_interrupted(sandbox: Sandbox, stage: str) -> None:
    scenario = sandbox.scenario(("pause", PAUSE, "duration_s = 0.3"))
    running = begin(
        sandbox, scenario, "--b-setting", SLOW, "--no-aa", "--fail-on", "worse,undecided", "--live"
    )
    running.wait_for_words("in a browser")
    follower = Follower()
    follower.write(running.err)
    STAGES[stage](running)
    running.send_group(signal.SIGINT)
    ended = running.finish()
    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    assert "undecided" in ended.err
    follower.wait_for_end()
    assert follower.last["now"]["ended"] == "not complete (exit code 130)"
    found = document(ended.folder)
    assert (found["state"], found["reason"]) == ("interrupted", "stopped by SIGINT")
    if stage == "second block":
        assert [row["verdict"] for row in found["comparison"]["rows"] if row["primary"]] == ["undecided"]
        assert "interrupted: stopped by SIGINT" in ended.out
        assert all(f"trial {n}, block 1, arm {arm}: " in follower.doing for n, arm in enumerate(
            found["orders"][0], 1))  # fmt: skip
    else:
        assert found["comparison"] is None


@pytest.mark.slow
def test_a_server_that_dies_in_a_trial_ends_it_undecided(sandbox: Sandbox) -> None:
    scenario = sandbox.scenario(("pause", PAUSE, "duration_s = 20"))
    running = begin(sandbox, scenario, "--b-setting", SLOW, "--no-aa", "--fail-on", "worse,undecided")
    STAGES["drive"](running)
    os.kill(sandbox.private_server().pid, signal.SIGKILL)
    ended = running.finish()
    assert ended.code == 2, ended.err
    assert "loadstone: arm " in ended.err
    assert "The run is in out/trials/001-" in ended.err
    found = document(ended.folder)
    assert found["state"] == "failed"
    assert found["comparison"] is None
    assert "undecided: no block was complete" in ended.err


def test_an_arm_that_does_not_start_leaves_nothing(sandbox: Sandbox) -> None:
    scenario = sandbox.scenario(("select", SELECT, "duration_s = 0.3"))
    ended = begin(sandbox, scenario, "--b-setting", "shared_buffers=much").finish()
    assert ended.code == 1, ended.err
    assert "arm B: " in ended.err
    assert "shared_buffers" in ended.err
    assert not ended.folder.exists()


def test_time_that_is_too_short_leaves_it_undecided(sandbox: Sandbox) -> None:
    scenario = sandbox.scenario(("select", SELECT, "duration_s = 0.3"))
    given = ["--b-setting", SLOW, "--no-aa", "--max-time", "1s", "--fail-on", "worse,undecided"]
    ended = begin(sandbox, scenario, *given).finish()
    assert ended.code == 5, ended.err
    assert "another one would not end within 1.00 s" in ended.err
    assert document(ended.folder)["state"] == "complete"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--b", "postgres://me@host/db"], "arm B: postgres://me@host:5432/db is not a private server"),
        (["--b", "pg18", "--b", "pg17"], "is given 2 times, but there can be only one"),
        (["--b", "pg9"], "there is no private PostgreSQL 'pg9'"),
        (["--b", "pg:/nowhere"], "arm B: the folder '/nowhere/bin' has no postgres"),
        (["--b-set", "clinets=3"], "arm B: there is no parameter 'clinets'"),
        (["--phase", "one-table"], "the phase 'one-table' does not exist"),
        (["--b", "pg18?setting.a=1", "--b-setting", "a=2"], "the setting 'a' of arm B is given twice"),
        (["--looks", "6,4"], "is not a rising list"),
        (["--looks", "1,4"], "is not a rising list"),
        (["--max-time", "soon"], "is not a time above 0"),
        (["--matters", "0%"], "is not a percentage"),
        (["--save", "ab.pdf"], "the name must end in"),
        (["--save", "nowhere/ab.html"], "is in a folder that does not exist"),
        (["--accept", "known.toml"], "known.toml"),
        (["--max-blocks", "1"], "is not in the range"),
        (["--watch", "ssh://db1"], "the servers of trials are private ones on this machine"),
        (["--live-port", "8080"], "--live-port is the port of the page of --live"),
    ],
)
def test_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(loadstone, ["ab", "iot-feed", *arguments])
    assert result.exit_code == 1
    assert words in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_a_copy_on_a_full_disk_says_so(tmp_path: Path) -> None:
    source = tmp_path / "data"
    source.mkdir()
    (source / "table").write_bytes(bytes(range(256)) * (1 << 14))
    full = pytest.raises(RunFailedError, match="the disk is full")
    with small_disk(tmp_path / "disk", 2) as disk, full as refused:
        copy_data(source, disk / "copy")
    assert "--storage" in refused.value.hint
    copy_data(source, tmp_path / "copy")
    assert (tmp_path / "copy" / "table").read_bytes() == (source / "table").read_bytes()

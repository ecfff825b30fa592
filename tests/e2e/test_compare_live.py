"""Runs of a real server, compared: one that is slower by a setting, and folders of pgbench's command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from support.sandbox import Database, Ended, Sandbox

PAUSE = "select pg_sleep(current_setting('app.pause')::float8);\n"
SELECT = "select 1;\n"


def rows_of(ended: Ended) -> dict[str, dict[str, Any]]:
    comparison = json.loads(ended.out)["comparisons"][0]
    return {row["phase"]: row for row in comparison["rows"] if row["primary"]}


@pytest.mark.slow
def test_a_setting_that_slows_down_one_phase_is_found(sandbox: Sandbox) -> None:
    scenario = sandbox.scenario(("pause", PAUSE, "duration_s = 0.5"), ("select", SELECT, "duration_s = 1"))
    # So long, and so far apart, that what a busy machine adds to each sleep does not hide the difference.
    targets = [word for pause in (10, 60) for word in ("--target", f"pg18?setting.app.pause=0.0{pause:02d}")]
    ended = sandbox.measure(scenario, *targets, "--repeat", "3")
    assert ended.code == 0, ended.err
    compared = sandbox.run("compare", ended.folder, "--format", "json", "--fail-on", "worse")
    assert compared.code == 4, compared.err
    rows = rows_of(compared)
    pause, select = rows["pause"], rows["select"]
    assert (pause["verdict"], pause["paired"], pause["repeats_a"]) == ("worse", True, 3)
    assert 0.1 < pause["ratio"] < 0.4, "a sixth, and more where each sleep lasts longer than asked"
    assert select["repeats_a"] == 3
    assert select["ratio"] > 1.25 * pause["ratio"], "the other phase does not sleep"
    notes = json.loads(compared.out)["comparisons"][0]["notes"]
    assert not any("always ran before" in note for note in notes), "the targets alternate"


@pytest.mark.slow
def test_folders_of_pgbench_are_compared(sandbox: Sandbox, database: Database) -> None:
    (sandbox.work / "one.sql").write_text(SELECT)
    for name in ("a", "b"):
        ended = sandbox.run(
            "pgbench", "-n", "-f", "one.sql", "-T", "1", f"--report={sandbox.work / name}", database.url
        )
        assert ended.code == 0, ended.err
    compared = sandbox.run("compare", sandbox.work / "a", sandbox.work / "b", "--format", "json")
    assert compared.code == 0, compared.err
    (row,) = rows_of(compared).values()
    assert (row["metric"], row["verdict"]) == ("rate", "indicative")
    other = sandbox.run(
        "pgbench", "-n", "-f", "one.sql", "-T", "1", "-c", "2", f"--report={sandbox.work / 'c'}", database.url
    )
    assert other.code == 0, other.err
    refused = sandbox.run("compare", sandbox.work / "a", sandbox.work / "c")
    assert refused.code == 1
    assert "client: 1 in A, 2 in B" in refused.err

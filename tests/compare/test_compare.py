"""`loadstone compare` over run folders: what it finds, refuses, lists, and how it exits."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
from click.testing import CliRunner, Result
from support.run_folders import Phase, Run, Target, build, kill, write
from support.sandbox import replace_plan

from loadstone.cli.group import loadstone
from loadstone.compare.documents import Document

if TYPE_CHECKING:
    from collections.abc import Sequence

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run-0.1.0"
NOISE = (1.0, 1.01, 0.985, 1.005, 0.99, 1.012)
RUN = ("loadstone", "run", "iot-feed", "--size", "small")


def run_of(
    folder: Path, speed: float = 1.0, *, repeats: int = 4, ids: Sequence[str] = ("insert",), **more: Any
) -> Path:
    """Write a run of some phases: the first is as fast as `speed` says, the others as ever."""
    phases = tuple(
        Phase(
            id=name,
            title=name.capitalize(),
            repeat=repeat,
            seconds=8,
            warmup=1,
            noise=0.01,
            tps=400.0 * NOISE[(repeat + at) % 6] * (1 if at else speed),
        )
        for repeat in range(1, repeats + 1)
        for at, name in enumerate(ids)
    )
    return build(folder, Run(phases=phases, **more))


def compare(*arguments: object) -> Result:
    return CliRunner().invoke(loadstone, ["compare", *map(str, arguments)])


def rows_of(result: Result, metric: str = "rate") -> dict[str, dict[str, Any]]:
    document = json.loads(result.stdout)
    msgspec.convert(document, Document)
    return {row["phase"]: row for row in document["comparisons"][0]["rows"] if row["metric"] == metric}


def test_a_slower_run_is_worse_and_its_other_phase_is_not(tmp_path: Path) -> None:
    a = run_of(tmp_path / "a", ids=("insert", "select"))
    b = run_of(tmp_path / "b", 0.8, ids=("insert", "select"))
    result = compare(a, b, "--format", "json")
    assert result.exit_code == 0, result.output
    rows = rows_of(result)
    assert rows["insert"]["verdict"] == "worse"
    assert rows["insert"]["ratio"] == pytest.approx(0.8, rel=0.02)
    assert rows["insert"]["low"] < 0.8 < rows["insert"]["high"] < 0.9
    assert rows["select"]["verdict"] in ("same", "small", "undecided")
    assert (rows["insert"]["paired"], rows["insert"]["basis"]) == (False, "repeats")
    assert rows_of(compare(b, a, "--format", "json"))["insert"]["verdict"] == "better"


def test_exit_codes(tmp_path: Path) -> None:
    a, b = run_of(tmp_path / "a"), run_of(tmp_path / "b", 0.8)
    noisy = run_of(tmp_path / "one", repeats=1)
    assert compare(a, b, "--fail-on", "worse").exit_code == 4
    assert compare(b, a, "--fail-on", "worse,undecided").exit_code == 0
    assert compare(a, noisy, "--fail-on", "worse").exit_code == 0
    assert compare(a, noisy, "--fail-on", "worse,undecided").exit_code == 5
    assert compare(a, b, "--fail-on", "slower").exit_code == 1


def test_a_known_regression_is_accepted_until_its_date(tmp_path: Path) -> None:
    a, b = run_of(tmp_path / "a"), run_of(tmp_path / "b", 0.8)
    known = tmp_path / "known.toml"

    def with_list(until: str, more: str = "") -> Result:
        known.write_text(f'[[accept]]\nphase = "insert"\nuntil = {until}\nreason = "one more index"\n{more}')
        return compare(a, b, "--fail-on", "worse", "--accept", known, "--format", "markdown")

    accepted = with_list("2999-01-01")
    assert accepted.exit_code == 0
    assert "worse (accepted)" in accepted.stdout
    assert "one more index (until 2999-01-01)" in accepted.stdout
    assert with_list("2020-01-01").exit_code == 4
    assert with_list("2999-01-01", "at_least = 0.9").exit_code == 4
    assert with_list("2999-01-01", "at_least = 0.7").exit_code == 0
    assert with_list("2999-01-01", 'scenario = "another"').exit_code == 4
    refused = with_list("2999-01-01", "sometimes = true")
    assert refused.exit_code == 1
    assert "sometimes" in refused.stderr


def test_targets_of_one_run_are_paired_by_repeat(tmp_path: Path) -> None:
    targets = (Target(), Target(id="pg17", label="PostgreSQL 17.11 (embedded)", speed=0.93))
    folder = run_of(tmp_path / "run", targets=targets)
    result = compare(folder, "--format", "json")
    row = rows_of(result)["insert"]
    assert (row["paired"], row["verdict"], row["repeats_a"]) == (True, "worse", 4)
    # What a repeat has in common does not count: the noise between repeats is 1 %.
    assert row["high"] - row["low"] < 0.02
    notes = json.loads(result.stdout)["comparisons"][0]["notes"]
    assert any("always ran before" in note for note in notes), "the builder has a fixed order"
    reverse = rows_of(compare(f"{folder}#pg17", f"{folder}#pg18", "--format", "json"))["insert"]
    assert (reverse["paired"], reverse["verdict"]) == (True, "better")


def test_under_three_repeats_a_verdict_is_indicative(tmp_path: Path) -> None:
    a, b = run_of(tmp_path / "a", repeats=2), run_of(tmp_path / "b", 0.5, repeats=2)
    result = compare(a, b, "--format", "json", "--fail-on", "worse")
    row = rows_of(result)["insert"]
    assert (result.exit_code, row["verdict"], row["leaning"]) == (0, "indicative", "worse")
    assert "--repeat 6" in json.loads(result.stdout)["comparisons"][0]["advice"]


@pytest.mark.parametrize(
    ("other", "command"),
    [
        (
            "pg17?setting.jit=off",
            "ab iot-feed --size small --set index=btree --a pg18 --b 'pg17?setting.jit=off'",
        ),
        (
            "postgres://me@h/d",
            "run iot-feed --size small --set index=btree --target pg18 --target postgres://me@h/d --repeat 6",
        ),
    ],
)
def test_what_would_decide_is_an_experiment_where_servers_are_private(
    tmp_path: Path, other: str, command: str
) -> None:
    targets = (Target(), Target(id="pg17", label="PostgreSQL 17.11 (embedded)", speed=0.93))
    folder = run_of(tmp_path / "run", repeats=2, targets=targets)
    asked = {
        "scenarios": ["iot-feed"],
        "targets": ["pg18", other],
        "overrides": {"index": "btree", "k": "***"},
    }
    write(folder / "run.json", json.loads((folder / "run.json").read_text()) | {"asked": asked})
    found = json.loads(compare(folder, "--format", "json").stdout)["comparisons"][0]
    assert found["advice"] == f"loadstone {command}"


def test_what_is_undecided_says_what_would_decide_it(tmp_path: Path) -> None:
    a, b = run_of(tmp_path / "a", repeats=3), run_of(tmp_path / "b", 0.985, repeats=3)
    result = compare(a, b, "--format", "json", "--matters", "1%")
    row = rows_of(result)["insert"]
    assert row["verdict"] == "undecided"
    assert row["needed"] > 3
    assert f"needs about {row['needed']} repeats" in " ".join(compare(a, b, "--matters", "1%").stdout.split())


def test_a_noisy_machine_is_named_and_not_answered_with_hundreds_of_repeats(tmp_path: Path) -> None:
    a, b = (
        build(
            tmp_path / name,
            Run(phases=tuple(Phase(repeat=r, seconds=6, tps=tps) for r, tps in enumerate(rates, 1))),
        )
        for name, rates in (("a", (200.0, 400.0, 300.0)), ("b", (410.0, 190.0, 320.0)))
    )
    found = json.loads(compare(a, b, "--format", "json").stdout)["comparisons"][0]
    assert found["rows"][0]["verdict"] == "undecided"
    assert any("a quieter machine" in note for note in found["notes"])
    assert found["advice"].endswith("--repeat 30")


def test_runs_of_another_plan_are_refused_unless_anyway(tmp_path: Path) -> None:
    a, b = run_of(tmp_path / "a"), run_of(tmp_path / "b", 0.8)
    plan = json.loads((b / "plan.json").read_text())
    write(b / "plan.json", plan | {"size": "full"})
    refused = compare(a, b)
    assert refused.exit_code == 1
    assert "cannot be compared: size" in refused.stderr
    assert "--anyway" in refused.stderr
    result = compare(a, b, "--anyway", "--format", "json", "--fail-on", "worse,undecided")
    assert result.exit_code == 5
    row = rows_of(result)["insert"]
    assert (row["verdict"], round(row["ratio"], 1)) == ("not comparable", 0.8)
    first = json.loads(result.stdout)["comparisons"][0]["differences"][0]
    assert (first["what"], first["blocks"]) == ("size", True)


def test_a_change_inside_a_phase_is_another_plan(tmp_path: Path) -> None:
    a, b = run_of(tmp_path / "a"), run_of(tmp_path / "b")
    plan = json.loads((b / "plan.json").read_text())
    for phase in plan["targets"][0]["phases"]:
        phase["workload"] |= {"clients": 9}
    write(b / "plan.json", plan)
    refused = compare(a, b)
    assert refused.exit_code == 1
    assert "workload.clients" in refused.stderr


def test_two_scenarios_with_phases_of_the_same_name_are_kept_apart(tmp_path: Path) -> None:
    a, b = run_of(tmp_path / "a"), run_of(tmp_path / "b")
    for folder, clients in ((a, 8), (b, 9)):
        plan = json.loads((folder / "plan.json").read_text())
        phases = plan["targets"][0]["phases"]
        of_one = [p | {"scenario": "one", "workload": p["workload"] | {"clients": clients}} for p in phases]
        plan["targets"][0]["phases"] = of_one + [phase | {"scenario": "two"} for phase in phases]
        write(folder / "plan.json", plan)
    refused = compare(a, b)
    assert refused.exit_code == 1
    assert "one: insert" in refused.stderr


def test_another_seed_of_transactions_is_listed_and_one_of_data_refused(tmp_path: Path) -> None:
    a, b = run_of(tmp_path / "a"), run_of(tmp_path / "b")
    plan = json.loads((b / "plan.json").read_text())
    write(b / "plan.json", plan | {"seed": 77})
    first = json.loads(compare(a, b, "--format", "json").stdout)["comparisons"][0]["differences"][0]
    assert (first["what"], first["b"], first["blocks"]) == ("seed of the run", 77, False)
    for phase in plan["targets"][0]["phases"]:
        phase["workload"] |= {"rows": {"seed": 77}}
    write(b / "plan.json", plan)
    assert "rows.seed" in compare(a, b).stderr


def test_machine_and_build_are_listed_and_do_not_block(tmp_path: Path) -> None:
    a = run_of(tmp_path / "a")
    b = run_of(tmp_path / "b", targets=(Target(fsync="off", build="other"),))
    for folder, name in ((a, "bench-01"), (b, "bench-02")):
        write(folder / "environment.json", {"system": {"hostname": name}})
    result = compare(a, b, "--format", "json")
    found = {(one["kind"], one["what"]) for one in json.loads(result.stdout)["comparisons"][0]["differences"]}
    assert {("machine", "host"), ("server", "build"), ("setting", "fsync")} <= found
    shown = " ".join(compare(a, b).stdout.split())
    assert "Only B runs with fsync = off: a crash may lose or corrupt everything." in shown
    assert "host: bench-01 | bench-02" in shown


def test_a_phase_that_one_side_lacks_is_a_row_with_the_reason(tmp_path: Path) -> None:
    a = run_of(tmp_path / "a", ids=("insert", "select"))
    b = run_of(tmp_path / "b")
    result = compare(a, b, "--format", "json", "--fail-on", "undecided")
    row = rows_of(result)["select"]
    assert (result.exit_code, row["verdict"], row["b"]) == (5, "missing", None)
    assert row["a"] > 0
    assert (row["repeats_a"], row["repeats_b"]) == (4, 0)
    assert row["reason"] == "B: this run has no such phase"
    assert "select" not in rows_of(result, "p50")


def test_a_killed_run_is_compared_as_far_as_it_came(tmp_path: Path) -> None:
    a = run_of(tmp_path / "a", ids=("insert", "select"), repeats=1)
    b = run_of(tmp_path / "b", ids=("insert", "select"), repeats=1)
    kill(b, "002-select", 3)
    result = compare(a, b, "--format", "json")
    assert result.exit_code == 0, result.output
    rows = rows_of(result)
    assert rows["insert"]["verdict"] == "indicative"
    assert rows["select"]["reason"].startswith("B: incomplete")
    notes = json.loads(result.stdout)["comparisons"][0]["notes"]
    assert any("The run of B is killed" in note for note in notes)
    assert not (b / "summary.json").exists(), "nothing is written"


@pytest.mark.parametrize("broken", ["run.json", "plan.json", "targets/pg18/phases/001-insert/drive.json"])
def test_a_damaged_folder_is_an_error_that_names_the_file(tmp_path: Path, broken: str) -> None:
    a, b = run_of(tmp_path / "a", repeats=1), run_of(tmp_path / "b", repeats=1)
    (b / broken).write_text('{"format": ')
    result = compare(a, b)
    assert result.exit_code == 1
    assert broken.rpartition("/")[2] in result.stderr
    assert "Traceback" not in result.output


def test_a_folder_that_lacks_a_phase_of_its_run_passes_no_gate(tmp_path: Path) -> None:
    a, b = (run_of(tmp_path / name, ids=("insert", "select")) for name in ("a", "b"))
    shutil.rmtree(next((b / "targets").glob("*/phases/*-select")))
    refused = compare(a, b, "--fail-on", "worse")
    assert refused.exit_code == 1
    assert "cannot be compared: folder: undamaged in A, damaged in B" in refused.stderr
    assert "Use an untouched copy" in refused.stderr
    result = compare(a, b, "--anyway", "--format", "json")
    assert result.exit_code == 0, result.output
    assert {row["verdict"] for row in rows_of(result).values()} == {"not comparable"}
    assert compare(a, b, "--anyway", "--fail-on", "worse").exit_code == 5


def test_no_folder_one_target_and_targets_that_do_not_match(tmp_path: Path) -> None:
    a = run_of(tmp_path / "a", repeats=1)
    two = run_of(tmp_path / "two", repeats=1, targets=(Target(id="x"), Target(id="y")))
    assert "does not exist" in compare(a, tmp_path / "nothing").stderr
    assert "nothing to compare it with" in compare(a).stderr
    result = compare(a, two)
    assert result.exit_code == 1
    assert "x, y" in result.stderr
    assert compare(a, f"{two}#y").exit_code == 0
    assert "no target 'z'" in compare(a, f"{two}#z").stderr


def test_a_run_and_its_copy_are_told_from_two_runs(tmp_path: Path) -> None:
    a, b = run_of(tmp_path / "a", repeats=1), run_of(tmp_path / "b", 0.8, repeats=1)
    copy = shutil.copytree(a, tmp_path / "copy")

    def notes(other: Path) -> list[str]:
        found: list[str] = json.loads(compare(a, other, "--format", "json").stdout)["comparisons"][0]["notes"]
        return [note for note in found if "copies of one run" in note]

    assert [len(notes(other)) for other in (a, copy, b)] == [1, 1, 0]


def test_a_folder_of_an_older_version_of_every_kind(tmp_path: Path) -> None:
    """Loads, queries one by one and as a load, mixed, storage: all have a figure that decides."""
    copy = shutil.copytree(FIXTURE, tmp_path / "again")
    result = compare(FIXTURE, copy, "--format", "json", "--all")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["comparisons"][0]["rows"]
    primary = {row["phase"]: row["metric"] for row in rows if row["primary"]}
    assert primary == {
        "orders": "rate",
        "import": "rate",
        "import-while-asked": "rate",
        "one-by-one": "warm",
        "concurrency": "rate",
        "series": "rate",
        "series-queries": "rate",
        "bytes": "disk",
    }
    assert all(row["ratio"] == pytest.approx(1) for row in rows if row["ratio"] is not None)
    metrics = {row["metric"] for row in rows}
    assert {"p50", "CPU", "WAL", "disk", "warm Count", "queries meanwhile"} <= metrics


def test_against_a_newer_run_the_older_plan_is_compared_coarsely(tmp_path: Path) -> None:
    a, b = FIXTURE, shutil.copytree(FIXTURE, tmp_path / "new")
    plan = json.loads((b / "plan.json").read_text())
    for phase in plan["targets"][0]["phases"]:
        phase.pop("drive", None)
    replace_plan(b, json.dumps(plan | {"format": 2}))
    assert compare(a, b).exit_code == 0


def test_three_sides(tmp_path: Path) -> None:
    a, b, c = (run_of(tmp_path / name, speed) for name, speed in (("a", 1.0), ("b", 0.8), ("c", 1.2)))
    found = json.loads(compare(a, b, c, "--format", "json").stdout)["comparisons"]
    assert [(one["a"]["name"], one["b"]["name"], one["rows"][0]["verdict"]) for one in found] == [
        ("A", "B", "worse"),
        ("A", "C", "better"),
    ]


def test_markdown_cannot_be_broken_by_a_title(tmp_path: Path) -> None:
    a, b = (build(tmp_path / name, Run(phases=(Phase(title="a | b `c` @all <i>"),))) for name in "ab")
    lines = compare(a, b, "--format", "markdown").stdout.splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in table} == {12}
    assert any("a \\| b \\`c\\` \\@all \\<i\\>" in line for line in table)


def test_junit_has_a_failure_for_a_regression(tmp_path: Path) -> None:
    a = run_of(tmp_path / "a", ids=("insert", "select"))
    b = run_of(tmp_path / "b", 0.8)
    root = ET.fromstring(compare(a, b, "--format", "junit").stdout)
    suite = root.find("testsuite")
    assert suite is not None
    assert {name: suite.get(name) for name in ("tests", "failures", "skipped")} == {
        "tests": "2",
        "failures": "1",
        "skipped": "1",
    }
    failure = root.find(".//failure")
    assert failure is not None
    assert "B/A 0.79" in str(failure.get("message"))


def test_a_fast_primary_decides_the_mean_over_phases(tmp_path: Path) -> None:
    a = run_of(tmp_path / "a", ids=("insert", "select"))
    b = run_of(tmp_path / "b", 0.64, ids=("insert", "select"))
    overall = json.loads(compare(a, b, "--format", "json").stdout)["comparisons"][0]["overall"]
    assert overall["ratio"] == pytest.approx(0.8, rel=0.02)
    assert overall["low"] < 0.8 < overall["high"]
    assert (overall["phases"], overall["repeats"]) == (2, 4)


def test_at_a_rate_the_latency_decides(tmp_path: Path) -> None:
    a, b = (
        build(
            tmp_path / name,
            Run(
                phases=tuple(
                    Phase(repeat=r, rate=400.0, tps=400.0, median_ms=ms * NOISE[r], seconds=8)
                    for r in range(1, 5)
                )
            ),
        )
        for name, ms in (("a", 2.0), ("b", 3.0))
    )
    rows = json.loads(compare(a, b, "--format", "json").stdout)["comparisons"][0]["rows"]
    deciding = [row for row in rows if row["primary"]]
    assert [(row["metric"], row["verdict"]) for row in deciding] == [("p99", "worse")]
    assert deciding[0]["ratio"] == pytest.approx(1.5, rel=0.1)


@pytest.mark.slow
def test_files_beside_the_output(tmp_path: Path) -> None:
    a, b = run_of(tmp_path / "a"), run_of(tmp_path / "b", 0.8)
    names = ("c.md", "c.json", "c.xml", "c.html")
    result = compare(a, b, *(word for name in names for word in ("--out", tmp_path / name)))
    assert result.exit_code == 0, result.output
    page = (tmp_path / "c.html").read_text()
    assert page.count("<figure") == 2
    assert "worse" in page
    assert "<svg" in page
    assert json.loads((tmp_path / "c.json").read_text())["format"] == 1
    assert (tmp_path / "c.md").read_text().startswith("### Loadstone")
    assert compare(a, b, "--out", tmp_path / "c.pdf").exit_code == 1
    assert compare(a, b, "--out", tmp_path / "nowhere" / "c.md").exit_code == 1


@pytest.mark.slow
def test_a_page_shows_markup_of_a_title_as_text(tmp_path: Path) -> None:
    a, b = (build(tmp_path / name, Run(phases=(Phase(title="<b>bold</b>\x1b[31m"),))) for name in "ab")
    assert compare(a, b, "--out", tmp_path / "c.html").exit_code == 0
    page = (tmp_path / "c.html").read_text()
    assert "<b>bold" not in page
    assert "&lt;b&gt;bold" in page
    assert "\x1b[31m" not in compare(a, b).stdout


def test_a_narrow_terminal_has_the_ratio_and_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    a, b = run_of(tmp_path / "a"), run_of(tmp_path / "b", 0.8)
    lines = compare(a, b).stdout.splitlines()
    assert all(len(line) <= 60 for line in lines)
    assert any("worse" in line and "0.8" in line for line in lines)


@pytest.mark.parametrize("percent", ["0", "100%", "nan", "three", "-1%"])
def test_a_limit_that_cannot_be_is_refused(percent: str, tmp_path: Path) -> None:
    assert compare(tmp_path, "--matters", percent).exit_code == 1

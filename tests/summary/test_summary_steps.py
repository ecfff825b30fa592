"""Loads in steps in summary.json: what each step took and cost, knees of ours and published ones, advice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.run_folders import build
from support.summaries import summarise, write_summary
from support.table_load_folders import KNEES, STEP_ROWS, STEPS, index_import

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return index_import(tmp_path_factory.mktemp("steps") / "run", limit=96 * 2**20)


@pytest.fixture(scope="module")
def summary(folder: Path) -> dict[str, Any]:
    return summarise(folder)


def steps_of(summary: dict[str, Any], indexes: str) -> dict[str, Any]:
    found = [phase["steps"] for phase in summary["phases"] if phase["variant"] == {"indexes": indexes}]
    steps: dict[str, Any] = found[0]
    return steps


def rewrite_steps(folder: Path, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    for path in folder.glob("targets/*/phases/*/steps.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps(line) + "\n" for line in change(lines)))


def test_each_step_has_its_figures(summary: dict[str, Any]) -> None:
    steps = steps_of(summary, "3")
    assert steps["step_rows"] == STEP_ROWS
    assert len(steps["points"]) == STEPS
    for at, point in enumerate(steps["points"]):
        assert (point["step"], point["rows_before"], point["rows"]) == (at, at * STEP_ROWS, STEP_ROWS)
        assert point["rows_per_s"] == pytest.approx(STEP_ROWS / point["seconds"])
        assert point["end_s"] - point["start_s"] == pytest.approx(point["seconds"], abs=1e-3)
        assert point["wal_bytes_per_row"] == pytest.approx(point["wal_bytes"] / STEP_ROWS)
        assert 0 <= point["hit_ratio"] <= 1
        assert point["table_bytes"] > 0
    assert [point["step"] for point in steps["points"] if point["checkpoints"]] == [8, 17, 26, 35]


def test_rows_that_are_only_in_the_log_yet_have_no_size(tmp_path: Path) -> None:
    folder = index_import(tmp_path / "run")
    rewrite_steps(
        folder, lambda lines: [line | {"sizes": {**line["sizes"], "table_bytes": 0}} for line in lines]
    )
    loads = [phase["load"] for phase in summarise(folder)["phases"] if phase["load"]]
    assert loads
    assert all(load["table_bytes_per_row"] != 0 for load in loads)


@pytest.mark.parametrize("indexes", list(KNEES))
def test_the_knee_is_where_the_steps_slow_down(summary: dict[str, Any], indexes: str) -> None:
    knee, at = steps_of(summary, indexes)["knee"], KNEES[indexes]
    if at is None:
        assert not knee["found"]
        assert knee["outcome"] == "none"
    else:
        assert knee["found"]
        # Step `at` is the first slow one: seconds leave the level of those before at its predecessor.
        assert knee["low"] <= (at - 1) * STEP_ROWS <= knee["high"]


def test_advice_stands_beside_the_knee(summary: dict[str, Any]) -> None:
    sizes = [steps_of(summary, indexes)["advice"]["partition_rows"] for indexes in KNEES]
    assert sizes[0] is None
    assert sizes[1] >= sizes[2] >= sizes[3] > 0, "more indexes, smaller partitions"
    advice = steps_of(summary, "5")["advice"]
    assert "partition by range" in advice["ddl"]
    assert any("limited to 96 MiB" in sentence for sentence in advice["sentences"])


def test_published_curves_have_their_knee_read(summary: dict[str, Any]) -> None:
    curves = {curve["name"]: curve for curve in steps_of(summary, "5")["curves"]}
    assert set(curves) == {"RAID", "one disk"}
    knee = curves["one disk"]["knee"]
    assert knee["found"]
    assert 4e7 <= knee["low"] < knee["high"] <= 9e7


def test_a_failed_step_is_shown_and_left_out_of_the_fit(tmp_path: Path) -> None:
    steps = steps_of(summarise(index_import(tmp_path / "run", failed=True)), "5")
    last = steps["points"][-1]
    assert last["state"] == "failed"
    assert "disk is full" in last["reason"]
    assert steps["knee"]["steps"] == len(steps["points"]) - 1


def test_a_resumed_step_and_a_short_one_are_left_out_of_the_fit(tmp_path: Path) -> None:
    def change(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        lines[5] |= {"state": "resumed", "seconds": 0.01}
        lines[-1] |= {"rows": STEP_ROWS // 10, "seconds": lines[-1]["seconds"] / 10}
        return lines

    run = index_import(tmp_path / "run", flat=True)
    rewrite_steps(run, change)
    knee = steps_of(summarise(run), "3")["knee"]
    assert knee["steps"] == STEPS - 2
    assert knee["outcome"] == "none"


def test_a_shorter_step_counts_as_if_it_had_been_whole(tmp_path: Path) -> None:
    def change(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        lines[-1] |= {"rows": STEP_ROWS * 6 // 10, "seconds": lines[-1]["seconds"] * 0.6}
        return lines

    run = index_import(tmp_path / "run")
    before = steps_of(summarise(run), "3")["knee"]
    rewrite_steps(run, change)
    after = steps_of(summarise(run), "3")["knee"]
    assert after["rows"] == pytest.approx(before["rows"])
    assert after["steps"] == STEPS


def test_too_few_steps_are_said_with_the_number_needed(tmp_path: Path) -> None:
    run = index_import(tmp_path / "run")
    rewrite_steps(run, lambda lines: lines[:2])
    for indexes in KNEES:
        steps = steps_of(summarise(run), indexes)
        assert steps["knee"]["outcome"] == "too_few"
        assert "needs 10 steps, and there are 2" in steps["knee"]["reason"]
        assert steps["advice"]["partition_rows"] is None


def test_unknown_costs_are_unknown_and_not_zero(tmp_path: Path) -> None:
    run = index_import(tmp_path / "run", flat=True)
    nothing = dict.fromkeys(("sizes", "counters", "server_cpu_s", "client_cpu_s", "server_write_bytes"))
    rewrite_steps(run, lambda lines: [line | nothing for line in lines])
    for point in steps_of(summarise(run), "1")["points"]:
        for name in (
            "table_bytes",
            "wal_bytes",
            "wal_bytes_per_row",
            "hit_ratio",
            "checkpoints",
            "server_cpu_s",
        ):
            assert point[name] is None


def test_phases_without_steps_have_none(tmp_path: Path) -> None:
    summary = summarise(build(tmp_path / "run"))
    assert all(phase["steps"] is None for phase in summary["phases"])
    assert summary["grids"] == []
    assert summary["scaling"] == []


def test_the_same_folder_gives_the_same_bytes(folder: Path) -> None:
    write_summary(folder)
    first = (folder / "summary.json").read_bytes()
    write_summary(folder)
    assert (folder / "summary.json").read_bytes() == first

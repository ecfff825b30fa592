"""The noise floor of a history, and whether an experiment belongs in one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.run_folders import Phase, Run, build

from loadstone.ab.noise import lines_of_experiment, noise_of
from loadstone.errors import LoadstoneError
from loadstone.history.file import append
from loadstone.history.lines import lines_of, machine_of
from loadstone.host.environment import collect

if TYPE_CHECKING:
    from pathlib import Path


def experiment(folder: Path, **changes: Any) -> Path:
    """Write an experiment of one trial, far enough that it is read."""
    build(
        folder / "trials" / "001-a", Run(phases=(Phase(id="insert", title="Insert", seconds=8, noise=0.01),))
    )
    trial = {
        "number": 1, "block": 1, "arm": "A", "folder": "trials/001-a", "started_at": "", "seconds": 1,
        "cpu_us": 1, "fsync_us": 1, "checkpoints": 0, "values": {},
    }  # fmt: skip
    side = {
        "label": "",
        "folder": "",
        "target": "",
        "run": None,
        "started_at": None,
        "state": "",
        "repeats": 1,
    }
    check = {"phase": "Insert", "metric": "rate", "decided_at": 6, "sign_flip_p": 0.03, "hodges_lehmann": 1.0}
    document = {
        "format": 1, "loadstone": "0", "id": "x", "state": "complete", "started_at": "2026-11-20T10:00:00Z",
        "command": [], "scenario": "s", "size": "small", "seed": 1, "parameters": {}, "settings": {},
        "matters": 0.03, "looks": [6], "arms": [], "orders": [["A", "B"]], "trials": [trial],
        "checks": [check | {"aa_spread": 0.021}],
        "comparison": {
            "a": side | {"name": "A"}, "b": side | {"name": "B"}, "comparable": True, "paired": True,
            "differences": [], "notes": [], "rows": [], "overall": None, "advice": None,
        },
    }  # fmt: skip
    (folder / "ab.json").write_text(json.dumps(document | changes))
    return folder


def test_the_noise_floor_is_kept_and_found_again(tmp_path: Path) -> None:
    (line,) = lines_of_experiment(experiment(tmp_path / "x"), "abc")
    (rate,) = [metric for metric in line.phases[0].metrics if metric.primary]
    assert (line.run, line.commit, rate.aa_spread) == ("x", "abc", 0.021)
    history = tmp_path / "history.jsonl"
    assert noise_of(history, "own", "small") is None
    here = msgspec.structs.replace(line, machine=machine_of(collect({})), size="small")
    scenario = str(here.phases[0].scenario)
    append(history, [here])
    assert noise_of(history, scenario, "small") == 0.021
    assert noise_of(history, scenario, "full") is None
    assert noise_of(history, "other", "small") is None
    elsewhere = msgspec.structs.replace(here.machine, host="other")
    append(tmp_path / "others.jsonl", [msgspec.structs.replace(here, machine=elsewhere)])
    assert noise_of(tmp_path / "others.jsonl", scenario, "small") is None


def test_runs_without_a_twin_are_no_noise_floor(tmp_path: Path) -> None:
    (line,) = lines_of(
        build(tmp_path / "run", Run(phases=(Phase(id="insert", seconds=8, noise=0.01),))), None
    )
    append(tmp_path / "h.jsonl", [msgspec.structs.replace(line, machine=machine_of(collect({})))])
    assert noise_of(tmp_path / "h.jsonl", str(line.phases[0].scenario), str(line.size)) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"state": "interrupted"}, "is interrupted, with 1 blocks"),
        ({"comparison": None}, "do not belong in a history"),
        ({"format": 9}, "has format 9"),
        ({"trials": [{}]}, "ab.json: "),
    ],
)
def test_what_does_not_belong_in_a_history_is_refused(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(LoadstoneError, match=words):
        lines_of_experiment(experiment(tmp_path / "x", **changes), None)

"""Whatever happens to a run folder, its report tells: an error with the file, nothing green, or no change."""

import json
import shutil
from pathlib import Path
from random import Random  # noqa: TID251 - hypothesis hands in such generators
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.folder_damage import damage
from support.run_folders import Phase, Run, build, seal, write
from support.summaries import headline_json, summarise, typed
from support.table_load_folders import big_transaction

from loadstone.errors import LoadstoneError
from loadstone.report.view import view

pytestmark = pytest.mark.slow

EXAMPLES = settings(
    max_examples=40,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module", params=["drive", "load"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    if request.param == "load":
        return seal(big_transaction(folder))
    event = {"t_ns": 1, "level": "warning", "kind": "note", "message": "noted", "hint": None}
    calibration = {"results": [{"mode": "prepared", "clients": 8, "tps": 90_000.0}]}
    phase = Phase(seconds=4, warmup=1, tps=40.0, rate=50.0)
    return seal(build(folder, Run(phases=(phase,), events=(event,), calibration=calibration)))


def report_of(folder: Path) -> dict[str, Any] | str:
    """Do all that a report does, but for drawing; returns the summary, or why there is none."""
    try:
        summary = summarise(folder)
    except LoadstoneError as error:
        return error.message
    headline_json(summary)
    view(typed(summary))
    json.dumps(summary, allow_nan=False).encode()
    return summary


def damaged(whole: Path, here: Path, rng: Random, *, manifest: bool) -> tuple[Path, str]:
    folder = here / "run"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    if not manifest:
        (folder / "manifest.jsonl").unlink()
        run = json.loads((folder / "run.json").read_text())
        write(folder / "run.json", run | {"manifest": None})
    return folder, "; ".join(damage(folder, rng) for _ in range(rng.choice((1, 1, 1, 2))))


@EXAMPLES
@given(rng=st.randoms(use_true_random=True))
def test_damage_is_told(whole: Path, tmp_path: Path, rng: Random) -> None:
    folder, what = damaged(whole, tmp_path, rng, manifest=True)
    summary = report_of(folder)
    if isinstance(summary, str):
        assert str(folder) in summary, what
    else:
        levels = {entry["level"] for entry in summary["verdict"]}
        assert "good" not in levels or summary == summarise(whole), what


@EXAMPLES
@given(rng=st.randoms(use_true_random=True))
def test_without_a_manifest_damage_ends_in_words_too(whole: Path, tmp_path: Path, rng: Random) -> None:
    folder, what = damaged(whole, tmp_path, rng, manifest=False)
    summary = report_of(folder)
    assert not isinstance(summary, str) or str(folder) in summary, what

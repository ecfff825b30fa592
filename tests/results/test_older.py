"""Run folders of format 1 (version 0.1.0): a report is made as ever, and nothing of today is changed."""

from __future__ import annotations

import json
import shutil
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.cli import main
from loadstone.errors import ExitCode
from loadstone.report import write_report
from loadstone.results.documents import Drive, Phase, Plan
from loadstone.results.folder import RunFolder
from loadstone.results.older import renamed

if TYPE_CHECKING:
    from loadstone.results.documents import Struct

FIXTURE = Path(__file__).parent.parent / "fixtures" / "run-0.1.0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a scenario with one phase of every kind, recorded by version 0.1.0."""
    return shutil.copytree(FIXTURE, tmp_path_factory.mktemp("older") / "run")


@pytest.fixture(scope="module")
def summary(folder: Path) -> dict[str, Any]:
    write_report(folder)
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return found


def test_the_fixture_has_the_old_names() -> None:
    text = "".join(path.read_text() for path in FIXTURE.rglob("*.json"))
    for name in ('"kind": "drive"', '"kind": "query"', '"asking"', '"questions"', '"question"'):
        assert name in text, name
    assert json.loads((FIXTURE / "run.json").read_text())["format"] == 1


def test_an_old_run_is_whole(summary: dict[str, Any]) -> None:
    answers = {entry["question"]: entry["answer"] for entry in summary["verdict"]}
    assert answers["Did the run finish?"] == "Complete"
    assert answers["Are the answers right?"] == "Checked"
    kinds = [phase["kind"] for phase in summary["phases"]]
    assert kinds == ["sql", *["script"] * 2, *["load"] * 2, *["queries"] * 3, "load", "queries", "size"]


def test_its_scripts_have_their_rates_and_published_figures(summary: dict[str, Any]) -> None:
    recorded = json.loads(next(FIXTURE.rglob("*-orders-key-true/drive.json")).read_text())
    group = next(g for g in summary["groups"] if g["variant"] == {"key": True})
    assert group["done"] == recorded["counts"]["done"] > 0
    assert [figure["system"] for figure in group["published"]] == ["an older server"]


def test_its_plain_queries_have_their_times(summary: dict[str, Any]) -> None:
    recorded = json.loads(next(FIXTURE.rglob("*-one-by-one/drive.json")).read_text())["asking"]["runs"]
    (entry,) = summary["plain_queries"]
    assert entry["queries"] == ["Count", "Widest"]
    for query in entry["targets"][0]["queries"]:
        seconds = [run["seconds"] for run in recorded if run["question"] == query["name"]]
        assert query["warm"]["median_s"] == statistics.median(seconds)
    assert [figure["query"] for figure in entry["published"]] == ["Count"]


def test_its_concurrent_queries_and_mixed_loads_are_there(summary: dict[str, Any]) -> None:
    (entry,) = summary["concurrency"]
    assert [point["clients"] for point in entry["targets"][0]["points"]] == [1, 2]
    loads = [load for imports in summary["imports"] for load in imports["loads"]]
    assert [load["mixed"] is not None for load in loads] == [False, True, True]


def test_the_page_shows_it(folder: Path, summary: dict[str, Any]) -> None:
    page = (folder / "report.html").read_text()
    assert summary["run"]["id"] in page
    for words in ("Widest", "an older server", "A query by many clients"):
        assert words in page


def test_an_old_run_cannot_be_resumed(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    monkeypatch.setattr("sys.argv", ["loadstone", "run", "--resume", str(folder)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == ExitCode.BAD_INPUT
    assert "format 1" in capfd.readouterr().err
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_its_plan_says_what_each_phase_was_to_do(folder: Path) -> None:
    plan = renamed(json.loads((folder / "plan.json").read_text()), Plan)
    phases = [phase for target in plan["targets"] for phase in target["phases"]]
    assert {phase["workload"]["type"] for phase in phases} == {
        *("sql", "script", "table-load", "plain-queries", "timeseries-load", "timeseries-queries", "size")
    }
    assert not any({"kind", "drive", "bulk", "questions"} & phase.keys() for phase in phases)
    mixed = [phase["workload"].get("mixed") for phase in phases]
    assert sum(queries is not None for queries in mixed) == 2


def test_what_is_read_has_todays_names(folder: Path) -> None:
    target = next(iter(RunFolder.open(folder).targets()))
    phases = {phase.written_phase()["id"]: phase for phase in target.phases()}
    drive = phases["one-by-one"].written_drive()
    assert drive is not None
    assert "asking" not in drive
    assert {run["query"] for run in drive["plain_queries"]["runs"]} == {"Count", "Widest"}


OLD = ("asking", "questions", "question")
PLANNED = ("kind", "drive", "load", "bulk", "query", "plain_queries")
"""Keys of a planned phase until format 2."""
KEYS = st.sampled_from([*OLD, *PLANNED, "queries", "runs", "workload", "published", "targets", "phases"])
VALUES = st.recursive(
    st.none() | st.integers() | st.sampled_from(["drive", "query", "load", "text"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("kind", [Phase, Plan, Drive])
@given(document=st.dictionaries(KEYS, VALUES, max_size=5))
def test_renaming_twice_is_renaming_once(kind: type[Struct], document: dict[str, Any]) -> None:
    once = renamed(document, kind)
    assert renamed(once, kind) == once


@pytest.mark.parametrize("kind", [Phase, Plan, Drive])
@given(document=st.dictionaries(KEYS, VALUES, max_size=5))
def test_a_document_without_old_names_stays_as_it_is(kind: type[Struct], document: dict[str, Any]) -> None:
    text = json.dumps(document)
    if not any(f'"{name}"' in text for name in (*OLD, *PLANNED)):
        assert renamed(document, kind) == document

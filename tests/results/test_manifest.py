"""The manifest tells what of a run folder is missing or was changed, also of a run that was killed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.run_folders import Phase, Run, build, seal, write
from support.summaries import summarise

from loadstone.cli.report import command
from loadstone.errors import ExitCode, LoadstoneError, RunFailedError
from loadstone.results.document_reader import read_jsonl
from loadstone.results.folder import RunFolder, TargetFolder
from loadstone.results.json_files import write_atomic
from loadstone.summary.document import write_summary
from loadstone.summary.stored import read_summary

PHASES = "targets/pg18/phases"
FIRST, SECOND = f"{PHASES}/001-first", f"{PHASES}/002-second"


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    phases = tuple(Phase(id=name, seconds=4, warmup=1, tps=50.0) for name in ("first", "second"))
    run = Run(phases=phases)
    return seal(build(tmp_path_factory.mktemp("sealed") / "run", run))


@pytest.fixture
def folder(sealed: Path, tmp_path: Path) -> Path:
    return shutil.copytree(sealed, tmp_path / "run")


def told(folder: Path) -> list[str]:
    return [w["message"] for w in summarise(folder)["warnings"] if w["kind"] == "FolderDamaged"]


def double(path: Path) -> None:
    path.write_text(path.read_text() * 2)


def shorten(path: Path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def retouch(path: Path) -> None:
    path.write_text(path.read_text().replace('"done": ', '"done": 1', 1))


def test_a_whole_folder_is_green(folder: Path) -> None:
    summary = summarise(folder)
    assert {entry["level"] for entry in summary["verdict"]} == {"good"}
    assert not {"FolderDamaged", "NoManifest"} & {warning["kind"] for warning in summary["warnings"]}


@pytest.mark.parametrize(
    ("what", "name", "words"),
    [
        (shutil.rmtree, SECOND, "is missing"),
        (Path.unlink, f"{FIRST}/drive.json", "is missing"),
        (Path.unlink, f"{FIRST}/series.jsonl", "is missing"),
        (Path.unlink, "plan.json", "is missing"),
        (Path.unlink, "targets/pg18/target.json", "is missing"),
        (Path.unlink, "targets/pg18/monitor.jsonl", "is missing"),
        (Path.unlink, "manifest.jsonl", "is missing"),
        (shorten, f"{FIRST}/series.jsonl", "has 4 lines; the run had written 5"),
        (shorten, f"{FIRST}/latency.hlog", "has 12 lines; the run had written 13"),
        (shorten, "targets/pg18/monitor.jsonl", "lines; the run had written"),
        (shorten, "manifest.jsonl", "ends before the run ended"),
        (retouch, f"{FIRST}/drive.json", "bytes; the run had written"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_damage_is_told_and_nothing_is_green(
    folder: Path, what: Callable[[Path], object], name: str, words: str
) -> None:
    what(folder / name)
    summary = summarise(folder)
    found = [w["message"] for w in summary["warnings"] if w["kind"] == "FolderDamaged"]
    assert any(name.rpartition("/")[2] in message and words in message for message in found), found
    assert summary["verdict"][0]["level"] == "bad"
    assert not [entry for entry in summary["verdict"] if entry["level"] == "good"]


def test_a_stored_summary_hides_no_damage(folder: Path) -> None:
    write_summary(folder)
    assert not [w for w in read_summary(folder).warnings if w.kind == "FolderDamaged"]
    retouch(folder / FIRST / "drive.json")
    (found,) = [w for w in read_summary(folder).warnings if w.kind == "FolderDamaged"]
    assert f"{FIRST}/drive.json" in found.message


def test_what_the_run_has_not_written_is_told(folder: Path) -> None:
    shutil.copytree(folder / FIRST, folder / PHASES / "003-third")
    (folder / FIRST / "queries").mkdir()
    shutil.copy(folder / FIRST / "drive.json", folder / FIRST / "queries")
    (folder / "calibration.json").write_text("{}")
    (folder / "notes.txt").write_text("the user's own")
    assert [message.partition(": ")[2] for message in told(folder)] == [
        f"{FIRST}/queries/drive.json was added after its phase.",
        "calibration.json is not in manifest.jsonl: the run did not write it.",
        f"{PHASES}/003-third is not in manifest.jsonl: the run did not write it.",
    ]


def test_doubled_series_are_told_with_and_without_a_manifest(folder: Path) -> None:
    double(folder / FIRST / "series.jsonl")
    (only,) = told(folder)
    assert "has 10 lines; the run had written 5" in only
    without_manifest(folder)
    assert f"{FIRST}/series.jsonl, line 6: the interval begins before" in told(folder)[0]


def without_manifest(folder: Path) -> None:
    (folder / "manifest.jsonl").unlink()
    run = json.loads((folder / "run.json").read_text())
    write(folder / "run.json", {name: value for name, value in run.items() if name != "manifest"})


def test_a_folder_without_a_manifest_is_reported_and_what_it_lost_too(folder: Path) -> None:
    without_manifest(folder)
    summary = summarise(folder)
    assert summary["verdict"][0]["level"] == "good"
    assert [w["message"] for w in summary["warnings"] if w["kind"] == "NoManifest"] == [
        "There is no manifest, so the files of this folder were not checked for damage."
    ]
    (folder / FIRST / "drive.json").unlink()
    shutil.rmtree(folder / SECOND)
    messages = " ".join(told(folder))
    assert f"{FIRST}/drive.json is missing" in messages
    assert f"{SECOND} is missing" in messages


@pytest.mark.parametrize("change", ["double", "drop", "change"])
def test_a_changed_manifest_is_seen(folder: Path, change: str) -> None:
    path = folder / "manifest.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    middle = {"double": [lines[2]] * 2, "drop": [], "change": [lines[2].replace('"bytes":', '"bytes":1')]}
    path.write_text("".join([*lines[:2], *middle[change], *lines[3:]]))
    assert "manifest.jsonl, line 4 does not follow" in " ".join(told(folder)) or change == "drop"
    assert told(folder)


def test_the_command_reports_a_damaged_folder_and_says_no(folder: Path) -> None:
    (folder / FIRST / "drive.json").unlink()
    shown = CliRunner().invoke(command, [str(folder)], catch_exceptions=False)
    assert shown.exit_code == 1
    assert "drive.json is missing" in shown.stderr
    assert "Damaged" in (folder / "report.html").read_text()


class RunInProgress:
    """A run in progress: one phase has ended, the next has begun."""

    def __init__(self, path: Path) -> None:
        self.folder = RunFolder.create(path, "id")
        self.folder.write_run(state="running", loadstone="0.1.0", origin_ns=1)
        self.folder.write_json("plan.json", {"targets": []})
        self.target: TargetFolder = self.folder.target("pg18")
        self.target.write_target({"id": "pg18"})
        self.phase(1)
        self.began = self.target.phase(2, "sql")
        self.began.begin()
        self.began.write_phase({"number": 2, "state": "running"})
        self.folder.event("info", "note", "after the last entry")

    def phase(self, number: int) -> None:
        phase = self.target.phase(number, "sql")
        phase.begin()
        phase.write_phase({"number": number, "state": "complete"})
        self.folder.event("info", "phase-end", "complete", target="pg18", phase=phase.key)
        phase.end()

    def problems(self) -> list[str]:
        return RunFolder.open(self.folder.path).verify().problems


@pytest.fixture
def written(tmp_path: Path) -> RunInProgress:
    return RunInProgress(tmp_path / "run")


def test_a_run_that_was_killed_has_what_it_wrote_so_far(written: RunInProgress) -> None:
    assert written.problems() == []
    root = written.folder.path
    (root / PHASES / "001-sql" / "phase.json").write_text("{}")
    assert written.problems() == [f"{PHASES}/001-sql/phase.json has 2 bytes; the run had written 38"]
    shutil.rmtree(root / PHASES / "002-sql")
    assert f"{PHASES}/002-sql is missing" in written.problems()


def test_a_kill_between_entry_and_document_is_no_damage(
    written: RunInProgress, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(path: Path, _: str) -> None:
        raise RunFailedError(path.name)

    for name in ("plan.json", "environment.json"):
        with monkeypatch.context() as patch:
            patch.setattr("loadstone.results.folder.write_atomic", killed)
            with pytest.raises(RunFailedError):
                written.folder.write_json(name, {"targets": [], "new": True})
        assert written.problems() == []
        written.folder.close()
        resumed = RunFolder.open(written.folder.path)
        resumed.take_over("2026-11-20T12:00:00.000Z")
        resumed.close()
        assert written.problems() == []
        written.folder = resumed


def test_after_the_end_is_entered_nothing_is_written(written: RunInProgress) -> None:
    """A thread that watches may still have something to tell when a second signal ends the run."""
    lines = written.target.monitor()
    lines.write({"t_ns": 1})
    written.folder.write_run(state="interrupted", exit_code=int(ExitCode.INTERRUPTED))
    assert written.folder.event("warning", "note", "late") is False
    with pytest.raises(RunFailedError, match="closed"):
        lines.write({"t_ns": 2})
    written.folder.close()
    assert written.folder.event("warning", "note", "later") is False
    assert written.problems() == []
    resumed = RunFolder.open(written.folder.path)
    resumed.take_over("2026-11-20T12:00:00.000Z")
    assert resumed.event("info", "note", "the run goes on")
    resumed.close()


def test_documents_are_entered_as_they_are_written_without_their_secrets(written: RunInProgress) -> None:
    written.target.write_target({"id": "pg18", "url": "postgres://me:correct-horse@host/db"})
    written.folder.write_json("environment.json", {"note": "password=correct-horse"})
    assert "correct-horse" not in (written.target.path / "target.json").read_text()
    assert written.problems() == []


def test_a_run_that_is_resumed_goes_on_with_its_manifest(written: RunInProgress) -> None:
    written.folder.close()
    with (written.folder.path / "manifest.jsonl").open("a") as file:
        file.write('{"what":"torn')
    resumed = RunFolder.open(written.folder.path)
    resumed.take_over("2026-11-20T12:00:00.000Z")
    again = RunInProgress.__new__(RunInProgress)
    again.folder, again.target = resumed, resumed.target("pg18")
    again.phase(2)
    resumed.write_run(state="complete")
    resumed.close()
    assert again.problems() == []
    assert [line["what"] for line in read_jsonl(resumed.path / "manifest.jsonl")][-3:] == [
        "begun", "ended", "closed",
    ]  # fmt: skip
    resumed.event("info", "note", "dropped: the folder is sealed")
    assert again.problems() == []
    with (resumed.path / "events.jsonl").open("a") as file:
        file.write("{}\n")
    assert any("events.jsonl has 4 lines" in problem for problem in again.problems())


def test_a_path_out_of_the_folder_is_refused(folder: Path) -> None:
    lines: list[dict[str, Any]] = list(read_jsonl(folder / "manifest.jsonl"))
    lines[0]["files"][0]["path"] = "../../etc/passwd"
    write_atomic(folder / "manifest.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(
        LoadstoneError, match=r"manifest\.jsonl, line 1: '\.\./\.\./etc/passwd' is not a path"
    ):
        summarise(folder)

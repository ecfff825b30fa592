"""The command line: what each sub-command prints, and how it refuses."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner, Result
from support.run_folders import build

from loadstone import __version__
from loadstone.cli import terminal
from loadstone.cli.group import VERBS, loadstone
from loadstone.errors import LoadstoneError
from loadstone.scenario import builtin

if TYPE_CHECKING:
    from pathlib import Path


def call(*arguments: object) -> Result:
    return CliRunner().invoke(loadstone, [str(argument) for argument in arguments])


def test_version() -> None:
    assert call("--version").output == f"loadstone {__version__}\n"


def test_the_verbose_version_names_each_crate_of_the_core() -> None:
    lines = call("--version", "--verbose").output.splitlines()
    assert lines[0] == f"loadstone {__version__}"
    crates = {name: versions for kind, name, *versions in map(str.split, lines) if kind == "crate"}
    assert {"arrow-array", "io-uring", "pyo3", "rustls"} < set(crates)
    assert all(re.fullmatch(r"\d+\.\d+\.\d+\S*", v) for versions in crates.values() for v in versions)
    assert re.fullmatch(r"core sha256 [0-9a-f]{64}", lines[-1])


def test_verbose_alone_is_refused() -> None:
    refused = call("--verbose")
    assert refused.exit_code == 1
    assert "--verbose goes with --version" in refused.stderr


def test_help_names_every_command() -> None:
    shown = call("--help")
    assert shown.exit_code == 0
    for name in ("run", "plan", "report", "scenarios", "engines", "calibrate"):
        assert f"\n  {name} " in shown.output


def test_every_option_has_a_help_that_ends_in_a_full_stop() -> None:
    for verb in VERBS:
        command = loadstone.get_command(click.Context(loadstone), verb)
        assert command is not None
        assert command.get_short_help_str()
        for option in [parameter for parameter in command.params if isinstance(parameter, click.Option)]:
            assert option.hidden or (option.help or "").endswith("."), f"{command.name} {option.name}"


def test_scenarios_are_listed_with_their_titles() -> None:
    lines = call("scenarios").output.splitlines()
    assert {line.split()[0] for line in lines} >= {"iot-feed", "session-oltp"}
    assert all(len(line.split()) > 2 for line in lines)


def test_engines_are_listed_with_how_to_name_them() -> None:
    output = call("engines").output
    assert re.search(
        r"^postgres +postgres://, postgresql:// +verified against PostgreSQL", output, re.MULTILINE
    )
    assert re.search(
        r"^citus_columnar +citus-columnar://.*\n +needs PostgreSQL with the extension", output, re.MULTILINE
    )


def test_a_plan_is_printed_and_nothing_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGPASSWORD", "s3cr3t")
    shown = call(
        "plan", "iot-feed", "--size", "tiny", "--target", "postgres://u:s3cr3t@host/d", "--repeat", 2
    )
    assert shown.exit_code == 0, shown.output
    plan: dict[str, Any] = json.loads(shown.stdout)
    (target,) = plan["targets"]
    assert target["url"] == "postgres://u@host:5432/d"
    assert {phase["repeat"] for phase in target["phases"]} == {1, 2}
    assert "s3cr3t" not in shown.output
    assert "s of measuring" in shown.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [("plan", "nowhere"), ("plan", "--target", "nowhere")])
def test_what_cannot_be_planned_is_bad_input(arguments: tuple[str, ...]) -> None:
    shown = call(*arguments)
    assert shown.exit_code == 1
    assert "nowhere" in shown.stderr
    assert shown.stdout == ""


@pytest.mark.parametrize("arguments", [("nonsense",), ("run", "--nonsense"), ("report",), ("--nonsense",)])
def test_wrong_usage_is_bad_input_too(arguments: tuple[str, ...]) -> None:
    shown = call(*arguments)
    assert shown.exit_code == 1
    assert "Usage: " in shown.stderr


@pytest.mark.slow
def test_reports_are_written_for_every_folder_named(tmp_path: Path) -> None:
    folders = [build(tmp_path / name) for name in ("one", "two")]
    shown = call("report", folders[0], tmp_path / "missing", folders[1])
    assert shown.exit_code == 1, shown.output
    assert "missing' does not exist" in shown.stderr
    for folder in folders:
        assert (folder / "report.html").is_file()


def test_a_report_that_cannot_be_written_says_what_helps(tmp_path: Path) -> None:
    folder = build(tmp_path / "run")
    (folder / "summary.json").mkdir()
    shown = call("report", folder)
    assert shown.exit_code == 2
    assert "Report a copy of the folder" in shown.stderr


def test_a_folder_that_holds_no_run_is_refused(tmp_path: Path) -> None:
    shown = call("report", tmp_path)
    assert shown.exit_code == 1
    assert "is not a run folder" in shown.stderr
    missing = call("report", tmp_path / "missing")
    assert "' does not exist" in missing.stderr


@pytest.mark.slow
def test_calibration_as_json_and_as_a_table() -> None:
    printed = call("calibrate", "--clients", 2, "--seconds", 0.1, "--json")
    assert printed.exit_code == 0, printed.output
    found = json.loads(printed.stdout)
    assert [(row["mode"], row["clients"]) for row in found["results"]] == [
        ("simple", 2), ("extended", 2), ("prepared", 2),
    ]  # fmt: skip
    assert call("calibrate", "--clients", 2, "--seconds", 0.1).exit_code == 0


def test_a_bug_of_ours_is_no_bad_input_and_shows_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        message = "bug with postgres://me:s3cr3t@host/db"
        raise RuntimeError(message)

    monkeypatch.setattr(builtin, "builtin_titles", broken)
    monkeypatch.setattr(terminal, "say", print)
    shown = call("scenarios")
    assert shown.exit_code == 2
    assert "RuntimeError: bug with" in shown.output
    assert "This is a bug of Loadstone" in shown.output
    assert "s3cr3t" not in shown.output


def test_ctrl_c_before_anything_began(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(builtin, "builtin_titles", pressed)
    assert call("scenarios").exit_code == 130


def test_words_of_an_error_are_shown_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def troubled(*_: object) -> None:
        raise LoadstoneError("a [bold]list[/bold] [1, 2]", "mend [it]")

    said: list[LoadstoneError] = []
    monkeypatch.setattr(builtin, "builtin_titles", troubled)
    monkeypatch.setattr(terminal, "trouble", said.append)
    assert call("scenarios").exit_code == 1
    assert said[0].message == "a [bold]list[/bold] [1, 2]"

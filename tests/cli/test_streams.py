"""Standard streams that are closed, full or gone, and texts that would act on a terminal."""

from __future__ import annotations

import os
import pty
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.run_folders import Phase, Run, Target, build

from loadstone.cli import group

pytestmark = pytest.mark.slow

COMMAND = str(Path(sys.executable).with_name("loadstone"))
LONG = "a" * 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run whose server and scenario have escape sequences in every text."""
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m"
    phase = Phase(seconds=2, warmup=0, tps=40, title=f"title{evil}", error=f"error{evil}", failed=1)
    targets = (Target(label=f"label{evil}"), Target(id="pg14", label="14"))
    return build(tmp_path_factory.mktemp("streams") / "run", Run(phases=(phase,), targets=targets))


def call(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run([COMMAND, *map(str, arguments)], text=True, check=False, timeout=240, **given)


def closed(*numbers: int) -> dict[str, Any]:
    def close() -> None:
        for number in numbers:
            os.close(number)

    return {"preexec_fn": close}


@pytest.mark.parametrize("arguments", [("scenarios",), ("plan",), ("--help",), ("--version",)])
def test_a_full_standard_output_is_an_error_in_words(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = call(*arguments, stdout=full)
    assert done.returncode == 2
    assert "could not be written to standard output: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_closed_standard_output_is_one_too() -> None:
    done = call("scenarios", **closed(1))
    assert done.returncode == 2
    assert "could not be written to standard output: Bad file descriptor" in done.stderr


def test_a_closed_or_full_standard_error_changes_no_result() -> None:
    usual = call("plan")
    assert "s of measuring" in usual.stderr
    for options in (closed(2), closed(0, 2)):
        done = call("plan", **options)
        assert (done.returncode, done.stdout) == (0, usual.stdout)
    with Path("/dev/full").open("w") as full:
        done = call("plan", stderr=full)
    assert (done.returncode, done.stdout) == (0, usual.stdout)


def test_without_any_stream_a_report_is_written(folder: Path) -> None:
    page = folder / "report.html"
    page.unlink(missing_ok=True)
    assert call("report", folder, **closed(0, 1, 2)).returncode == 0
    assert "</html>" in page.read_text(encoding="utf-8")


def test_nothing_is_written_into_a_file_that_got_a_closed_streams_number(tmp_path: Path) -> None:
    out = tmp_path / "rows"
    done = call("generate", "import", "--rows", 3, "--out", out, **closed(0, 1, 2))
    assert done.returncode == 0
    assert len(out.read_text().splitlines()) == 3


def test_escape_sequences_of_a_folder_are_shown_as_text(folder: Path) -> None:
    done = call("report", folder)
    assert done.returncode == 0, done.stderr
    assert r"\x1b" in done.stderr
    assert not {"\x1b", "\x07", "\x9b"} & set(done.stderr)


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "/nowhere/\x1b[2J"),
        ("plan", "\x1b[2J"),
        ("plan", "--size", "\x1b[2J"),
        ("pgbench", "-f", "\x1b[2J"),
        ("tsbs", "\x1b[2J"),
    ],
)
def test_escape_sequences_in_errors_are_shown_as_text(arguments: tuple[str, ...]) -> None:
    done = call(*arguments)
    assert done.returncode == 1
    assert "\x1b" not in done.stderr
    assert r"\x1b[2J" in done.stderr


def test_a_terminal_is_shown_results_without_escape_sequences(tmp_path: Path) -> None:
    script = tmp_path / "\x1b[2J.sql"
    script.write_text("select 1")
    code = f"from loadstone.cli import streams; streams.prepare(); print({str(script)!r})"
    master, slave = pty.openpty()
    with os.fdopen(master, "rb", buffering=0) as screen:
        subprocess.run([sys.executable, "-c", code], stdout=slave, check=True)
        os.close(slave)
        assert rb"\x1b[2J.sql" in screen.read(4096)


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", LONG),
        ("plan", LONG),
        ("plan", f"./{LONG}"),
        ("run", "--out", LONG),
        ("run", "--resume", LONG),
        ("advise", LONG),
        ("generate", "import", "--rows", "1", "--out", LONG),
        ("run", "--target", f"pg:/{LONG}"),
        ("run", "--target", f"duckdb:/tmp/{LONG}"),
        ("plan", "--target", f"postgres://h/d?sslrootcert={LONG}"),
        ("pgbench", "-f", LONG),
        ("tsbs", "load", "--file", LONG),
    ],
)
def test_names_that_are_too_long_are_refused_in_words(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(group.loadstone, arguments)
    assert done.exit_code == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "too long" in done.stderr or "no scenario" in done.stderr or LONG[:60] in done.stderr
    assert list(tmp_path.rglob("run.json")) == []


def test_arguments_that_are_not_utf8_are_refused_in_words() -> None:
    done = subprocess.run([COMMAND, "plan", b"caf\xe9"], capture_output=True, check=False)
    assert done.returncode == 1
    assert rb"the argument 'caf\xe9' is not UTF-8 text" in done.stderr


def test_too_little_address_space_is_told() -> None:
    limit = 300 << 20
    done = call("scenarios", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert (done.returncode, done.stdout) == (1, "")
    assert "Loadstone needs 400 MiB of address space" in done.stderr

"""The report is written whatever becomes of the chart library."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.run_folders import Phase, Run, build

from loadstone.report import write_report
from loadstone.report.charts import Axes, Chart, Line, chart_process, drawings, over_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

WRITE = "import sys; from pathlib import Path; from loadstone.report import write_report as w; "
AXES = Axes("second", "s", (0, 1), "tps")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    phases = (Phase(seconds=3, warmup=0, variant={"index": "SWEPT"}, tps=40),)
    folder = build(tmp_path_factory.mktemp("drawing") / "run", Run(phases=phases))
    for file in folder.rglob("*.json"):  # folders are never named so, and documents may be
        file.write_text(file.read_text().replace('"SWEPT"', json.dumps("a\x1b[31mb\x01")))
    return folder


@pytest.fixture(scope="module")
def usual(folder: Path) -> str:
    return write_report(folder).read_text(encoding="utf-8")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Put a chart library in place that does this, in a process of its own."""
    drawings._process.cache_clear()
    drawings.bundle.cache_clear()

    def put(source: str) -> None:
        file = tmp_path / "library.py"
        file.write_text(f"import os, sys, time\n{source}\n", encoding="utf-8")
        monkeypatch.setattr(chart_process, "__file__", str(file))

    yield put
    drawings._process()._end()
    drawings._process.cache_clear()
    drawings.bundle.cache_clear()


def chart() -> Chart:
    return over_time("lines", identity=("a", "A", "a"), lines=[Line("x", (0, 1), (1, 2))], axes=AXES)


def write(folder: Path, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WRITE + "w(Path(sys.argv[1]), print)", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload,no-any-return]


def test_control_characters_in_a_swept_value_are_shown_as_text(usual: str) -> None:
    assert "<svg" in usual
    assert r"a\x1b[31mb\x01" in usual
    assert "\x1b" not in usual
    assert "\\u001b" not in usual, "the browser draws the charts again, with what the data hold"
    assert "could not be drawn" not in usual


def test_a_closed_standard_input_changes_nothing(folder: Path, usual: str) -> None:
    done = write(folder, preexec_fn=lambda: os.close(0))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (folder / "report.html").read_text(encoding="utf-8") == usual


def test_with_little_address_space_the_report_has_no_charts_and_says_so(folder: Path) -> None:
    limit = 1_500_000 * 1024
    done = write(folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert done.returncode == 0, done.stderr
    assert "The report has no charts: the chart library ended with SIG" in done.stdout
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert "The charts of this page could not be drawn: the chart library ended with SIG" in html
    assert "<svg" not in re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert '<td class="num big">' in html


@pytest.mark.parametrize(
    ("library", "reason"),
    [
        ("os.abort()", "the chart library ended with SIGABRT"),
        ("sys.exit(3)", "the chart library ended with status 3"),
        ("print('{\"do', end='', flush=True); os.abort()", "the chart library ended with SIGABRT"),
        ('print(\'{"failed": "no"}\', flush=True); input()', "the chart library failed: no"),
    ],
)
def test_how_the_library_failed_is_told(broken: Callable[[str], None], library: str, reason: str) -> None:
    broken(library)
    drawn = drawings.draw([chart()])
    assert (drawn.failure, drawn.pictures) == (reason, {})


def test_a_library_that_never_answers_is_ended(
    broken: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken("time.sleep(600)")
    monkeypatch.setattr(drawings, "BEGINNING_S", 0.2)
    monkeypatch.setattr(drawings, "EACH_S", 0.0)
    assert drawings.draw([chart()]).failure == "the chart library took too long"


def test_after_a_failure_charts_are_drawn_by_another_process(broken: Callable[[str], None]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chart_process, "__file__", "/nowhere")
        assert drawings.draw([chart()]).failure
    assert drawings.draw([chart()]).pictures["a"].startswith("<svg")
    broken("")  # for its clean-up alone

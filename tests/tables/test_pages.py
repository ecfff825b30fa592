"""The pages about Python, executed: every block of code, in order, on run folders."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

import loadstone
from loadstone.cli.group import loadstone as command
from loadstone.personalities import pgbench
from loadstone.workload.calibrate import null_server

pytestmark = pytest.mark.slow  # programs of pages are run

DOCS = Path(__file__).parents[2] / "docs"
FIXTURE = Path(__file__).parents[1] / "fixtures" / "run-0.1.0"
PAGES = Sybil([PythonCodeBlockParser()], pattern="*.md")
SERVICE = {"time": {"kind": "exponential", "mean_ms": 2.0}, "workers": 4}


def execute(page: str, at_least: int) -> dict[str, Any]:
    """Execute a page in the working folder; returns the names that its blocks have made."""
    document = PAGES.parse(DOCS / page)
    examples = list(document.examples())
    assert len(examples) >= at_least
    for example in examples:
        example.evaluate()
    return document.namespace


def test_the_page_about_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(FIXTURE, tmp_path / "my-run")
    monkeypatch.chdir(tmp_path)
    assert execute("python.md", 4)["slow"].fetchall()
    lines = re.findall(r"^loadstone (export .*)$", (DOCS / "python.md").read_text(), re.MULTILINE)
    assert len(lines) == 3
    for line in lines:
        assert CliRunner().invoke(command, line.split()).exit_code == 0


def test_the_notebook_on_a_run_of_this_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.sql").write_text("select 1;\n")
    monkeypatch.setattr("loadstone.report.write_report", lambda folder, _: folder / "report.html")
    with null_server(20, service=SERVICE) as (_, where):
        server = ("-h", where.host, "-p", str(where.port), "-U", where.user, where.database)
        given = ("-n", "-f", "one.sql", "-c", "8", "-R", "1000", "-T", "2", "--report", "my-run", *server)
        said: list[str] = []
        assert pgbench.main(given, said.append, said.append) == 0, said
    names = execute("notebook.md", 5)
    phase = loadstone.open_run("my-run").phases.to_pylist()[0]
    assert names["total"] == phase["done"]
    assert names["percentiles"][99] == pytest.approx(phase["response_p99_ns"] / 1e6, rel=0.002)
    assert 0.9 < names["share"] <= 1
    for picture in ("response.svg", "throughput.svg"):
        assert Path(picture).read_text().startswith("<svg")

"""Ctrl-C while the command line is being imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.sandbox import Database

pytestmark = pytest.mark.slow

COMMAND = str(Path(sys.executable).with_name("loadstone"))
INTERRUPTS = """
import os, signal, sys
class Presser:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["PRESS_AT"]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Presser())
"""


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("loadstone.cli.process_title", ("scenarios",)),
        ("click", ("scenarios",)),
        ("loadstone.cli.scenarios", ("scenarios",)),
        ("rich.console", ("report", "/nowhere")),
        ("numpy", ("report", "/nowhere")),
        ("psycopg", ("plan",)),
        ("duckdb", ("plan", "--target", "duckdb:")),
    ],
)
def test_an_import_that_is_interrupted_ends_in_words(
    module: str, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTS)
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "PRESS_AT": module}
    done = subprocess.run(
        [COMMAND, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert "Traceback" not in done.stderr
    assert (done.returncode, done.stdout) == (130, "")
    assert "stopped by SIGINT" in done.stderr


def test_a_link_named_pgbench_is_pgbench(tmp_path: Path) -> None:
    link = tmp_path / "pgbench"
    link.symlink_to(COMMAND)
    ran = subprocess.run([link, "-b", "list"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0
    assert "select-only" in ran.stderr


def test_a_link_named_pgbench_makes_tables_and_runs_on_them(database: Database, tmp_path: Path) -> None:
    link = tmp_path / "pgbench"
    link.symlink_to(COMMAND)
    outputs = [
        subprocess.run(
            [link, *arguments, database.socket_url], capture_output=True, text=True, check=True
        ).stdout
        for arguments in (("-i", "-q"), ("-S", "-t", "5"))
    ]
    assert "number of transactions actually processed: 5/5" in outputs[1]

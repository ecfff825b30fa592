"""What is shown while a run goes on, in terminals of any width."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.progress import Progress

from loadstone.cli.terminal import bar_columns, fitting

PARTS = ["[dim]warm-up[/]", "12,345 tps", "[red]17 failed[/]", "p99 3.90", "12 steps"]


@given(st.integers(1, 100))
def test_parts_are_whole_or_not_there(width: int) -> None:
    shown = re.sub(r"\[.*?\]", "", fitting(PARTS, width))
    assert len(shown) <= width
    whole = ["warm-up", "12,345 tps", "17 failed", "p99 3.90", "12 steps"]
    assert [part for part in shown.split("  ") if part and part != "…"] == whole[
        : shown.count("  ") + bool(shown) - ("…" in shown)
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_figures_of_a_run_that_goes_on_are_never_cut(width: int) -> None:
    screen = StringIO()
    console = Console(file=screen, width=width, force_terminal=True)
    with Progress(*bar_columns(width), console=console, expand=True) as progress:
        figures = fitting(PARTS, width - 4)
        task = progress.add_task(
            "PostgreSQL 18.6  One table, single row, index = brin", total=7, figures=figures
        )
        progress.update(task, advance=3)
        progress.refresh()
    line = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue()).splitlines()[-1]
    assert re.sub(r"\[.*?\]", "", figures) in line
    assert len(line.strip("\r")) <= width

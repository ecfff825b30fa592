"""Tables in narrow terminals: columns are left out, and a figure is never cut."""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from support.flights_folders import Flights, flights
from support.run_folders import Phase, Run, Target, build
from support.summaries import summarise, summary_table

from loadstone.report.fitted import Fitted

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

WIDE = 500


@pytest.fixture(scope="module")
def summaries(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    base = tmp_path_factory.mktemp("fitting")
    phases = tuple(Phase(variant={"index": name}, seconds=3, tps=400, failed=7) for name in ("none", "brin"))
    targets = (Target(), Target(id="pg14", label="PostgreSQL 14.20 (embedded)", speed=0.8))
    folders = [build(base / "run", Run(phases=phases, targets=targets)), flights(base / "flights", Flights())]
    return [summarise(folder) for folder in folders]


def printed(what: RenderableType, width: int) -> str:
    screen = StringIO()
    Console(width=width, file=screen).print(what)
    return screen.getvalue()


def figures(text: str) -> set[str]:
    return set(re.findall(r"\d[\d.,]*", text))


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120])
def test_every_figure_of_a_run_is_whole(summaries: list[dict[str, Any]], width: int) -> None:
    for summary in summaries:
        shown = printed(summary_table(summary), width)
        assert figures(shown) <= figures(printed(summary_table(summary), WIDE))
        assert max(map(len, shown.splitlines())) <= width


@pytest.mark.parametrize(
    ("width", "left_out"), [(40, ["p50 ms", "p95 ms", "p99 ms"]), (60, ["p95 ms"]), (120, [])]
)
def test_what_is_left_out_is_told(summaries: list[dict[str, Any]], width: int, left_out: list[str]) -> None:
    shown = " ".join(printed(summary_table(summaries[0]), width).split())
    assert ("a wider terminal also shows" in shown) == bool(left_out)
    for head in left_out:
        assert head in shown.partition("a wider terminal")[2]


def test_a_target_keeps_its_name_on_one_line() -> None:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("Phase")
    table.add_column("Target")
    table.add_column("Rate", no_wrap=True)
    table.add_row("Load with and without each index", "PostgreSQL 18.6", "316,000 rows/s")
    assert "PostgreSQL 18.6" in printed(Fitted(table), 50)


def test_what_speaks_against_the_figures_is_printed_beside_them(tmp_path: Path) -> None:
    good = printed(summary_table(summarise(build(tmp_path / "good", Run()))), 120)
    assert "Before you use these figures" not in good
    busy = Run(phases=(Phase(client_busy=0.9), Phase(id="second", client_busy=0.9)))
    text = " ".join(printed(summary_table(summarise(build(tmp_path / "busy", busy))), 120).split())
    words = text.partition("Before you use these figures")[2]
    assert "- Was the client the limit? Yes: in 2 phases; see warnings" in words
    assert "- Loadstone itself was the limit: " in words
    assert "(in 2 places)." in words


FIGURES = st.integers(0, 10**9).map("{:,} tps".format)
ROWS = st.lists(st.tuples(st.text("abc ", max_size=30), FIGURES, FIGURES, FIGURES), min_size=1, max_size=4)


@given(ROWS, st.integers(20, 120))
def test_at_any_width_a_figure_is_whole_or_not_there(rows: list[tuple[str, ...]], width: int) -> None:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", overflow="fold")
    for head in ("rate", "best", "worst"):
        table.add_column(head, no_wrap=True, justify="right")
    for row in rows:
        table.add_row(*row)
    shown = printed(Fitted(table, less=("best",)), width)
    whole = {figure for row in rows for figure in row[1:]}
    assert set(re.findall(r"[\d,]+ tps", shown)) <= whole
    assert figures(shown) <= figures(" ".join(whole))
    assert all(any(row[1] in line for line in shown.splitlines()) for row in rows), (
        "the first is always there"
    )
    assert max(map(len, shown.splitlines())) <= width

"""The page on GPU engines: the scenario that stands there can be planned, and its targets are known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.workloads import plain_queries

from loadstone.engines import engine
from loadstone.plan.plan import PlanTarget, make_plan
from loadstone.scenario.scenario import find_scenario
from loadstone.target import parse_target

PAGE = (Path(__file__).parents[2] / "docs/gpu-engines.md").read_text(encoding="utf-8")


def test_the_scenario_on_arrow_files_can_be_planned(tmp_path: Path) -> None:
    folder = tmp_path / "flights-arrow"
    folder.mkdir()
    text = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert text is not None
    (folder / "scenario.toml").write_text(text[1], encoding="utf-8")
    strom = PlanTarget("pgstrom", "pgstrom", "pgstrom://", None, None)
    plan = make_plan([find_scenario(str(folder))], [strom], "full")
    mapped, asked = plan.targets[0].phases
    (statement,) = mapped.setup
    assert statement.endswith("into loadstone options (file '/var/lib/pgsql/flights.arrow')")
    assert [query.name for query in plain_queries(asked).queries] == [f"Sql{n}" for n in range(1, 6)]


@pytest.mark.parametrize("text", sorted(set(re.findall(r"--target (\S+://\S+)", PAGE))))
def test_every_target_on_the_page_is_understood(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nonexistent")
    found = engine(parse_target(text).engine)
    if found.name != "cstore_fdw":
        assert found.status == "not yet run", "else the page must no longer say so"

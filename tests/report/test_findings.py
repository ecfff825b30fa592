"""Answers in words: made from comparisons, with what was not decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from support.flights_folders import Flights, flights
from support.run_folders import Phase, Run, Target, build
from support.table_load_folders import grid, index_import, storage_types

from loadstone.report.findings import _ANSWERS, MOST, findings
from loadstone.report.findings.words import of_ratio
from loadstone.results.documents.run import PlannedFinding
from loadstone.scenario.builtin import builtin_scenarios
from loadstone.scenario.scenario import find_scenario
from loadstone.summary.document import summarise

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loadstone.report.findings import Finding

COST = PlannedFinding("What does an index cost?", "rates", "index")
TARGETS = PlannedFinding("How do the targets differ?", "targets")


@dataclass
class Ratio:
    value: float
    low: float | None
    high: float | None


def found(tmp_path: Path, run: Run) -> list[Finding]:
    return findings(summarise(build(tmp_path / "run", run)))


def texts(finding: Finding) -> list[str]:
    return [sentence.text for sentence in finding.sentences]


@pytest.mark.parametrize(
    ("ratio", "text", "decided"),
    [
        (Ratio(0.5, 0.41, 0.6), "brin: tps −50 % against none (−59 % … −40 %).", True),
        (
            Ratio(0.87, 0.7, 1.09),
            "brin: no difference of tps from none was shown (−13 %, −30 % … +9.0 %).",
            False,
        ),
        (
            Ratio(0.87, None, None),
            "brin: tps −13 % against none, but too little was measured for an interval.",
            False,
        ),
        (Ratio(3.0, 2.5, 3.5), "brin: tps 3.00× against none (2.50× … 3.50×).", True),
    ],
)
def test_a_ratio_in_words(ratio: Ratio, text: str, *, decided: bool) -> None:
    sentence = of_ratio("brin", "tps", "none", ratio)
    assert (sentence.text, sentence.decided) == (text, decided)


def test_an_index_that_costs_half_is_found_and_one_that_costs_nothing_is_not(tmp_path: Path) -> None:
    kinds = {"none": (4000.0, 0), "brin": (3990.0, 65_536), "btree": (2000.0, 8_000_000)}
    phases = tuple(
        Phase(variant={"index": name}, tps=tps, index_bytes=size) for name, (tps, size) in kinds.items()
    )
    (finding,) = found(tmp_path, Run(phases=phases, findings=(COST,)))
    assert finding.question == "What does an index cost?"
    brin, btree = texts(finding)
    assert "index = brin: no difference of tps from index = none was shown" in brin
    assert brin.endswith("its indexes take 64.0 KiB, 1/122 of those of btree.")
    assert "index = btree: tps −50 % against index = none (−5" in btree
    assert "Indicative" in finding.next_step
    assert "--repeat 5" in finding.next_step


def test_with_repeats_the_spread_between_them_decides(tmp_path: Path) -> None:
    phases = tuple(
        Phase(variant={"index": name}, tps=tps + 20 * repeat, repeat=repeat, seconds=6)
        for repeat in (1, 2, 3)
        for name, tps in (("none", 4000.0), ("btree", 2000.0))
    )
    (finding,) = found(tmp_path, Run(phases=phases, repeats=3, findings=(COST,)))
    assert [sentence.decided for sentence in finding.sentences] == [True]
    assert finding.next_step == ""


def test_targets_are_compared_with_the_first(tmp_path: Path) -> None:
    targets = (Target(), Target("pg14", "PostgreSQL 14.1 (embedded)", speed=0.5))
    (finding,) = found(tmp_path, Run(phases=(Phase(),), targets=targets, findings=(COST, TARGETS)))
    (text,) = texts(finding)
    assert "PostgreSQL 14.1" in text
    assert "tps −5" in text
    assert "% against PostgreSQL 18.6 (−5" in text


def test_no_more_than_seven_sentences_and_those_left_out_are_counted(tmp_path: Path) -> None:
    rates = {"none": 4000.0} | {f"i{n}": 4000.0 - 300 * n for n in range(10)}
    phases = tuple(Phase(variant={"index": name}, tps=tps, seconds=5) for name, tps in rates.items())
    (finding,) = found(tmp_path, Run(phases=phases, findings=(COST,)))
    assert len(finding.sentences) == MOST
    assert "index = i9" in texts(finding)[-1]
    assert "3 more comparisons of this kind" in finding.next_step


def test_a_question_without_figures_has_no_answer(tmp_path: Path) -> None:
    knee = PlannedFinding("From how many rows on?", "knee")
    assert found(tmp_path, Run(findings=(COST, TARGETS, knee))) == []


def answer(folder: Path, question: PlannedFinding) -> list[str]:
    """Return the sentences that a run folder answers one question with."""
    summary = summarise(folder)
    summary.scenarios[0].findings = [question]
    (finding,) = findings(summary)
    return texts(finding)


def test_phases_are_compared_with_the_first_that_is_named(tmp_path: Path) -> None:
    rates = {"log-out": 2000.0, "log-in": 4000.0, "other": 9000.0}
    phases = tuple(Phase(id=name, title=name.capitalize(), tps=tps) for name, tps in rates.items())
    asked = PlannedFinding("What does the update cost?", "phases", phases=["log-in", "log-out"])
    (finding,) = found(tmp_path, Run(phases=phases, findings=(asked,)))
    (text,) = texts(finding)
    assert text.startswith('Log-out: tps −50 % against "Log-in" (−5')
    assert "Indicative" in finding.next_step


def test_phases_are_compared_on_each_target(tmp_path: Path) -> None:
    phases = (Phase(id="log-in", tps=4000.0), Phase(id="log-out", tps=2000.0))
    targets = (Target(), Target("pg14", "PostgreSQL 14.1 (embedded)", speed=0.5))
    asked = PlannedFinding("What does the update cost?", "phases", phases=["log-in", "log-out"])
    (finding,) = found(tmp_path, Run(phases=phases, targets=targets, findings=(asked,)))
    first, second = texts(finding)
    assert "PostgreSQL 18.6: tps −" in first
    assert "PostgreSQL 14.1: tps −" in second


@pytest.mark.parametrize(
    ("make", "question", "words"),
    [
        (
            index_import,
            PlannedFinding("How many rows may a partition hold?", "knee"),
            ["indexes = 0; No knee up to 3.9 M rows.", "a partition may have 500,000."],
        ),
        (
            storage_types,
            PlannedFinding("How many bytes does a value take?", "sizes", "table"),
            ["distribution = random, table = text: ", " on disk, ", "× against table = bigint ("],
        ),
        (
            grid,
            PlannedFinding("How does the rate grow with clients?", "scaling"),
            ["scale = 1, threads = 1, protocol = simple: The peak is at ", " clients (95 % interval "],
        ),
        (
            flights,
            PlannedFinding("Which engine answers how much faster?", "queries"),
            [
                "DuckDB 2.0.0: 5 of 5 queries faster than on PostgreSQL 18.6, 0 slower; ",
                "no answer differed.",
            ],
        ),
    ],
)
def test_every_kind_of_comparison_gives_an_answer(
    tmp_path: Path, make: Callable[[Path], Path], question: PlannedFinding, words: list[str]
) -> None:
    text = " ".join(answer(make(tmp_path / "run"), question))
    assert [one for one in words if one not in text] == []


def test_an_answer_that_differs_is_named(tmp_path: Path) -> None:
    made = Flights(wrong=("duckdb", "Sql3"))
    (text,) = answer(flights(tmp_path / "run", made), PlannedFinding("Which?", "queries"))
    assert "Sql3 answered differently" in text
    assert "4 of 4 queries faster" in text


@pytest.mark.parametrize("name", builtin_scenarios())
def test_every_built_in_scenario_asks_a_question_that_can_be_answered(name: str) -> None:
    asked = find_scenario(name).findings
    assert asked
    assert {finding.compare for finding in asked} <= _ANSWERS.keys()

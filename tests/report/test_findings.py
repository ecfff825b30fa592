"""Answers in words: made from comparisons, with what was not decided."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from support.flights_folders import Flights, flights
from support.run_folders import Phase, Run, Target, build
from support.table_load_folders import grid, index_import, storage_types

from loadstone.report.findings import _ANSWERS, MOST, findings
from loadstone.report.findings.words import of_ratio
from loadstone.results.documents.run import PlannedFinding
from loadstone.results.documents.summary import FittedRange
from loadstone.scenario.builtin import builtin_scenarios
from loadstone.scenario.scenario import find_scenario
from loadstone.summary.document import summarise
from loadstone.summary.knee.knee import FEWEST_STEPS
from loadstone.summary.medians import ratio_of_medians
from loadstone.summary.steps import knee_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from loadstone.report.findings import Finding
    from loadstone.results.documents.summary import StepsFigures, Summary

COST = PlannedFinding("What does an index cost?", "rates", "index")
TARGETS = PlannedFinding("How do the targets differ?", "targets")
KNEE = PlannedFinding("How many rows may a partition hold?", "knee")
SCALING = PlannedFinding("How does the rate grow with clients?", "scaling")
QUERIES = PlannedFinding("Which engine answers how much faster?", "queries")
UNCLEAR = (0.53, 1.1, 0.71, 0.92, 1.29, 1.63, 1.96, 1.6, 1.54, 1.17, 0.97, 0.75, 1.07, 1.12, 1.08, 1.15, 1.17,
           1.21, 1.23, 1.22, 2.35, 2.74, 2.32, 2.78)  # fmt: skip
"""Seconds of steps that grow, and scatter too much to tell."""


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
    assert brin.endswith("its indexes take 64.0 KiB, 1/122 of those of index = btree.")
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


def test_a_rate_that_was_given_and_kept_is_no_difference_of_targets(tmp_path: Path) -> None:
    targets = (Target(), Target("pg14", "PostgreSQL 14.1 (embedded)", speed=0.98))
    given = Phase(id="given", tps=1000.0, rate=1000.0)
    assert found(tmp_path / "kept", Run(phases=(given,), targets=targets, findings=(TARGETS,))) == []
    late = (Target(), Target("pg14", "PostgreSQL 14.1 (embedded)", speed=0.5))
    (finding,) = found(tmp_path / "late", Run(phases=(given,), targets=late, findings=(TARGETS,)))
    assert "PostgreSQL 14.1: tps −5" in texts(finding)[0]


def test_indexes_are_mentioned_only_where_the_parameter_changes_them(tmp_path: Path) -> None:
    asked = PlannedFinding("How does the rate grow with workers?", "rates", "workers")
    sizes = {1: 800_000, 2: 824_000}
    phases = tuple(Phase(variant={"workers": n}, tps=2000.0 * n, index_bytes=sizes[n]) for n in sizes)
    (finding,) = found(tmp_path, Run(phases=phases, findings=(asked,)))
    assert "indexes" not in texts(finding)[0]


def test_a_part_of_the_largest_index_is_in_percent_unless_it_is_small(tmp_path: Path) -> None:
    sizes = {"none": 0, "time": 1_000_000, "both": 3_000_000}
    phases = tuple(Phase(variant={"index": name}, index_bytes=size) for name, size in sizes.items())
    (finding,) = found(tmp_path, Run(phases=phases, findings=(COST,)))
    assert "; its indexes take 977 KiB, 33 % of those of index = both." in texts(finding)[0]


def test_a_knee_names_what_was_swept_alone(tmp_path: Path) -> None:
    words = answer(index_import(tmp_path / "run"), KNEE)
    assert all(re.match(r"indexes = \d: [A-Z]", text) for text in words)


def test_no_more_than_seven_sentences_and_those_left_out_are_counted(tmp_path: Path) -> None:
    rates = {"none": 4000.0} | {f"i{n}": 4000.0 - 300 * n for n in range(10)}
    phases = tuple(Phase(variant={"index": name}, tps=tps, seconds=5) for name, tps in rates.items())
    (finding,) = found(tmp_path, Run(phases=phases, findings=(COST,)))
    assert len(finding.sentences) == MOST
    assert "index = i9" in texts(finding)[-1]
    assert "3 more comparisons of this kind" in finding.next_step


def test_a_question_without_figures_has_no_answer(tmp_path: Path) -> None:
    assert found(tmp_path, Run(findings=(COST, TARGETS, KNEE))) == []


def asked(summary: Summary, question: PlannedFinding) -> Finding:
    """Return the answer to one question."""
    summary.scenarios[0].findings = [question]
    (finding,) = findings(summary)
    return finding


def answer(folder: Path, question: PlannedFinding) -> list[str]:
    """Return the sentences that a run folder answers one question with."""
    return texts(asked(summarise(folder), question))


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
            KNEE,
            ["indexes = 0: No knee up to 3.9 M rows.", "; a partition may have 500,000 rows."],
        ),
        (
            storage_types,
            PlannedFinding("How many bytes does a value take?", "sizes", "table"),
            ["distribution = random, table = text: ", " on disk, ", "× against table = bigint ("],
        ),
        (
            grid,
            SCALING,
            ["scale = 1, threads = 1, protocol = simple: The peak is at ", " clients (95 % interval "],
        ),
        (
            flights,
            QUERIES,
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


def test_repeats_that_would_decide_are_counted(tmp_path: Path) -> None:
    noise = (-60, 40, 10, -20, 30)
    phases = tuple(
        Phase(variant={"index": name}, tps=tps + sign * noise[repeat - 1], repeat=repeat, seconds=6)
        for repeat in range(1, 6)
        for name, tps, sign in (("none", 1000.0, 1), ("brin", 970.0, -1))
    )
    (finding,) = found(tmp_path, Run(phases=phases, repeats=5, findings=(COST,)))
    assert [sentence.decided for sentence in finding.sentences] == [False]
    repeats = re.search(r"about --repeat (\d+) would show that differences like these", finding.next_step)
    assert repeats, finding.next_step
    assert 6 <= int(repeats[1]) <= 100


def stepped(folder: Path, seconds: Sequence[float]) -> tuple[Summary, StepsFigures]:
    """Return a run whose only load in steps took these seconds."""
    summary = summarise(index_import(folder))
    summary.phases = summary.phases[:1]
    steps = summary.phases[0].steps
    assert steps
    steps.points = steps.points[: len(seconds)]
    for point, taken in zip(steps.points, seconds, strict=True):
        point.seconds = taken
    steps.knee, steps.advice = knee_of(steps.points, steps.step_rows), None
    return summary, steps


def test_steps_that_scatter_name_the_rows_that_would_decide(tmp_path: Path) -> None:
    summary, steps = stepped(tmp_path / "run", UNCLEAR)
    summary.scenarios[0].parameters = {"rows": 2_400_000, "step_rows": steps.step_rows}
    finding = asked(summary, KNEE)
    assert [sentence.decided for sentence in finding.sentences] == [False]
    rows = re.search(r"load about (\d+) steps \(.* rows, --set rows=(\d+)\)", finding.next_step)
    assert rows, finding.next_step
    assert int(rows[2]) == int(rows[1]) * steps.step_rows > 2_400_000


def test_too_few_steps_name_smaller_ones(tmp_path: Path) -> None:
    summary, steps = stepped(tmp_path / "run", UNCLEAR[:6])
    summary.scenarios[0].parameters = {"step_rows": steps.step_rows}
    finding = asked(summary, KNEE)
    assert f"(--set step_rows={6 * steps.step_rows // FEWEST_STEPS}): it needs 10 steps" in finding.next_step
    summary.scenarios[0].parameters = {}
    assert "or smaller steps: it needs" in asked(summary, KNEE).next_step


def test_a_knee_that_was_found_leaves_nothing_to_do(tmp_path: Path) -> None:
    assert asked(summarise(index_import(tmp_path / "run")), KNEE).next_step == ""


def test_a_level_curve_names_more_clients_and_repeats(tmp_path: Path) -> None:
    summary = summarise(grid(tmp_path / "run"))
    summary.scaling = summary.scaling[:1]
    assert asked(summary, SCALING).next_step == ""
    fit = summary.scaling[0].fit
    assert fit
    fit.peak_n = fit.peak_tps = None
    fit.kappa = FittedRange(value=0.003, low=0, high=0.007)
    finding = asked(summary, SCALING)
    assert [sentence.decided for sentence in finding.sentences] == [False]
    assert "measure more clients (up to 64)" in finding.next_step
    assert "about --repeat 4 at the scatter seen" in finding.next_step
    fit.kappa = FittedRange(value=0.0003, low=0, high=0.07)
    fit.sigma = FittedRange(value=0.9, low=0.8, high=1.0)
    assert "--repeat" not in asked(summary, SCALING).next_step


def test_a_curve_without_a_law_names_what_it_lacks(tmp_path: Path) -> None:
    summary = summarise(grid(tmp_path / "run"))
    law = summary.scaling[0]
    summary.scaling = [law]
    law.fit = None
    whole = law.points
    law.points = whole[:3]
    assert "measure 5 or more different numbers of clients" in asked(summary, SCALING).next_step
    law.points = whole
    for at, point in enumerate(law.points):
        point.tps *= 1.4 if at % 2 else 1
    repeats = re.search(
        r"--repeat (\d+) brings chance below its limit of 10 %", asked(summary, SCALING).next_step
    )
    assert repeats
    assert 2 <= int(repeats[1]) <= 6


def test_open_queries_name_the_runs_that_would_decide(tmp_path: Path) -> None:
    summary = summarise(flights(tmp_path / "run"))
    assert asked(summary, QUERIES).next_step == ""
    first, second = summary.plain_queries[0].targets
    query, base = second.queries[1], first.queries[1]
    query.warm.runs = [taken * (1.06 + 0.3 * (at % 3 - 1)) for at, taken in enumerate(base.warm.runs)]
    query.ratio_to_first = ratio_of_medians(query.warm.runs, base.warm.runs)
    finding = asked(summary, QUERIES)
    assert [sentence.decided for sentence in finding.sentences] == [False]
    runs = re.search(
        r"the query left open: about (\d+) warm runs .* \(there were 18\), which is --repeat (\d+);",
        finding.next_step,
    )
    assert runs, finding.next_step
    assert int(runs[1]) > 18
    assert int(runs[2]) == -(-int(runs[1]) // 18)
    query.warm.runs = query.warm.runs[:1]
    query.ratio_to_first = ratio_of_medians(query.warm.runs, base.warm.runs)
    assert "about 6 warm runs" in asked(summary, QUERIES).next_step


def test_one_target_says_what_its_recovery_depends_on_and_how_to_time_it(tmp_path: Path) -> None:
    (question,) = (one for one in find_scenario("recovery-time").findings if one.compare == "recovery")
    asked = PlannedFinding(question.question, question.compare, phases=["write"])
    run = Run(phases=(Phase(id="write", tps=1200.0), Phase(id="other")), findings=(asked,))
    (finding,) = found(tmp_path, run)
    (text,) = texts(finding)
    assert " tps, " in text
    assert " of WAL for each transaction; loadstone run crashes no server" in text
    assert not finding.sentences[0].decided
    assert finding.next_step.startswith("To time recoveries: loadstone crash ")


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

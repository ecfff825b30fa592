"""`loadstone slo`: what a drive says of limits, refusals, `--require`, and searches on real servers."""

from __future__ import annotations

import json
import math
import re
import signal
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from click.testing import CliRunner
from support.trust_pages import searched
from support.watchers import Follower

from loadstone.cli.group import loadstone
from loadstone.errors import ExitCode
from loadstone.model import Drive, Pace, Script
from loadstone.results.document_reader import read_document
from loadstone.results.documents import Drive as DriveResult
from loadstone.signals import InterruptedRun
from loadstone.slo import texts
from loadstone.slo.ceiling import _exchanges, own_ceiling
from loadstone.slo.counting import observed
from loadstone.slo.documents import Slo, Trial
from loadstone.slo.experiment import SloSearch
from loadstone.slo.grid import STEP
from loadstone.slo.limits import limit
from loadstone.slo.page import page
from loadstone.workload.calibrate import null_server
from loadstone.workload.drive import drive_document, perform

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.sandbox import Sandbox

    from loadstone.signals import Signals
    from loadstone.slo.counting import TrialPlan
    from loadstone.slo.experiment import MakeTrial
    from loadstone.slo.limits import Limit

SELECT = "select 1;\n"
ONE_WORKER = {"time": {"kind": "exponential", "mean_ms": 4.0}, "workers": 1}
P90 = limit("p90=600ms")


def driven(folder: Path, rate: float, seconds: float) -> Path:
    """Drive a queue with one worker at a load; returns its drive.json."""
    drive = Drive(
        (Script("s", SELECT),), clients=64, duration_s=seconds, warmup_s=0.2, pace=Pace("poisson", rate)
    )
    folder.mkdir()
    with null_server(80, service=ONE_WORKER) as (_, connection):
        perform(drive_document(drive, connection, folder), None)
    return folder / "drive.json"


@pytest.mark.slow
def test_a_drive_counts_against_all_that_should_have_begun(tmp_path: Path) -> None:
    limits = (P90, limit("p50=1us"))
    found, _ = observed(driven(tmp_path / "low", 100.0, 1.0), limits)
    assert found.should == pytest.approx(100, rel=0.4)
    assert found.in_time[0] > 0.9 * found.should
    assert found.in_time[1] == 0
    over, _ = observed(driven(tmp_path / "high", 3000.0, 1.0), limits)
    assert over.should > 2500, "also those that never began"
    assert over.in_time[0] < 0.5 * over.should
    assert over.failed > 500
    assert set(over.misses(limits, 0.01)) == {"errors", "p90=600ms", "p50=1us"}


def test_what_the_warm_up_carried_over_is_no_miss(tmp_path: Path) -> None:
    drive = Drive((Script("s", SELECT),), clients=32, duration_s=0.2, warmup_s=0.2, pace=Pace("fixed", 200.0))
    service = {"time": {"kind": "constant", "ms": 50.0}, "workers": 32}
    with null_server(40, service=service) as (_, connection):
        perform(drive_document(drive, connection, tmp_path), None)
    result = read_document(tmp_path / "drive.json", DriveResult)
    assert result.counts.carried, "transactions of 50 ms are under way at any moment"
    found, _ = observed(tmp_path / "drive.json", (limit("p99=60s"),))
    assert found.in_time[0] + found.failed >= found.should, "starts may be dropped on a busy machine"


def document(**changes: Any) -> Slo:
    values: dict[str, Any] = {
        "format": 1, "loadstone": "0", "id": "x", "state": "complete", "started_at": "", "command": [],
        "scenario": "s", "phase": "p", "size": "tiny", "seed": 1, "target": "pg18", "parameters": {},
        "settings": {}, "limits": ["p99=20ms"], "errors": None, "capacity": 1000.0,
    }  # fmt: skip
    return Slo(**(values | changes))


@pytest.mark.parametrize(
    ("required", "lower", "upper", "code"),
    [
        (None, None, None, ExitCode.OK),
        (700, 700.0, 735.0, ExitCode.OK),
        (800, 700.0, 735.0, ExitCode.REGRESSION),
        (720, 700.0, 735.0, ExitCode.UNDECIDED),
        (500, None, None, ExitCode.UNDECIDED),
        (1500, None, None, ExitCode.UNDECIDED),
        (2000, None, None, ExitCode.REGRESSION),
    ],
)
def test_a_required_load(
    required: float | None, lower: float | None, upper: float | None, code: ExitCode
) -> None:
    found = document(required=required, lower=lower, upper=upper)
    search = SloSearch(bench=None, document=found, window_s=1, most=25, say=print)  # type: ignore[arg-type]
    assert search.required() is code


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"found": "found", "lower": 700, "upper": 735, "binds": "p99=20ms"},
            "kept at 700/s and not at 735/s",
        ),
        ({"found": "all kept", "lower": 1980}, "is kept at 1,980/s, twice the rate of the closed loop"),
        ({"found": "none kept", "upper": 4}, "not kept at any load from 4.00/s on"),
        ({"lower": 700, "reason": "stopped by SIGINT"}, "not decided (stopped by SIGINT); kept at 700/s"),
    ],
)
def test_answers_in_a_sentence(changes: dict[str, Any], words: str) -> None:
    assert words in texts.answer(document(**changes))
    assert words in texts.markdown(document(**changes))


def test_trials_that_were_used_up_say_what_would_help() -> None:
    words = "Longer trials, more of them or a quieter machine decide."
    assert words in texts.markdown(document(lower=700.0))
    assert words not in texts.markdown(document(lower=700.0, state="interrupted", reason="stopped"))
    assert words not in texts.markdown(document(found="found", lower=700.0, upper=735.0))


def test_the_page_has_the_curve_once_for_each_load() -> None:
    def trial(number: int, rate: float | None, in_time: int) -> Trial:
        return Trial(
            number=number, kind="whole" if rate else "closed loop", rate=rate, seconds=30, folder="",
            should=1000,
            in_time=[in_time], failed=0, misses=[] if in_time >= 990 else ["p99=20ms"], done_per_s=900,
            p50_ms=1.0, p99_ms=19.0,
        )  # fmt: skip

    trials = [trial(1, None, 1000), *(trial(at, 700, 995) for at in (2, 3, 4)), trial(5, 735, 900)]
    found = document(trials=trials, found="found", lower=700, upper=735, binds="p99=20ms", scenario="<own>")
    assert [cells[:4] for cells in texts.curve(found)] == [
        ["700", "3", "3/3", "99.50 %"],
        ["735", "1", "0/1", "90.00 %"],
    ]
    html = page(found, pytest.fail)
    assert "kept at 700/s and not at 735/s" in html
    assert "Misses over load" in html
    assert "&lt;own&gt;" in html
    assert "<own>" not in html


def test_percentiles_of_a_load_are_of_the_same_trials() -> None:
    """Without p99.9 of a trial that has few answers, the median of the rest would be below that of p99."""
    trials = searched().trials
    at = [one for one in trials if one.rate and one.kind == "whole"][:3]
    for one, ms in zip(at, (96.0, 66.0, 90.0), strict=True):
        one.rate, one.p99_ms, one.p999_ms = 812.0, ms, ms + 20
    short = msgspec.structs.replace(at[0], kind="short", p99_ms=500.0, p999_ms=None)
    found = document(trials=[*at, short])
    assert texts.curve(found)[0][6:8] == ["90.0", "110"]
    at[0].p999_ms = None
    assert texts.curve(found)[0][6:8] == ["90.0", "–"]


def test_columns_without_a_figure_are_left_out_of_the_page() -> None:
    found = searched()
    for trial in found.trials:
        trial.cpu_server, trial.failed = None, 2746
    heads, rows = texts.known_columns(found)
    assert heads == [head for head in texts.HEADS if head != "Server CPU"]
    assert {len(row) for row in rows} == {len(heads)}
    assert "2,746" in rows[0]
    assert "Server CPU" not in page(found, pytest.fail)


def test_the_charts_show_what_the_limits_allow_and_the_bounds() -> None:
    html = page(searched(), pytest.fail)
    assert "Dotted: the limits are kept at 812/s, they are not at 853/s." in html
    assert "Of transactions that were done." in html
    for words in ("limit p99=20ms", "limit p50=5ms", "allowed: 1 %", "allowed: 50 %"):
        assert f"</span>{words}</li>" in html


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["session-oltp", "--phase", "log-in"], "there is no limit to keep"),
        (["session-oltp", "--limit", "p99"], "is not a limit such as p99=20ms"),
        (["session-oltp", "--limit", "p99=20ms"], "Choose one with --phase: log-out, log-in, oltp-function"),
        (
            ["iot-feed", "--limit", "p99=1s", "--phase", "one-table-single"],
            "has 3 variants: set index with --set",
        ),
        (["flights", "--limit", "p99=1s"], "the scenario has no phase of scripts"),
        (
            ["session-oltp", "--limit", "p99=1s", "--target", "postgres://me@h/d"],
            "loadstone: postgres://me@h:5432/d is not a private server",
        ),
        (
            ["session-oltp", "--limit", "p99=1s", "--target", "postgres://me@h/d"],
            "search on another server with `loadstone pgbench --slo`",
        ),
        (
            ["session-oltp", "--limit", "p99=1s", "--target", "pg:/nowhere"],
            "loadstone: the folder '/nowhere/bin' has no postgres",
        ),
        (["session-oltp", "--limit", "p99=1s", "--errors", "5x"], "below 100, such as 0.1%"),
        (["session-oltp", "--limit", "p99=1s", "--require", "fast"], "is not a rate above 0"),
        (
            ["session-oltp", "--limit", "p99=1s", "--watch", "ssh://db1"],
            "the servers of trials are private ones on this machine",
        ),
        (
            ["session-oltp", "--limit", "p99=1s", "--live-port", "8080"],
            "--live-port is the port of the page of --live",
        ),
    ],
)
def test_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(loadstone, ["slo", *arguments])
    assert result.exit_code == 1
    assert words in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_start_is_no_arm_and_leaves_nothing(sandbox: Sandbox) -> None:
    scenario = sandbox.scenario(("select", SELECT, "duration_s = 0.3"))
    given = ("--limit", "p99=50ms", "--target", "pg18", "--setting", "shared_buffers=much", "--out", "out")
    ended = sandbox.start("slo", scenario, *given).finish()
    assert ended.code == 1, ended.err
    assert "shared_buffers" in ended.err
    assert "arm " not in ended.err
    assert not ended.folder.exists()


@pytest.mark.slow
def test_interrupted_with_a_real_server(sandbox: Sandbox) -> None:
    scenario = sandbox.scenario(("select", SELECT, "duration_s = 1"))
    given = ("--limit", "p99=50ms", "--target", "pg18", "--setting", "fsync=off", "--window", "0.5")
    more = ("--require", "1/s", "--format", "json", "--live", "--out", "out")
    running = sandbox.start("slo", scenario, *given, *more)
    running.wait_for_words("in a browser")
    follower = Follower()
    follower.write(running.err)
    running.wait_for_words("trial 3, short")
    running.send_group(signal.SIGINT)
    ended = running.finish()
    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    follower.wait_for_end()
    assert follower.last["now"]["ended"] == "not complete (exit code 130)"
    assert "trial 1, closed loop: " in follower.doing
    assert re.search(r"trial 3, short, [\d,]+/s offered: ", follower.doing)
    found = msgspec.convert(json.loads((ended.folder / "slo.json").read_text()), Slo)
    assert (found.state, found.found) == ("interrupted", "not decided")
    assert [trial.kind for trial in found.trials[:2]] == ["closed loop", "short"]
    assert found.capacity == found.trials[0].done_per_s
    assert found.trials[0].done_per_s > 10
    assert found.trials[1].should > 0
    assert json.loads(ended.out)["reason"] == "stopped by SIGINT"
    assert (ended.folder / found.trials[1].folder / "summary.json").is_file()


@dataclass
class Steady:
    """Keeps limits up to a load; its closed loop does 1,000/s, and we could drive `ceiling`."""

    ceiling: float | None
    boundary: float = math.inf
    late: bool = False
    """Whether misses may be due to Loadstone itself."""
    limits: tuple[Limit, ...] = (limit("p99=20ms"),)
    folder: Path | None = None

    @contextmanager
    def prepared(self, _: Signals) -> Iterator[MakeTrial]:
        yield self.trial

    def trial(self, plan: TrialPlan) -> Trial:
        closed, missed = plan.rate is None, (plan.rate or 0) > self.boundary
        return Trial(
            number=plan.number, kind=plan.kind, rate=plan.rate, seconds=plan.seconds, folder="", should=1000,
            in_time=[900 if missed else 1000], failed=0, misses=["p99=20ms"] if missed else [],
            done_per_s=plan.rate or 1000.0, ceiling_per_s=self.ceiling if closed else None,
            client_late=missed and self.late,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("ceiling", "top", "words", "code"),
    [
        (None, 1000.0 * STEP**14, "twice the rate of the closed loop", ExitCode.OK),
        (5000.0, 1000.0 * STEP**14, "twice the rate of the closed loop", ExitCode.OK),
        (1400.0, 1000.0 * STEP**2, "without being the limit (80 % of its ceiling)", ExitCode.UNDECIDED),
        (900.0, 720.0, "without being the limit (80 % of its ceiling)", ExitCode.UNDECIDED),
    ],
)
def test_no_load_is_tried_that_we_could_not_drive(
    ceiling: float | None, top: float, words: str, code: ExitCode
) -> None:
    found = document(required=1200.0, capacity=None)
    search = SloSearch(bench=Steady(ceiling), document=found, window_s=1, most=25, say=print)
    search.run()
    assert found.top == pytest.approx(top)
    assert max(trial.rate or 0 for trial in found.trials) == pytest.approx(top)
    assert found.found == "all kept"
    assert found.lower == pytest.approx(top)
    assert words in texts.answer(found)
    assert search.required() is code


@dataclass
class Interrupted(Steady):
    """Ctrl-C comes in one of the trials; in 0, while the data are loaded."""

    at: int = 0

    @contextmanager
    def prepared(self, signals: Signals) -> Iterator[MakeTrial]:
        if not self.at:
            raise InterruptedRun(signal.SIGINT)
        with super().prepared(signals) as make:
            yield make

    def trial(self, plan: TrialPlan) -> Trial:
        if plan.number == self.at:
            raise InterruptedRun(signal.SIGINT)
        return super().trial(plan)


@pytest.mark.parametrize(
    ("at", "last"), [(0, None), (1, None), (2, "closed loop"), (6, "short"), (10, "whole")]
)
def test_ctrl_c_in_every_stage_leaves_what_is_known(at: int, last: str | None) -> None:
    found = document(capacity=None, required=500.0, state="running")
    search = SloSearch(found, print, Interrupted(None, boundary=700, at=at), window_s=1, most=25)
    search.run()
    assert search.exit_code is ExitCode.INTERRUPTED
    assert (found.state, found.reason, found.found) == ("interrupted", "stopped by SIGINT", "not decided")
    assert [trial.kind for trial in found.trials][-1:] == ([last] if last else [])
    assert len(found.trials) == max(at - 1, 0)
    assert "not decided (stopped by SIGINT)" in texts.markdown(found)


def test_a_closed_loop_that_was_disturbed_hides_no_higher_load() -> None:
    found = document(capacity=None)
    SloSearch(found, print, Steady(None, boundary=1100), window_s=1, most=25).run()
    assert found.found == "found"
    assert found.lower == pytest.approx(1000 * STEP)
    assert found.upper == pytest.approx(1000 * STEP**2)
    assert len(found.trials) <= 25


def test_trials_in_which_our_own_threads_were_late_are_made_again() -> None:
    found, said = document(capacity=None), list[str]()
    SloSearch(found, said.append, Steady(None, boundary=700, late=True), window_s=1, most=25).run()
    assert found.found == "found"
    assert found.lower == pytest.approx(1000 / STEP**8)
    assert [trial.counted for trial in found.trials if trial.misses][:5] == [False] * 4 + [True]
    late = sum(trial.client_late for trial in found.trials)
    assert f"In {late} of {len(found.trials)} trials Loadstone's own threads" in texts.markdown(found)
    assert f"(made again: 4, counted: {late - 4})." in texts.markdown(found)
    assert sum("was late: not counted" in line for line in said) == 4
    assert sum(int(cells[1]) for cells in texts.curve(found)) == len(found.trials) - 1 - 4


@pytest.mark.slow
def test_our_own_ceiling_is_of_whole_transactions(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    three = Drive((Script("s", 3 * SELECT),), mode="simple", clients=2, threads=1, duration_s=0.3)
    with null_server(10) as (_, connection):
        perform(drive_document(three, connection, folder) | {"messages": {"counts": True}}, None)
    result = read_document(folder / "drive.json", DriveResult)
    one = replace(three, scripts=(Script("p", f"\\startpipeline\n{SELECT}\\endpipeline\n"),))
    assert _exchanges(three, result) == pytest.approx(3, rel=0.1)
    assert _exchanges(one, result) == 1
    assert (own_ceiling(three, result, None) or 0) > 300

"""The form of sysbench's output, from figures that are given."""

from __future__ import annotations

import contextlib
import os
import pty

import pytest

from loadstone.personalities.sysbench.banner import banner
from loadstone.personalities.sysbench.limits import limits_of
from loadstone.personalities.sysbench.log import Log
from loadstone.personalities.sysbench.messages import Messages
from loadstone.personalities.sysbench.options import parse
from loadstone.personalities.sysbench.statistics import (
    Fairness,
    Interval,
    SqlCounts,
    Totals,
    block,
    histogram,
    interval_line,
    queue_line,
)

SQL = SqlCounts(reads=1400, writes=400, others=200, errors=3, reconnects=1)
RESULTS = """SQL statistics:
    queries performed:
        read:                            1400
        write:                           400
        other:                           200
        total:                           2000
    transactions:                        100    (50.00 per sec.)
    queries:                             2000   (1000.00 per sec.)
    ignored errors:                      3      (1.50 per sec.)
    reconnects:                          1      (0.50 per sec.)

General statistics:
    total time:                          2.0004s
    total number of events:              100

Latency (ms):
         min:                                    1.20
         avg:                                   20.50
         max:                                  345.68
         95th percentile:                       34.33
         sum:                                 2050.00

Threads fairness:
    events (avg/stddev):           50.0000/2.00
    execution time (avg/stddev):   1.0250/0.25

"""


def totals(sql: SqlCounts | None = SQL) -> Totals:
    return Totals(2.0, 2.0004, 100, sql, 1.2, 20.5, 345.678, 34.33, 2050.0, Fairness(50.0, 2.0, 1.025, 0.25))


def shown(lines: list[str]) -> str:
    out: list[str] = []
    log = Log(out.append, 3)
    for line in lines:
        log.text(line)
    return "".join(out)


def messages(verbosity: int = 3) -> tuple[Messages, list[str], list[str]]:
    out: list[str] = []
    err: list[str] = []
    log = Log(out.append, verbosity)
    return Messages(log, err.append, verbosity, ["about the run"]), out, err


def test_results_have_sysbenchs_form() -> None:
    assert shown(list(block(totals(), 95))) == RESULTS


def test_results_without_a_database_have_no_statements() -> None:
    text = shown(list(block(totals(None), 95)))
    assert text == "\n" + RESULTS.partition("\n\n")[2]


def test_results_without_a_percentile_say_so() -> None:
    text = shown(list(block(totals(), 0)))
    assert "         percentile stats:               disabled\n" in text
    assert "        100th percentile:                       34.33\n" in shown(list(block(totals(), 100)))


def test_an_interval_has_one_line_and_two_under_a_rate() -> None:
    interval = Interval(3.0, 2.0, 4, 100, 1.234, SQL, queue=7, concurrency=3)
    assert interval_line(interval, 95) == (
        "thds: 4 tps: 50.00 qps: 1000.00 (r/w/o: 700.00/200.00/100.00) lat (ms,95%): 1.23 err/s: 1.50 "
        "reconn/s: 0.50"
    )
    assert queue_line(interval) == "queue length: 7, concurrency: 3"
    plain = Interval(3.0, 2.0, 4, 100, 1.234, None, queue=7, concurrency=3)
    assert interval_line(plain, 99) == "thds: 4 eps: 50.00 lat (ms,99%): 1.23"
    assert queue_line(plain) == "queue length: 7 concurrency: 3"


def test_a_histogram_has_bars_up_to_forty_stars() -> None:
    assert histogram([(2.001, 1), (3.0, 0), (10.0, 3)]) == (
        "       value  ------------- distribution ------------- count\n"
        "       2.001 |*************                            1\n"
        "      10.000 |**************************************** 3\n"
    )
    assert histogram([]) == ""


def test_the_log_counts_what_is_repeated() -> None:
    assert shown(["a", "a", "a", "", "b"]) == "a\n(last message repeated 2 times)\n\nb\n"


def test_the_log_shows_what_the_verbosity_lets_through() -> None:
    out: list[str] = []
    log = Log(out.append, 1)
    for level in ("fatal", "alert", "warning", "notice", "info", "debug"):
        log.text(f"{level}!", level)
    log.at(2.0, "figures")
    log.plain("printed\n")
    assert "".join(out) == "FATAL: fatal!\nALERT: alert!\nprinted\n"


@pytest.mark.parametrize(("verbosity", "shown"), [(3, ""), (4, "NOTICE:  table is not there\n")])
def test_notices_of_the_server_are_shown_where_more_is_asked_for(verbosity: int, shown: str) -> None:
    shows, out, err = messages(verbosity)
    shows.write([{"kind": "server", "text": "NOTICE:  table is not there\n"}])
    assert ("".join(out), err) == (shown, [])


def test_a_run_begins_with_its_options() -> None:
    arguments = "--threads=2 --rate=2.5 --report-interval=3 --report-checkpoints=5,4 --rand-seed=9 --time=60"
    limits = limits_of(parse([*arguments.split(), "--forced-shutdown"], print).settings, print)
    assert shown(list(banner(limits))) == (
        "Running the test with following options:\nNumber of threads: 2\nTarget transaction rate: 2.5/sec\n"
        "Report intermediate results every 3 second(s)\nReport checkpoint(s) at 4, 5 seconds\n"
        "Initializing random number generator from seed (9).\n\nForcing shutdown in 63 seconds\n\n"
    )


def test_what_a_script_prints_first_comes_before_the_run() -> None:
    said, out, _ = messages()
    said.write([{"kind": "output", "text": "init\n"}, {"kind": "output", "text": ""}])
    said.write([{"kind": "output", "text": "thread_init\n"}])
    said.begin()
    assert "".join(out) == "init\nabout the run\nInitializing worker threads...\n\nthread_init\n"


def test_a_failure_is_in_the_log_and_its_traceback_beside_it() -> None:
    said, out, err = messages(verbosity=4)
    said.write([{"kind": "fatal", "text": "x.lua:3: no\n"}, {"kind": "detail", "text": "stack traceback:"}])
    assert ("".join(out), "".join(err), said.has_fatal) == (
        "FATAL: x.lua:3: no\n",
        "stack traceback:\n",
        True,
    )


@pytest.mark.parametrize("verbosity", [2, 3])
def test_a_usual_run_says_what_sysbench_says(verbosity: int) -> None:
    said, out, err = messages(verbosity=verbosity)
    said.write([{"kind": "error", "text": "client 1: no"}, {"kind": "detail", "text": "stack traceback:"}])
    assert (out, err) == (["FATAL: no\n"], [])


def test_a_traceback_is_for_terminals() -> None:
    parent, child = pty.openpty()
    with os.fdopen(child, "w") as terminal, contextlib.redirect_stderr(terminal):
        said, _, err = messages()
        said.write([{"kind": "detail", "text": "stack traceback:"}])
        quiet, _, _ = messages(verbosity=2)
        quiet.write([{"kind": "detail", "text": "stack traceback:"}])
    os.close(parent)
    assert err == ["stack traceback:\n"]

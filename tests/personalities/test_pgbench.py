"""pgbench's command line and output, without a server."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.personalities import pgbench
from loadstone.personalities.pgbench.complaint import AnswerGivenError, ComplaintError
from loadstone.personalities.pgbench.messages import message_writer
from loadstone.personalities.pgbench.options import OPTIONS, Options, parse
from loadstone.personalities.pgbench.progress import ProgressLines
from loadstone.personalities.pgbench.results import beyond, results
from loadstone.personalities.pgbench.scripts import Script
from loadstone.personalities.pgbench.server import ServerFacts
from loadstone.personalities.pgbench.values import INT_MAX

PEER = shutil.which("pgbench")
LIST = """Available builtin scripts:
      tpcb-like: <builtin: TPC-B (sort of)>
  simple-update: <builtin: simple update>
    select-only: <builtin: select only>

"""
TRY = 'pgbench: hint: Try "pgbench --help" for more information.\n'
RANGE = f"must be in range 1..{INT_MAX}\n"
BENCHMARKING = "pgbench: error: some of the specified options cannot be used in benchmarking mode\n"

REFUSED = {
    "-c 0": f"pgbench: error: -c/--clients {RANGE}",
    "-c x": 'pgbench: error: invalid value "x" for option -c/--clients\n',
    "-c 99999999999": f"pgbench: error: -c/--clients {RANGE}",
    "-j 0": f"pgbench: error: -j/--jobs {RANGE}",
    "-t 0": f"pgbench: error: -t/--transactions {RANGE}",
    "-T 0": f"pgbench: error: -T/--time {RANGE}",
    "-P 1.5": 'pgbench: error: invalid value "1.5" for option -P/--progress\n',
    "-s 0": f"pgbench: error: -s/--scale {RANGE}",
    "-t 5 -T 5": "pgbench: error: specify either a number of transactions (-t) or a duration (-T), "
    "not both\n",
    "-M foo": 'pgbench: error: invalid query mode (-M): "foo"\n',
    "-R 0": 'pgbench: error: invalid rate limit: "0"\n',
    "-R x": 'pgbench: error: invalid rate limit: "x"\n',
    "-L -1": 'pgbench: error: invalid latency limit: "-1"\n',
    "-D foo": 'pgbench: error: invalid variable definition: "foo"\n',
    "-D foo=": 'pgbench: error: invalid variable definition: "foo="\n',
    "-D a-b=3": 'pgbench: error: option: invalid variable name: "a-b"\n',
    "-b nosuch": f'pgbench: error: no builtin script found for name "nosuch"\n{LIST}',
    "-b s": f'pgbench: error: ambiguous builtin name: 2 builtin scripts found for prefix "s"\n{LIST}',
    "-b se@x": "pgbench: error: invalid weight specification: @x\n",
    "-b se@": "pgbench: error: invalid weight specification: @\n",
    "-b se@-1": f"pgbench: error: weight specification out of range (0 .. {INT_MAX}): -1\n",
    "-b se@0": "pgbench: error: total script weight must not be zero\n",
    "--show-script=foo": f'pgbench: error: no builtin script found for name "foo"\n{LIST}',
    "-f nofile.sql": 'pgbench: error: could not open file "nofile.sql": No such file or directory\n',
    "--random-seed=x": 'pgbench: error: unrecognized random seed option "x"\n'
    'pgbench: detail: Expecting an unsigned integer, "time" or "rand".\n'
    "pgbench: error: error while setting random seed from --random-seed option\n",
    "-Z": f"pgbench: invalid option -- 'Z'\n{TRY}",
    "-nZ": f"pgbench: invalid option -- 'Z'\n{TRY}",
    "-c": f"pgbench: option requires an argument -- 'c'\n{TRY}",
    "-nc": f"pgbench: option requires an argument -- 'c'\n{TRY}",
    "--nope": f"pgbench: unrecognized option '--nope'\n{TRY}",
    "--nope=3": f"pgbench: unrecognized option '--nope=3'\n{TRY}",
    "--client": f"pgbench: option '--client' requires an argument\n{TRY}",
    "--cli": f"pgbench: option '--client' requires an argument\n{TRY}",
    "--select-only=3": f"pgbench: option '--select-only' doesn't allow an argument\n{TRY}",
    "--s": "pgbench: option '--s' is ambiguous; possibilities: '--scale' '--select-only' "
    f"'--skip-some-updates' '--sampling-rate' '--show-script'\n{TRY}",
    "a b c": f'pgbench: error: too many command-line arguments (first is "b")\n{TRY}',
    "-q": BENCHMARKING,
    "-F 100 -S": BENCHMARKING,
    "--partitions=2": BENCHMARKING,
    "--sampling-rate=2": 'pgbench: error: invalid sampling rate: "2"\n',
    "--max-tries=-1": 'pgbench: error: invalid number of maximum tries: "-1"\n',
    "--aggregate-interval=0": f"pgbench: error: --aggregate-interval {RANGE}",
    "--sampling-rate=0.5": "pgbench: error: log sampling (--sampling-rate) is allowed only when logging "
    "transactions (-l)\n",
    "-l --sampling-rate=1 --aggregate-interval=2": "pgbench: error: log sampling (--sampling-rate) and "
    "aggregation (--aggregate-interval) cannot be used at the same time\n",
    "--aggregate-interval=2": "pgbench: error: log aggregation is allowed only when actually logging "
    "transactions\n",
    "--log-prefix=x": "pgbench: error: log file prefix (--log-prefix) is allowed only when logging "
    "transactions (-l)\n",
    "-l -T1 --aggregate-interval=2": "pgbench: error: number of seconds for aggregation (2) must not be "
    "higher than test duration (1)\n",
    "-l -T3 --aggregate-interval=2": "pgbench: error: duration (3) must be a multiple of aggregation "
    "interval (2)\n",
    "--progress-timestamp": "pgbench: error: --progress-timestamp is allowed only under --progress\n",
    "--max-tries=0": "pgbench: error: an unlimited number of transaction tries can only be used with "
    "--latency-limit or a duration (-T)\n",
    "--pro": f"pgbench: option '--pro' is ambiguous; possibilities: '--progress' '--protocol' "
    f"'--progress-timestamp'\n{TRY}",
    "-i -S": "pgbench: error: some of the specified options cannot be used in initialization (-i) mode\n",
}
"""Arguments -> what pgbench 15 says of them."""


def run(*arguments: str) -> tuple[int, str, str]:
    out: list[str] = []
    err: list[str] = []
    code = pgbench.main(arguments, out.append, err.append)
    return code, "".join(out), "".join(err)


def parsed(*arguments: str, **environment: str) -> Options:
    return parse(arguments, environment)


@pytest.mark.parametrize("arguments", REFUSED)
def test_what_pgbench_refuses_is_refused_in_its_words(arguments: str) -> None:
    assert run(*arguments.split()) == (1, "", REFUSED[arguments])


@pytest.mark.parametrize("arguments", REFUSED)
def test_pgbench_itself_says_the_same(arguments: str) -> None:
    if PEER is None:
        pytest.skip("pgbench is not installed: its words cannot be compared with ours")
    peer = subprocess.run([PEER, *arguments.split()], capture_output=True, text=True, check=False)
    # The C library's complaints begin with the path of the program; 15.20 names the option as it is spelt.
    said = re.sub(r"^\S*/pgbench:", "pgbench:", peer.stderr)
    assert re.sub(r"-c/--client\b", "-c/--clients", said) == REFUSED[arguments]
    assert (peer.returncode, peer.stdout) == (1, "")


def test_the_letter_that_changed_its_meaning_follows_the_emulated_version() -> None:
    assert parsed("-d", "base").database == "base"
    for version in ("15", "16"):
        options = parsed("-d", "--emulate", version, "base")
        assert (options.debug, options.database, options.emulate) == (True, "base", int(version))
    assert not parsed("--emulate=18", "-dbase").debug
    assert parsed("-d", "base", LOADSTONE_PGBENCH_EMULATE="16").debug
    code, _, err = run("--emulate=9.6")
    assert code == 1
    assert 'cannot emulate version "9.6"' in err


def test_the_log_has_its_options() -> None:
    options = parsed("-l", "--log-prefix=x", "--aggregate-interval=5", "-T10", "--max-tries", "0")
    assert (options.log, options.log_prefix, options.aggregate_s, options.max_tries) == (True, "x", 5, 0)
    assert parsed("-l", "--sampling-rate", "0.25").sampling_rate == 0.25


def test_options_mean_what_they_mean_to_pgbench() -> None:
    options = parsed(
        "-nrS", "-c8", "-j", "2", "base", "--time=3", "--prot", "prepared", "-P5", "-R", "10.5x", "-L2.5",
        "-Cv", "-Da=1", "-D", "b=x=y", "-h", "host", "-p5433", "--user=me", "-s", "7",
    )  # fmt: skip
    assert not options.vacuum
    assert options.vacuum_all
    assert options.per_command
    assert options.connect
    assert [script.name for script in options.scripts] == ["<builtin: select only>"]
    assert (options.clients, options.threads, options.duration_s, options.transactions) == (8, 2, 3, None)
    assert (options.mode, options.progress_s) == ("prepared", 5)
    assert (options.rate_per_s, options.latency_limit_ms, options.scale) == (10.5, 2.5, 7)
    assert options.variables == {"a": "1", "b": "x=y"}
    assert (options.host, options.port, options.user, options.database) == ("host", "5433", "me", "base")


def test_without_options_ten_transactions_of_tpcb_run_on_one_client() -> None:
    options = parsed()
    assert [(s.name, s.weight, s.builtin) for s in options.scripts] == [
        ("<builtin: TPC-B (sort of)>", 1, True)
    ]
    assert (options.clients, options.threads, options.transactions, options.duration_s) == (1, 1, 10, None)
    assert (options.mode, options.vacuum, options.vacuum_all) == ("simple", True, False)


def test_options_of_ours_make_no_abbreviation_of_pgbenchs_ambiguous() -> None:
    assert parsed("--rep").per_command
    assert run("--em", "15")[2].startswith("pgbench: unrecognized option '--em'\n")
    with pytest.raises(
        ComplaintError, match=r"possibilities: '--report-per-command' '--rate' '--random-seed'"
    ):
        parsed("--r")


def test_two_dashes_end_the_options() -> None:
    assert parsed("-n", "--", "-S").database == "-S"
    assert parsed("--dbname=base").database == "base"


def test_a_weight_stands_after_the_last_at_sign(tmp_path: Path) -> None:
    file = tmp_path / "a@b.sql"
    file.write_text("select 1;")
    options = parsed("-f", f"{file}@3", "-b", "tpcb@2", "-N")
    assert [(s.name, s.weight) for s in options.scripts] == [
        (str(file), 3),
        ("<builtin: TPC-B (sort of)>", 2),
        ("<builtin: simple update>", 1),
    ]


def test_128_scripts_are_enough() -> None:
    assert len(parsed(*["-S"] * 128).scripts) == 128
    with pytest.raises(ComplaintError, match="at most 128 SQL scripts are allowed"):
        parsed(*["-S"] * 129)


def test_the_seed_comes_from_the_option_before_the_environment() -> None:
    assert parsed("--random-seed=7", PGBENCH_RANDOM_SEED="5").seed == 7
    assert parsed(PGBENCH_RANDOM_SEED="5").seed == 5
    assert parsed("--random-seed=-1").seed == 2**64 - 1
    assert parsed("--random-seed=rand").seed != parsed("--random-seed=rand").seed
    assert not parsed().seed_given
    with pytest.raises(ComplaintError) as caught:
        parsed(PGBENCH_RANDOM_SEED="zz")
    assert caught.value.further.endswith("PGBENCH_RANDOM_SEED environment variable")


@given(st.integers(-(2**70), 2**70))
def test_every_whole_number_is_a_seed_or_wraps_to_one(number: int) -> None:
    assert 0 <= parsed(f"--random-seed={number}").seed < 2**64


@given(st.integers(1, INT_MAX), st.sampled_from(["-c{}", "-c {}", "--client={}", "--cl={}", "-nc{}"]))
def test_a_value_may_be_written_in_every_way_getopt_knows(value: int, form: str) -> None:
    assert parsed(*form.format(value).split(" ")).clients == value


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12), max_size=6))
def test_no_arguments_end_in_anything_but_options_or_a_complaint(arguments: list[str]) -> None:
    said = ""
    options = None
    try:
        options = parse(arguments, {})
    except ComplaintError as complaint:
        said = complaint.text()
    except AnswerGivenError as answer:
        said = f"{answer.out}{answer.err}"
    if options is None:
        assert said
    else:
        assert options.scripts
        assert options.transactions or options.duration_s


def test_texts_that_options_ask_for() -> None:
    assert run("-b", "list") == (0, "", LIST)
    shown = (
        "-- select-only: <builtin: select only>\n\\set aid random(1, 100000 * :scale)\n"
        "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\n"
    )
    assert run("--show-script=sel") == (0, "", shown)
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    assert out.startswith("loadstone pgbench is")
    assert "  -d, --dbname=" in out
    assert "  -d, --debug " in run("--help", "--emulate=15")[1]
    code, out, err = run("-V")
    assert (code, err) == (0, "")
    assert re.fullmatch(r"pgbench \(PostgreSQL\) 17 \(Loadstone [0-9.]+\)\n", out)


def test_every_option_is_in_the_help_and_on_the_page() -> None:
    _, told, _ = run("--help")
    page = (Path(__file__).parents[2] / "docs" / "pgbench.md").read_text(encoding="utf-8")
    for option in OPTIONS:
        assert f"--{option.long}" in told
        name = f"-{option.short}" if option.short else f"--{option.long}"
        assert re.search(rf"(?<![-\w]){name}(?!\w)", page), f"docs/pgbench.md does not name {name}"


def test_a_broken_script_is_shown_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "bad.sql"
    file.write_text("select 1;\n\t\\set x random(1,\n")
    code, out, err = run("-f", str(file))
    assert (code, out) == (1, "")
    lines = err.splitlines()
    assert lines[0].startswith(f"pgbench: error: {file}:2: syntax error")
    assert lines[1] == "\t\\set x random(1,"
    assert re.fullmatch(r"\t +\^ error found here", lines[2])


def test_scripts_that_cannot_be_scripts(tmp_path: Path) -> None:
    empty, latin = tmp_path / "empty.sql", tmp_path / "latin.sql"
    empty.write_text("-- nothing\n")
    latin.write_bytes(b"select 1;\nselect '\xe9';\n")
    assert f'pgbench: error: empty command list for script "{empty}"' in run("-f", str(empty))[2]
    assert f"{latin}:2: the script is not UTF-8 text" in run("-f", str(latin))[2]
    assert "could not open file" in run("-f", str(tmp_path))[2]


STATS = {"count": 10, "mean_ns": 2e6, "stddev_ns": 5e5, "min_ns": 1_000_000, "max_ns": 3_000_000}
NOTHING = {"count": 0, "mean_ns": None, "stddev_ns": None, "min_ns": None, "max_ns": None}


def details(repeated: int = 0, **outcomes: int) -> dict[str, Any]:
    none = dict.fromkeys(("serialization", "deadlock", "other", "retried", "retries"), 0)
    times = [{"count": 4, "sum_ns": 12_000}, {"count": 0, "sum_ns": 0}, {"count": 0, "sum_ns": 0}]
    return {"scripts": [none | outcomes], "repeated": [0, repeated, 0], "times": times, "ended": []}


def account(**changes: Any) -> dict[str, Any]:
    counts = {"scheduled": 10, "done": 10, "failed": 0, "skipped": 0, "dropped": 0}
    return {
        "state": "complete",
        "clients": 8,
        "threads": 1,
        "seed": 5,
        "start_ns": 1_000_000_000,
        "measure_ns": 1_000_000_000,
        "end_ns": 3_000_000_000,
        "connect": {"wall_ns": 4_500_000, "latency": STATS, "reconnects": 0},
        "counts": counts,
        "late": 0,
        "response": STATS,
        "lag": None,
        "errors": [],
        "scripts": [{"counts": counts, "service": STATS}],
        "statements": [{"script": 0, "index": 1, "failed": 0, "service": STATS}],
        "details": details(),
    } | changes


COMMANDS = [[{"text": "\\set x 1"}, {"text": "select\n 1;"}, {"text": "select 2;"}]]


def shown(options: Options, found: ServerFacts, **changes: Any) -> list[str]:
    options.scripts = options.scripts or [Script("a.sql", "", 1)]
    return results(options, found, account(**changes), COMMANDS).splitlines()[1:]


def test_the_results_of_a_plain_run() -> None:
    assert shown(Options(transactions=10), ServerFacts("18.6", 3)) == [
        "transaction type: a.sql",
        "scaling factor: 3",
        "query mode: simple",
        "number of clients: 1",
        "number of threads: 1",
        "maximum number of tries: 1",
        "number of transactions per client: 10",
        "number of transactions actually processed: 10/10",
        "number of failed transactions: 0 (0.000%)",
        "latency average = 2.000 ms",
        "initial connection time = 4.500 ms",
        "tps = 5.000000 (without initial connection time)",
    ]


def test_every_command_has_a_number_for_who_reads_it() -> None:
    lines = shown(Options(transactions=10, per_command=True), ServerFacts("18.6", 3, "hash", 4))
    assert lines[2:4] == ["partition method: hash", "partitions: 4"]
    assert lines[-4:] == [
        "statement latencies in milliseconds and failures:",
        "         0.003           0  \\set x 1",
        "         2.000           0  select",
        "         0.000           0  select 2;",
    ]


def test_retries_have_a_column_and_lines_of_their_own() -> None:
    statement = {"script": 0, "index": 1, "failed": 5, "service": STATS}
    options = Options(transactions=10, per_command=True, max_tries=3)
    changes = {"details": details(2, retried=1, retries=2), "statements": [statement]}
    lines = shown(options, ServerFacts("18.6", 3), **changes)
    assert "maximum number of tries: 3" in lines
    assert "number of transactions retried: 1 (10.000%)" in lines
    assert "total number of retries: 2" in lines
    assert lines[-4] == "statement latencies in milliseconds, failures and retries:"
    assert lines[-2] == "         2.000           3           2  select"
    options.emulate = 18
    lines = shown(options, ServerFacts("18.6", 3), **changes)
    assert lines[-2] == "         2.000           3          2  select"


def test_failures_are_counted_apart_and_in_the_average() -> None:
    outcomes = details(serialization=6, deadlock=4, other=5)
    options = Options(duration_s=2, failures_detailed=True)
    lines = shown(options, ServerFacts("18.6", 1), details=outcomes)
    assert lines[6:12] == [
        "duration: 2 s",
        "number of transactions actually processed: 10",
        "number of failed transactions: 15 (60.000%)",
        "number of serialization failures: 6 (24.000%)",
        "number of deadlock failures: 4 (16.000%)",
        "latency average = 80.000 ms (including failures)",
    ]
    options.continue_on_error, options.progress_s = True, 1
    lines = shown(options, ServerFacts("18.6", 1), details=outcomes)
    assert lines[11:13] == ["number of other failures: 5 (20.000%)", "latency average = 2.000 ms"]


def test_a_script_of_several_has_its_block_in_each_versions_form() -> None:
    half = {"counts": {"done": 5, "failed": 0}, "service": STATS}
    changes = {
        "scripts": [half, half],
        "details": {"scripts": details(deadlock=5)["scripts"] * 2, "repeated": [], "times": []},
    }
    options = Options(transactions=10, scripts=[Script("a.sql", ""), Script("b.sql", "")])
    lines = shown(options, ServerFacts("18.6", 1), **changes)
    place = lines.index("SQL script 2: b.sql")
    assert lines[place + 1 : place + 4] == [
        " - weight: 1 (targets 50.0% of total)",
        " - 5 transactions (50.0% of total, tps = 2.500000)",
        " - number of failed transactions: 5 (50.000%)",
    ]
    options.emulate = 18
    lines = shown(options, ServerFacts("18.6", 1), **changes)
    place = lines.index("SQL script 2: b.sql")
    assert lines[place + 2 : place + 5] == [
        " - 10 transactions (50.0% of total)",
        " - number of transactions actually processed: 5 (tps = 2.500000)",
        " - number of failed transactions: 5 (50.000%)",
    ]


def test_when_nothing_ended_no_figure_is_invented() -> None:
    none = {"scheduled": 1, "done": 0, "failed": 1, "skipped": 0, "dropped": 0}
    lines = shown(Options(transactions=10), ServerFacts("18.6", 1), counts=none, response=NOTHING)
    assert lines[-2:] == [
        "number of transactions actually processed: 0/10",
        "number of failed transactions: 0 (NaN%)",
    ]


def test_percentiles_are_given_as_far_as_samples_reach() -> None:
    percentiles = {"50": 1024, "90": 2048, "95": 3072, "99": 4096, "99.9": 9000}

    def said(count: int, **more: Any) -> str:
        known = details() | {"response_ns": percentiles, "lag_ns": percentiles}
        return beyond(account(response=STATS | {"count": count}, details=known, **more))

    assert " - too few samples (19) for p50, p90, p95, p99, p99.9\n" in said(19)
    assert " - too few samples (20) for p90, p95, p99, p99.9\n" in said(20)
    text = said(1000)
    figures = "p50 = 0.001 ms, p90 = 0.002 ms, p95 = 0.003 ms, p99 = 0.004 ms"
    assert f" - response time of 1000 transactions: {figures}\n" in text
    assert " - too few samples (1000) for p99.9\n" in text
    assert " - random seed: 5\n" in text
    assert "lag" not in text
    assert f" - lag of the rate's schedule: {figures}\n" in said(1000, lag=STATS)


def test_dropped_transactions_and_errors_are_told() -> None:
    counts = {"scheduled": 13, "done": 10, "failed": 0, "skipped": 0, "dropped": 3}
    errors = [{"sqlstate": "22012", "message": "division by zero\nmore", "count": 1}]
    text = beyond(account(counts=counts, errors=errors))
    assert " - dropped: 3 transactions were due but never started\n" in text
    assert " - error 22012 (x 1): division by zero\n" in text


def interval(start_ns: int, end_ns: int) -> dict[str, Any]:
    response = {
        "mean_ns": 2e6, "stddev_ns": 5e5, "count": 999, "p50_ns": 1_900_000, "p95_ns": 3_000_000, "p99_ns": 1,
    }  # fmt: skip
    return {
        "start_ns": start_ns, "end_ns": end_ns, "done": 20, "failed": 1, "skipped": 2,
        "warmup": False, "response": response, "lag_mean_ns": 1e5, "retried": 1, "retries": 4,
    }  # fmt: skip


def test_each_full_interval_is_shown_once() -> None:
    said: list[str] = []
    lines = ProgressLines(Options(progress_s=2, rate_per_s=1.0, latency_limit_ms=1.0), said.append, 60.0)
    lines.show({"recent": [], "start_ns": None, "deadline_ns": None})
    first = {"recent": [interval(10**9, 3 * 10**9)], "start_ns": 10**9, "deadline_ns": None}
    lines.show(first)
    lines.show(first)
    lines.show({"recent": [interval(3 * 10**9, 4 * 10**9)], "start_ns": 10**9, "deadline_ns": None})
    assert said == [
        "progress: 2.0 s, 10.0 tps, lat 2.000 ms stddev 0.500, 1 failed, lag 0.100 ms, 2 skipped\n"
    ]


def test_progress_lines_end_with_percentiles_on_demand() -> None:
    said: list[str] = []
    lines = ProgressLines(parsed("-P", "2", "--progress-percentiles"), said.append, 60.0)
    lines.show({"recent": [interval(10**9, 3 * 10**9)], "start_ns": 10**9, "deadline_ns": None})
    empty = interval(3 * 10**9, 5 * 10**9) | {"done": 0, "response": None}
    lines.show({"recent": [empty], "start_ns": 10**9, "deadline_ns": None})
    assert said == [
        "progress: 2.0 s, 10.0 tps, lat 2.000 ms stddev 0.500, 1 failed, p50 1.900 ms, p95 3.000 ms, p99 -\n",
        "progress: 4.0 s, 0.0 tps, lat 0.000 ms stddev 0.000, 1 failed, p50 -, p95 -, p99 -\n",
    ]
    with pytest.raises(ComplaintError, match="--progress-percentiles is allowed only under --progress"):
        parsed("--progress-percentiles")


def test_progress_tells_retries_and_the_time_of_day() -> None:
    said: list[str] = []
    options = Options(progress_s=2, max_tries=2, progress_timestamp=True)
    ProgressLines(options, said.append, 60.0).show(
        {"recent": [interval(10**9, 3 * 10**9)], "start_ns": 10**9, "deadline_ns": None}
    )
    found = re.fullmatch(r"progress: ([0-9]+\.[0-9]{3}) s, .*, 1 failed, 1 retried, 4 retries\n", said[0])
    assert found
    assert float(found[1]) == pytest.approx((time.time_ns() - time.monotonic_ns()) / 1e9 + 3, abs=5)  # noqa: TID251


def test_a_script_with_a_zero_byte_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "zero.sql"
    file.write_bytes(b"select 1;\nselect\0 2;\n")
    assert f"{file}:2: the script has a zero byte" in run("-f", str(file))[2]


def test_lines_that_are_told_say_what_they_are() -> None:
    said: list[str] = []
    tell = message_writer(said.append)
    tell([])
    tell(
        [{"kind": "error", "text": "a\nb\n"}, {"kind": "detail", "text": "c"}, {"kind": "note", "text": "d"}]
    )
    tell([{"kind": "server", "text": "NOTICE:  e"}])
    assert said == ["pgbench: error: a\nb\npgbench: detail: c\npgbench: d\n", "NOTICE:  e\n"]

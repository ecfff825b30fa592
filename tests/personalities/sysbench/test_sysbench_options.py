"""sysbench's command line, without a server."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sysbench import run

from loadstone.personalities.sysbench.complaint import ComplaintError
from loadstone.personalities.sysbench.definitions import GROUPS, Option
from loadstone.personalities.sysbench.limits import Limits, limits_of
from loadstone.personalities.sysbench.options import CommandLine, finish, parse
from loadstone.personalities.sysbench.settings import Settings, size_of

if TYPE_CHECKING:
    from pathlib import Path

PEER = shutil.which("sysbench")
REFUSED = {
    "one two three": "Unrecognized command line argument: three\n",
    "-x one two": "Unrecognized command line argument: two\n",
    "--threads=0": "FATAL: Invalid value for --threads: 0.\n\n",
    "--threads=": "FATAL: Invalid value for --threads: 0.\n\n",
    "--threads=1k": "Invalid value for the 'threads' option: '1k'\n",
    "--threads=99999999999": "Invalid value for the 'threads' option: '99999999999'\n",
    "--events=x": "Invalid value for the 'events' option: 'x'\n",
    "--rate=x": "Invalid value for the 'rate' option: 'x'\n",
    "--rand-type=foo": "FATAL: Invalid random numbers distribution: foo.\n",
    "--thread-stack-size=1q": "FATAL: Invalid value for thread-stack-size: 0.\n\n",
    "--forced-shutdown=x": "FATAL: Invalid value for --forced-shutdown: 'x'\n",
    "--report-checkpoints=1,a": "FATAL: Invalid value for --report-checkpoints: 'a'\n",
    "--verbosity=-1": "Invalid value for verbosity: 255\n",
    "--percentile=abc": "Invalid value for the 'percentile' option: 'abc'\n",
    "--histogram --percentile=0": "FATAL: --histogram cannot be used with --percentile=0\n",
}
"""Arguments -> what sysbench 1.0.20 says of them, on either stream."""
ANSWERS = {
    "--max-requests=3 --threads=0": "FATAL: Invalid value for --threads: 0.\n\n",
    "--time=0 --max-time=0 --rand-type=x": "WARNING: Both event and time limits are disabled, running an "
    "endless test\nFATAL: Invalid random numbers distribution: x.\n",
    "--num-threads=2 --max-requests=3 --max-time=1 --rand-type=x": "WARNING: --num-threads is deprecated, "
    "use --threads instead\nWARNING: --max-requests is deprecated, use --events instead\n"
    "WARNING: --max-time is deprecated, use --time instead\n"
    "FATAL: Invalid random numbers distribution: x.\n",
}
SCRIPT = (
    Option("tables", "", "1", "int"),
    Option("skip_trx", "", "off", "bool"),
    Option("hosts", "", "a,b", "list"),
    Option("memory", "", None, "size"),
)


def parsed(*arguments: str) -> CommandLine:
    return parse(arguments, lambda _: None)


def limited(*arguments: str) -> Limits:
    return limits_of(parsed(*arguments).settings, lambda _: None)


@pytest.mark.parametrize("arguments", REFUSED | ANSWERS)
def test_what_sysbench_refuses_is_refused_in_its_words(arguments: str) -> None:
    code, out, err = run(*arguments.split())
    assert (code, out + err) == (1, (REFUSED | ANSWERS)[arguments])


@pytest.mark.skipif(PEER is None, reason="sysbench is not installed")
@pytest.mark.parametrize("arguments", REFUSED | ANSWERS)
def test_the_installed_sysbench_says_the_same(arguments: str) -> None:
    assert PEER is not None
    ran = subprocess.run(
        [PEER, *arguments.split()], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    ours = run(*arguments.split())
    assert (ran.returncode, ran.stdout, ran.stderr) == ours


def test_the_version_is_that_which_is_imitated() -> None:
    assert run("--version") == (0, "sysbench 1.0.20\n", "")


def test_help_names_every_option_with_its_default() -> None:
    _, text, _ = run("--help")
    lines = text.splitlines()
    for option in (option for group in GROUPS for option in group.options):
        (line,) = [line for line in lines if line.startswith((f"  --{option.name}=", f"  --{option.name}["))]
        assert option.description in line
        assert option.default is None or line.endswith(f" [{option.default}]")


@pytest.mark.skipif(PEER is None, reason="sysbench is not installed")
def test_help_has_the_options_of_the_installed_sysbench_in_its_order() -> None:
    assert PEER is not None
    theirs = subprocess.run([PEER, "--help"], capture_output=True, text=True, check=True).stdout

    def options(text: str) -> list[tuple[str, str]]:
        shown = [line for line in text.splitlines() if line.startswith("  --")]
        # Theirs breaks off where a default has no closing bracket; ours are after theirs.
        return [(line.split()[0], line.rpartition(" [")[2] if line.endswith("]") else "") for line in shown]

    ours = options(run("--help")[1])
    assert ours[: len(options(theirs))] == options(theirs)


def test_a_hint_names_the_workload_that_is_meant() -> None:
    code, out, err = run("oltp_readonly.lua", "run")
    assert code == 1
    assert out.endswith(
        "FATAL: Cannot find benchmark 'oltp_readonly.lua': no such built-in test, file or module\n"
    )
    assert "'oltp_read_only'" in err


@pytest.mark.parametrize("name", ["cpu", "memory", "threads", "mutex", "fileio"])
def test_tests_of_the_machine_are_refused(name: str) -> None:
    code, _, err = run(name, "run")
    assert code == 1
    assert f"'{name}'" in err
    assert "not part of Loadstone" in err


def test_dashes_and_underscores_are_the_same() -> None:
    line = parsed("--rand_seed=5", "--report-interval=3", "x.lua", "run", "--skip-trx", "--tables=4")
    finish(line, SCRIPT, is_legacy=False)
    settings = line.settings
    assert (settings.integer("rand-seed"), settings.integer("report_interval")) == (5, 3)
    assert (settings.value("skip_trx"), settings.value("tables"), settings.value("hosts")) == (
        True,
        4,
        ["a", "b"],
    )
    assert (line.script, line.command) == ("x.lua", "run")


def test_an_unknown_option_is_refused_with_the_one_that_is_meant() -> None:
    with pytest.raises(ComplaintError) as refused:
        finish(parsed("x.lua", "run", "--skip-tx=on"), SCRIPT, is_legacy=False)
    assert refused.value.message == "invalid option: --skip-tx=on"
    assert "--skip-trx" in refused.value.hint


@pytest.mark.parametrize("argument", ["--skip-trx=5", "--nothing-like-it", "--histogram=maybe"])
def test_what_cannot_be_is_refused_without_a_hint(argument: str) -> None:
    with pytest.raises(ComplaintError) as refused:
        finish(parsed("x.lua", "run", argument), SCRIPT, is_legacy=False)
    assert refused.value.err() == f"invalid option: {argument}\n"


def test_options_of_a_legacy_script_are_texts() -> None:
    line = parsed("--test=oltp.lua", "--oltp-table-size=5", "run")
    finish(line, (), is_legacy=True)
    assert (line.script, line.command, line.settings.value("oltp_table_size")) == ("oltp.lua", "run", "5")


def test_the_old_option_for_a_script_is_warned_of() -> None:
    warnings: list[str] = []
    assert parse(["--test=a.lua"], warnings.append).script == "a.lua"
    assert "the --test option is deprecated" in "".join(warnings)


def test_an_option_of_ours_is_the_scripts_where_it_has_one_of_that_name() -> None:
    line = parsed("x.lua", "--report=often", "run")
    finish(line, (Option("report", "", "", "string"),), is_legacy=False)
    assert line.settings.value("report") == "often"
    assert not line.ours


def test_a_configuration_file_has_a_value_a_line(tmp_path: Path) -> None:
    path = tmp_path / "c.cnf"
    path.write_text("# about\nthreads=2\n events = 3\nhistogram=off\n\nnothing\n")
    limits = limited(f"--config-file={path}", "--histogram")
    assert (limits.threads, limits.events, limits.histogram) == (2, 3, True)


def test_a_configuration_file_that_is_not_there_is_no_end(tmp_path: Path) -> None:
    said: list[str] = []
    parse([f"--config-file={tmp_path}/none"], said.append)
    assert said == [f"{tmp_path}/none: No such file or directory\n"]


def test_limits_come_from_new_and_old_names() -> None:
    limits = limited("--max-time=7", "--tx-rate=3", "--forced-shutdown=50%", "--report-checkpoints=9,4")
    assert (limits.time_s, limits.rate_per_s, limits.grace_s, limits.checkpoints_s) == (7, 3.0, 3, (4, 9))


def test_rates_and_percentiles_can_have_decimals() -> None:
    limits = limited("--rate=2.5", "--percentiles=50,99.9")
    assert (limits.rate_per_s, limits.percentiles) == (2.5, (50.0, 99.9))


@pytest.mark.parametrize(
    "argument",
    ["--percentiles=0", "--percentiles=101", "--percentiles=x", "--warmup=-1", "--rate=10000001"],
)
def test_values_that_sysbench_does_not_have_are_checked(argument: str) -> None:
    with pytest.raises(ComplaintError, match="Invalid value for --"):
        limited(argument)


@given(st.integers(0, 2**40), st.sampled_from("kKmMgGtTpPeEzZyY"))
def test_sizes_have_suffixes_of_powers_of_1024(number: int, suffix: str) -> None:
    assert size_of(f"{number}{suffix}") == number * 1024 ** ("KMGTPEZY".index(suffix.upper()) + 1)
    assert size_of(str(number)) == number
    assert size_of(f"{number}?") == 0


@given(st.text())
def test_any_text_is_a_value_or_a_complaint(text: str) -> None:
    settings = Settings(lambda _: None)
    for group in GROUPS:
        settings.define(group.options)
    settings.assign("threads", text, "int")
    said = ""
    try:
        assert isinstance(settings.value("threads"), int)
    except ComplaintError as complaint:
        said = complaint.message
    assert not said or text in said
    settings.assign("rand-pareto-h", text, "double")
    assert isinstance(settings.value("rand-pareto-h"), float)


def test_the_version_needs_no_library_that_is_slow_to_load() -> None:
    code = (
        "import sys; from loadstone.personalities import sysbench; "
        "sysbench.main(['--version'], print, print); "
        "sys.exit(sorted({'loadstone._core', 'psycopg', 'numpy', 'pyarrow', 'msgspec', 'json', 'difflib'} "
        "& sys.modules.keys()))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stderr.strip() in ("", "[]"), ran.stderr

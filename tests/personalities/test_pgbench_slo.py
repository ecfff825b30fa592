"""`loadstone pgbench --slo`: its options, what ends a search, and a real server."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.errors import ExitCode
from loadstone.personalities import pgbench
from loadstone.personalities.pgbench.complaint import ComplaintError
from loadstone.personalities.pgbench.options import Options, parse
from loadstone.slo.limits import limit
from loadstone.workload.calibrate import null_server

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from support.sandbox import Database

BOTH = "exclude each other"
OWN = ("-n", "-f", "own.sql", "-c", "2")


def parsed(text: str) -> Options:
    return parse(text.split(), {})


def test_the_options_of_a_search_have_their_values() -> None:
    options = parsed("--slo p99=20ms --slo=p99.9=0.1s --slo-errors=0.5% --slo-require 500/s -T 7 -c 4")
    assert options.slo.limits == (limit("p99=20ms"), limit("p99.9=0.1s"))
    assert options.slo.errors == pytest.approx(0.005)
    assert (options.slo.required_per_s, options.slo.most, options.duration_s) == (500.0, 25, 7)
    assert parsed("--slo p99=20ms --slo-max-trials=9").slo.most == 9
    assert parsed("--slo p99=20ms --warmup 2").duration_s == 30, "without -T as long as `loadstone slo`"
    assert not parsed("-T 5").slo.limits


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--slo p99", "'p99' is not a limit such as p99=20ms or p99.9=0.1s"),
        ("--slo-require 5", "there is no limit to keep"),
        ("--slo p99=1s --slo-require fast", "'fast' is not a rate above 0, such as 20000/s"),
        ("--slo p99=1s --slo-errors 100%", "'100%' is not a percentage above 0 and below 100, such as 0.1%"),
        ("--slo p99=1s --slo-max-trials 7", "--slo-max-trials must be in range 8..200"),
        ("--slo p99=1s -R 5", f"--slo and a rate (-R) {BOTH}"),
        ("--slo p99=1s -R 1..5/3s", f"--slo and a rate (-R) {BOTH}"),
        ("--slo p99=1s -t 5", f"--slo and a number of transactions (-t) {BOTH}"),
        ("--slo p99=1s -L 5", f"--slo and a latency limit (-L) {BOTH}"),
        ("--slo p99=1s --ramp-up=1", f"--slo and a ramp-up (--ramp-up) {BOTH}"),
        ("--slo p99=1s -P 1", f"--slo and progress (-P) {BOTH}"),
        ("--slo p99=1s -r", f"--slo and latencies of statements (-r) {BOTH}"),
        ("--slo p99=1s -l", f"--slo and a log of transactions (-l) {BOTH}"),
        ("--slo p99=1s --out=x", f"--slo and --out {BOTH}"),
        ("--slo p99=1s --hosts=local:2", f"--slo and --hosts {BOTH}"),
        ("--slo p99=1s --exit-on-abort", f"--slo and --exit-on-abort {BOTH}"),
        ("--slo p99=1s -i", "some of the specified options cannot be used in initialization (-i) mode"),
    ],
)
def test_what_contradicts_a_search_is_refused(arguments: str, words: str) -> None:
    with pytest.raises(ComplaintError) as caught:
        parsed(arguments)
    assert caught.value.message == words


def test_no_option_of_pgbench_is_shortened_differently() -> None:
    with pytest.raises(ComplaintError, match="'--s' is ambiguous; possibilities: '--scale'") as caught:
        parsed("--s 5")
    assert "--slo" not in caught.value.message


def searched(
    script: str, *more: str, err: Callable[[str], object], reach: Sequence[str] = ()
) -> tuple[int, str]:
    """Search on the built-in server, or on that of `reach`; returns exit status and standard output."""
    out: list[str] = []
    Path("own.sql").write_text(script, encoding="utf-8")
    with null_server(20, service={"time": {"kind": "constant", "ms": 1.0}}) as (_, at):
        server = reach or ("-h", at.host, "-p", str(at.port), "-U", at.user, at.database)
        given = (*OWN, "--slo", "p90=1s", *more, *server)
        return pgbench.main(given, out.append, err), "".join(out)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_aborted_clients_end_the_search(tmp_path: Path) -> None:
    err: list[str] = []
    code, out = searched("\\set x 1 / 0\nselect :x;\n", "-T", "1", "--report", "kept", err=err.append)
    assert code == 2
    assert "clients were aborted in trial 1" in "".join(err)
    assert "not decided" in out
    assert '"state": "failed"' in (tmp_path / "kept" / "slo.json").read_text()


@pytest.mark.slow
def test_ctrl_c_leaves_what_was_found() -> None:
    def say(text: str) -> None:
        if "trial 2, short" in text:
            os.kill(os.getpid(), signal.SIGINT)

    code, out = searched("select 1;\n", "-T", "1", err=say)
    assert code == 130
    assert "p90=1s: not decided (stopped by SIGINT)\n" in out
    assert "number of trials: 2, of which 0 decide\n" in out


def test_without_a_server_nothing_is_left(tmp_path: Path) -> None:
    err: list[str] = []
    reach = ("-h", "/nonexistent", "base")
    code, out = searched("select 1;\n", "--report", "deep/kept", err=err.append, reach=reach)
    assert (code, out) == (1, "")
    assert "could not create connection for setup" in "".join(err)
    assert not (tmp_path / "deep").exists()


@pytest.mark.slow
def test_a_real_server_keeps_all_that_was_not_named(database: Database) -> None:
    """Which rate is found depends on the machine; that nothing else is touched does not."""
    database.execute("create table others as select 1 as one")
    database.execute("create table named (id bigserial primary key, at timestamptz)")
    out: list[str] = []
    err: list[str] = []
    Path("own.sql").write_text("insert into named (at) values (now());\n", encoding="utf-8")
    given = [*OWN, "-T", "1", "--slo", "p90=30s", "--slo-require", "1/s", "--slo-max-trials", "18"]
    code = pgbench.main((*given, database.url), out.append, err.append)
    assert code in {ExitCode.OK, ExitCode.UNDECIDED}, (out, err)
    assert "p90=30s" in "".join(out)
    assert "Nothing was restored between trials" in "".join(out)
    assert database.value("select count(*) from named") > 100
    assert database.value("select count(*) from others") == 1
    tables = "select string_agg(tablename, ',' order by tablename) from pg_tables where schemaname = 'public'"
    assert database.value(tables) == "named,others"

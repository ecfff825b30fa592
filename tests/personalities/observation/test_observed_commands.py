"""`--watch`, `--live` and `--openmetrics` of pgbench, sysbench, tsbs load and tsbs run-queries."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from support.exposition_server import Reply, exposition
from support.tsbs_data import END_NS, SCALE, START_NS, into_postgres
from support.watchers import BUSY, Follower, moving

from loadstone.live.endpoints import LiveOptions
from loadstone.personalities import pgbench, sysbench, tsbs
from loadstone.personalities.observation.addresses import served_at
from loadstone.personalities.pgbench.options import parse as parse_pgbench
from loadstone.personalities.pgbench.server import Address
from loadstone.personalities.sysbench.options import parse as sysbench_options
from loadstone.personalities.tsbs import load_flags, run_queries
from loadstone.personalities.tsbs.flags import parse
from loadstone.personalities.tsbs.observed import observation_of
from loadstone.workload.tsbs.queries import QuerySpec, generate, gob

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.sandbox import Database

MACHINE = rf"server's machine: {BUSY} \(highest second .* %\), iowait 0 %"
BOTH = ("--live", "--openmetrics=0")


class Command:
    """One command line against a database, and what it printed."""

    def __init__(self, main: Callable[..., int], *arguments: str, counts: tuple[str, str]) -> None:
        self.arguments = arguments
        self.counts = counts
        """A count of the page, and where the command prints it at its end."""
        self.out: list[str] = []
        self.follower = Follower()
        self._main = main

    def run(self, *more: str) -> int:
        given = (*self.arguments, *more)
        return self.follower.follow(lambda: self._main(given, self.out.append, self.follower.write))

    @property
    def printed(self) -> str:
        return "".join(self.out)

    @property
    def noted(self) -> str:
        return "".join(self.follower.err)


def of_pgbench(database: Database, folder: Path) -> Command:
    (folder / "one.sql").write_text("select 1;\n")
    counts = ("done", r"actually processed: (\d+)")
    return Command(pgbench.main, "-n", "-f", str(folder / "one.sql"), "-T", "2", database.url, counts=counts)


def of_sysbench(database: Database, folder: Path) -> Command:
    (folder / "own.lua").write_text(
        "function thread_init() con = sysbench.sql.driver():connect() end\n"
        "function event() con:query('select 1') end\n"
    )
    there = database.server.connection
    where = ("--db-driver=pgsql", f"--pgsql-host={there.host}", f"--pgsql-port={there.port}")
    more = (f"--pgsql-user={there.user}", f"--pgsql-db={database.name}", "--time=2")
    counts = ("done", r"total number of events: +(\d+)")
    return Command(sysbench.main, *where, *more, str(folder / "own.lua"), "run", counts=counts)


def of_load(database: Database, _: Path) -> Command:
    data = ("--use-case=cpu-only", "--seed=1", "--scale=10", "--batch-size=100", "--limit=900", "--rate=4")
    counts = ("rows", r"loaded (\d+) rows")
    return Command(tsbs.main, "load", "--target", database.url, *data, counts=counts)


def of_queries(database: Database, folder: Path) -> Command:
    into_postgres(database, "cpu-only")
    path = folder / "queries"
    with path.open("wb") as file:
        spec = QuerySpec("cpu-only", "single-groupby-1-1-1", SCALE, START_NS, END_NS, 1, 20)
        gob.write(generate(spec), file)
    place = ("--file", str(path), "--target", database.url)
    counts = ("done", r"Run complete after (\d+) queries")
    return Command(tsbs.main, "run-queries", *place, "--duration=2s", "--print-interval=0", counts=counts)


COMMANDS = [of_pgbench, of_sysbench, of_load, of_queries]


@pytest.fixture(params=COMMANDS, ids=lambda make: make.__name__.removeprefix("of_"))
def command(request: pytest.FixtureRequest, database: Database, tmp_path: Path) -> Command:
    made: Command = request.param(database, tmp_path)
    return made


def test_the_machine_is_shown_below_the_figures_and_the_drive_while_it_goes_on(command: Command) -> None:
    with exposition("") as served:
        served.replies = moving
        assert command.run(f"--watch={served.url}", *BOTH) == 0, command.noted
    assert re.search(MACHINE, command.printed), command.printed
    assert f"watched by {served.url}: " in command.printed
    follower = command.follower
    assert sum(interval["rate_per_s"] > 0 for interval in follower.intervals) >= 2
    assert follower.last["now"]["ended"] in ("complete (exit code 0)", "the load is complete")
    assert (follower.last["now"]["phases_ended"], follower.last["now"]["phases"]) == (1, 1)
    name, pattern = command.counts
    assert [follower.last["total"][name]] == [int(count) for count in re.findall(pattern, command.printed)]
    (place,) = {tuple(interval["place"].values()) for interval in follower.intervals}
    assert re.search(r'loadstone_transactions_total\{.*outcome="done".*\} [1-9]', follower.metrics)
    assert f'phase="{place[2]}"' in follower.metrics


def test_the_process_that_leads_to_the_server_is_there_while_it_is_looked_for(database: Database) -> None:
    """Among several servers, the right one is found by the parents of this process."""
    address = Address(replace(database.server.tcp_connection, database=database.name))
    with served_at(address).backend() as backend:
        assert backend is not None
        assert database.value(f"select count(*) from pg_stat_activity where pid = {backend}") == 1


def test_what_cannot_watch_is_refused_before_anything_is_touched(command: Command) -> None:
    with exposition(Reply(401)) as served:
        assert command.run(f"--watch={served.url}") == 1
    assert "the token or the password is wrong, or missing" in command.noted + command.printed
    assert "tps" not in command.printed
    assert "Summary:" not in command.printed


def test_a_port_of_the_page_that_is_taken_is_refused(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert command.run("--live", f"--live-port={taken.getsockname()[1]}") == 1
    assert "Address already in use" in command.noted + command.printed


def test_a_port_without_a_page_is_refused(command: Command) -> None:
    assert command.run("--live-port=8080") == 1
    assert "--live-port is the port of the page of --live" in command.noted + command.printed


@pytest.mark.parametrize("make", [of_pgbench, of_sysbench])
def test_a_report_has_the_machine_in_place_of_the_lines(
    database: Database, tmp_path: Path, make: Callable[[Database, Path], Command]
) -> None:
    command = make(database, tmp_path)
    with exposition("") as served:
        served.replies = moving
        assert command.run(f"--watch={served.url}", f"--report={tmp_path / 'run'}") == 0, command.noted
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    (watch,) = summary["targets"][0]["resources"]["watch"]
    assert (watch["source"], watch["missed"]) == (served.url, 0)
    (phase,) = summary["phases"]
    assert phase["usage"]["machine_cpu"] == pytest.approx(0.25, abs=0.05)
    assert "The server&#39;s machine beside ours" in (tmp_path / "run" / "report.html").read_text()
    assert "server's machine:" not in command.printed


def test_an_exporter_that_goes_away_is_said_and_missed(database: Database, tmp_path: Path) -> None:
    command = of_pgbench(database, tmp_path)
    with exposition("") as served:
        left = iter(range(5))
        served.replies = lambda: moving() if next(left, None) is not None else Reply(503)
        assert command.run(f"--watch={served.url}") == 0, command.noted
    assert "pgbench: warning: The counters of " in command.noted
    assert re.search(r"watched by .*: \d+ samples, [1-9] missed", command.printed)


def test_several_machines_are_separated_by_commas_or_given_one_by_one() -> None:
    urls = ["http://a:9100/metrics", "pg18=ssh://me@b"]
    for flags in (load_flags.FLAGS, run_queries.FLAGS):
        values = parse("tsbs", flags, [f"--watch={','.join(urls)}", "--live", "--live-port", "8080"])
        seen = observation_of(values)
        assert (seen.watch, seen.live_options) == (urls, LiveOptions(page=True, port=8080))
    settings = sysbench_options([f"--watch={','.join(urls)}"], pytest.fail).settings
    assert settings.listed("watch") == urls
    pgbench_options = parse_pgbench([f"--watch={urls[0]}", "--watch", urls[1]], {})
    assert (pgbench_options.seen.watch, pgbench_options.seen.given) == (urls, ["--watch"])


def test_initialization_takes_none_of_them(database: Database) -> None:
    command = Command(pgbench.main, "-i", database.url, counts=("", ""))
    assert command.run("--live") == 1
    assert "cannot be used in initialization" in command.noted


def test_several_hosts_of_queries_have_no_page(database: Database, tmp_path: Path) -> None:
    command = of_queries(database, tmp_path)
    command.arguments = (*command.arguments[:3], "--hosts=a,b")
    assert command.run("--live") == 1
    assert "several --hosts have one each" in command.noted


def test_a_load_without_a_server_is_not_followed(database: Database, tmp_path: Path) -> None:
    assert of_load(database, tmp_path).run("--do-load=false", "--live") == 1


def test_a_search_shows_each_trial_and_keeps_what_its_machine_did(database: Database, tmp_path: Path) -> None:
    command = of_pgbench(database, tmp_path)
    shown = command.follower.write

    def write(text: str) -> None:
        shown(text)
        if "trial 2, short" in text:
            os.kill(os.getpid(), signal.SIGINT)

    command.follower.write = write  # type: ignore[method-assign]
    folder = tmp_path / "kept"
    with exposition("") as served:
        served.replies = moving
        code = command.run("-T", "3", "--slo", "p90=1s", f"--watch={served.url}", f"--report={folder}", *BOTH)
    assert code == 130, command.noted
    assert re.search(r"trial 1, closed loop: [^|]*one\.sql", command.follower.doing)
    assert re.search(r"trial 2, short, [\d,]+/s offered: [^|]*one\.sql", command.follower.doing)
    assert command.follower.last["now"]["ended"] == "not complete (exit code 130)"
    assert 'loadstone_trial{arm="",block="",kind=' in command.follower.metrics
    assert re.search(rf"pgbench: server's machine: {BUSY}", command.noted)
    for number in ("001", "002"):
        lines = (folder / "trials" / number / "monitor.jsonl").read_text().splitlines()
        assert any(json.loads(line)["watch"] for line in lines)

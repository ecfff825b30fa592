"""Queries from several load hosts: the list dealt out, answers put together, as one host has them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from support.load_hosts import Quiet, agents, kill_agent, kill_at, share_cluster

from loadstone.cli.group import loadstone
from loadstone.errors import LoadstoneError
from loadstone.hosts import joint as joints
from loadstone.hosts.cluster import client_of
from loadstone.hosts.joint import JointDrive
from loadstone.hosts.places import Places
from loadstone.personalities import tsbs
from loadstone.run import Request, execute
from loadstone.scenario.scenario import find_scenario
from loadstone.workload.tsbs.queries import Query, gob

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.sandbox import Database

pytestmark = pytest.mark.filterwarnings("default")  # what Dask and its libraries warn of is not ours
HOSTS = (None, "local:1", "local:2", "local:3")
NOTED = """
create table noted (n int);
create function note(n int) returns int language sql as 'insert into noted values (n); select n';
"""
SCENARIO = """
id = "asked"
title = "Asked by several hosts"
version = "1"
why = "Queries that are split."
[[phase]]
id = "make"
kind = "sql"
title = "Made"
setup = ["create table loadstone.t as select n, n % 7 as k from generate_series(1, 1000) n"]
[[phase]]
id = "turn"
kind = "queries"
title = "One after the other"
queries.cold = false
queries.warm_runs = 2
queries.statements = [{ name = "all", sql = "select count(*), sum(n) from t" }]
[[phase]]
id = "load"
kind = "queries"
title = "Many clients"
queries.clients = 5
queries.duration_s = SECONDS
queries.distinct = 20
queries.draws = [{ name = "k", least = 0, most = 6 }]
queries.statements = [
    { name = "some", sql = "select sum(n) from t where k = :k" },
    { name = "slow", sql = "select k, pg_sleep(0.002) from t where n = 9" },
]
"""


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with client_of(Places("local", local=3)) as client:
        yield client


@pytest.fixture(autouse=True)
def _one_cluster(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    share_cluster(client, monkeypatch)


def written(path: Path, texts: list[str]) -> Path:
    with path.open("wb") as file:
        gob.write([Query("mine", "mine", "t", text) for text in texts], file)
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    out: list[str] = []
    err: list[str] = []
    code = tsbs.main(["run-queries", *map(str, arguments)], out.append, err.append)
    return code, "".join(out), "".join(err)


def on(hosts: str | None) -> list[str]:
    return [] if hosts is None else [f"--hosts={hosts}"]


@pytest.mark.parametrize("more", [(), ("--prewarm-queries",), ("--rate=400",)])
def test_every_query_of_the_list_is_asked_once_by_some_host(
    database: Database, tmp_path: Path, more: tuple[str, ...]
) -> None:
    database.execute(NOTED)
    # Some texts come twice, and their answers must agree.
    file = written(tmp_path / "q.gob", [f"select note({n % 17})" for n in range(25)])
    times = 2 if "--prewarm-queries" in more else 1
    found = []
    for hosts in HOSTS:
        answers, results = tmp_path / f"{hosts}.answers", tmp_path / f"{hosts}.results"
        code, out, err = run(
            "--file", file, f"--target={database.url}", "--workers=5", "--burn-in=4", "--max-queries=20",
            f"--answers={answers}", f"--results-file={results}", "--print-interval=0", *more, *on(hosts),
        )  # fmt: skip
        assert code == 0, out + err
        with database.connect() as connection:
            asked = connection.execute("select n from noted order by n").fetchall()
            connection.execute("truncate noted")
        counts = re.findall(r"(\w+ queries) *:\n.*count: (\d+)\n", out)
        burnt = re.findall(r"burn-in complete after .*\n", err)
        assert (" load hosts " in err) is (hosts is not None)
        found.append(([n for (n,) in asked], json.loads(answers.read_text()), counts, burnt))
        totals = json.loads(results.read_text())["Totals"]
        assert (totals["burnIn"], totals["limit"]) == (4, 20)
        assert f"Run complete after {20 - 4 // times} queries with 5 workers" in out
    texts, answers, _, _ = found[0]
    assert texts == sorted(n % 17 for n in range(20) for _ in range(times))
    assert [entry["query"] for entry in answers["answers"]] == list(range(17))
    assert found[1] == found[2] == found[3] == found[0]
    assert agents() == []


def test_reports_between_come_from_the_merged_records(database: Database, tmp_path: Path) -> None:
    file = written(tmp_path / "q.gob", ["select pg_sleep(0.02)"] * 60)
    code, _, err = run(
        "--file", file, f"--target={database.url}", "--workers=2", "--print-interval=10", "--hosts=local:2"
    )
    assert code == 0, err
    counts = [int(count) for count in re.findall(r"^After (\d+) queries with 2 workers:", err, re.MULTILINE)]
    assert counts == sorted(set(counts))
    assert counts
    assert all(10 <= count <= 60 for count in counts)
    assert "reports of --print-interval come when all load hosts have ended" in err


def test_answers_that_differ_between_hosts_are_wrong(database: Database, tmp_path: Path) -> None:
    file = written(tmp_path / "q.gob", ["select random() as r"] * 2)
    code, out, _ = run("--file", file, f"--target={database.url}", "--workers=2", "--hosts=local:2")
    assert code == 3
    assert "wrong: answer (x 1): query 0 returned another answer than before" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target=duckdb:FOLDER/d.duckdb"], "the clients of DuckDB go through a library of one process"),
        (["--target=URL", "--show-explain"], "--hosts=local:3 and --show-explain exclude each other"),
        (["--target=URL", "--debug=1"], "--hosts=local:3 and --debug exclude each other"),
        (["--target=URL", "--workers=2"], "2 clients cannot be split over 3 load hosts"),
        (["--target=URL", "--hosts=local:x"], "needs a number of processes"),
    ],
)
def test_what_hosts_cannot_do_is_refused_before_anything_is_touched(
    database: Database, tmp_path: Path, arguments: list[str], message: str
) -> None:
    database.execute(NOTED)
    file = written(tmp_path / "q.gob", ["select note(1)"])
    filled = [one.replace("URL", database.url).replace("FOLDER", str(tmp_path)) for one in arguments]
    code, out, err = run("--file", file, "--workers=3", "--hosts=local:3", *filled)
    assert (code, out) == (1, "")
    assert message in err
    assert database.value("select count(*) from noted") == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["q.gob"]


@pytest.mark.parametrize(
    ("owner", "name", "code"),
    [(joints, "delivered", 1), (JointDrive, "look_ready", 1), (JointDrive, "look", 2)],
)
def test_a_host_that_is_killed_ends_the_queries(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, code: int
) -> None:
    kill_at(monkeypatch, owner, name, kill_agent)
    folder = tmp_path / "out"
    file = written(tmp_path / "q.gob", ["select pg_sleep(0.01)"])
    found, out, err = run(
        "--file", file, f"--target={database.url}", "--workers=2", "--duration=60s", f"--out={folder}",
        "--hosts=local:2",
    )  # fmt: skip
    assert found == code, out + err
    assert re.search(r"load host local-\d was lost", err)
    assert ("Nothing was measured" in err) is (code == 1)
    assert (folder / "hosts.json").exists() is (code == 2)
    if code == 2:
        account = json.loads((folder / "drive.json").read_text())
        assert account["state"] == "aborted"
        assert len(account["lost_hosts"]) == 1
    assert agents() == []


def scenario(folder: Path, seconds: float) -> Path:
    folder.mkdir()
    (folder / "scenario.toml").write_text(SCENARIO.replace("SECONDS", str(seconds)))
    return folder


def drive(run: Path, phase: str) -> dict[str, Any]:
    (path,) = run.glob(f"targets/*/phases/*{phase}/drive.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.slow
def test_a_run_asks_plain_queries_from_all_hosts_and_says_what_one_host_does(
    database: Database, tmp_path: Path
) -> None:
    folder = scenario(tmp_path / "asked", 1.2)
    accounts = []
    here, out = tmp_path / "here", tmp_path / "hosts"
    for place, more in ((here, []), (out, ["--hosts", "local:3"])):
        arguments = ["run", str(folder), "--target", database.url, "--out", str(place), "--no-calibrate"]
        done = CliRunner().invoke(loadstone, [*arguments, *more])
        assert done.exit_code == 0, done.output
        accounts.append([drive(place, phase) for phase in ("turn", "load")])
    (turn, load), (turn_of_hosts, load_of_hosts) = accounts
    assert turn_of_hosts["counts"] == turn["counts"]
    assert "come from this host, not from the load hosts" in (out / "events.jsonl").read_text()
    for account in (load, load_of_hosts):
        assert account["counts"]["done"] > 40
        assert account["counts"]["failed"] == 0
        assert account["plain_queries"]["clients"] == account["clients"] == 5
        assert (
            sum(label["counts"]["done"] for label in account["queries"]["labels"])
            == account["counts"]["done"]
        )
        assert all(label["rows"] == label["counts"]["done"] for label in account["queries"]["labels"])
    assert load_of_hosts["queries"]["answers"] == load["queries"]["answers"]
    assert load_of_hosts["threads"] == 3
    assert "Load hosts" in (out / "report.html").read_text()


@pytest.mark.slow
def test_a_run_that_loses_a_host_keeps_what_was_asked(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_at(monkeypatch, JointDrive, "look", kill_agent)
    out = tmp_path / "run"
    request = Request(
        scenarios=[find_scenario(str(scenario(tmp_path / "asked", 60)))], targets=[database.url],
        size="tiny", out=out, hosts="local:2", calibrate=False,
    )  # fmt: skip
    assert execute(request, Quiet()).exit_code == 2
    assert drive(out, "load")["lost_hosts"]
    (phase,) = out.glob("targets/*/phases/*load/phase.json")
    assert json.loads(phase.read_text())["state"] == "failed"


def test_a_run_that_cannot_be_split_is_refused(tmp_path: Path) -> None:
    folder = scenario(tmp_path / "asked", 1)
    for target, hosts, message in (
        (f"duckdb:{tmp_path}/d", "local:2", "the clients of DuckDB go through a library"),
        ("postgres://nobody@127.0.0.1:1/none", "local:65", "number of processes"),
    ):
        request = Request(
            scenarios=[find_scenario(str(folder))], targets=[target], size="tiny", hosts=hosts,
            out=tmp_path / "run",
        )  # fmt: skip
        with pytest.raises(LoadstoneError, match=message):
            execute(request, Quiet())
    assert not (tmp_path / "run").exists()
    assert not (tmp_path / "d").exists()

"""Loads on several hosts: what one host would have loaded, whoever loads it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.load_hosts import Quiet, agents, kill_agent, kill_at, share_cluster

from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.hosts.cluster import client_of
from loadstone.hosts.joint import JointDrive
from loadstone.hosts.places import Places
from loadstone.personalities.tsbs.load import main
from loadstone.run import Request, execute
from loadstone.scenario.scenario import find_scenario

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.sandbox import Database

pytestmark = pytest.mark.filterwarnings("default")  # what Dask and its libraries warn of is not ours
NATIVE = (
    "--native", "--use-case=iot", "--seed=7", "--scale=30", "--timestamp-end=2016-01-01T01:00:00Z",
    "--replace", "--batch-size=700", "--workers=4", "--use-hypertable=false", "--chunk-time=15m",
)  # fmt: skip
ROWS = 2 * 30 * 360
BATCHES = -(-ROWS // 700)
SCENARIO = """
id = "stepped"
title = "Stepped"
version = "1"
why = "A load that is split."
[[phase]]
id = "fill"
kind = "load"
title = "Filled"
data.set = "import"
data.rows = 9500
data.seed = 3
table.name = "filled"
table.index_when = "after"
table.indexes = "1"
step_rows = {step_rows}
batch_rows = 1000
workers = 3
"""


def _quiet(_: str) -> None:
    """Nobody reads it."""


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with client_of(Places("local", local=3)) as client:
        yield client


@pytest.fixture(autouse=True)
def one_cluster(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--hosts local:N` takes workers of the tests' cluster."""
    if "database" in request.fixturenames:
        share_cluster(request.getfixturevalue("client"), monkeypatch)


def load(database: Database, out: Path, *more: str) -> tuple[dict[str, Any], str]:
    err: list[str] = []
    assert main([*NATIVE, f"--target={database.url}", f"--out={out}", *more], _quiet, err.append) == 0
    account: dict[str, Any] = json.loads((out / "drive.json").read_text())
    return account, "".join(err)


def loaded_of(account: dict[str, Any]) -> dict[str, Any]:
    assert (account["state"], account["reason"]) == ("complete", None)
    loaded = account["load"]
    assert loaded["verified"] is True
    assert loaded["committed"] is not None
    same = (
        "rows", "metrics", "tags_rows", "tags_total", "batches", "skipped_batches", "unsent_batches",
        "failed_batches", "in_doubt_batches", "tables", "made_batches", "resumed", "steps",
    )  # fmt: skip
    return {name: loaded[name] for name in same} | {
        "acknowledged": account["load"]["committed"],
        "exhausted": loaded["source"]["exhausted"],
    }


@pytest.mark.parametrize("more", [(), ("--in-table-partition-tag", "--method=insert"), ("--rate=400",)])
def test_any_number_of_hosts_loads_the_same(
    database: Database, tmp_path: Path, more: tuple[str, ...]
) -> None:
    found = []
    for hosts in ([], ["--hosts=local:1"], ["--hosts=local:3"]):
        out = tmp_path / (hosts[0] if hosts else "alone")
        account, said = load(database, out, *more, *hosts)
        found.append(loaded_of(account))
        assert ("load hosts began within" in said or "load hosts may have begun" in said) is bool(hosts)
        assert account["clients"] == 4
        series = [json.loads(line) for line in (out / "series.jsonl").read_text().splitlines()]
        assert sum(row["rows"] for row in series) == ROWS
        marks = [json.loads(line) for line in (out / "sent.jsonl").read_text().splitlines()]
        times = [mark["time_us"] for mark in marks]
        assert times == sorted(set(times))
        assert account["load"]["marks"] == len(marks) > 0
        if "--in-table-partition-tag" in more:
            assert database.value("select count(*) from readings where name is null") == 0
    assert found[1] == found[2] == found[0]
    assert (found[0]["rows"], found[0]["batches"]) == (ROWS, BATCHES)
    parts = [
        json.loads((tmp_path / "--hosts=local:3" / "hosts" / f"local-{host}" / "drive.json").read_text())
        for host in range(3)
    ]
    # Batch k is host k mod 3's: so rows come in the order of time from all of them.
    assert [part["load"]["batches"] for part in parts] == [len(range(h, BATCHES, 3)) for h in range(3)]
    assert parts[1]["load"]["committed"][:2] == [[1, 1], [4, 4]]
    assert sum(part["load"]["rows"] for part in parts) == ROWS
    assert agents() == []


def test_a_lost_host_fails_the_load_and_what_is_left_goes_on_from_any_number_of_hosts(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_loading(joint: JointDrive) -> bool:
        return all(share.progress.get("rows") for share in joint.shares)

    with monkeypatch.context() as patched:
        kill_at(patched, JointDrive, "look", kill_agent, when=is_loading)
        with pytest.raises(RunFailedError, match=r"load host local-\d was lost.*signal 9") as failed:
            load(database, tmp_path / "first", "--rate=5", "--hosts=local:2")
    assert failed.value.exit_code == 2
    account = json.loads((tmp_path / "first" / "drive.json").read_text())
    (lost,) = account["lost_hosts"]
    loaded = account["load"]
    assert account["state"] == "aborted"
    assert loaded["verified"] is None
    assert any(
        f"{lost} was lost: the batches that it had sent last are in doubt" in n for n in loaded["notes"]
    )
    series = [json.loads(line) for line in (tmp_path / "first" / "series.jsonl").read_text().splitlines()]
    assert 0 < sum(row["rows"] for row in series) <= loaded["committed"]["rows"] < ROWS
    arguments = [argument for argument in NATIVE if argument != "--replace"]
    out = [f"--target={database.url}", "--resume", f"--out={tmp_path / 'second'}", "--hosts=local:3"]
    assert main([*arguments, *out], _quiet, _quiet) == 0
    account = json.loads((tmp_path / "second" / "drive.json").read_text())
    assert account["load"]["verified"] is True
    assert account["load"]["resumed"] == loaded["committed"]
    assert account["load"]["resumed"]["rows"] + account["load"]["rows"] == ROWS
    assert agents() == []


def scenario(folder: Path, step_rows: int) -> Path:
    folder.mkdir()
    (folder / "scenario.toml").write_text(SCENARIO.format(step_rows=step_rows))
    return folder


@pytest.mark.parametrize("step_rows", [0, 2500, 1000])
def test_a_phase_of_load_has_the_steps_of_one_host(
    database: Database, tmp_path: Path, step_rows: int
) -> None:
    folder = scenario(tmp_path / "stepped", step_rows)
    found = []
    for hosts in (None, "local:1", "local:3"):
        out = tmp_path / f"run-{hosts}"
        request = Request(
            scenarios=[find_scenario(str(folder))], targets=[database.url], size="tiny", out=out,
            hosts=hosts, calibrate=False, replace=True,
        )  # fmt: skip
        assert execute(request, Quiet()).exit_code == 0
        (phase,) = out.glob("targets/*/phases/*fill")
        steps = [json.loads(line) for line in (phase / "steps.jsonl").read_text().splitlines()]
        account = json.loads((phase / "drive.json").read_text())
        assert [step["seconds"] > 0 for step in steps] == [True] * len(steps)
        ends = [step["end_ns"] for step in steps]
        assert all(step["start_ns"] >= end for step, end in zip(steps[1:], ends, strict=False))
        assert [step["rows"] for step in account["load"]["steps"]] == [step["rows"] for step in steps]
        assert all(step["client_cpu_s"] is None for step in steps) is (hosts is not None)
        assert account["load"]["verified"] is True
        assert account["load"]["cpu"]["client_s"] > 0
        assert account["load"]["indexes"][0]["when"] == "after"
        assert (phase / "hosts.json").exists() is (hosts is not None)
        found.append([(step["step"], step["rows"], step["state"]) for step in steps])
    assert found[1] == found[2] == found[0]
    assert sum(rows for _, rows, _ in found[0]) == 9500
    assert agents() == []


def test_a_host_that_is_lost_between_two_steps_fails_the_load(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = kill_at(monkeypatch, JointDrive, "proceed", kill_agent)
    out = tmp_path / "run"
    request = Request(
        scenarios=[find_scenario(str(scenario(tmp_path / "stepped", 2500)))], targets=[database.url],
        size="tiny", out=out, hosts="local:2", calibrate=False, replace=True,
    )  # fmt: skip
    assert execute(request, Quiet()).exit_code == 2
    assert killed == ["proceed"]
    (phase,) = out.glob("targets/*/phases/*fill")
    account = json.loads((phase / "drive.json").read_text())
    assert (account["state"], len(account["lost_hosts"])) == ("aborted", 1)
    steps = [json.loads(line) for line in (phase / "steps.jsonl").read_text().splitlines()]
    assert (steps[0]["rows"], steps[0]["state"]) == (2500, "complete")
    assert all(step["state"] == "failed" for step in steps[1:])
    assert account["load"]["committed"]["rows"] >= 2500
    assert json.loads((phase / "phase.json").read_text())["state"] == "failed"
    assert agents() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target=duckdb:",), "the clients of DuckDB go through a library"),
        (("--native=false",), "one random stream"),
        (("--hash-workers",), "rows that are hashed to workers"),
        (("--do-load=false",), "exclude each other"),
        (("--hosts=nowhere",), "does not name load hosts"),
    ],
)
def test_what_hosts_cannot_share_is_refused_before_anything_is_touched(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LoadstoneError, match=message):
        main([*NATIVE, "--hosts=local:2", *arguments], _quiet, _quiet)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "target", "message"),
    [
        ("big-transaction", "pg", "long transactions are made by one host"),
        ("tsbs-iot", "pg", "TSBS's own data comes from one random stream"),
    ],
)
def test_a_phase_that_hosts_cannot_share_is_named(
    name: str, target: str, message: str, tmp_path: Path
) -> None:
    request = Request([find_scenario(name)], [target], "tiny", out=tmp_path / "run", hosts="local:2")
    with pytest.raises(LoadstoneError, match=f"{name}: phase '.*': --hosts: {message}"):
        execute(request, Quiet())
    assert list(tmp_path.iterdir()) == []

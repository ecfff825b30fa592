"""Several load hosts: one drive on agents of a Dask cluster in this process, against a real server."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from support.load_hosts import Quiet, agents, fleet_of, kill_agent, kill_at, share_cluster, started

from loadstone import model
from loadstone.cli.group import loadstone
from loadstone.errors import HostLostError, LoadstoneError
from loadstone.hosts import cluster
from loadstone.hosts import fleet as fleets
from loadstone.hosts.cluster import client_of
from loadstone.hosts.joint import JointDrive
from loadstone.hosts.places import Places, parse_hosts
from loadstone.personalities import pgbench
from loadstone.run import Request, execute
from loadstone.scenario.scenario import find_scenario
from loadstone.summary.histograms import read_log
from loadstone.workload.calibrate import hosts_needed, null_server
from loadstone.workload.drive import drive_document, perform

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.sandbox import Database

pytestmark = [
    pytest.mark.slow,  # most tests start processes
    pytest.mark.filterwarnings("default"),  # what Dask and its libraries warn of is not ours
]
HOSTS = 3
CHOICES = "\\set value random(1, 1000000000)\ninsert into choices values (:client_id, :value);\n"
SCENARIO = """
id = "two-hosts"
title = "Two hosts"
version = "1"
why = "A drive that is split."
[[phase]]
id = "drive"
kind = "script"
title = "Driven"
scripts = ["one.pgbench"]
clients = 4
duration_s = 60
"""


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with client_of(Places("local", local=HOSTS)) as client:
        yield client


@pytest.fixture
def one_cluster(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--hosts local:N` takes workers of the tests' cluster."""
    share_cluster(client, monkeypatch)


def drive(**more: Any) -> model.Drive:
    script = model.Script("one", "\\set n random(1, 9)\nselect :n;\n")
    return model.Drive(scripts=(script,), mode="simple", **{"clients": 7, "seed": 5, **more})


def chosen(database: Database) -> list[tuple[int, int]]:
    with database.connect() as connection:
        rows = connection.execute("select client, value from choices order by client, at").fetchall()
        connection.execute("truncate choices restart identity")
    return rows


@pytest.mark.usefixtures("one_cluster")
@pytest.mark.parametrize("more", [(), ("-R", "2000", "-P", "1", "-r")])
def test_every_client_makes_the_same_choices_on_any_number_of_hosts(
    database: Database, tmp_path: Path, more: tuple[str, ...]
) -> None:
    database.execute("create table choices (client int, value int, at serial)")
    (tmp_path / "choices.sql").write_text(CHOICES)
    found, texts = [], []
    arguments = ["-n", "-f", str(tmp_path / "choices.sql"), "-c", "7", "-t", "9", "--random-seed=3", *more]
    for hosts in ([], ["--hosts=local:1"], ["--hosts=local:2"], ["--hosts=local:3"]):
        out: list[str] = []
        err: list[str] = []
        assert pgbench.main([*arguments, *hosts, database.url], out.append, err.append) == 0, "".join(err)
        found.append(chosen(database))
        texts.append("".join(out))
        assert (" load hosts " in "".join(err)) is bool(hosts)
    assert len(set(found[0])) == 63
    assert found[1] == found[2] == found[3] == found[0]
    for text in texts:
        assert "number of transactions actually processed: 63/63" in text
        assert "number of clients: 7" in text


def costs_little(agent: dict[str, Any]) -> bool:
    return bool(0 < agent["cpu_ns_per_s"] < 1e9 and 100 < agent["bytes_per_s"] < 10_000)


def test_the_merged_files_are_those_of_one_drive_and_each_host_has_its_own(
    client: Any, tmp_path: Path
) -> None:
    fleet = fleet_of(client, HOSTS, calibrate=True)
    said: list[tuple[str, str]] = []
    shown: list[dict[str, Any]] = []
    with null_server(16) as (_, connection):
        document = drive_document(drive(duration_s=1.2, warmup_s=0.5), connection, tmp_path)
        account = fleet.perform(
            document | {"interval_s": 0.25},
            None,
            shown.append,
            say=lambda level, text: said.append((level, text)),
        )
    assert account["state"] == "complete"
    counts = account["counts"]
    assert counts["scheduled"] + counts["carried"] == counts["done"] > 100
    assert json.loads((tmp_path / "drive.json").read_text())["counts"] == counts
    found = json.loads((tmp_path / "hosts.json").read_text())
    assert [host["name"] for host in found["hosts"]] == fleet.names == ["local-0", "local-1", "local-2"]
    assert all(host["state"] == "complete" and host["ceiling_tps"] > 0 for host in found["hosts"])
    assert all(costs_little(host["agent"]) for host in found["hosts"])
    parts = [json.loads((tmp_path / "hosts" / name / "drive.json").read_text()) for name in fleet.names]
    assert [part["clients"] for part in parts] == [2, 2, 3]
    for name in counts:
        assert sum(part["counts"][name] for part in parts) == counts[name]
    assert {part["start_ns"] for part in parts} == {account["start_ns"]} == {found["go_ns"]}
    rows = [json.loads(line) for line in (tmp_path / "series.jsonl").read_text().splitlines()]
    assert [row["start_ns"] - account["start_ns"] for row in rows[:4]] == [0, 250e6, 500e6, 750e6]
    assert sum(row["done"] for row in rows if not row["warmup"]) == counts["done"]
    logged = sum(
        int(line.counts.sum()) for line in read_log(tmp_path / "latency.hlog") if line.tag == "response"
    )
    assert logged == account["response"]["count"]
    assert found["start_skew_ns"] > 0
    unknown_ns = max(host["clock"]["error_ns"] for host in found["hosts"])
    late = found["start_skew_ns"] + unknown_ns > found["start_skew_limit_ns"]
    assert [level for level, _ in said] == ["warning" if late else "info"]
    assert (
        sum(row["done"] for one in shown for row in one["recent"])
        == shown[-1]["done"]
        == counts["done"] + account["warmup_counts"]["done"]
    )
    assert not list(tmp_path.glob(".records*"))
    assert agents() == []


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    folder = tmp_path / "two-hosts"
    folder.mkdir()
    (folder / "scenario.toml").write_text(SCENARIO)
    (folder / "one.pgbench").write_text("select 1;\n")
    return folder


@pytest.mark.usefixtures("one_cluster")
@pytest.mark.parametrize(("state", "code"), [("before", 1), ("after", 2)])
def test_a_run_that_loses_a_host_ends_with_its_status(
    database: Database, scenario: Path, monkeypatch: pytest.MonkeyPatch, state: str, code: int
) -> None:
    name = "look_ready" if state == "before" else "look"
    kill_at(monkeypatch, JointDrive, name, kill_agent)
    out = scenario.parent / "run"
    request = Request(
        scenarios=[find_scenario(str(scenario))], targets=[database.url], size="tiny", out=out,
        hosts="local:2", calibrate=False,
    )  # fmt: skip
    if state == "before":
        with pytest.raises(HostLostError) as lost:
            execute(request, Quiet())
        assert lost.value.exit_code == code
        assert not out.exists()
    else:
        outcome = execute(request, Quiet())
        assert outcome.exit_code == code
        (phase,) = out.glob("targets/*/phases/*drive/phase.json")
        assert json.loads(phase.read_text())["state"] == "failed"
        assert (phase.parent / "hosts.json").exists()


@pytest.mark.usefixtures("one_cluster")
def test_calibrate_measures_every_host_and_says_how_many_a_rate_needs() -> None:
    arguments = ["calibrate", "-c", "1", "--seconds", "0.1", "--hosts", "local:2", "--rate", "1e6", "--json"]
    done = CliRunner().invoke(loadstone, arguments)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert list(found["hosts"]) == ["local-0", "local-1"]
    assert [row["mode"] for row in found["hosts"]["local-0"]] == ["simple", "extended", "prepared"]
    for mode, needed in found["needed"]["modes"].items():
        slowest = min(needed["ceilings_tps"].values())
        assert needed["hosts"] == hosts_needed(1e6, slowest) > 1, mode
    refused = CliRunner().invoke(loadstone, ["calibrate", "--truth", "--rate", "5"])
    assert refused.exit_code != 0
    assert agents() == []


def test_what_cannot_be_split_is_refused_before_anything_is_touched(client: Any, tmp_path: Path) -> None:
    fleet = fleet_of(client, HOSTS)
    with null_server(16) as (_, connection):
        document = drive_document(drive(duration_s=1.0), connection, tmp_path)
        for changed, message in (
            ({"clients": 2}, "2 clients cannot be split over 3 load hosts"),
            ({"scripts": None}, "only scripts, queries and loads can be split"),
            ({"log": {"prefix": "x"}}, "no log of transactions"),
        ):
            with pytest.raises(LoadstoneError, match=message):
                fleet.perform(document | changed, None)
    request = Request(scenarios=[find_scenario("flights")], targets=["pg"], size="tiny", hosts="local:2")
    with pytest.raises(LoadstoneError, match="queries beside a load would all come from this host"):
        execute(request, Quiet())
    assert list(tmp_path.iterdir()) == []


def test_another_core_and_a_far_host_are_refused(client: Any) -> None:
    fleet = fleet_of(client, HOSTS)
    fleet._mine = fleet._mine | {"machine": "another", "core": "ffff"}
    with pytest.raises(LoadstoneError, match=r"'127\.0\.0\.1' leads to this machine only"):
        fleet.refuse_unreachable("127.0.0.1")
    fleet.refuse_unreachable("10.1.2.3")
    with pytest.raises(LoadstoneError, match="has another build of the core"):
        fleet.find(local=True)


def test_a_server_that_refuses_ends_the_drive_before_its_start(client: Any, tmp_path: Path) -> None:
    nowhere = model.Connection(host="127.0.0.1", port=1, user="u", database="d")
    with pytest.raises(LoadstoneError, match=r"load host local-\d: cannot connect to 127.0.0.1:1"):
        fleet_of(client, HOSTS).perform(drive_document(drive(duration_s=1.0), nowhere, tmp_path), None)
    assert agents() == []


def test_another_dask_cluster_on_this_machine_is_nothing_to_be_warned_of() -> None:
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # it has the port
            stack.enter_context(socket.create_server(("127.0.0.1", 8787)))
        said = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        stack.enter_context(client_of(Places("local", local=1)))
    assert [str(one.message) for one in said if "Port" in str(one.message)] == []


@pytest.mark.slow
def test_a_scheduler_started_by_hand_with_two_workers_on_one_machine_is_one_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduler = started(
        "dask_scheduler", "--host", "127.0.0.1", "--port", "0", says=r"Scheduler at: +(tcp:\S+)"
    )
    worker = partial(started, "dask_worker", "--no-nanny", "--nthreads", "1", says=r"Registered to: +(\S+)")
    with (
        scheduler as address,
        worker(address),
        worker(address),
        null_server(4) as (_, connection),
        fleets.open_fleet(parse_hosts(address)) as fleet,
    ):
        assert len(fleet.names) == 1
        assert re.search("not used, as there is another worker", fleet.notes[0])
        asked = drive(clients=2, transactions_per_client=5)
        account = fleet.perform(drive_document(asked, connection, None), None)
        alone = perform(drive_document(asked, connection, None), None)
    assert account["counts"] == alone["counts"]
    monkeypatch.setattr(cluster, "CONNECT_S", 0.2)
    with (
        pytest.raises(LoadstoneError, match="no Dask scheduler can be reached"),
        client_of(parse_hosts("tcp://127.0.0.1:1")),
    ):
        pass

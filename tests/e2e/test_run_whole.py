"""Whole runs through the real command, from nothing to a report."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import psutil
import psycopg
import pytest
from support.sandbox import NOBODY

if TYPE_CHECKING:
    from support.sandbox import Database, Sandbox

ROWS_CHECK = "rows acknowledged are in the tables"


@pytest.mark.slow
def test_with_no_target_a_private_server_is_measured_and_removed(sandbox: Sandbox) -> None:
    ended = sandbox.run("run", "--size", "tiny", "--set", "index=brin", "--out", "out")
    assert ended.code == 0, ended.err
    assert ended.out == ""
    assert ended.run["state"] == "complete"
    assert ended.run["exit_code"] == 0
    assert ended.summary["run"]["state"] == "complete"
    checks = [check for phase in ended.phases("pg18").values() for check in phase["checks"]]
    assert len(checks) == 4
    assert all(check["passed"] and check["name"] == ROWS_CHECK for check in checks)
    assert all(int(check["actual"].replace(",", "")) > 0 for check in checks)
    assert (ended.folder / "calibration.json").is_file()
    assert ended.report.startswith("<!doctype html>")
    assert str(ended.folder / "report.html").endswith(re.findall(r"Report: (\S+)", ended.err)[-1])
    assert sandbox.servers() == []


@pytest.mark.slow
def test_session_oltp(sandbox: Sandbox, database: Database) -> None:
    ended = sandbox.measure("session-oltp", "--target", database.url)
    assert ended.code == 0, ended.err
    phases = ended.phases()
    assert {phases[name]["state"] for name in ("log-out", "log-in", "oltp-function")} == {"complete"}
    assert phases["oltp-function"]["checks"][0]["passed"]
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0


@pytest.mark.slow
def test_two_targets_stand_side_by_side_in_one_report(sandbox: Sandbox) -> None:
    ended = sandbox.measure(sandbox.inserts(), "--target", "pg18", "--target", "pg:system")
    assert ended.code == 0, ended.err
    assert [target["id"] for target in ended.summary["targets"]] == ["pg18", "pg-system"]
    assert {p["insert"]["state"] for p in (ended.phases("pg18"), ended.phases("pg-system"))} == {"complete"}
    for target in ended.summary["targets"]:
        assert target["version"] in ended.report
    starts = [event["target"] for event in ended.events if event["kind"] == "phase-start"]
    assert starts == ["pg18", "pg-system"] * 2


@pytest.mark.slow
def test_repeats_are_measured_anew_and_summed_up_together(sandbox: Sandbox, database: Database) -> None:
    ended = sandbox.measure(sandbox.inserts(), "--target", database.url, "--repeat", 2, "--json")
    assert ended.code == 0, ended.err
    keys = [path.parent.name for path in ended.folder.glob("targets/*/phases/*/phase.json")]
    assert sorted(keys) == ["001-prepare", "002-insert", "003-prepare-r2", "004-insert-r2"]
    (result,) = json.loads(ended.out)["results"]
    assert result["repeats"] == 2


def test_json_is_all_that_is_on_standard_output(sandbox: Sandbox, database: Database) -> None:
    ended = sandbox.measure(sandbox.inserts(), "--target", database.url, "--json")
    assert ended.code == 0, ended.err
    printed = json.loads(ended.out)
    assert printed["state"] == "complete"
    assert printed["results"][0]["tps"]["value"] > 0
    assert ended.err == ""


@pytest.mark.slow
def test_epoll_serves_where_io_uring_is_refused(sandbox: Sandbox, database: Database) -> None:
    ended = sandbox.measure(sandbox.inserts(), "--target", database.url, "--io", "epoll")
    assert ended.code == 0, ended.err
    assert ended.drive("insert")["io"] == "epoll"
    assert ended.phases()["insert"]["checks"][0]["passed"]


@pytest.mark.slow
def test_a_kept_server_is_told_of_and_can_be_reached(sandbox: Sandbox) -> None:
    sandbox.may_leave = True
    ended = sandbox.measure(sandbox.inserts(), "--keep")
    assert ended.code == 0, ended.err
    found = re.search(r"psql -h (\S+) -p (\d+) -U (\w+) (\w+)", ended.err)
    stop = re.search(r"kill -INT (\d+)", ended.err)
    assert found, ended.err
    assert stop, ended.err
    host, port, user, database = found.groups()
    with psycopg.connect(host=host, port=int(port), user=user, dbname=database) as connection:
        rows = connection.execute("select count(*) from loadstone.t").fetchone()
    (check,) = ended.phases()["insert"]["checks"]
    assert rows == (int(check["actual"].replace(",", "")),)
    server = psutil.Process(int(stop.group(1)))
    server.send_signal(2)
    server.wait(60)


@pytest.mark.slow
def test_a_users_settings_reach_the_private_server_and_its_durability_is_called_out(sandbox: Sandbox) -> None:
    ended = sandbox.measure(sandbox.inserts(), "--setting", "fsync=off", "--storage", sandbox.storage)
    assert ended.code == 0, ended.err
    target = json.loads((ended.folder / "targets/pg18/target.json").read_text())
    assert target["data_directory"].startswith(str(sandbox.storage))
    assert {"setting": "fsync", "value": "off", "durable": False} in [
        {key: entry[key] for key in ("setting", "value", "durable")} for entry in target["durability"]
    ]


@pytest.mark.slow
def test_a_run_can_be_reported_again_by_hand_and_is_the_same(sandbox: Sandbox, database: Database) -> None:
    ended = sandbox.measure(sandbox.inserts(), "--target", database.url)
    before = ended.report
    (ended.folder / "report.html").unlink()
    (ended.folder / "summary.json").unlink()
    again = sandbox.run("report", "out")
    assert again.code == 0, again.err
    assert ended.report == before


def test_what_lies_in_the_working_folder_is_found_by_default(sandbox: Sandbox, database: Database) -> None:
    ended = sandbox.run("run", sandbox.inserts(), "--target", database.url, "--no-calibrate")
    assert ended.code == 0, ended.err
    (folder,) = (sandbox.work / "loadstone-runs").iterdir()
    assert re.fullmatch(r"\d{8}T\d{6}Z-own", folder.name)
    assert (folder / "report.html").is_file()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="these tests run as an ordinary user already")
def test_an_ordinary_user_can_do_it_too(sandbox: Sandbox) -> None:
    scenario = sandbox.inserts()
    ended = sandbox.measure(scenario, prefix=sandbox.as_ordinary_user())
    assert ended.code == 0, ended.err
    environment = json.loads((ended.folder / "environment.json").read_text())
    assert environment["system"]["as_root"] is False
    assert (ended.folder / "run.json").stat().st_uid == NOBODY
    assert ended.phases()["insert"]["checks"][0]["passed"]

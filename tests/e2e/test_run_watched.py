"""Runs whose server's machine is watched, through the real command."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest
from support.exposition_server import Reply, exposition, node_text
from support.sshd import local_shell

if TYPE_CHECKING:
    from support.sandbox import Database, Sandbox


def moving() -> Reply:
    """A machine with one core, a quarter of it busy."""
    now = time.monotonic()
    return Reply(body=node_text(idle=now * 0.75, user=now * 0.25, time=time.time() + 3600).encode())  # noqa: TID251


def test_the_servers_machine_is_on_the_time_axis_of_the_run(sandbox: Sandbox, database: Database) -> None:
    variables = {
        "LOADSTONE_SSH": local_shell(sandbox.base, python=True),
        "LOADSTONE_WATCH_TOKEN": "very-secret-token",
    }
    with exposition("") as served:
        served.replies = moving
        url = served.url.replace("//", "//me:hidden-linen@")
        watch = ("--watch", url, "--watch", "ssh://127.0.0.1")
        ended = sandbox.measure(sandbox.inserts(2), "--target", database.url, *watch, env=variables)
    assert ended.code == 0, ended.err
    assert re.search(r"its clock is 3(599|600)\.\d+ s ahead of ours", ended.err)
    (target,) = ended.summary["targets"]
    exporter, ssh = target["resources"]["watch"]
    assert exporter["missed"] <= 1, "one second in which this machine was busy"
    assert exporter["clock_offset_s"] == pytest.approx(3600, abs=exporter["clock_error_s"] + 0.01)
    assert abs(ssh["clock_offset_s"]) <= ssh["clock_error_s"] + 0.002
    usage = next(phase["usage"] for phase in ended.summary["phases"] if phase["id"] == "insert")
    assert usage["machine_cpu"] == pytest.approx(0.25, abs=0.03)
    # Both see the same processes, each in seconds of its own.
    assert usage["machine_server_cpu"] == pytest.approx(usage["cpu_server"], abs=0.3)
    assert "The server&#39;s machine beside ours" in ended.report
    assert "CPU of the server&#39;s machine" in ended.report
    assert sandbox.holding("very-secret-token") == []
    assert sandbox.holding("hidden-linen") == []


def test_an_exporter_that_goes_away_leaves_a_gap_that_is_said(sandbox: Sandbox, database: Database) -> None:
    with exposition("") as served:
        served.replies = moving
        running = sandbox.begin(sandbox.inserts(6), "--target", database.url, "--watch", served.url)
        running.wait_for_words(" phases, ")
        served.wait_for_requests(len(served.asked) + 1)
        served.replies = lambda: Reply(503)
        served.wait_for_requests(len(served.asked) + 1)  # the next one comes after a second
        served.replies = moving
        ended = running.finish()
    assert ended.code == 0, ended.err
    told = [event["message"] for event in ended.events if "The counters of" in event["message"]]
    assert "cannot be read" in told[0]
    assert "can be read again" in told[1]
    (watch,) = ended.summary["targets"][0]["resources"]["watch"]
    assert watch["missed"] >= 1
    assert len(watch["gaps"]) >= 1
    assert "gaps, in seconds of the run" in ended.report


@pytest.mark.parametrize(
    ("status", "words"), [(401, "the token or the password is wrong"), (404, "does not exist there")]
)
def test_what_cannot_watch_is_refused_before_anything_is_touched(
    sandbox: Sandbox, database: Database, status: int, words: str
) -> None:
    with exposition(Reply(status)) as served:
        ended = sandbox.quick(sandbox.inserts(), "--target", database.url, "--watch", served.url)
    assert ended.code == 1
    assert words in ended.err
    assert not ended.folder.exists()
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0

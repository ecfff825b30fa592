"""Figures while a run goes on, through the real command."""

from __future__ import annotations

import json
import re
import signal
import socket
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

import pytest

if TYPE_CHECKING:
    from support.sandbox import Database, Sandbox


def test_metrics_and_page_are_there_as_long_as_the_run(sandbox: Sandbox, database: Database) -> None:
    run = sandbox.begin(sandbox.inserts(60), "--target", database.url, "--live", "--openmetrics", "0")
    run.wait_for(lambda: "this run in a browser" in run.err, "addresses")
    metrics, page = re.findall(r"http://127\.0\.0\.1:\d+/\S*", run.err)
    run.wait_for(lambda: b"loadstone_rate{" in urlopen(metrics, timeout=10).read(), "a rate")
    assert b"vegaEmbed" in urlopen(page, timeout=10).read()
    with urlopen(f"{page}events", timeout=120) as events:
        run.send(signal.SIGINT)
        told = events.read().decode()
    assert "event: ended" in told
    assert "exit code 130" in told
    assert run.finish().code == 130
    for address in (metrics, page):
        with pytest.raises(URLError):
            urlopen(address, timeout=10)


def test_the_last_word_of_the_page_has_the_counts_of_the_report(sandbox: Sandbox, database: Database) -> None:
    run = sandbox.begin(sandbox.inserts(1.6), "--target", database.url, "--live")
    run.wait_for(lambda: "this run in a browser" in run.err, "the address")
    (page,) = re.findall(r"http://127\.0\.0\.1:\d+/", run.err)
    with urlopen(f"{page}events", timeout=60) as events:
        told = events.read().decode()
    ended = run.finish()
    assert ended.code == 0, ended.err
    last = json.loads(told.rpartition("data: ")[2])
    (group,) = ended.summary["groups"]
    assert (last["total"]["done"], last["total"]["failed"]) == (group["done"], group["failed"])
    assert group["done"] > 0


@pytest.mark.parametrize("option", ["--openmetrics", "--live-port"])
def test_a_port_that_is_taken_is_refused_before_anything_is_touched(
    sandbox: Sandbox, database: Database, option: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        live = ["--live"] if option == "--live-port" else []
        ended = sandbox.quick(sandbox.inserts(), "--target", database.url, *live, option, port)
    assert ended.code == 1
    assert "Address already in use" in ended.err
    assert not ended.folder.exists()
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0

"""One drive against a server that answers at once, or misbehaves: counted, told, ended, never hung."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.calibrate import null_server
from loadstone.drive import drive_document, perform
from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.model import Connection, Drive, Pace, Script
from loadstone.signals import InterruptedRun, Signals

if TYPE_CHECKING:
    from pathlib import Path

SELECT = Script("select.pgbench", "select 1;\n")
ONE = Drive(scripts=(SELECT,), clients=2, duration_s=0.3, timeout_s=1.0)
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "garbage": ({"kind": "garbage_after", "queries": 20}, ""),
    "half a message": ({"kind": "half_message_after", "queries": 20}, ""),
    "silence": ({"kind": "silent_after", "queries": 20}, "no answer within 1 s"),
    "a closed connection": ({"kind": "close_after", "queries": 20}, ""),
}


def equation_holds(account: dict[str, Any]) -> bool:
    return all(
        counts["scheduled"] == counts["done"] + counts["failed"] + counts["skipped"] + counts["dropped"]
        for counts in (account["counts"], account["warmup_counts"])
    )


def driven(drive: Drive, **behaviour: object) -> dict[str, Any]:
    with null_server(16, **behaviour) as (_, connection):
        return perform(drive_document(drive, connection, None), None)


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
@pytest.mark.parametrize("io", ["io_uring", "epoll"])
def test_each_mode_on_each_interface(mode: Any, io: Any, tmp_path: Path) -> None:
    with null_server(4) as (_, connection):
        account = perform(drive_document(dataclasses.replace(ONE, mode=mode), connection, tmp_path, io), None)
    assert account["io"] == io
    assert account["mode"] == mode
    assert account["counts"]["done"] > 100
    assert equation_holds(account)
    assert json.loads((tmp_path / "drive.json").read_text()) == account


@pytest.mark.parametrize("name", FAULTS)
def test_a_server_that_misbehaves_is_left_and_the_drive_ends(name: str) -> None:
    fault, words = FAULTS[name]
    begun = time.monotonic()
    account = driven(dataclasses.replace(ONE, duration_s=20), faults=[fault])
    assert time.monotonic() - begun < 15
    assert account["state"] == "aborted"
    assert account["reason"]
    assert account["errors"]
    assert words in account["errors"][0]["message"]
    assert account["outages"][0]["end_ns"] is None
    assert account["in_doubt"] <= 2
    assert equation_holds(account)


@pytest.mark.parametrize("name", FAULTS)
def test_with_reconnect_it_goes_on(name: str) -> None:
    fault, _ = FAULTS[name]
    account = driven(dataclasses.replace(ONE, duration_s=2, reconnect=True), faults=[fault])
    assert account["state"] == "complete"
    assert account["connect"]["reconnects"] >= 1
    assert account["counts"]["done"] > 40
    assert equation_holds(account)


def test_errors_are_counted_by_class() -> None:
    fault = {"kind": "error_every", "n": 5, "sqlstate": "23505", "message": "duplicate key"}
    account = driven(ONE, faults=[fault])
    (error,) = account["errors"]
    assert (error["sqlstate"], error["message"]) == ("23505", "duplicate key")
    assert error["count"] == account["counts"]["failed"] > 0
    assert account["state"] == "complete"
    assert equation_holds(account)


def test_a_server_that_refuses_the_log_in_is_told_in_its_words() -> None:
    fault = {"kind": "refuse_startup", "sqlstate": "53300", "message": "sorry, too many clients already"}
    with pytest.raises(RunFailedError, match="too many clients already"):
        driven(ONE, faults=[fault])


@pytest.mark.parametrize("auth", ["cleartext", "md5", "scram"])
def test_each_way_to_log_in(auth: str) -> None:
    with null_server(4, auth=auth, user="me", password="s3cr3t") as (_, there):
        known = dataclasses.replace(there, user="me", password="s3cr3t", sslmode="disable")
        account = perform(drive_document(ONE, known, None), None)
        assert account["counts"]["done"] > 0
        wrong = dataclasses.replace(known, password="wr0ng")
        with pytest.raises(RunFailedError) as caught:
            perform(drive_document(ONE, wrong, None), None)
    assert "wr0ng" not in str(caught.value)


def test_nobody_listens(tmp_path: Path) -> None:
    nowhere = Connection(host=str(tmp_path), port=1, user="u", database="d", connect_timeout_s=1)
    with pytest.raises(RunFailedError, match="No such file"):
        perform(drive_document(ONE, nowhere, None), None)


def test_a_script_that_does_not_parse_says_where(tmp_path: Path) -> None:
    broken = dataclasses.replace(ONE, scripts=(Script("b.pgbench", "select 1;\n\\set x (1 +\n"),))
    with pytest.raises(LoadstoneError, match=r"^b\.pgbench:2:\d+: "):
        perform(drive_document(broken, Connection(str(tmp_path), 1, "u", "d"), None), None)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with null_server(4) as (_, connection), pytest.raises(RunFailedError, match="No such file"):
        perform(drive_document(ONE, connection, tmp_path / "missing"), None)


def test_the_first_signal_stops_a_drive_in_order() -> None:
    slow = dataclasses.replace(ONE, duration_s=60, pace=Pace("fixed", 50))
    with null_server(4) as (_, connection), Signals() as signals:
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        account = perform(drive_document(slow, connection, None), signals)
        timer.join()
        with pytest.raises(InterruptedRun):
            signals.check()
    assert account["state"] == "interrupted"
    assert 5 < account["counts"]["done"] < 100
    assert equation_holds(account)


def test_the_second_signal_is_not_kept_waiting() -> None:
    silent = {"kind": "silent_after", "queries": 5}
    waiting = dataclasses.replace(ONE, duration_s=60, timeout_s=60)
    with null_server(4, faults=[silent]) as (_, connection), Signals() as signals:
        timers = [threading.Timer(s, os.kill, (os.getpid(), signal.SIGINT)) for s in (0.3, 0.6)]
        for timer in timers:
            timer.start()
        begun = time.monotonic()
        with pytest.raises(InterruptedRun):
            perform(drive_document(waiting, connection, None), signals)
        for timer in timers:
            timer.join()
    assert time.monotonic() - begun < 5


def test_progress_is_shown_while_it_goes_on() -> None:
    seen: list[dict[str, Any]] = []
    with null_server(4) as (_, connection):
        long = dataclasses.replace(ONE, duration_s=1.5)
        perform(drive_document(long, connection, None), None, seen.append)
    assert len(seen) > 5
    latest = seen[-1]["latest"]
    assert latest["done"] > 0
    assert latest["response"]["p99_ns"] > 0


def test_a_drive_whose_records_cannot_be_written_stops_early(tmp_path: Path) -> None:
    (tmp_path / "series.jsonl").symlink_to("/dev/full")
    long = dataclasses.replace(ONE, duration_s=60.0)
    began_s = time.monotonic()
    with null_server(4) as (_, connection):
        account = perform(drive_document(long, connection, tmp_path), None)
    assert time.monotonic() - began_s < 20
    assert "series.jsonl" in account["output_error"]
    assert equation_holds(account)

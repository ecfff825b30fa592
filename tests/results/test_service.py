"""How a server fails a drive: lost clients, stalls, outages without end; in words and in the verdict."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.run_folders import NS, Phase, Run, build, write
from support.summaries import part, plain, summarise

from loadstone.errors import RunFailedError
from loadstone.results.documents import Drive
from loadstone.results.service import service_losses
from loadstone.run.outcome import outcome_of

START = 10 * NS
NOBODY_LOST = {"count": 0, "first_ns": None, "sqlstate": None, "message": None}


def drive(done: int = 1000, seconds: float = 5.0, **more: Any) -> dict[str, Any]:
    counts = {"scheduled": done, "done": done, "failed": 0, "skipped": 0, "dropped": 0}
    return {
        "state": "complete",
        "reason": None,
        "output_error": None,
        "errors": [],
        "outages": [],
        "clients": 8,
        "start_ns": START,
        "measure_ns": START,
        "deadline_ns": START + round(seconds * NS),
        "end_ns": START + round(seconds * NS),
        "counts": counts,
        "warmup_counts": dict.fromkeys(counts, 0),
        "lost_clients": NOBODY_LOST,
        "stall": None,
        **more,
    }


def stall(start_s: float, length_s: float, *, endless: bool = False) -> dict[str, Any]:
    start_ns, length_ns = START + round(start_s * NS), round(length_s * NS)
    return {
        "start_ns": start_ns,
        "length_ns": length_ns,
        "end_ns": None if endless else start_ns + length_ns,
    }


def outage(start_s: float, end_s: float | None) -> dict[str, Any]:
    end_ns = None if end_s is None else START + round(end_s * NS)
    return {"start_ns": START + round(start_s * NS), "end_ns": end_ns, "clients": 8}


LOST = {"count": 3, "first_ns": START + 2 * NS, "sqlstate": "57P01", "message": "terminating"}


@pytest.mark.parametrize(
    ("account", "words"),
    [
        (
            drive(stall=stall(0.5, 4.5, endless=True)),
            "no transaction was done for 4.5 s of 5.0 s, from second 0.5 until the end",
        ),
        (
            drive(seconds=20, stall=stall(5, 3)),
            "no transaction was done for 3.0 s of 20.0 s, from second 5.0 until second 8.0",
        ),
        (
            drive(outages=[outage(0.5, None)]),
            "8 clients could not reach the server for 4.5 s, from second 0.5 until the end",
        ),
        (
            drive(lost_clients=LOST),
            "3 of 8 clients were lost and not replaced, the first at second 2.0: terminating (57P01)",
        ),
        (
            drive(lost_clients=LOST | {"count": 1}),
            "1 of 8 clients was lost and not replaced, the first at second 2.0: terminating (57P01)",
        ),
        (
            drive(done=0, stall=stall(0, 5, endless=True)),
            "no transaction was done for 5.0 s of 5.0 s, from second 0.0 until the end",
        ),
    ],
)
def test_what_fails_a_drive(account: dict[str, Any], words: str) -> None:
    assert service_losses(part(Drive, account)) == [words]
    whole = plain(part(Drive, account)) | account
    assert outcome_of(whole) == ("failed", words)


@pytest.mark.parametrize(
    "account",
    [
        drive(),
        drive(stall=stall(1, 0.6)),  # longer than a tenth, but shorter than a busy disk may take
        drive(seconds=60, stall=stall(10, 5.5)),  # shorter than a tenth
        drive(done=3, seconds=60, stall=stall(20, 40, endless=True)),  # a query that takes twenty seconds
        drive(seconds=20, stall=stall(5, 3), outages=[outage(5.1, 7.9)]),  # reconnected, as was requested
        drive(seconds=20, stall=stall(5, 3), loop={"pauses": {"total_ns": 3 * NS}}),  # it was we who stopped
        {"plain_queries": {"runs": []}},
    ],
)
def test_what_does_not(account: dict[str, Any]) -> None:
    assert service_losses(part(Drive, account)) == []


def test_incomplete_records_still_fail_the_run() -> None:
    with pytest.raises(RunFailedError, match="the records of the drive are incomplete"):
        outcome_of(drive(output_error="no space left"))


@pytest.fixture
def account(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    folder = build(tmp_path / "run", Run(phases=(Phase(seconds=20, warmup=0, tps=50.0),)))
    path = folder / "targets/pg18/phases/001-one-table-single/drive.json"
    return path, json.loads(path.read_text())


def summary_with(account: tuple[Path, dict[str, Any]], **changes: Any) -> dict[str, Any]:
    path, document = account
    write(path, document | changes)
    return summarise(path.parents[4])


def test_the_report_of_an_older_run_says_so_too(account: tuple[Path, dict[str, Any]]) -> None:
    begin = account[1]["measure_ns"] + NS // 2
    summary = summary_with(account, outages=[{"start_ns": begin, "end_ns": None, "clients": 8}])
    messages = {w["kind"]: w["message"] for w in summary["warnings"]}
    assert messages["Outage"] == (
        "The server could not be reached once, for up to 19.5 s, the last time until the end."
    )
    assert "for 19.5 s, from second 0.5 until the end" in messages["ServiceLost"]
    assert (summary["verdict"][0]["level"], summary["verdict"][0]["answer"]) == ("bad", "Failed")


def test_an_outage_that_ended_is_yellow(account: tuple[Path, dict[str, Any]]) -> None:
    begin = account[1]["measure_ns"]
    summary = summary_with(account, outages=[{"start_ns": begin, "end_ns": begin + 2 * NS, "clients": 8}])
    assert (summary["verdict"][0]["level"], summary["verdict"][0]["answer"]) == ("warning", "With outages")
    assert "once, for up to 2.0 s." in summary["verdict"][0]["detail"]


def test_a_pause_of_our_own_is_the_clients(account: tuple[Path, dict[str, Any]]) -> None:
    loop = account[1]["loop"] | {"pauses": {"count": 1, "total_ns": 4 * NS}}
    summary = summary_with(account, loop=loop, stall=None)
    assert next(w["message"] for w in summary["warnings"] if w["kind"] == "ClientPaused") == (
        "Loadstone itself was suspended for 4.0 of the measured 20.0 s: "
        "latencies in that time are Loadstone's, not the server's."
    )
    assert summary["verdict"][2]["level"] == "warning"


@pytest.mark.parametrize(
    "reason", ["every client lost its connection", "every client lost its connection: no answer"]
)
def test_an_error_is_quoted_once(reason: str) -> None:
    error = {"message": "no answer", "sqlstate": "timeout", "first_ns": 1, "count": 2}
    account = {"state": "aborted", "reason": reason, "errors": [error], "output_error": None}
    assert outcome_of(account) == ("failed", "every client lost its connection: no answer (timeout)")

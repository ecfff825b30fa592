"""What `loadstone pgbench` says of clients that end early and of connections that are made again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from loadstone import _core
from loadstone.personalities import pgbench
from loadstone.personalities.pgbench import run as pgbench_run
from loadstone.personalities.pgbench.losses import losses
from loadstone.personalities.pgbench.server import ServerFacts

S = 1_000_000_000
Serve = Callable[..., tuple[str, str]]


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Start built-in servers that misbehave as told; returns the options that lead there."""
    started: list[_core.NullServer] = []

    def start(*faults: Mapping[str, Any], clients: int = 100) -> tuple[str, str]:
        spec = {"directory": str(tmp_path), "faults": faults, "clients_max": clients}
        started.append(_core.NullServer(json.dumps(spec)))
        return f"-h{started[-1].socket_directory}", f"-p{started[-1].port}"

    # It answers every query alike, and knows nothing of versions or vacuum.
    monkeypatch.setattr(pgbench_run, "prepare", lambda *_: ServerFacts("17.0", 1))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGUSER", "tester")
    (tmp_path / "one.sql").write_text("SELECT 1;\n")
    yield start
    for server in started:
        server.stop()


def run(*arguments: str) -> tuple[int, str, str]:
    out: list[str] = []
    err: list[str] = []
    code = pgbench.main(["-n", "-fone.sql", *arguments, "base"], out.append, err.append)
    return code, "".join(out), "".join(err)


def account(**changes: Any) -> dict[str, Any]:
    return {
        "start_ns": 5 * S,
        "clients": 8,
        "connect": {"reconnects": 0},
        "outages": [],
        "details": {"ended": []},
    } | changes


def test_without_a_loss_nothing_is_said() -> None:
    assert list(losses(account())) == []


def test_clients_that_ended_are_grouped_by_the_reason() -> None:
    ended = [
        {"sqlstate": "22012", "message": "division\nby", "count": 2, "first_ns": 6 * S, "last_ns": 9 * S},
        {"sqlstate": "connection", "message": "gone", "count": 1, "first_ns": 7 * S, "last_ns": 7 * S},
    ]
    assert list(losses(account(details={"ended": ended}))) == [
        "clients that ended early: 3 of 8",
        "  2 after 1.0 s to 4.0 s: 22012 division",
        "  1 after 2.0 s: connection gone",
    ]


def test_outages_are_listed_as_far_as_they_are_few() -> None:
    outages: list[dict[str, Any]] = [
        {"start_ns": (6 + i) * S, "end_ns": (6.5 + i) * S, "clients": i} for i in range(6)
    ]
    outages.append({"start_ns": 20 * S, "end_ns": None, "clients": 3})
    said = list(losses(account(connect={"reconnects": 4}, outages=outages[-1:])))
    assert said == ["connections made again: 4", "  up to 3 clients had none from 15.0 s to the end"]
    said = list(losses(account(connect={"reconnects": 40}, outages=outages)))
    assert said[1] == "  up to 0 clients had none from 1.0 s until 1.5 s"
    assert (len(said), said[-1]) == (7, "  and 2 times more")


def test_a_server_that_closes_connections_ends_clients_and_the_summary_says_so(serve: Serve) -> None:
    code, out, err = run(*serve({"kind": "close_after", "queries": 20}), "-c3", "-T60")
    assert code == 2
    assert "Run was aborted; the above results are incomplete." in err
    assert "number of transactions actually processed: 60\n" in out
    assert " - clients that ended early: 3 of 3\n" in out
    assert re.search(r" -   3 after 0\.\d s( to 0\.\d s)?: connection ", out), out


def test_clients_that_connect_again_do_all_their_work_and_the_cost_is_counted(serve: Serve) -> None:
    faults = {"kind": "close_after", "queries": 20}
    code, out, err = run(*serve(faults), "-c3", "-t50", "--reconnect", "--connect-rate=500", "-l")
    assert code == 0, err
    # Two connections of each client end, each with a transaction in flight.
    assert "number of transactions actually processed: 144/150\n" in out
    assert "number of failed transactions: 6 (4.000%)\n" in out
    assert " - connections made again: 6\n" in out
    assert "clients had none from" in out
    assert "clients that ended early" not in out
    assert " - error connection (x 6): " in out
    assert "pgbench: client " in err
    assert "lost its connection and connects again: " in err
    log = next(Path().glob("pgbench_log.*")).read_text(encoding="utf-8").splitlines()
    assert (len(log), sum(" failed " in line for line in log)) == (150, 6)


def test_an_error_of_a_statement_ends_its_client_also_with_reconnect(serve: Serve) -> None:
    fault = {"kind": "error_every", "n": 10, "sqlstate": "22012", "message": "division by zero"}
    code, out, err = run(*serve(fault), "-c2", "-t50", "--reconnect")
    assert code == 2
    assert "number of transactions actually processed: 18/100\n" in out
    assert " - clients that ended early: 2 of 2\n" in out
    assert re.search(r" -   2 after 0\.\d s( to 0\.\d s)?: 22012 division by zero\n", out), out
    assert "Run was aborted" in err


@pytest.mark.slow
def test_a_run_of_which_nothing_is_kept_writes_no_file_and_has_its_percentiles(serve: Serve) -> None:
    where = serve({"kind": "delay_every", "n": 7, "ms": 2.0})
    before = set(Path().iterdir())
    code, out, err = run(*where, "-c2", "-T3", "-R0.9", "-P1", "--warmup=1")
    assert (code, set(Path().iterdir())) == (0, before)
    assert err.count("progress: ") == 4
    assert err.count(", warm-up\n") == 1
    code, out, _ = run(*where, "-c2", "-t100", "-R2000", "-P1")
    assert code == 0
    assert " - response time of 200 transactions: p50 = " in out
    assert " - lag of the rate's schedule: p50 = " in out

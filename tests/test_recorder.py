"""The recorder for Python drivers: the same equations, files and account as the core's own drives."""

from __future__ import annotations

import json
import threading
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from desk import wait_until

from loadstone import _core
from loadstone.summary.histograms import read_log

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000


def recorder(folder: Path | None = None, **more: object) -> _core.Recorder:
    spec = {"labels": ["a", "b"], "clients": 2, "out_dir": folder and str(folder)} | more
    return _core.Recorder(json.dumps(spec))


def finished(made: _core.Recorder, *rest: Any) -> dict[str, Any]:
    account: dict[str, Any] = json.loads(made.finish(*(rest or ("complete",))))
    windows = [(account["counts"], 1), *((s["counts"], 1) for s in account["scripts"])]
    for counts, sign in [*windows, (account["warmup_counts"], -1)]:
        ended = sum(counts[key] for key in ("done", "failed", "skipped", "dropped"))
        assert counts["scheduled"] + sign * counts["carried"] == ended
    return account


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "series.jsonl").read_text().splitlines()]


def test_samples_are_counted_timed_and_written_as_a_drive_writes_them(tmp_path: Path) -> None:
    made = recorder(tmp_path)
    begun = made.begin()
    assert abs(begun - time.monotonic_ns()) < 1000 * MS
    for n in range(100):
        made.sample(n % 2, 0, begun + n * MS, begun + n * MS + (n + 1) * MS)
    made.fail(1, 0, begun, begun + MS, "CatalogException", "no such table")
    made.fail(1, 0, begun, begun + MS, "CatalogException", "another")
    made.sample(0, 0, begun, begun + MS, ok=False)
    account = finished(made, "complete", None, json.dumps({"queries": {"answers": [1]}, "note": "x"}))
    outcomes = {"done": 100, "failed": 3, "skipped": 0, "dropped": 0}
    assert account["counts"] == {"scheduled": 103, "carried": 0, **outcomes}
    assert not (tmp_path / "drive.json").exists(), "who owns the drive writes it, with secrets hidden"
    assert (account["state"], account["io"], account["mode"]) == ("complete", "driver", "driver")
    assert account["service"] == account["response"]
    assert account["service"]["mean_ns"] == 50.5 * MS
    assert [script["name"] for script in account["scripts"]] == ["a", "b"]
    assert account["scripts"][1]["counts"]["failed"] == 2
    labels = account["queries"]["labels"]
    assert [label["service"]["count"] for label in labels] == [50, 50]
    assert account["queries"]["answers"] == [1]
    assert account["note"] == "x"
    errors = {error["sqlstate"]: (error["count"], error["message"]) for error in account["errors"]}
    assert errors["CatalogException"] == (2, "no such table")
    assert sum(line["done"] for line in lines(tmp_path)) == 100
    tags = {line.tag for line in read_log(tmp_path / "latency.hlog")}
    assert tags == {"response", "statement-0.0", "statement-1.0"}


def test_under_a_rate_response_includes_the_wait(tmp_path: Path) -> None:
    made = recorder(tmp_path, pace={"kind": "fixed", "rate_per_s": 100.0}, latency_limit_ms=15.0)
    begun = made.begin()
    for n in range(10):
        made.sample(0, begun + n * 10 * MS, begun + n * 10 * MS + 7 * MS, begun + n * 10 * MS + (10 + n) * MS)
    account = finished(made)
    assert account["lag"]["mean_ns"] == 7 * MS
    assert account["response"]["mean_ns"] == 14.5 * MS
    assert account["service"]["mean_ns"] == 7.5 * MS
    assert account["scripts"][0]["response"] == account["response"]
    assert account["late"] == 4


def test_burn_in_and_warm_up_are_left_out() -> None:
    made = recorder(burn_in=3)
    begun = made.begin()
    for n in range(10):
        made.sample(0, begun, begun, begun + n * MS)
    account = finished(made)
    assert (account["warmup_counts"]["done"], account["counts"]["done"]) == (3, 7)
    assert account["service"]["min_ns"] == 3 * MS
    made = recorder(warmup_s=0.1)
    begun = made.begin()
    made.sample(0, begun + 50 * MS, begun + 50 * MS, begun + 60 * MS)
    made.sample(0, begun + 150 * MS, begun + 150 * MS, begun + 180 * MS)
    account = finished(made)
    assert (account["warmup_counts"]["done"], account["counts"]["done"]) == (1, 1)
    assert account["service"]["mean_ns"] == 30 * MS


def test_intervals_go_on_while_nothing_ends(tmp_path: Path) -> None:
    made = recorder(tmp_path, interval_s=0.05)
    begun = made.begin()
    made.sample(0, begun, begun, begun + MS)
    time.sleep(0.2)
    wait_until(lambda: json.loads(made.progress())["done"] == 1, "the first interval in the progress")
    made.sample(0, begun, begun, time.monotonic_ns())
    finished(made)
    written = lines(tmp_path)
    assert len(written) >= 4
    assert written[0]["done"] == 1
    assert sum(line["done"] for line in written) == 2
    assert all(a["end_ns"] == b["start_ns"] for a, b in pairwise(written))


def test_a_load_shows_rows(tmp_path: Path) -> None:
    made = recorder(tmp_path, load=True, interval_s=0.02)
    begun = made.begin()
    made.sample(0, begun, begun, begun + MS)
    made.rows(1000, 10_000)
    time.sleep(0.05)
    shown = json.loads(made.progress())
    account = finished(made, "interrupted", "stopped by a signal")
    assert sum(line["rows"] for line in lines(tmp_path)) == 1000
    assert sum(line["metrics"] for line in lines(tmp_path)) == 10_000
    assert shown["latest"] is None or "rows" in shown["latest"]
    assert (account["state"], account["reason"]) == ("interrupted", "stopped by a signal")
    assert "queries" not in account


def test_many_threads_lose_nothing(tmp_path: Path) -> None:
    made = recorder(tmp_path, clients=8, interval_s=0.01)
    made.begin()

    def work(label: int) -> None:
        for _ in range(5_000):
            now = time.monotonic_ns()
            made.sample(label, now, now, now + 1000)

    threads = [threading.Thread(target=work, args=(n % 2,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    account = finished(made)
    assert account["counts"]["done"] == 40_000
    assert [script["counts"]["done"] for script in account["scripts"]] == [20_000, 20_000]
    assert sum(line["done"] for line in lines(tmp_path)) == 40_000


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    refused: list[dict[str, object]] = [
        {"labels": []},
        {"clients": 0},
        {"interval_s": 0},
        {"pace": {"kind": "fixed", "rate_per_s": -1}},
        {"colour": "red"},
        {"out_dir": str(tmp_path / "nowhere")},
    ]
    for more in refused:
        with pytest.raises(_core.DriveError):
            recorder(**more)  # type: ignore[arg-type]
    made = recorder()
    with pytest.raises(_core.DriveError, match="label 2"):
        made.sample(2, 0, 0, 1)
    with pytest.raises(_core.DriveError, match="unknown state"):
        made.finish("done")
    finished(made, "aborted", "why")
    for late in (lambda: made.sample(0, 0, 0, 1), lambda: made.finish("complete"), lambda: made.rows(1)):
        with pytest.raises(_core.DriveError, match="finished"):
            late()


def test_a_sample_costs_less_than_a_query_notices() -> None:
    made = recorder()
    begun = made.begin()
    rounds = []
    for _ in range(20):
        before = time.thread_time_ns()
        for _ in range(1_000):
            made.sample(0, begun, begun, begun + 12_345)
        rounds.append((time.thread_time_ns() - before) / 1_000)
    print(f"one sample: {min(rounds):.0f} ns")
    assert min(rounds) < 5_000 if _core.is_debug_build else min(rounds) < 1_000


def test_a_backlog_of_the_warm_up_is_in_the_rate_of_the_window_where_it_ends(tmp_path: Path) -> None:
    pace = {"kind": "fixed", "rate_per_s": 1000.0}
    made = recorder(tmp_path, warmup_s=0.1, duration_s=0.1, interval_s=0.05, pace=pace)
    begun = made.begin()
    for n in range(20):  # one every 10 ms, each meant for the warm-up's first 20 ms
        made.sample(0, begun + n * MS, begun + n * 10 * MS, begun + (n + 1) * 10 * MS)
    account = finished(made)
    assert account["warmup_counts"] | {"scheduled": 20, "done": 9, "carried": 11} == account["warmup_counts"]
    assert account["counts"] | {"scheduled": 0, "done": 11, "carried": 11} == account["counts"]
    assert account["response"]["count"] == 0, "their latency belongs to the warm-up"
    assert sum(line["done"] for line in lines(tmp_path) if not line["warmup"]) == 11

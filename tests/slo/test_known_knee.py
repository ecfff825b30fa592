"""`loadstone pgbench --slo` on the built-in server, whose highest rate follows from arithmetic."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from loadstone.personalities import pgbench
from loadstone.slo.documents import Slo
from loadstone.slo.grid import STEP
from loadstone.truth.queues import ConstantQueue, MarkovQueue
from loadstone.workload.calibrate import null_server

if TYPE_CHECKING:
    from pathlib import Path

# So slow that a few milliseconds, by which a busy machine delays an answer, do not decide.
QUEUE = MarkovQueue(16, 0.016)
SERVICE = {"time": {"kind": "exponential", "mean_ms": 16.0}, "workers": 16}
LIMIT = "p90=56ms"
TRUTH = QUEUE.highest_rate(0.9, 0.056)
OPTIONS = f"-n -f one.sql -c 200 -T 1 --warmup 0.2 --slo {LIMIT} --slo-max-trials 40".split()
REPORT = ("--slo-require", "250/s", "--report", "found")


@pytest.mark.slow
def test_the_highest_rate_of_a_queue_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.sql").write_text("select 1;\n")
    out: list[str] = []
    err: list[str] = []
    with null_server(210, service=SERVICE) as (_, at):
        server = ("-h", at.host, "-p", str(at.port), "-U", at.user, at.database)
        assert pgbench.main((*OPTIONS, *REPORT, *server), out.append, err.append) == 0, err
    found = msgspec.convert(json.loads((tmp_path / "found" / "slo.json").read_text()), Slo)
    assert (found.state, found.restored) == ("complete", False)
    assert (found.found, found.binds) == ("found", LIMIT)
    # The simulations hold the search to a step; here trials are short, and a busy machine lowers the answer.
    assert -8 < math.log((found.lower or 1) / TRUTH) / math.log(STEP) < 4
    assert 0.6 * 16 / 0.016 < (found.capacity or 0) < 1.2 * 16 / 0.016
    assert (found.top or 0) > (found.capacity or math.inf), "Loadstone itself is not the limit"
    assert (found.trials[0].ceiling_per_s or 0) > 1.25 * (found.capacity or math.inf)
    assert all((tmp_path / "found" / one.folder / "latency.hlog").is_file() for one in found.trials)
    text = "".join(out)
    assert f"limits kept at = {found.lower:.6f} tps\n" in text
    assert f"limit that binds = {LIMIT}\n" in text
    assert text.index("number of clients: 200\n") < text.index("highest rate that keeps")
    assert "All trials use one server" in (tmp_path / "found" / "slo.html").read_text()


def test_the_arithmetic_of_queues() -> None:
    assert MarkovQueue(1, 0.001).highest_rate(0.99, 0.02) == pytest.approx(1000 - math.log(100) / 0.02)
    queue = MarkovQueue(16, 0.004)
    rng = np.random.default_rng(1)
    arrivals = rng.exponential(1 / 3200, 200_000).cumsum()
    services = rng.exponential(queue.mean_s, len(arrivals))
    free = np.zeros(queue.workers)
    late = 0
    for arrival, service in zip(arrivals.tolist(), services.tolist(), strict=True):
        first = int(free.argmin())
        free[first] = max(free[first], arrival) + service
        late += free[first] - arrival > 0.012
    assert late / len(arrivals) == pytest.approx(queue.beyond(3200.0, 0.012), rel=0.05)
    # M/D/1: who takes at most twice a service waits at most one: P(W <= d) = (1 - u) e^u for u = rate d.
    assert 1 - ConstantQueue(1, 0.01).beyond(50.0, 0.02) == pytest.approx(0.5 * math.exp(0.5), abs=0.003)

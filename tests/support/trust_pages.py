"""Made-up results for pages: a long history, a search of the highest rate, crash tests of both levels."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from loadstone.crash.documents import CommitCounts, Crash, Cycle, Flaw, Moment, Recovery
from loadstone.crash.verdict import verdict_of
from loadstone.history.documents import HistoryLine, MetricLine, PhaseLine
from loadstone.slo.documents import Slo, Trial
from loadstone.slo.grid import STEP
from support.histories import line

METRICS = (
    ("rate", "tps", "higher", 4000.0),
    ("p99", "ms", "lower", 21.0),
    ("CPU", "µs/transaction", "lower", 312.0),
    ("WAL", "bytes/transaction", "lower", 840.0),
)
SHIFTS = {20: 0.93, 45: 1.06}
"""Entry of the history from which on all rates are so much of what they were."""


def long_history(entries: int = 60, targets: tuple[str, ...] = ("pg18", "pg14")) -> list[HistoryLine]:
    """Return runs of two days each, of two targets with four metrics, whose level changes twice."""
    rng = np.random.default_rng(7)
    begin = datetime(2026, 6, 1, 2, 15, tzinfo=UTC)
    lines, level = [], 1.0
    for entry in range(entries):
        level *= SHIFTS.get(entry, 1.0)
        at = begin + timedelta(days=2 * entry, minutes=int(rng.integers(0, 50)))
        for number, target in enumerate(targets):
            phase = PhaseLine(
                scenario="iot-feed",
                id="insert",
                title="Insert",
                variant={"index": "brin"},
                plan="5f2c90aa1b07",
                metrics=[
                    _metric(rng, name, unit, better, value * (1 - 0.2 * number), level)
                    for name, unit, better, value in METRICS
                ],
            )
            lines.append(
                line(
                    f"{at:%Y%m%dT%H%M%SZ}-iot-feed",
                    time=at.isoformat(),
                    commit=f"{entry + 0x4A1B20:07x}",
                    loadstone="0.1.0",
                    phases=[phase],
                    target=_target(target),
                )
            )
    return lines


def _target(name: str) -> Any:
    return type(line().target)(id=name, label=f"PostgreSQL {name[2:]}.4", build=f"{name}-debug-abcdef0")


def _metric(
    rng: np.random.Generator, name: str, unit: str, better: Any, value: float, level: float
) -> MetricLine:
    seen = value * (level if better == "higher" else 1 / level) * float(np.exp(rng.normal(0, 0.01)))
    return MetricLine(
        name=name,
        unit=unit,
        better=better,
        primary=name == "rate",
        value=seen,
        n=3,
        values=[seen] * 3,
        low=seen * 0.975,
        high=seen * 1.025,
        basis="repeats",
    )


def searched() -> Slo:
    """Return a search that found 812/s, of 20 trials."""
    trials = [_trial(1, None, 0.0, kind="closed loop")]
    places = (-56, -5, 3, -1, 1, 0, 1, 0, 1, 0, 1, 0, 1)
    for number, place in enumerate(places, 2):
        share = 0.01 * 10 ** (place / 3 - 0.2)
        trials.append(_trial(number, 812.0 * STEP**place, share, kind="short" if number < 7 else "whole"))
    # Missed, and made again.
    trials[3].client_late, trials[3].counted = True, False
    return Slo(
        format=1,
        loadstone="0.1.0",
        id="x",
        state="complete",
        started_at="2026-11-20T10:15:00Z",
        command=["loadstone", "slo", "session-oltp", "--limit", "p99=20ms"],
        scenario="session-oltp",
        phase="log-in",
        size="small",
        seed=1,
        target="PostgreSQL 18.4",
        parameters={},
        settings={"shared_buffers": "1GB"},
        limits=["p99=20ms", "p50=5ms"],
        errors=None,
        capacity=980.0,
        top=1940.0,
        found="found",
        lower=812.0,
        upper=812.0 * STEP,
        binds="p99=20ms",
        trials=trials,
    )


def _trial(number: int, rate: float | None, missed: float, kind: Any) -> Trial:
    should = 24_000
    return Trial(
        number=number,
        kind=kind,
        rate=rate,
        seconds=30,
        folder="",
        should=should,
        in_time=[round(should * (1 - min(missed, 1))), round(should * (1 - min(missed * 4, 1)))],
        failed=0,
        misses=["p99=20ms"] if missed > 0.01 else [],
        done_per_s=rate or 980.0,
        p50_ms=1.4 + 100 * missed,
        p99_ms=20 * (max(missed, 1e-4) / 0.01) ** 0.4,
        p999_ms=45 * (max(missed, 1e-4) / 0.01) ** 0.4 if kind == "whole" else None,
        cpu_server=0.61,
        cpu_client=0.08,
    )


def crashed(level: Any = "power", cycles: int = 20, *, lost: int = 0, **more: Any) -> Crash:
    """Return a test of so many crashes; in the last but one, `lost` commits are lost."""
    rng = np.random.default_rng(3)
    kinds = ("anywhere", "checkpoint", "segment")
    made = [_cycle(rng, number, kinds[number % 3], level) for number in range(1, cycles + 1)]
    if lost:
        broken = made[-2]
        assert broken.found is not None
        broken.found.lost = lost
        broken.flaws = [Flaw(check="sums", detail="pgbench_accounts 31,240, pgbench_tellers 31,250")]
    control = _cycle(rng, 0, "anywhere", level)
    assert control.found is not None
    control.found.lost = 2181
    values: dict[str, Any] = {
        "format": 1,
        "loadstone": "0.1.0",
        "id": "20261120T101500Z-crash",
        "state": "complete",
        "started_at": "2026-11-20T10:15:00Z",
        "command": ["loadstone", "crash", "--level", level, "--cycles", "20"],
        "scenario": "pgbench-grid",
        "phase": "tpcb-like",
        "size": "tiny",
        "seed": 1,
        "target": "pg18",
        "version": "PostgreSQL 18.4 on x86_64",
        "parameters": {},
        "settings": {"wal_compression": "lz4"},
        "level": level,
        "clients": 8,
        "wanted": cycles,
        "window_s": 5.0,
        "checker": True,
        "control": control if level == "power" else None,
        "rate_plain": 1240.0 if level == "power" else None,
        "cycles": made,
    }
    document = Crash(**(values | more))
    document.verdict = verdict_of(document)
    return document


def _cycle(rng: np.random.Generator, number: int, kind: Any, level: str) -> Cycle:
    login = float(rng.uniform(0.3, 2.2))
    forgot = {
        "bytes": int(rng.integers(400_000, 90_000_000)),
        "survived_bytes": 8192 * number,
        "files": 3,
        "names": 1,
    }
    return Cycle(
        number=number,
        folder=f"cycles/{number:03d}",
        moment=Moment(kind=kind, after_s=2.5, note="no checkpoint began" if number == 4 else None),
        killed_ns=1,
        upto=[900] * 8,
        allowed_s=0.0,
        forgot=forgot if level == "power" else None,
        restarted=True,
        recovery=Recovery(
            down_s=0.1,
            connection_s=login,
            commit_s=login + 0.05,
            rate_s=None if number == 7 else login + 3,
            rate_before=610.0,
            wal_bytes=int(login * 2e7),
            replay_s=login / 2,
        ),
        found=CommitCounts(
            acknowledged=6872 + number,
            lost=0,
            lost_allowed=0,
            corrupt=0,
            twice=0,
            phantom=0,
            holes=0,
            unknown=int(rng.integers(0, 7)),
            unknown_present=1,
        ),
    )

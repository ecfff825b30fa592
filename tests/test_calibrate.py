"""Our own ceiling, measured for real."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from pathlib import Path

import pytest

from loadstone.calibrate import MODES, calibrate_for, null_server
from loadstone.signals import InterruptedRun, Signals


def test_each_mode_has_a_plausible_ceiling() -> None:
    found = calibrate_for([(mode, 4) for mode in MODES], seconds=0.3)
    assert found["format"] == 1
    assert 1 < found["clock_ns"] < 10_000
    assert 1 < found["record_ns"] < 10_000
    assert [row["mode"] for row in found["results"]] == list(MODES)
    for row in found["results"]:
        assert row["tps"] == pytest.approx(row["transactions"] / 0.3, rel=0.2)
        assert row["tps"] > 1000
        assert 100 < row["cpu_ns_per_transaction"] < 1e6
        assert 100 < row["server_cpu_ns_per_transaction"] < 1e6
        assert row["loop_lag_p99_ns"] <= row["loop_lag_max_ns"]


def test_epoll_can_be_asked_for() -> None:
    (row,) = calibrate_for([("prepared", 2)], seconds=0.2, io="epoll")["results"]
    assert row["io"] == "epoll"


def test_a_signal_ends_it_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Signals() as signals:
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        with pytest.raises(InterruptedRun, match="SIGTERM"):
            calibrate_for([(mode, 2) for mode in MODES], signals, seconds=20)
        timer.join()
    assert list(tmp_path.iterdir()) == []


def test_the_built_in_server_lies_in_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with null_server(4) as (server, connection):
        assert Path(connection.host).parent == tmp_path
        assert (Path(connection.host) / f".s.PGSQL.{server.port}").is_socket()
    assert list(tmp_path.iterdir()) == []

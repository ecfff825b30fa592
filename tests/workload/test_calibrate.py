"""Our own ceiling, measured for real."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.sandbox import make_base

from loadstone.signals import InterruptedRun, Signals
from loadstone.workload.calibrate import MODES, calibrate_for, null_server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.slow
def test_each_mode_has_a_plausible_ceiling() -> None:
    found = calibrate_for([(mode, 4) for mode in MODES], seconds=0.3)
    assert found["format"] == 1
    assert 1 < found["clock_ns"] < 10_000
    assert 1 < found["record_ns"] < 10_000
    assert [row["mode"] for row in found["results"]] == list(MODES)
    for row in found["results"]:
        assert 0.28 < row["transactions"] / row["tps"] < 3, "0.3 s, longer where others keep the cores busy"
        assert row["tps"] > 1000
        assert 100 < row["cpu_ns_per_transaction"] < 1e6
        assert 100 < row["server_cpu_ns_per_transaction"] < 1e6
        assert row["loop_lag_p99_ns"] <= row["loop_lag_max_ns"]


def test_epoll_can_be_asked_for() -> None:
    (row,) = calibrate_for([("prepared", 2)], seconds=0.2, io="epoll")["results"]
    assert row["io"] == "epoll"


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files whose path is short enough for sockets."""
    base = make_base()
    monkeypatch.setattr(tempfile, "tempdir", str(base))
    yield base
    base.rmdir()


def test_a_signal_ends_it_and_nothing_is_left(folder: Path) -> None:
    with Signals() as signals:
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        with pytest.raises(InterruptedRun, match="SIGTERM"):
            calibrate_for([(mode, 2) for mode in MODES], signals, seconds=20)
        timer.join()
    assert list(folder.iterdir()) == []


def test_the_built_in_server_lies_in_a_folder_of_its_own(folder: Path) -> None:
    with null_server(4) as (server, connection):
        assert Path(connection.host).parent == folder
        assert (Path(connection.host) / f".s.PGSQL.{server.port}").is_socket()
    assert list(folder.iterdir()) == []


def test_a_long_path_of_temporary_files_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("long" * 20)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with null_server(4) as (server, connection):
        assert (Path(connection.host) / f".s.PGSQL.{server.port}").is_socket()
    assert not Path(connection.host).exists()

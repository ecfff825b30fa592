"""environment.json holds what is known, and warns in words."""

import copy
import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.host import environment
from loadstone.host.environment import Origin, collect, read_clocks, warnings
from loadstone.results.json_files import to_json


def test_what_is_collected_is_json_and_whole(tmp_path: Path) -> None:
    facts = collect({"results": tmp_path, "data": Path("/dev/shm")}, clients=8)
    assert json.loads(to_json(facts)) == facts
    assert set(facts) == {
        "format",
        "loadstone",
        "python",
        "libraries",
        "system",
        "cpu",
        "memory",
        "storage",
        "limits",
        "io_uring",
        "control_group",
        "gpus",
        "load",
        "on_battery",
        "warnings",
    }
    assert facts["libraries"]["psycopg"].count(".") == 2
    assert facts["libraries"].keys() == set(environment.LIBRARIES)
    assert facts["storage"]["results"]["free_bytes"] > 0
    assert facts["memory"]["total_bytes"] > 2**28
    assert facts["system"]["kernel"].startswith("Linux ")
    assert any("folder for data is in memory (tmpfs at /dev/shm)" in w["message"] for w in facts["warnings"])


def test_an_empty_machine_is_no_trouble(tmp_path: Path) -> None:
    facts = collect({"results": tmp_path}, root=tmp_path)
    assert facts["cpu"]["model"] is facts["memory"]["total_bytes"] is facts["system"]["distribution"] is None
    assert facts["storage"]["results"]["filesystem"] is None


@given(st.floats(-1e7, 1e7), st.floats(0, 3600))
def test_a_wall_clock_that_was_set_is_noticed(step_s: float, passed_s: float) -> None:
    first = Origin("2026-11-23T16:00:00.000Z", 5)
    later = replace(first, origin_ns=first.origin_ns + round(passed_s * 1e9))
    shown = datetime.fromisoformat(first.started_at) + timedelta(seconds=passed_s + step_s)
    found = first.stepped_s(replace(later, started_at=shown.isoformat(timespec="milliseconds")))
    if found is None:
        assert abs(step_s) < 0.012 + 0.01 * passed_s
    else:
        assert found == pytest.approx(step_s, abs=0.002)
        assert abs(step_s) > 0.009


def test_clocks_are_read_together() -> None:
    before, begin = datetime.now(UTC), time.monotonic_ns()  # noqa: TID251
    origin = read_clocks()
    after, end = datetime.now(UTC), time.monotonic_ns()  # noqa: TID251
    assert begin <= origin.origin_ns <= end
    assert before - timedelta(milliseconds=1) <= datetime.fromisoformat(origin.started_at) <= after
    assert origin.started_at.endswith("Z")


def test_moments_of_the_run_on_the_wall() -> None:
    origin = Origin("2026-11-20T10:15:00.123Z", 5_000_000_000)
    assert origin.at(5_000_000_000) == "2026-11-20T10:15:00.123Z"
    assert origin.at(65_500_000_000) == "2026-11-20T10:16:00.623Z"


QUIET: dict[str, Any] = {
    "loadstone": {"version": "1", "core": {"version": "1", "debug_build": False}},
    "load": [0.1, 0.1, 0.1],
    "cpu": {"cores_usable": 4, "cores_limit": None, "governors": ["performance"], "frequency_driver": None},
    "memory": {"swap_used_bytes": 0},
    "limits": {"open_files": {"soft": 1024, "hard": 4096}},
    "storage": {"results": {"filesystem": "ext4", "mount_point": "/"}},
    "system": {"clock_source": "tsc"},
    "on_battery": False,
}


def warned(path: str, value: object, clients: int = 8) -> list[str]:
    facts = copy.deepcopy(QUIET)
    *parents, last = path.split(".")
    place: Any = facts
    for parent in parents:
        place = place[parent]
    place[last] = value
    found = warnings(facts, clients)
    assert all(warning["hint"] for warning in found)
    return [warning["message"] for warning in found]


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("loadstone.core.debug_build", True, "debug build"),
        ("load", [3.5, 1, 1], "busy before the run: load average 3.5 on 4"),
        ("cpu.governors", ["powersave"], "governor is powersave"),
        ("cpu.cores_limit", 1.5, "time of 1.5 of 4 cores"),
        ("memory.swap_used_bytes", 300 << 20, "300 MiB of swap"),
        ("on_battery", True, "battery"),
        ("system.clock_source", "hpet", "clock source is hpet"),
        ("limits.open_files.soft", 40, "8 clients need 72 open files, but this process may have only 40"),
        ("storage.results.filesystem", "tmpfs", "in memory (tmpfs"),
    ],
)
def test_what_blurs_the_figures_is_told(path: str, value: object, expected: str) -> None:
    (message,) = warned(path, value)
    assert expected in message


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("on_battery", False),
        ("load", [0.9, 9, 9]),
        ("cpu.cores_limit", 4.0),
        ("memory.swap_used_bytes", 1 << 20),
        ("limits.open_files.soft", None),
        ("loadstone.core", None),
        ("system.clock_source", None),
    ],
)
def test_what_does_not_is_not(path: str, value: object) -> None:
    assert warned(path, value) == []


def test_powersave_of_a_driver_that_still_goes_to_full_speed_is_fine() -> None:
    facts = copy.deepcopy(QUIET)
    facts["cpu"] |= {"governors": ["powersave"], "frequency_driver": "intel_pstate"}
    assert warnings(facts, 1) == []

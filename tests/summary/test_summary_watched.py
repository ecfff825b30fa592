"""Figures of a machine that is watched: counters that restart, and gaps, are no rates."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.results.documents import Sample
from loadstone.summary.watched import counter_rates, machine_figures

SECOND = 10**9
CPU = ("user", "system", "idle", "iowait")
OF_DISK = {
    "read_ops": "machine_read_ops_per_s",
    "write_ops": "machine_write_ops_per_s",
    "read_bytes": "machine_read_bytes_per_s",
    "write_bytes": "machine_write_bytes_per_s",
    "busy_s": "machine_disk_busy",
}
DISK = tuple(OF_DISK)
NETWORK = ("rx_bytes", "tx_bytes")
COUNTERS = ("xact_commit", "blks_read", "temp_bytes")
counted = st.integers(0, 10**6)


def sample(at_s: float, **parts: Any) -> Sample:
    entry = {"source": "x", "t_ns": round(at_s * SECOND), **parts}
    return msgspec.convert({"t_ns": entry["t_ns"], "watch": [entry]}, Sample)


def counters(names: tuple[str, ...]) -> st.SearchStrategy[dict[str, int]]:
    return st.fixed_dictionaries(dict.fromkeys(names, counted))


machines = st.fixed_dictionaries(
    {
        "host": st.fixed_dictionaries(
            {
                "cpu_s": counters(CPU), "disk": counters(DISK), "network": counters(NETWORK),
                "cores": st.just(2),
            }
        ),
        "server": counters(("cpu_user_s", "cpu_system_s", "rss_bytes")),
        "counters": counters(COUNTERS),
    }
)  # fmt: skip


@given(machines, machines, st.floats(0.1, 5))
def test_no_rate_is_negative_whatever_counters_do(
    before: dict[str, Any], after: dict[str, Any], length_s: float
) -> None:
    old, new = sample(10, **before), sample(10 + length_s, **after)
    found = machine_figures(old, new) | counter_rates(old, new)
    assert all(value >= 0 for value in found.values())
    assert found.get("machine_cpu", 0) <= 1


@given(machines, st.sampled_from(DISK), st.integers(1, 1000))
def test_a_counter_that_begins_again_costs_its_own_rate(
    before: dict[str, Any], name: str, growth: int
) -> None:
    host = before["host"]
    disk = {key: value + growth for key, value in host["disk"].items()} | {name: 0}
    host["disk"][name] += 1
    found = machine_figures(sample(10, host=host), sample(12, host=host | {"disk": disk}))
    rates = {figure: growth / 2 for key, figure in OF_DISK.items() if key != name}
    assert {key: value for key, value in found.items() if key in OF_DISK.values()} == pytest.approx(rates)


def test_a_machine_that_was_started_again_was_not_idle() -> None:
    before = {"host": {"cpu_s": {"user": 50, "idle": 50}, "cores": 1}}
    after = {"host": {"cpu_s": {"user": 1, "idle": 60}, "cores": 1}}
    assert machine_figures(sample(100, **before), sample(101, **after)) == {}


def test_no_rate_is_drawn_over_an_outage() -> None:
    quiet = {"host": {"cpu_s": {"user": 1, "idle": 1}, "cores": 1}}
    later = {"host": {"cpu_s": {"user": 2, "idle": 9}, "cores": 1}}
    assert "machine_cpu" in machine_figures(sample(1, **quiet), sample(5, **later))
    assert machine_figures(sample(1, **quiet), sample(7, **later)) == {}

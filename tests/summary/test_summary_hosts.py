"""Load hosts in summary.json and on the page: each host's figures, and what is warned of."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from support.run_folders import Phase, Run, Target, build, write
from support.summaries import render, summarise

if TYPE_CHECKING:
    from pathlib import Path

PHASE = Phase(samples_ns=tuple(range(1_000_000, 3_000_000, 1_000)), seconds=10)


def host(name: str, **more: Any) -> dict[str, Any]:
    clock = {
        "offset_ns": -3,
        "error_ns": 200_000,
        "round_trip_ns": 400_000,
        "drift_ns": 1,
        "drift_error_ns": 9,
    }
    found = {"name": name, "number": 0, "machine": "vm", "cpus": 2, "state": "complete", "reason": None}
    return found | {"clock": clock, "began_after_go_ns": 40_000, "ceiling_tps": 50_000.0} | more


def run_of(
    folder: Path,
    hosts: list[dict[str, Any]],
    *,
    slower: float = 1.0,
    skew_ns: int = 30_000,
    phase: Phase = PHASE,
) -> dict[str, Any]:
    """Summarise a run with a phase from several hosts; the files of the second are of slower answers."""
    (home,) = build(folder / "run", Run(phases=(phase,))).glob("targets/*/phases/*")
    (other,) = build(folder / "other", Run(phases=(phase,), targets=(Target(speed=1 / slower),))).glob(
        "targets/*/phases/*"
    )
    for number, one in enumerate(hosts):
        if one["state"] == "complete":
            shutil.copytree(other if number else home, folder / "parts" / one["name"])
    if (folder / "parts").exists():
        (folder / "parts").rename(home / "hosts")
    write(
        home / "hosts.json",
        {
            "format": 1,
            "go_ns": 5,
            "start_skew_ns": skew_ns,
            "start_skew_limit_ns": 10_000_000,
            "hosts": hosts,
        },
    )
    return summarise(folder / "run")


def warned(summary: dict[str, Any]) -> dict[str, str]:
    ours = {"HostLost", "HostWasTheLimit", "HostsDisagree", "HostsBeganApart"}
    return {w["kind"]: w["message"] for w in summary["warnings"] if w["kind"] in ours}


def test_each_host_has_its_figures_and_the_page_a_table(tmp_path: Path) -> None:
    summary = run_of(tmp_path, [host("a.example"), host("b.example")])
    (phase,) = summary["phases"]
    first, second = phase["hosts"]["hosts"]
    assert (first["name"], first["clock_error_ns"], first["ceiling_tps"]) == ("a.example", 200_000, 50_000)
    drive = phase["drive"]
    p99 = next(p["value_ns"] for p in drive["response"]["percentiles"] if p["percentile"] == 99)
    assert first["tps"] == second["tps"] == pytest.approx(drive["tps"]["value"])
    assert first["p99_ns"] == second["p99_ns"] == p99
    assert first["p99_low_ns"] == pytest.approx(p99, rel=2e-3)
    assert drive["ceiling_tps"] == 100_000
    assert warned(summary) == {}
    page = render(summary)
    assert "Load hosts" in page
    assert "a.example" in page
    assert "0.0300 ms" in page


def test_a_drive_from_one_host_says_nothing_of_hosts(tmp_path: Path) -> None:
    summary = summarise(build(tmp_path / "run", Run(phases=(PHASE,))))
    assert "hosts" not in summary["phases"][0]
    assert "Load hosts" not in render(summary)


def test_hosts_that_disagree_are_told(tmp_path: Path) -> None:
    summary = run_of(tmp_path, [host("near"), host("far")], slower=2.0, phase=Phase(seconds=40, tps=5_000))
    message = warned(summary)["HostsDisagree"]
    assert "near" in message
    assert "far" in message


@pytest.mark.parametrize(
    ("more", "busy", "words"),
    [
        ({"ceiling_tps": 2_200.0}, 0.4, "of 2,200 tps"),
        ({}, 0.9, "busy 90 % of the time"),
    ],
)
def test_one_host_at_its_limit_limits_the_run(
    tmp_path: Path, more: dict[str, Any], busy: float, words: str
) -> None:
    phase = Phase(samples_ns=PHASE.samples_ns, seconds=10, client_busy=busy)
    summary = run_of(tmp_path, [host("a"), host("b", **more)], phase=phase)
    message = warned(summary)["HostWasTheLimit"]
    assert words in message
    assert "b" in message


def test_a_lost_host_and_hosts_that_began_apart_are_told(tmp_path: Path) -> None:
    lost = host("b", state="lost", reason="its agent was killed by signal 9")
    summary = run_of(tmp_path, [host("a"), lost], skew_ns=9_900_000)
    found = warned(summary)
    assert "b was lost during the drive: its agent was killed by signal 9" in found["HostLost"]
    assert "9.9 ms apart" in found["HostsBeganApart"]
    assert summary["phases"][0]["hosts"]["hosts"][1]["tps"] is None
    assert "lost" in render(summary)
    json.dumps(summary)

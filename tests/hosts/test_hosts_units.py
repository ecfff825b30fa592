"""Several load hosts: what needs no cluster."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.errors import HostLostError, LoadstoneError
from loadstone.hosts.addresses import is_local
from loadstone.hosts.agent import Agent
from loadstone.hosts.clocks import best
from loadstone.hosts.fleet import sent_of
from loadstone.hosts.joint import POLL_S, JointDrive
from loadstone.hosts.line import Line
from loadstone.hosts.loads import JointSteps
from loadstone.hosts.outcome import folder_name, said_of
from loadstone.hosts.places import parse_hosts
from loadstone.hosts.progress import JointProgress, joined
from loadstone.workload.calibrate import USABLE, hosts_needed, needed_document

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "local", "scheduler"),
    [
        ("local:1", 1, ""),
        ("local:64", 64, ""),
        ("tcp://10.0.0.1:8786", 0, "tcp://10.0.0.1:8786"),
        ("tls://scheduler.example:8786", 0, "tls://scheduler.example:8786"),
        ("tcp://[::1]:8786", 0, "tcp://[::1]:8786"),
    ],
)
def test_places(text: str, local: int, scheduler: str) -> None:
    places = parse_hosts(text)
    assert (places.local, places.scheduler) == (local, scheduler)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("local:0", "needs a number of processes"),
        ("local:", "needs a number of processes"),
        ("local:65", "needs a number of processes"),
        ("local:٣", "needs a number of processes"),
        ("tcp://host", "is not the address"),
        ("tcp://user@host:1", "is not the address"),
        ("tcp://host:99999", "is not the address"),
        ("tcp://host:1/path", "is not the address"),
        ("ssh://", "does not name hosts for ssh"),
        ("ssh://me@host,,other", "does not name hosts for ssh"),
        ("ssh://me@host:99999", "does not name hosts for ssh"),
        ("ssh://-oProxyCommand=x", "does not name hosts for ssh"),
        ("ssh://-x@host", "does not name hosts for ssh"),
        ("ssh://host/it's", "does not name hosts for ssh"),
        ("ssh://me:secret@host", "takes no password"),
        ("host1,host2", "does not name load hosts"),
        ("", "does not name load hosts"),
    ],
)
def test_what_names_no_hosts_is_refused(text: str, message: str) -> None:
    with pytest.raises(LoadstoneError, match=message):
        parse_hosts(text)


@given(
    st.integers(-(10**15), 10**15),
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1, max_size=40),
)
def test_a_clock_is_known_to_half_of_the_least_round_trip(offset: int, delays: list[tuple[int, int]]) -> None:
    readings = []
    now = 10**16
    for there, back in delays:
        readings.append((now, now + there + offset, now + there + back))
        now += there + back
    found = best(readings)
    assert abs(found.offset_ns - offset) <= found.error_ns
    assert found.round_trip_ns == min(there + back for there, back in delays)
    assert found.there(5) == 5 + found.offset_ns


class _RestartedWorker:
    """The client of a Dask worker that has no operation of ours, as one that its nanny has restarted."""

    def rpc(self, _address: str) -> _RestartedWorker:
        return self

    async def loadstone_ask(self, **_message: Any) -> None:
        """Return what Dask returns for an operation that a worker does not know."""


def test_an_agent_is_lost_with_a_dask_worker_that_was_restarted() -> None:
    line = Line(_RestartedWorker(), "tcp://host:1")
    answer = asyncio.run(line.ask("key", {"do": "rest"}, within_s=5))
    assert answer == {"lost": "the Dask worker was restarted"}


def row(done: int, mean: float, stddev: float, start_ns: int = 0) -> dict[str, Any]:
    response = {"count": done, "mean_ns": mean, "stddev_ns": stddev, "max_ns": int(mean), "p99_ns": 1}
    counts = dict.fromkeys(
        ("failed", "skipped", "dropped", "retries", "connected", "bytes_sent", "bytes_received"), 1
    )
    return {
        **counts,
        "done": done,
        "start_ns": start_ns,
        "end_ns": start_ns + 10**9,
        "warmup": False,
        "loop_lag_max_ns": done,
        "response": response if done else None,
        "lag_mean_ns": mean if done else None,
    }


@given(st.lists(st.lists(st.floats(1, 1e9), max_size=20), min_size=1, max_size=4))
def test_a_joined_interval_has_the_moments_of_all(hosts: list[list[float]]) -> None:
    def moments(samples: list[float]) -> tuple[float, float]:
        mean = sum(samples) / len(samples) if samples else 0.0
        squares = sum((sample - mean) ** 2 for sample in samples)
        return mean, (squares / len(samples)) ** 0.5 if samples else 0.0

    found = joined([row(len(samples), *moments(samples)) for samples in hosts])
    every = [sample for samples in hosts for sample in samples]
    assert (found["done"], found["failed"]) == (len(every), len(hosts))
    if not every:
        assert found["response"] is None
        assert found["lag_mean_ns"] is None
        return
    mean, stddev = moments(every)
    assert found["response"]["mean_ns"] == pytest.approx(mean)
    assert found["response"]["stddev_ns"] == pytest.approx(stddev, abs=mean * 1e-6)
    assert found["response"]["p99_ns"] is None
    assert found["lag_mean_ns"] == pytest.approx(mean)


@dataclass
class FakeShare:
    number: int
    offset_ns: int
    running: bool = True
    progress: dict[str, Any] = field(default_factory=dict)
    messages: list[Any] = field(default_factory=list)
    ended: dict[str, Any] | None = None

    def here(self, there_ns: int) -> int:
        return there_ns - self.offset_ns

    def tells(self, *intervals: int) -> None:
        rows = [row(2, 3.0, 1.0, self.offset_ns + 70 + second * 10**9) for second in intervals]
        self.progress = {
            "done": 2, "failed": 1, "start_ns": self.offset_ns + 70, "measure_ns": self.offset_ns + 70,
            "deadline_ns": None, "latest": rows[-1], "recent": rows, "output_error": None,
        }  # fmt: skip


def test_an_interval_is_shown_once_when_all_hosts_have_ended_it_and_on_our_clock() -> None:
    slow, fast = FakeShare(0, 500), FakeShare(1, -9_000)
    progress = JointProgress([slow, fast])  # type: ignore[list-item]
    slow.tells(0)
    fast.tells(0, 1)
    fast.messages = ["a line"]
    taken = progress.take()
    assert [(one["start_ns"], one["done"]) for one in taken["recent"]] == [(70, 4)]
    assert (taken["start_ns"], taken["done"], taken["failed"]) == (70, 4, 2)
    assert taken["messages"] == ["a line"]
    taken = progress.take()
    assert (taken["recent"], taken["messages"]) == ([], [])
    assert taken["latest"]["start_ns"] == 70
    slow.running = False  # lost: the others are shown without it
    assert [one["done"] for one in progress.take()["recent"]] == [2]


def test_an_interval_that_one_host_never_tells_of_holds_no_other_back() -> None:
    # A host tells of its latest interval at each look: it may fall between the ends of two hosts' intervals.
    slow, fast = FakeShare(0, 0), FakeShare(1, 0)
    progress = JointProgress([slow, fast])  # type: ignore[list-item]
    slow.tells(3)
    fast.tells(4)
    assert progress.take()["latest"] is None
    slow.tells(7)
    fast.tells(7)
    assert progress.take()["latest"]["start_ns"] == 70 + 7 * 10**9


def test_rows_of_a_load_are_those_of_all_hosts() -> None:
    one, other = FakeShare(0, 0), FakeShare(1, 0)
    for share, rows in ((one, 5), (other, 7)):
        share.tells(0)
        share.progress |= {"rows": 10 * rows, "metrics": rows}
        share.progress["recent"][0] |= {"rows": rows, "metrics": 1}
    taken = JointProgress([one, other]).take()  # type: ignore[list-item]
    assert (taken["rows"], taken["metrics"]) == (120, 12)
    assert (taken["latest"]["rows"], taken["latest"]["metrics"]) == (12, 2)


def step(number: int, batches: int, start_ns: int, end_ns: int | None) -> dict[str, Any]:
    rows = {"step": number, "first_row": number * 10, "rows": 5 * batches, "batches": batches}
    return rows | {"start_ns": start_ns, "end_ns": end_ns, "state": "complete"}


def test_a_step_ends_when_it_has_ended_on_all_hosts() -> None:
    one, other = FakeShare(0, 100), FakeShare(1, -1_000)
    steps = JointSteps([one, other])  # type: ignore[list-item]
    one.progress = {"steps": [step(0, 2, 105, 120)], "holding": True}
    other.progress = {"steps": [], "holding": False}
    assert (list(steps.take()), steps.holding) == ([], False)
    other.progress = {"steps": [step(0, 1, -996, -970)], "holding": True}
    assert list(steps.take()) == [step(0, 3, 4, 30)]
    assert steps.holding
    # None of the batches of step 1 are the other's, and nobody has any of step 2: a resumed load.
    one.progress["steps"] = [step(1, 1, 150, 160), step(2, 0, 100, None)]
    other.progress["steps"] = [step(1, 0, -1_000, None), step(2, 0, -1_000, None)]
    assert list(steps.take()) == [step(1, 1, 50, 60)]
    assert list(steps.take()) == []
    # Who has ended has no more batches, unless something went wrong there.
    one.progress["steps"] = [step(3, 1, 170, 180)]
    other.running, other.ended = False, {"state": "aborted"}
    assert (list(steps.take()), steps.holding) == ([], True)
    other.ended = {"state": "complete"}
    assert list(steps.take()) == [step(3, 1, 70, 80)]
    assert [ended["step"] for ended in steps.ended] == [0, 1, 3]


def test_a_host_that_waits_for_the_end_of_others_is_looked_at_often() -> None:
    first, other = FakeShare(0, 0), FakeShare(1, 0)
    joint = JointDrive([first, other])  # type: ignore[list-item]

    def waits() -> list[float]:
        return [joint._wait_s(share) for share in (first, other)]  # type: ignore[arg-type]

    for document in ({}, {"lua": {"done": False}}):
        joint._document = document
        assert waits() == [POLL_S, POLL_S]
    joint._document = {"lua": {"done": True}}
    assert waits()[0] < POLL_S / 10, "it may end at any time"
    first.progress["deadline_ns"] = time.monotonic_ns() + 3_600 * 10**9
    assert waits() == [POLL_S, POLL_S]
    first.progress["deadline_ns"] = time.monotonic_ns() - 1
    assert waits()[0] < POLL_S / 10
    assert waits()[1] == POLL_S
    other.running = False
    assert max(waits()) < POLL_S / 10
    assert joint.first_awaits_others()
    first.running = False
    assert not joint.first_awaits_others()


def test_the_smallest_host_decides_how_many_threads_each_has() -> None:
    assert sent_of({"clients": 9, "out_dir": "/here"}, [64, 8, 16]) == {"clients": 9, "cores": 8}


def test_names_of_hosts_are_names_of_folders_and_differ() -> None:
    assert folder_name("db-load.example", []) == "db-load.example"
    assert folder_name("db-load.example", ["db-load.example"]) == "db-load.example-2"
    assert folder_name("../häst ", []) == "h-st-"
    assert folder_name("///", []) == "host"


def hosts_found(skew_ns: int | None, error_ns: int | None) -> dict[str, Any]:
    host = {"clock": {"error_ns": error_ns}}
    return {"start_skew_ns": skew_ns, "start_skew_limit_ns": 10_000_000, "hosts": [host, host]}


def test_a_start_that_may_have_been_further_apart_is_warned_of() -> None:
    assert said_of(hosts_found(40_000, 200_000)) == [
        ("info", "2 load hosts began within 0.04 ms (clocks known to 0.20 ms)")
    ]
    ((level, text),) = said_of(hosts_found(9_900_000, 200_000))
    assert level == "warning"
    assert text.endswith("9.90 ms (clocks known to 0.20 ms) apart, more than 10 ms")
    assert said_of(hosts_found(None, None)) == []


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("/tmp", True),
        ("localhost", True),
        ("127.0.0.9", True),
        ("::1", True),
        ("10.0.0.1", False),
        ("db", False),
    ],
)
def test_addresses_that_lead_to_this_machine(host: str, local: bool) -> None:  # noqa: FBT001
    assert is_local(host) is local


class FakeDrive:
    """A drive that tells of each interval once, and of the latest one at every look, as the core does."""

    def __init__(self) -> None:
        self.ended = 0

    def wait(self, _: float) -> None:
        self.ended += 2

    def progress(self) -> str:
        rows = [row(number, 1.0, 0.0, number * 10**9) for number in range(self.ended - 2, self.ended)]
        return json.dumps({"latest": rows[-1], "recent": rows, "messages": [], "done": self.ended})


def test_an_agent_tells_of_each_interval_once(tmp_path: Path) -> None:
    told = Agent(str(tmp_path))
    told._drive = FakeDrive()  # type: ignore[assignment]
    answers = [told.answer({"do": "poll", "wait_s": 0, "until": "end"})["progress"] for _ in range(9)]
    starts = [one["start_ns"] for answer in answers for one in answer["recent"]]
    assert starts == [number * 10**9 for number in range(18)]
    assert all(answer["latest"] is None for answer in answers)


def agent(folder: Path, lease_s: float) -> subprocess.Popen[bytes]:
    folder.mkdir()
    command = [sys.executable, "-m", "loadstone.hosts.agent", str(folder), str(lease_s)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_an_agent_ends_with_its_lease_and_with_its_parent(tmp_path: Path) -> None:
    with agent(tmp_path / "lease", 0.3) as unheard, agent(tmp_path / "parent", 600) as orphan:
        assert orphan.stdin is not None
        assert orphan.stdout is not None
        for message in (
            {"do": "stop"},
            {"do": "poll", "wait_s": 0, "until": "end"},
            {"do": "prepare", "document": {}},
        ):
            orphan.stdin.write(json.dumps(message).encode() + b"\n")
        orphan.stdin.flush()
        assert json.loads(orphan.stdout.readline()) == {}
        assert json.loads(orphan.stdout.readline())["failed"] == ["nothing is prepared", ""]
        assert "does not parse" in json.loads(orphan.stdout.readline())["failed"][0]
        orphan.stdin.close()
        assert orphan.wait(120) == 0
        assert unheard.wait(120) == 0
    assert list(tmp_path.iterdir()) == []


def test_without_dask_the_user_is_told_what_to_install() -> None:
    program = (
        "import sys; sys.modules['distributed'] = None\n"
        "from loadstone.cli import main\n"
        "sys.argv = ['loadstone', 'pgbench', '-n', '-S', '--hosts', 'local:2', '-h', '/nowhere', 'base']\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, text=True)
    assert done.returncode == 1
    assert "the Python package distributed is missing" in done.stderr
    assert "pip install" in done.stderr


def test_a_host_that_is_lost_is_no_fault_of_the_input() -> None:
    assert HostLostError("x").exit_code == 1


@given(st.floats(1e-3, 1e9), st.floats(1.0, 1e7))
def test_as_many_hosts_as_a_rate_needs_and_not_one_more(rate: float, ceiling: float) -> None:
    needed = hosts_needed(rate, ceiling)
    assert needed * USABLE * ceiling >= rate * (1 - 1e-9)
    assert needed == 1 or (needed - 1) * USABLE * ceiling < rate * (1 + 1e-9)


def test_the_slowest_host_at_its_best_number_of_clients_counts() -> None:
    def rows(*figures: tuple[str, float | None]) -> list[dict[str, Any]]:
        return [{"mode": mode, "tps": tps} for mode, tps in figures]

    found = needed_document(
        1_000.0,
        {
            "a": rows(("simple", 100.0), ("simple", 500.0), ("prepared", None)),
            "b": rows(("simple", 900.0), ("simple", 250.0), ("prepared", 7.0)),
        },
    )
    assert found["modes"]["simple"] == {"ceilings_tps": {"a": 500.0, "b": 900.0}, "hosts": 3}
    assert found["modes"]["prepared"]["hosts"] is None

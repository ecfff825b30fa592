"""history.jsonl: what `loadstone history add` writes, what damage does to it, and who may write at once."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.histories import add, history, line, run_of
from support.run_folders import Phase, Target, write

from loadstone.compare.plans import phase_digests
from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.history import file
from loadstone.history.documents import HistoryLine, MetricLine, PhaseLine
from loadstone.visible import visible_tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_a_run_is_a_line_with_its_values(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    result = add(path, run_of(tmp_path / "run"), "--commit", "abc123")
    assert result.exit_code == 0, result.output
    (found,) = [json.loads(text) for text in path.read_text().splitlines()]
    assert (found["run"], found["commit"], found["time"]) == (
        "20261120T101500Z-iot-feed",
        "abc123",
        "2026-11-20T10:15:00.123Z",
    )
    assert (found["target"]["id"], found["machine"]["host"], found["size"]) == ("pg18", "bench-01", "small")
    (phase,) = found["phases"]
    metrics = {metric["name"]: metric for metric in phase["metrics"]}
    rate = metrics["rate"]
    assert (phase["scenario"], phase["id"], len(phase["plan"])) == ("iot-feed", "insert", 12)
    assert (rate["primary"], rate["better"], rate["n"], rate["basis"]) == (True, "higher", 3, "repeats")
    assert rate["values"] == pytest.approx([400.0, 404.0, 394.0], rel=0.03)
    logs = [math.log(value) for value in rate["values"]]
    half = 4.302653 * statistics.stdev(logs) / math.sqrt(3)  # Student's t with two degrees of freedom
    mean = statistics.mean(logs)
    assert math.log(rate["value"]) == pytest.approx(mean)
    assert [math.log(rate[end]) - mean for end in ("low", "high")] == pytest.approx([-half, half], rel=1e-5)
    assert {"p50", "p95", "p99"} <= set(metrics)


def test_one_repeat_has_the_interval_within_the_run(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    assert add(path, run_of(tmp_path / "run", repeats=1)).exit_code == 0
    (found,), _ = file.read(path)
    rate, *_ = found.phases[0].metrics
    assert (rate.name, rate.basis, len(rate.values)) == ("rate", "within", 1)
    assert rate.n > 1
    assert rate.low is not None
    assert rate.high is not None
    assert rate.low < rate.value < rate.high


def test_repeats_that_have_nothing_in_common_have_no_interval(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    phases = tuple(Phase(repeat=at, seconds=4, warmup=0, tps=tps) for at, tps in ((1, 1.0), (2, 2000.0)))
    assert add(path, run_of(tmp_path / "run", phases=phases)).exit_code == 0
    rate = file.read(path)[0][0].phases[0].metrics[0]
    assert (rate.n, rate.low, rate.high, rate.basis) == (2, None, None, None)


def test_each_target_is_a_line(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    targets = (Target(), Target(id="pg17", label="PostgreSQL 17.11 (embedded)", speed=0.5))
    assert add(path, run_of(tmp_path / "run", repeats=1, targets=targets)).exit_code == 0
    rates = {one.target.id: one.phases[0].metrics[0].value for one in file.read(path)[0]}
    assert rates["pg17"] == pytest.approx(rates["pg18"] / 2, rel=0.05)


def test_the_plan_tells_what_can_be_compared(tmp_path: Path) -> None:
    """The seed of transactions and the repeats do not count; the clients do."""
    folder = run_of(tmp_path / "run")
    plan = json.loads((folder / "plan.json").read_text())
    (phase, *others) = plan["targets"][0]["phases"]

    def digest(**more: object) -> dict[str, str]:
        changed = plan | {"targets": [plan["targets"][0] | {"phases": [phase | more, *others]}]}
        write(folder / "plan.json", changed)
        return phase_digests(folder, "pg18")

    same = digest()
    assert len(same) == 1
    assert digest(title="Other words") == same
    drive = {"clients": 8, "seed": 2}
    driven = digest(workload={"type": "script", "drive": drive})
    assert digest(workload={"type": "script", "drive": drive | {"seed": 3}}) == driven
    assert digest(workload={"type": "script", "drive": drive | {"clients": 9}}) != driven


def test_a_run_is_added_once_unless_it_replaces(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    first, second = run_of(tmp_path / "a"), run_of(tmp_path / "b", 21)
    assert add(path, first).exit_code == 0
    before = path.read_bytes()
    refused = add(path, second, first)
    assert (refused.exit_code, path.read_bytes()) == (1, before)
    assert "already has the run 20261120T101500Z-iot-feed" in refused.stderr
    assert add(path, second, second).exit_code == 1
    assert path.read_bytes() == before
    assert add(path, first, "--replace", "--commit", "later").exit_code == 0
    assert [one.commit for one in file.read(path)[0]] == ["later"]
    assert path.read_bytes().startswith(before)


def test_what_does_not_belong_in_a_history_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    failed = run_of(tmp_path / "failed", state="failed")
    wrong = run_of(tmp_path / "wrong", phases=(Phase(lost=7, seconds=4),))
    empty = run_of(tmp_path / "empty", phases=(Phase(state="skipped"),))
    for folder, words in ((failed, "failed"), (wrong, "do not use"), (empty, "no measured phase")):
        refused = add(path, folder)
        assert refused.exit_code == 1, refused.output
        assert words in refused.stderr
    assert add(path, tmp_path / "nowhere").exit_code == 1
    assert not path.exists()


@pytest.mark.parametrize("label", ["", "  ", "two\nlines", "\x1b[31m", "x" * 201])
def test_a_label_that_cannot_be_is_refused(label: str, tmp_path: Path) -> None:
    assert add(tmp_path / "history.jsonl", run_of(tmp_path / "run"), "--commit", label).exit_code == 1
    assert not (tmp_path / "history.jsonl").exists()


def test_unknown_keys_and_newer_lines_stay(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    plain = msgspec.to_builtins(line("known"))
    newer = json.dumps(plain | {"format": 2, "run": "newer"})
    more = json.dumps(plain | {"weather": {"wind": 3}})
    path.write_text(f"{newer}\n{more}\n")
    file.append(path, [line("added")])
    found, wrong = file.read(path)
    assert {one.run for one in found} == {"known", "added"}
    assert [words for words in wrong if "line 1" in words and "newer version" in words] == wrong
    assert path.read_text().splitlines()[:2] == [newer, more]


TEXT = st.text(max_size=8)
FIGURES = st.floats(min_value=1e-9, max_value=1e20, exclude_min=True)
METRICS = st.builds(
    lambda name, unit, values, ends: MetricLine(
        name=name,
        unit=unit,
        better="lower",
        value=values[0],
        n=len(values),
        low=ends,
        high=None,
        values=values,
    ),
    TEXT,
    TEXT,
    st.lists(FIGURES, min_size=1, max_size=3),
    st.none() | st.floats(min_value=-1e20, max_value=1e20),
)
PHASES = st.builds(
    lambda title, variant, metrics: PhaseLine(title=title, variant=variant, metrics=metrics),
    TEXT,
    st.dictionaries(TEXT, TEXT | st.integers(-9, 9) | st.booleans() | st.none(), max_size=2),
    st.lists(METRICS, max_size=2),
)
LINES = st.lists(
    st.builds(
        lambda commit, phases: line(commit=commit, phases=phases),
        st.none() | TEXT,
        st.lists(PHASES, max_size=2),
    ),
    min_size=1,
    max_size=4,
).map(lambda lines: [msgspec.structs.replace(one, run=f"run-{at}") for at, one in enumerate(lines)])


def shown(lines: list[HistoryLine]) -> list[Any]:
    """Return lines as they are read: control characters as text."""
    return [visible_tree(msgspec.to_builtins(one)) for one in lines]


@given(LINES)
def test_what_is_appended_is_read(tmp_path_factory: pytest.TempPathFactory, lines: list[HistoryLine]) -> None:
    path = tmp_path_factory.mktemp("history") / "history.jsonl"
    for one in lines:
        file.append(path, [one])
    found, wrong = file.read(path)
    assert wrong == []
    assert [msgspec.to_builtins(one) for one in found] == shown(lines)


WHOLE = [json.dumps(msgspec.to_builtins(line(f"run-{at}"))).encode() for at in range(3)]


@given(st.integers(0, 2), st.binary(max_size=40), st.data())
def test_damage_costs_the_line_that_it_is_in(
    tmp_path_factory: pytest.TempPathFactory, at: int, dirt: bytes, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("history") / "history.jsonl"
    begin = data.draw(st.integers(0, len(WHOLE[at])))
    end = data.draw(st.integers(begin, len(WHOLE[at])))
    damaged = WHOLE[at][:begin] + dirt + WHOLE[at][end:]
    path.write_bytes(b"\n".join([*WHOLE[:at], damaged, *WHOLE[at + 1 :]]) + b"\n")
    others = {f"run-{other}" for other in range(3) if other != at}
    found, wrong = file.read(path)
    runs = {one.run for one in found}
    # What is left of the line may be a line: of another name, or of one that is there.
    assert others <= runs
    assert len(wrong) <= 1 + dirt.count(b"\n")
    assert wrong or len(found) >= len(others)
    file.append(path, [line("added")])
    assert {*others, "added"} <= {one.run for one in file.read(path)[0]}


@given(st.integers(1, len(WHOLE[2])))
def test_a_half_line_of_a_killed_writer_is_cut_off(
    tmp_path_factory: pytest.TempPathFactory, kept: int
) -> None:
    path = tmp_path_factory.mktemp("history") / "history.jsonl"
    path.write_bytes(WHOLE[0] + b"\n" + WHOLE[2][:kept])
    file.append(path, [line("added")])
    last = {"run-2"} if kept == len(WHOLE[2]) else set()
    found, wrong = file.read(path)
    assert ({one.run for one in found}, wrong) == ({"run-0", "added"} | last, [])


WRITER = """
import contextlib, sys, msgspec
from pathlib import Path
from loadstone.errors import LoadstoneError
from loadstone.history import file
from loadstone.history.documents import HistoryLine
one = msgspec.json.decode(sys.stdin.buffer.readline(), type=HistoryLine)
print("ready", flush=True)
sys.stdin.readline()
for at in range(20):
    with contextlib.suppress(LoadstoneError):
        file.append(Path(sys.argv[1]), [msgspec.structs.replace(one, run=f"{sys.argv[2]}-{at}")])
"""


@pytest.mark.parametrize("names", ["abc", "aaa"])
def test_processes_append_at_the_same_time(names: str, tmp_path: Path) -> None:
    """Each run is there once, also if all of them add the same."""
    path = tmp_path / "history.jsonl"
    earlier = b"".join(WHOLE[0].replace(b"run-0", b"old-%d" % at) + b"\n" for at in range(200))
    path.write_bytes(earlier + WHOLE[0][:30])  # torn: one of them cuts it off
    many = [line().phases[0]] * 40
    text = msgspec.json.encode(line(phases=many)) + b"\n"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, path, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for name in names
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(text)
        writer.stdin.flush()
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    assert path.read_bytes().startswith(earlier)
    added = [json.loads(text)["run"] for text in path.read_bytes()[len(earlier) :].splitlines()]
    assert sorted(added) == sorted(f"{name}-{at}" for name in set(names) for at in range(20))


FULL = """
import resource, sys
from pathlib import Path
from loadstone.cli.group import loadstone
size = Path(sys.argv[1]).stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, size + 100))
loadstone(["history", "add", sys.argv[2], "--history", sys.argv[1]])
"""


def test_a_full_disk_leaves_the_history_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(WHOLE[0] + b"\n")
    command = [sys.executable, "-c", FULL, str(path), str(run_of(tmp_path / "run", repeats=1))]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 2, done.stderr
    assert "nothing was added" in done.stderr
    assert path.read_bytes() == WHOLE[0] + b"\n"


def test_a_file_that_cannot_be_a_history_is_refused(tmp_path: Path) -> None:
    folder, pipe = tmp_path / "folder", tmp_path / "pipe"
    folder.mkdir()
    os.mkfifo(pipe)
    for path, kind in (
        (folder, RunFailedError),
        (pipe, LoadstoneError),
        (tmp_path / "a" / "b", RunFailedError),
    ):
        with pytest.raises(kind):
            file.append(path, [line()])
    with pytest.raises(LoadstoneError, match="does not exist"):
        file.read(tmp_path / "nothing")
    assert "history add" in history("page", "--history", tmp_path / "nothing").stderr

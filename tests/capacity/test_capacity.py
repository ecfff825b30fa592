"""What a run says about a number of devices: only what it measured, and how far that is stretched."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from support.run_folders import Phase, Run, Target, build
from support.table_load_folders import index_import

from loadstone.capacity.answer import answer, span_s
from loadstone.capacity.compute import capacity
from loadstone.capacity.documents import Answer, Wanted
from loadstone.capacity.measured import MeasuredLoad
from loadstone.capacity.texts import span, text
from loadstone.cli.group import loadstone
from loadstone.errors import LoadstoneError
from loadstone.results.documents.summary import PerUnit, Rate

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

WANTED = Wanted(devices=10_000, interval_s=10, rows_per_report=1, retention_s=90 * 86_400)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return index_import(tmp_path_factory.mktemp("capacity") / "run", limit=96 * 2**20)


def call(*arguments: object) -> Result:
    return CliRunner().invoke(loadstone, [str(argument) for argument in arguments], standalone_mode=False)


def measured(**changes: Any) -> MeasuredLoad:
    usual: dict[str, Any] = {
        "name": "Import",
        "target": "pg18",
        "phases": ["001-import"],
        "rate": Rate(value=1000.0, low=900.0, high=1100.0, n=20, reason=None),
        "rate_note": "20 steps",
        "seconds": 60.0,
        "rows": 60_000.0,
        "per_row": PerUnit(
            wal_bytes_per_transaction=None,
            wal_bytes_per_row=50.0,
            table_bytes_per_row=100.0,
            index_bytes_per_row=20.0,
        ),
        "knee": None,
        "partition_rows": None,
        "index_bytes_at_knee": None,
        "memory_limit_bytes": None,
        "checkpoints": 1,
        "driven": False,
        "ddl": "",
        "loaded": None,
        "conditions": (),
    }
    return MeasuredLoad(**usual | changes)


@pytest.mark.slow
def test_figures_of_a_load_in_steps_are_those_of_its_documents(imported: Path) -> None:
    (found,) = answer(imported, WANTED, {"indexes": "3"}).capacities
    assert found.low_rows_per_s is not None
    assert found.servers.count == math.ceil(1000 / found.low_rows_per_s)
    assert found.knee is not None
    assert "Import starts to slow down at" in found.knee
    assert "limited to 96.0 MiB" in found.knee
    assert "Without partitions, that is after" in found.knee
    assert found.disk is not None
    each = found.disk.table_bytes_per_row + (found.disk.index_bytes_per_row or 0)
    assert found.disk.bytes_kept == pytest.approx(each * 1000 * 86_400 * 90)
    (rows, kept, time) = found.extrapolated
    assert (rows.what, rows.times <= 1) == ("rows of one partition", True)
    assert kept.times == pytest.approx(1000 * 86_400 * 90 / 4_000_000, rel=0.01)
    assert time.times > 1000


def test_partitions_span_a_usual_time_and_stay_below_the_knee(imported: Path) -> None:
    (found,) = answer(imported, WANTED, {"indexes": "3"}).capacities
    partitions = found.partitions
    assert partitions is not None
    assert partitions.seconds == 900
    assert 1000 * partitions.seconds <= partitions.rows
    assert partitions.count == 90 * 24 * 4
    assert (
        "for values from ('2018-10-01 00:00:00.000000') to ('2018-10-01 00:15:00.000000')" in partitions.ddl
    )
    assert partitions.ddl.count("partition of") == 12 + 2


def test_partitions_are_no_longer_than_rows_are_kept(imported: Path) -> None:
    few = Wanted(devices=10, interval_s=3600, rows_per_report=1, retention_s=86_400)
    (found,) = answer(imported, few, {"indexes": "3"}).capacities
    assert found.partitions is not None
    assert (found.partitions.seconds, found.partitions.count) == (86_400, 1)
    brief = msgspec.structs.replace(few, interval_s=0.1, retention_s=30)
    (found,) = answer(imported, brief, {"indexes": "3"}).capacities
    assert found.partitions is not None
    assert found.partitions.seconds == 60


def test_partitions_that_fill_at_once_are_not_offered() -> None:
    few = msgspec.structs.replace(WANTED, devices=10_000, interval_s=0.01)
    hot = capacity(
        measured(partition_rows=1000, rate=Rate(value=1e6, low=1e6, high=1e6, n=9, reason=None)), few
    )
    assert hot.partitions is None
    assert any("arrive in" in words for words in hot.not_measured)
    assert any("the measured rate does not last" in words for words in hot.not_measured)


def test_a_scenario_of_ones_own_is_enough(tmp_path: Path) -> None:
    folder = build(tmp_path / "run", Run(phases=(Phase(rows=10),), targets=(Target(fsync="off"),)))
    (found,) = answer(folder, WANTED, {}).capacities
    assert found.measured_rows_per_s == pytest.approx(40_000, rel=0.1)
    assert found.partitions is None
    assert found.knee is None
    assert any("fsync was off" in words for words in found.conditions)
    assert any(words.startswith("when indexes stop fitting into memory") for words in found.not_measured)
    assert any(words.startswith("latency at the needed rate") for words in found.not_measured)


def test_a_failed_check_forbids_the_figures(tmp_path: Path) -> None:
    folder = build(tmp_path / "run", Run(phases=(Phase(rows=10, check=False),)))
    with pytest.raises(LoadstoneError, match="must not be used"):
        answer(folder, WANTED, {})


def test_runs_without_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadstoneError, match="no complete phase that loads rows"):
        answer(build(tmp_path / "run"), WANTED, {})
    stopped = Run(phases=(Phase(rows=10, state="interrupted"),), state="interrupted")
    with pytest.raises(LoadstoneError, match="no complete phase that loads rows"):
        answer(build(tmp_path / "stopped", stopped), WANTED, {})


def test_what_is_not_there_is_refused_with_what_there_is(imported: Path) -> None:
    with pytest.raises(LoadstoneError) as refused:
        answer(imported, WANTED, {"indexes": "9"})
    assert "indexes = 3" in refused.value.hint


@given(
    st.integers(1, 10**9),
    st.floats(0.01, 1e5),
    st.floats(1, 1e6),
    st.one_of(st.none(), st.floats(0.001, 1)),
)
def test_as_many_servers_as_the_low_end_needs(
    devices: int, interval_s: float, rate: float, low_share: float | None
) -> None:
    wanted = Wanted(devices=devices, interval_s=interval_s, rows_per_report=1, retention_s=1e6)
    low = None if low_share is None else rate * low_share
    found = capacity(measured(rate=Rate(value=rate, low=low, high=rate, n=9, reason=None)), wanted).servers
    assert found.by_value >= 1
    if low is None:
        assert found.count is None
    else:
        assert found.count is not None
        assert found.count * low >= wanted.rows_per_s * (1 - 1e-9)
        assert (found.count - 1) * low < wanted.rows_per_s
        assert found.count >= found.by_value
        assert found.devices * found.count >= devices - found.count


def test_what_was_not_measured_is_named_and_not_computed() -> None:
    found = capacity(measured(per_row=None, checkpoints=None), WANTED)
    assert (found.disk, found.log, found.partitions) == (None, None, None)
    assert any(words.startswith("bytes on disk") for words in found.not_measured)
    assert any(words.startswith("WAL") for words in found.not_measured)
    quiet = capacity(measured(checkpoints=0), WANTED)
    assert any(words.startswith("checkpoints") for words in quiet.not_measured)
    assert capacity(measured(), WANTED).log is not None


def test_the_command_prints_comments_and_ddl(imported: Path) -> None:
    given = ("--devices", 10_000, "--interval", "10s", "--retention", "90d", "--variant", "indexes=3")
    shown = call("advise", "capacity", imported, *given)
    assert shown.exit_code == 0, shown.output
    lines = shown.stdout.splitlines()
    assert lines[0] == (
        "-- Needed: 10,000 devices with one row every 10 seconds: 1,000 rows/s, 86.4 M rows a day, "
        "7,776 M rows in 90 days."
    )
    assert all(line.startswith(("--", "create ")) or not line for line in lines)
    assert any(line.startswith("create table") for line in lines)
    document = msgspec.json.decode(call("advise", "capacity", imported, *given, "--json").stdout, type=Answer)
    assert document.needed_rows_per_s == 1000
    assert text(document) == shown.stdout


def test_advice_on_partitions_needs_no_name(imported: Path) -> None:
    usual, named = call("advise", imported), call("advise", "partitions", imported)
    assert usual.exit_code == 0
    assert usual.stdout == named.stdout != ""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10", 10), ("10s", 10), ("250ms", 0.25), ("5m", 300), ("12h", 43_200), ("1.5d", 129_600)],
)
def test_times(text: str, seconds: float) -> None:
    assert span_s(text, "s") == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "0", "-1s", "ten", "1 month", "nan", "1e9"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(LoadstoneError, match="is not a time"):
        span_s(text, "s")


def test_the_words_say_how_many_devices_a_server_takes_and_what_partitions_keep(imported: Path) -> None:
    wanted = Wanted(devices=100, interval_s=86_400, rows_per_report=2, retention_s=90 * 86_400)
    found = answer(imported, wanted, {"indexes": "3"})
    shown = text(found)
    (one,) = found.capacities
    assert one.low_rows_per_s is not None
    assert one.servers.devices == math.floor(one.low_rows_per_s * 86_400 / 2)
    assert "100 devices with 2 rows every day: " in shown
    assert f"one takes {one.servers.devices:,} devices at most" in shown
    assert "4 of them cover 90 days. A partition is dropped when its last row is that old" in shown
    assert "so rows of up to 28 days more are kept, " in shown
    assert "removed before its device reports again" not in shown
    brief = msgspec.structs.replace(wanted, retention_s=3600)
    assert "removed before its device reports again" in text(answer(imported, brief, {"indexes": "3"}))


@given(st.integers(1, 10**9))
def test_a_span_is_shown_as_what_it_is(seconds: int) -> None:
    shown = span(seconds)
    number, unit = shown.split(" ")[:2]
    if unit.rstrip("s") in ("day", "hour", "minute", "second"):
        lengths = {"day": 86_400, "hour": 3600, "minute": 60, "second": 1}
        assert int(number.replace(",", "")) * lengths[unit.rstrip("s")] == seconds


def test_documents_of_the_answer_are_plain_json(imported: Path) -> None:
    found = answer(imported, WANTED, {"indexes": "0"})
    assert json.loads(msgspec.json.encode(found))["capacities"][0]["knee"].startswith("No")

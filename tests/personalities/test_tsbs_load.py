"""The ledger and the check of a load, on a real server; flags, and what is printed."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from support.timeseries_data import DATASET, PLAIN, SERIES, control_of, make, where

from loadstone.engine.dialect.timeseries import names
from loadstone.engines import engine
from loadstone.errors import LoadstoneError, RunFailedError, WrongAnswerError
from loadstone.personalities.tsbs import load_flags, load_report
from loadstone.personalities.tsbs.flags import parse
from loadstone.personalities.tsbs.load import main
from loadstone.workload.load import tables
from loadstone.workload.tsbs import verification

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Database

    from loadstone.personalities.tsbs.flags import Values

NAMES = names(DATASET)

# Ledger and refusals


def test_tables_that_are_there_are_refused(database: Database) -> None:
    with control_of(database) as control:
        tables.refuse_existing(control, SERIES, NAMES)
        control.execute("create table readings (mine int)")
        with pytest.raises(LoadstoneError, match="the table readings"):
            tables.refuse_existing(control, SERIES, NAMES)


def test_a_broken_load_is_told_from_other_tables(database: Database) -> None:
    with control_of(database) as control:
        make(control)
        tables.open_ledger(control, SERIES, {"batch size": 10})
        control.execute("insert into loadstone_batches values (0, 10), (1, 10), (4, 7)")
        with pytest.raises(LoadstoneError, match=r"after 3 batches \(27 rows\)"):
            tables.refuse_existing(control, SERIES, NAMES)
        assert tables.committed(control, SERIES) == tables.Committed(3, 27, ((0, 1), (4, 4)))


def test_only_the_same_load_goes_on(database: Database) -> None:
    about = {"batch size": 10, "data": {"seed": 1}}
    with control_of(database) as control:
        with pytest.raises(LoadstoneError, match="no interrupted load"):
            tables.reopen_ledger(control, SERIES, NAMES, about)
        make(control)
        tables.open_ledger(control, SERIES, about)
        assert tables.reopen_ledger(control, SERIES, NAMES, about).batches == 0
        with pytest.raises(LoadstoneError, match="its batch size was 10, now it is 20"):
            tables.reopen_ledger(control, SERIES, NAMES, about | {"batch size": 20})
        control.execute("drop table readings")
        with pytest.raises(LoadstoneError, match="readings is gone"):
            tables.reopen_ledger(control, SERIES, NAMES, about)


def test_what_could_not_be_made_whole_is_dropped_and_nothing_else(database: Database) -> None:
    with control_of(database) as control:
        control.execute("create table readings (mine int)")
        wanted = list(SERIES.tables(DATASET, PLAIN, where()))
        done = wanted[
            : wanted.index(next(s for s in wanted if s.startswith('create table "loadstone"."readings"')))
        ]
        tables.execute(control, done)
        tables.drop_made(control, SERIES, NAMES, done)
        assert SERIES.existing(control, ["tags", "diagnostics", "readings"]) == ["readings"]


def test_tables_of_others_must_be_there_and_empty(database: Database) -> None:
    with control_of(database) as control:
        with pytest.raises(LoadstoneError, match="does not have the tables tags, diagnostics, readings"):
            tables.refuse_unready(control, SERIES, NAMES)
        make(control)
        tables.refuse_unready(control, SERIES, NAMES)
        control.execute("insert into readings (tags_id) values (1)")
        with pytest.raises(LoadstoneError, match="readings in the database already contain rows"):
            tables.refuse_unready(control, SERIES, NAMES)


# The check


def test_every_change_of_a_table_is_found(database: Database) -> None:
    table = DATASET["tables"][1]
    with control_of(database) as control:
        make(control)
        control.execute(
            "insert into readings select '2016-01-01 00:00+00'::timestamptz + i * interval '10 s', "
            "1 + i % 7, i * 0.37, case when i % 5 > 0 then i / 3.0 end from generate_series(0, 999) as i"
        )
        whole = verification.fingerprint(control, SERIES, table)
        assert verification.check_table(control, SERIES, table, whole)["passed"]
        for change in (
            "delete from readings where tags_id = 3 and latitude = 0.74",
            "insert into readings select * from readings where tags_id = 2 limit 1",
            "update readings set velocity = velocity + 1e-5 where latitude = 0.37",
            "update readings set velocity = 0 where velocity is null",
            "update readings set latitude = velocity, velocity = latitude where latitude = 0.37 * 6",
            "update readings set tags_id = case tags_id when 1 then 2 else 1 end where tags_id in (1, 2)",
            """update readings set "time" = "time" + interval '1 microsecond' where latitude = 0.37""",
        ):
            control.execute("begin")
            control.execute(change)
            check = verification.check_table(control, SERIES, table, whole)
            control.execute("rollback")
            assert not check["passed"], change


def test_the_fingerprint_of_no_rows_is_zero(database: Database) -> None:
    with control_of(database) as control:
        make(control)
        found = verification.fingerprint(control, SERIES, DATASET["tables"][1])
        assert found == {
            "rows": "0", "time_sum": "0", "tags_sum": "0", "content": "0", "nulls": ["0", "0"],
        }  # fmt: skip


# Flags

DATA = ("--use-case=iot", "--seed=1", "--scale=1", "--timestamp-end=2016-01-01T00:01:00Z")


def values_of(*arguments: str) -> Values:
    return parse("load", load_flags.FLAGS, arguments)


def main_code(arguments: list[str], said: list[str]) -> int:
    try:
        return main(arguments, said.append, said.append)
    except LoadstoneError as error:
        said.insert(0, str(error))
        return int(error.exit_code)


def test_the_published_command_line_is_understood() -> None:
    values = values_of(
        "--use-insert=true", "--batch-size=1000", "--partition-index=true", "--time-index=true",
        "--chunk-time=24h", "--workers=150", "--no-flow-control", "--use-tags-id=true",
        "--chunkgroup-duration=1d",
    )  # fmt: skip
    load = load_flags.load_of(values, engine("postgres"))
    assert (load.method, load.batch_rows, load.workers) == ("insert", 1000, 150)
    assert load.tables.chunk_time_s == 86400
    notes = list(load_flags.notes(values, engine("postgres")))
    assert [note.split(":")[0] for note in notes] == ["--chunkgroup-duration", "--no-flow-control"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "best"),
        (("--use-copy",), "copy_binary"),
        (("--use-copy=false",), "insert"),
        (("--use-insert",), "insert"),
        (("--force-text-format",), "copy_text"),
        (("--method=insert",), "insert"),
    ],
)
def test_flags_choose_how_rows_are_sent(arguments: tuple[str, ...], expected: str) -> None:
    assert load_flags.load_of(values_of(*arguments), engine("postgres")).method == expected


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--use-copy", "--use-insert"), "exclude each other"),
        (("--method=insert", "--use-copy"), "--method and TSBS's flags for the method exclude each other"),
        (("--method=pigeon",), "is not a method"),
        (("--field-index=VALUE-TIME,TIME-VALUE",), "or TIME-VALUE"),
        (("--workers=0",), "out of range"),
        (("--batch-size=0",), "out of range"),
        (("--use-case=iot",), "needs a seed"),
        (("--use-case=boats", "--seed=1"), "invalid use case"),
        (("--use-case=iot", "--seed=1", "--file=x"), "Use only one of them"),
        (("--use-case=iot", "--seed=1", "--native", "--slice=4/4"), "is not a slice"),
        (("--rate=-1",), "is negative"),
    ],
)
def test_contradictions_are_refused(arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(LoadstoneError, match=words):
        load_flags.load_of(values_of(*arguments), engine("postgres"))


def test_plain_tables_are_split_only_on_request_and_hypertables_always() -> None:
    assert load_flags.load_of(values_of(), engine("postgres")).tables.chunk_time_s is None
    assert load_flags.load_of(values_of(), engine("timescaledb")).tables.chunk_time_s == 43200


def test_flags_of_the_later_program_mean_the_same() -> None:
    arguments = load_flags.from_unified(
        [
            "--loader.runner.workers=3", "--loader.db-specific.chunk-time=1h",
            "--data-source.type", "SIMULATOR",
            "--data-source.simulator.use-case=iot", "--data-source.file.location=x", "--seed=2",
        ]
    )  # fmt: skip
    assert arguments == ["--workers=3", "--chunk-time=1h", "--use-case=iot", "--file=x", "--seed=2"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--target=pg", "--host=x", *DATA], "--target and --"),
        (["sqlite", *DATA], "there is no target"),
        (["--target=nowhere", *DATA], "is not a target"),
        (["--postgres=password", *DATA], "libpq does not accept --postgres as a connection string"),
        (["--target=pg", "--resume", "--replace", *DATA], "exclude each other"),
        (["--target=pg", "--setting=x", *DATA], "is not name=value"),
        (["--target=pg", "--file=/nonexistent/data"], "cannot be read"),
    ],
)
def test_wrong_command_lines_touch_nothing(arguments: list[str], words: str) -> None:
    said: list[str] = []
    assert main_code(arguments, said) == 1
    assert words in said[0]


# Targets that are not what they are called


def test_a_server_without_timescaledb_is_refused_before_anything_is_touched(database: Database) -> None:
    said: list[str] = []
    code = main_code(["--target", database.url.replace("postgres://", "timescaledb://"), *DATA], said)
    assert code == 1
    assert "the server does not have TimescaleDB" in said[0]
    assert database.value("select count(*) from pg_class where relname = 'tags'") == 0


def test_a_server_that_is_not_opengauss_is_refused(database: Database) -> None:
    said: list[str] = []
    for scheme in ("opengauss", "uqbar", "mogdb"):
        assert main_code(["--target", database.url.replace("postgres://", f"{scheme}://"), *DATA], said) == 1
        assert "the server is not openGauss: PostgreSQL" in said[0]


# What is printed


def test_lines_are_those_of_tsbs(monkeypatch: pytest.MonkeyPatch) -> None:
    out: list[str] = []
    clock = iter([100.0, 110.0, 120.0])
    # In this module alone: other threads of the process read the clock as well.
    told = SimpleNamespace(monotonic=lambda: next(clock), time=lambda: 1451606400.7)
    monkeypatch.setattr(load_report, "time", told)
    reporter = load_report.Reporter(10.0, out.append)
    reporter.begin()
    reporter.line(0, 0)
    reporter.line(2_500_000, 250_000)
    assert out == [
        "time,per. metric/s,metric total,overall metric/s,per. row/s,row total,overall row/s\n",
        "1451606400,0.00,0.000000E+00,0.00,-,-,-\n",
        "1451606400,250000.00,2.500000E+06,125000.00,25000.00,2.500000E+05,12500.00\n",
    ]
    assert load_report.summary(1000, 100, 2.0, 4) == (
        "\nSummary:\nloaded 1000 metrics in 2.000sec with 4 workers (mean rate 500.00 metrics/sec)\n"
        "loaded 100 rows in 2.000sec with 4 workers (mean rate 50.00 rows/sec)\n"
    )


def account_of(**changes: Any) -> dict[str, Any]:
    load = {"committed": {"batches": 3, "rows": 30}, "verified": True, "checks": [], "metrics": 10, "rows": 1}
    account = {
        "state": "complete", "reason": None, "errors": [], "start_ns": 0, "end_ns": 2_000_000_000,
        "clients": 1,
        "counts": {}, "load": load | changes.pop("load", {}),
    }  # fmt: skip
    return account | changes


def test_a_broken_load_says_what_is_committed() -> None:
    error = {"sqlstate": "53100", "message": "could not extend file", "first_ns": 1}
    with pytest.raises(RunFailedError) as caught:
        load_report.conclude(account_of(state="aborted", reason="batch 3 failed", errors=[error]))
    assert "the server's disk is full: batch 3 failed: could not extend file (53100)" in caught.value.message
    assert "3 batches with 30 rows are committed; --resume loads the rest" in caught.value.hint


def test_wrong_content_is_a_wrong_answer() -> None:
    check = {"name": "cpu contains the rows", "expected": "2 rows", "actual": "1 rows", "passed": False}
    with pytest.raises(WrongAnswerError, match="expected 2 rows, found 1 rows"):
        load_report.conclude(account_of(load={"verified": False, "checks": [check]}))


def test_the_results_file_has_the_form_of_tsbs(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    load_report.write_results(path, values_of("--workers=2"), account_of(), 1451606400)
    found = json.loads(path.read_text())
    assert list(found)[:6] == [
        "ResultFormatVersion", "RunnerConfig", "StartTime", "EndTime", "DurationMillis", "Totals",
    ]  # fmt: skip
    assert found["RunnerConfig"]["reporting-period"] == 10_000_000_000
    assert found["Totals"] == {"metricRate": 5.0, "rowRate": 0.5}
    assert found["loadstone"]["load"]["verified"] is True

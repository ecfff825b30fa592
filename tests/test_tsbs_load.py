"""Tables of time series, the ledger and the check of a load, on a real server; flags and what is printed."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.engine.series import Circumstances, SeriesAnswers, chunk_bounds
from loadstone.engines import engine
from loadstone.engines.opengauss import _own_version
from loadstone.errors import LoadstoneError, RunFailedError, WrongAnswerError
from loadstone.model import SeriesTables
from loadstone.personalities.tsbs import load_flags, load_report
from loadstone.personalities.tsbs.flags import parse
from loadstone.personalities.tsbs.load import main
from loadstone.target import parse_target
from loadstone.tsbs import tables, verify
from loadstone.tsbs.content import Content, content_of  # noqa: F401 - Content is for annotations

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from desk import Database

    from loadstone.engine.control import Control
    from loadstone.engine.series import Dataset, Table
    from loadstone.personalities.tsbs.flags import Values

DAY_US = 86_400_000_000
START_US = int(datetime(2016, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
PLAIN = SeriesTables()
SERIES = SeriesAnswers()


def table_of(name: str, *fields: str) -> Table:
    columns = [("time", "timestamp"), ("tags_id", "int32"), *((field, "float64") for field in fields)]
    columns.append(("additional_tags", "text"))
    return {
        "name": name,
        "metrics": len(fields),
        "columns": [{"name": name, "type": kind} for name, kind in columns],
    }


TAGS: Table = {
    "name": "tags",
    "metrics": 0,
    "columns": [
        {"name": "id", "type": "int32"},
        {"name": "name", "type": "text"},
        {"name": "fleet", "type": "text"},
        {"name": "load_capacity", "type": "float32"},
    ],
}
DATASET: Dataset = {
    "tags": TAGS,
    "tables": [table_of("diagnostics", "fuel_state"), table_of("readings", "latitude", "velocity")],
}


@contextmanager
def control_of(database: Database) -> Iterator[Control]:
    target = parse_target(database.socket_url)
    assert target.connection is not None
    with engine("postgres").connect(target.connection) as control:  # type: ignore[attr-defined]
        yield control


def where(version: int = 180000) -> Circumstances:
    return Circumstances(version, (START_US, START_US + DAY_US))


def make(control: Control, wishes: SeriesTables = PLAIN) -> None:
    tables.make(control, SERIES, DATASET, wishes, where())


def rows(control: Control, sql: str) -> list[dict[str, Any]]:
    return control.execute(sql.encode()).fetchall()


def indexes(control: Control, table: str) -> set[str]:
    found = rows(control, f"select indexdef from pg_indexes where tablename = '{table}'")
    return {row["indexdef"].partition(" USING ")[2] for row in found}


# Tables


def test_tables_have_the_columns_and_indexes_of_tsbs(database: Database) -> None:
    with control_of(database) as control:
        make(control)
        columns = rows(
            control,
            "select column_name as name, data_type as type from information_schema.columns "
            "where table_name = 'readings' order by ordinal_position",
        )
        assert [(row["name"], row["type"]) for row in columns] == [
            ("time", "timestamp with time zone"),
            ("tags_id", "integer"),
            ("latitude", "double precision"),
            ("velocity", "double precision"),
            ("additional_tags", "jsonb"),
        ]
        assert indexes(control, "readings") == {
            'btree (tags_id, "time" DESC)',
            'btree ("time" DESC)',
        }
        assert indexes(control, "tags") == {
            "btree (id)",
            "btree (name, fleet, load_capacity)",
            "btree (name)",
        }


@pytest.mark.parametrize(
    ("wishes", "expected"),
    [
        ({"time_index": False, "partition_index": False}, set()),
        ({"time_partition_index": True}, {'btree (tags_id, "time" DESC)', 'btree ("time" DESC, tags_id)'}),
        ({"in_table_tag": True, "time_index": False}, {'btree (name, "time" DESC)'}),
        (
            {"field_index_count": 1, "time_index": False, "partition_index": False},
            {'btree (latitude, "time" DESC)'},
        ),
        (
            {
                "field_index_count": -1,
                "field_index": "TIME-VALUE",
                "time_index": False,
                "partition_index": False,
            },
            {'btree ("time" DESC, latitude)', 'btree ("time" DESC, velocity)'},
        ),
    ],
)
def test_indexes_follow_the_wishes(database: Database, wishes: dict[str, Any], expected: set[str]) -> None:
    with control_of(database) as control:
        make(control, replace(PLAIN, **wishes))
        assert indexes(control, "readings") == expected


def test_no_row_lacks_a_partition_and_those_outside_the_span_are_counted(database: Database) -> None:
    with control_of(database) as control:
        make(control, replace(PLAIN, chunk_time_s=6 * 3600, hash_partitions=3))
        control.execute(
            "insert into readings select '2015-12-31 18:00+00'::timestamptz + i * interval '1 hour', i "
            "from generate_series(0, 40) as i"
        )
        places = {
            row["place"]: row["rows"]
            for row in rows(
                control, "select tableoid::regclass::text as place, count(*) as rows from readings group by 1"
            )
        }
        assert places["readings_before"] == 6
        assert places["readings_after"] == 41 - 6 - 24
        inside = {name for name in places if "_p2016" in name}
        assert {re.sub(r"_h\d$", "", name) for name in inside} == {
            f"readings_p20160101_{hour:02}0000" for hour in (0, 6, 12, 18)
        }
        assert {name[-2:] for name in inside} == {"h0", "h1", "h2"}
        assert SERIES.strays(control, "readings") == 17
        assert SERIES.strays(control, "diagnostics") == 0


def test_partitions_of_postgres_10_have_their_indexes_one_by_one() -> None:
    wishes = replace(PLAIN, chunk_time_s=12 * 3600, hash_partitions=4)
    made = SERIES.tables(DATASET, wishes, where(100023))
    assert not any("hash" in statement for statement in made)
    indexed = [s for s in made if s.startswith("create index") and "time" in s]
    # Two tables of two half-days, before and after; two indexes each.
    assert len(indexed) == 2 * (2 + 2) * 2
    assert any("before 11 has no hash partitions" in note for note in SERIES.notes(wishes, where(100023)))


def test_bounds_of_partitions_are_whole_multiples_that_hold_the_span() -> None:
    wishes = replace(PLAIN, chunk_time_s=86400)
    span = (START_US + 5_000_000, START_US + DAY_US + 1)
    assert chunk_bounds(wishes, Circumstances(span_us=span)) == [
        START_US,
        START_US + DAY_US,
        START_US + 2 * DAY_US,
    ]


@pytest.mark.parametrize(
    ("wishes", "span", "words"),
    [
        ({"chunk_time_s": 3600.0}, None, "are not known"),
        ({"chunk_time_s": 0.5}, (0, DAY_US), "below one second"),
        ({"chunk_time_s": 1.0}, (0, DAY_US), "86,400 partitions"),
        ({"chunk_time_s": 60.0, "hash_partitions": 8}, (0, DAY_US), "11,520 partitions"),
    ],
)
def test_impossible_partitions_are_refused_in_words(
    wishes: dict[str, Any], span: tuple[int, int] | None, words: str
) -> None:
    with pytest.raises(LoadstoneError, match=words):
        SERIES.tables(DATASET, replace(PLAIN, **wishes), Circumstances(span_us=span))


def test_a_table_split_by_device_alone_takes_rows_of_any_time(database: Database) -> None:
    with control_of(database) as control:
        make(control, replace(PLAIN, hash_partitions=2))
        control.execute("insert into readings select now(), i from generate_series(1, 100) as i")
        (found,) = rows(control, "select count(distinct tableoid) as parts from readings")
        assert found["parts"] == 2


def test_tags_may_be_one_column_of_json(database: Database) -> None:
    with control_of(database) as control:
        make(control, replace(PLAIN, jsonb_tags=True))
        control.execute("""insert into tags values (1, '{"name": "truck_0"}'), (2, '{"fleet": "East"}')""")
        with pytest.raises(Exception, match="uniq1"):
            control.execute("""insert into tags values (3, '{"name": "truck_0"}')""")


def test_the_sequence_of_tags_goes_on_behind_the_load(database: Database) -> None:
    with control_of(database) as control:
        make(control)
        control.execute("insert into tags (id, name) values (1, 'a'), (7, 'b')")
        tables.execute(control, SERIES.after_load(DATASET, PLAIN))
        (found,) = rows(control, "insert into tags (name) values ('c') returning id")
        assert found["id"] == 8


def test_sizes_count_partitions_and_indexes(database: Database) -> None:
    with control_of(database) as control:
        make(control, replace(PLAIN, chunk_time_s=12 * 3600))
        before = SERIES.size(control, "readings")
        control.execute(
            "insert into readings select '2016-01-01 00:00+00'::timestamptz + i * interval '1 s', i "
            "from generate_series(0, 40000) as i"
        )
        after = SERIES.size(control, "readings")
        assert after.table_bytes > before.table_bytes + 40_000 * 40
        assert after.index_bytes > before.index_bytes + 40_000 * 20


def test_time_buckets_begin_at_whole_multiples(database: Database) -> None:
    with control_of(database) as control:
        bucket = SERIES.bucket("10 minutes", "'2016-01-01 00:29:59.5+00'::timestamptz")
        (found,) = rows(control, f"select {bucket} as at")
        assert found["at"] == datetime(2016, 1, 1, 0, 20, tzinfo=UTC)
    with pytest.raises(LoadstoneError, match="no width"):
        SERIES.bucket("ten minutes", "time")


# TimescaleDB and openGauss, in words and statements


def test_a_server_without_timescaledb_is_refused_before_anything_is_touched(database: Database) -> None:
    said: list[str] = []
    code = main_code(["--target", database.url.replace("postgres://", "timescaledb://"), *DATA], said)
    assert code == 1
    assert "the server has no TimescaleDB" in said[0]
    assert database.value("select count(*) from pg_class where relname = 'tags'") == 0


def test_hypertables_are_made_in_the_form_of_today() -> None:
    wishes = replace(PLAIN, chunk_time_s=43200, hash_partitions=4, compress=True, compress_after_s=604800)
    series = engine("timescaledb").series
    made = series.tables(DATASET, wishes, where())
    assert made[0] == "create extension if not exists timescaledb"
    assert (
        "select create_hypertable('\"readings\"', by_range('time', interval '43200 seconds'), "
        "create_default_indexes => false)" in made
    )
    assert "select add_dimension('\"readings\"', by_hash('tags_id', 4))" in made
    after = series.after_load(DATASET, wishes)
    assert sum("convert_to_columnstore" in statement for statement in after) == 2
    assert sum("add_columnstore_policy" in statement for statement in after) == 2
    assert any("telemetry" in note for note in series.notes(wishes))


def test_a_server_that_is_not_opengauss_is_refused(database: Database) -> None:
    said: list[str] = []
    for scheme in ("opengauss", "uqbar", "mogdb"):
        assert main_code(["--target", database.url.replace("postgres://", f"{scheme}://"), *DATA], said) == 1
        assert "the server is not openGauss: PostgreSQL" in said[0]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("(openGauss 5.0.0 build a07d57c3) compiled at 2023-03-29 03:07:56 commit 0", "5.0.0"),
        ("PostgreSQL 9.2.4 (MogDB 3.1.0 build 0b1c2d) compiled at", "3.1.0"),
    ],
)
def test_versions_of_opengauss_are_its_own(text: str, version: str) -> None:
    assert _own_version(text) == version


def test_opengauss_splits_by_range_and_hash_in_one_statement() -> None:
    series = engine("opengauss").series
    wishes = replace(PLAIN, chunk_time_s=86400, hash_partitions=2)
    text = next(s for s in series.tables(DATASET, wishes, where()) if 'table "readings"' in s)
    assert 'partition by range ("time") subpartition by hash ("tags_id")' in text
    assert "values less than ('2016-01-02 00:00:00.000000+00') (subpartition" in text
    assert "partition p_after values less than (maxvalue)" in text
    interval = series.tables(DATASET, replace(PLAIN, chunk_time_s=86400), where())
    assert any("interval ('86400 seconds')" in statement for statement in interval)


def test_wishes_without_a_meaning_are_said() -> None:
    wishes = replace(PLAIN, compress=True, time_partition_index=True)
    notes = SERIES.notes(wishes, where())
    assert any("nothing is compressed" in note for note in notes)
    assert any("takes the place of time-index" in note for note in notes)


# Ledger and refusals


def test_tables_that_are_there_are_refused(database: Database) -> None:
    with control_of(database) as control:
        tables.refuse_existing(control, SERIES, DATASET)
        control.execute("create table readings (mine int)")
        with pytest.raises(LoadstoneError, match="holds the table readings already"):
            tables.refuse_existing(control, SERIES, DATASET)


def test_a_broken_load_is_told_from_other_tables(database: Database) -> None:
    with control_of(database) as control:
        make(control)
        tables.open_ledger(control, {"batch size": 10})
        control.execute("insert into loadstone_batches values (0, 10), (1, 10), (4, 7)")
        with pytest.raises(LoadstoneError, match="broken off: 3 batches with 27 rows"):
            tables.refuse_existing(control, SERIES, DATASET)
        assert tables.committed(control) == tables.Committed(3, 27, ((0, 1), (4, 4)))


def test_only_the_same_load_goes_on(database: Database) -> None:
    about = {"batch size": 10, "data": {"seed": 1}}
    with control_of(database) as control:
        with pytest.raises(LoadstoneError, match="no broken load"):
            tables.reopen_ledger(control, SERIES, DATASET, about)
        make(control)
        tables.open_ledger(control, about)
        assert tables.reopen_ledger(control, SERIES, DATASET, about).batches == 0
        with pytest.raises(LoadstoneError, match="its batch size was 10, now it is 20"):
            tables.reopen_ledger(control, SERIES, DATASET, about | {"batch size": 20})
        control.execute("drop table readings")
        with pytest.raises(LoadstoneError, match="readings is gone"):
            tables.reopen_ledger(control, SERIES, DATASET, about)


def test_tables_of_others_must_be_there_and_empty(database: Database) -> None:
    with control_of(database) as control:
        with pytest.raises(LoadstoneError, match="lacks the tables tags, diagnostics, readings"):
            tables.refuse_unready(control, SERIES, DATASET)
        make(control)
        tables.refuse_unready(control, SERIES, DATASET)
        control.execute("insert into readings (tags_id) values (1)")
        with pytest.raises(LoadstoneError, match="readings in the database hold rows"):
            tables.refuse_unready(control, SERIES, DATASET)


# The check


def test_every_change_of_a_table_is_found(database: Database) -> None:
    table = DATASET["tables"][1]
    with control_of(database) as control:
        make(control)
        control.execute(
            "insert into readings select '2016-01-01 00:00+00'::timestamptz + i * interval '10 s', "
            "1 + i % 7, i * 0.37, case when i % 5 > 0 then i / 3.0 end from generate_series(0, 999) as i"
        )
        whole = verify.fingerprint(control, SERIES, table)
        assert verify.check_table(control, SERIES, table, whole)["passed"]
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
            control.execute(change.encode())
            check = verify.check_table(control, SERIES, table, whole)
            control.execute("rollback")
            assert not check["passed"], change


def test_the_fingerprint_of_no_rows_is_zero(database: Database) -> None:
    with control_of(database) as control:
        make(control)
        found = verify.fingerprint(control, SERIES, DATASET["tables"][1])
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
        (("--method=insert", "--use-copy"), "--method says how rows are sent"),
        (("--method=pigeon",), "no method"),
        (("--field-index=VALUE-TIME,TIME-VALUE",), "one of them"),
        (("--workers=0",), "out of range"),
        (("--batch-size=0",), "out of range"),
        (("--use-case=iot",), "needs a seed"),
        (("--use-case=boats", "--seed=1"), "invalid use case"),
        (("--use-case=iot", "--seed=1", "--file=x"), "Give one of them"),
        (("--use-case=iot", "--seed=1", "--native", "--slice=4/4"), "no slice"),
        (("--rate=-1",), "below zero"),
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
        (["--target=pg", "--host=x", *DATA], "--target says where to load"),
        (["sqlite", *DATA], "no target is known by the word"),
        (["--target=nowhere", *DATA], "names no target"),
        (["--postgres=password", *DATA], "--postgres is not a connection string"),
        (["--target=pg", "--resume", "--replace", *DATA], "exclude each other"),
        (["--target=pg", "--setting=x", *DATA], "is not name=value"),
        (["--target=pg", "--file=/nonexistent/data"], "cannot be read"),
    ],
)
def test_wrong_command_lines_touch_nothing(arguments: list[str], words: str) -> None:
    said: list[str] = []
    assert main_code(arguments, said) == 1
    assert words in said[0]


# What is printed


def test_lines_are_those_of_tsbs(monkeypatch: pytest.MonkeyPatch) -> None:
    out: list[str] = []
    clock = iter([100.0, 110.0, 120.0])
    monkeypatch.setattr(load_report.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(load_report.time, "time", lambda: 1451606400.7)
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
    assert "3 batches with 30 rows are committed; --resume goes on" in caught.value.hint


def test_wrong_content_is_a_wrong_answer() -> None:
    check = {"name": "cpu holds the rows", "expected": "2 rows", "actual": "1 rows", "passed": False}
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

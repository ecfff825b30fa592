"""How engines keep time series: tables, partitions, indexes, sizes, on a real server and in statements."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from support.timeseries_data import (
    DATASET,
    DAY_US,
    PLAIN,
    SERIES,
    START_US,
    control_of,
    indexes,
    make,
    rows,
    where,
)

from loadstone.engine.dialect.timeseries import TableFacts, chunk_bounds
from loadstone.engines import engine
from loadstone.engines.opengauss import _own_version
from loadstone.errors import LoadstoneError
from loadstone.workload.load import tables

if TYPE_CHECKING:
    from support.sandbox import Database


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
    ("options", "expected"),
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
def test_indexes_follow_the_wishes(database: Database, options: dict[str, Any], expected: set[str]) -> None:
    with control_of(database) as control:
        make(control, replace(PLAIN, **options))
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
    options = replace(PLAIN, chunk_time_s=12 * 3600, hash_partitions=4)
    made = SERIES.tables(DATASET, options, where(100023))
    assert not any("hash" in statement for statement in made)
    indexed = [s for s in made if s.startswith("create index") and "time" in s]
    # Two tables of two half-days, before and after; two indexes each.
    assert len(indexed) == 2 * (2 + 2) * 2
    assert any("before 11 has no hash partitions" in note for note in SERIES.notes(options, where(100023)))


def test_bounds_of_partitions_are_whole_multiples_that_hold_the_span() -> None:
    options = replace(PLAIN, chunk_time_s=86400)
    span = (START_US + 5_000_000, START_US + DAY_US + 1)
    assert chunk_bounds(options, TableFacts(span_us=span)) == [
        START_US,
        START_US + DAY_US,
        START_US + 2 * DAY_US,
    ]


@pytest.mark.parametrize(
    ("options", "span", "words"),
    [
        ({"chunk_time_s": 3600.0}, None, "are unknown"),
        ({"chunk_time_s": 0.5}, (0, DAY_US), "less than one second"),
        ({"chunk_time_s": 1.0}, (0, DAY_US), "86,400 partitions"),
        ({"chunk_time_s": 60.0, "hash_partitions": 8}, (0, DAY_US), "11,520 partitions"),
    ],
)
def test_impossible_partitions_are_refused_in_words(
    options: dict[str, Any], span: tuple[int, int] | None, words: str
) -> None:
    with pytest.raises(LoadstoneError, match=words):
        SERIES.tables(DATASET, replace(PLAIN, **options), TableFacts(span_us=span))


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
    with pytest.raises(LoadstoneError, match="not the width of a time bucket"):
        SERIES.bucket("ten minutes", "time")


# TimescaleDB and openGauss, in words and statements


def test_hypertables_are_made_in_the_form_of_today() -> None:
    options = replace(PLAIN, chunk_time_s=43200, hash_partitions=4, compress=True, compress_after_s=604800)
    series = engine("timescaledb").series
    made = series.tables(DATASET, options, where())
    assert made[0] == "create extension if not exists timescaledb"
    assert (
        'select create_hypertable(\'"loadstone"."readings"\','
        " by_range('time', interval '43200 seconds'), "
        "create_default_indexes => false)" in made
    )
    assert "select add_dimension('\"loadstone\".\"readings\"', by_hash('tags_id', 4))" in made
    after = series.after_load(DATASET, options)
    assert sum("convert_to_columnstore" in statement for statement in after) == 2
    assert sum("add_columnstore_policy" in statement for statement in after) == 2
    assert any("telemetry" in note for note in series.notes(options))


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
    options = replace(PLAIN, chunk_time_s=86400, hash_partitions=2)
    text = next(s for s in series.tables(DATASET, options, where()) if 'table "loadstone"."readings"' in s)
    assert 'partition by range ("time") subpartition by hash ("tags_id")' in text
    assert "values less than ('2016-01-02 00:00:00.000000+00') (subpartition" in text
    assert "partition p_after values less than (maxvalue)" in text
    interval = series.tables(DATASET, replace(PLAIN, chunk_time_s=86400), where())
    assert any("interval ('86400 seconds')" in statement for statement in interval)


def test_wishes_without_a_meaning_are_said() -> None:
    options = replace(PLAIN, compress=True, time_partition_index=True)
    notes = SERIES.notes(options, where())
    assert any("nothing is compressed" in note for note in notes)
    assert any("replaces time-index" in note for note in notes)

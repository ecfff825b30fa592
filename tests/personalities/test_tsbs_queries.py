"""TSBS's queries: the same bytes as TSBS's, read and written, and put into other words."""

from __future__ import annotations

import hashlib
import io
import json
import re
from dataclasses import replace
from itertools import islice
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadstone import _core
from loadstone.engines import all_engines
from loadstone.errors import LoadstoneError
from loadstone.workload.tsbs.queries import (
    KINDS,
    TIMESCALEDB,
    Layout,
    Query,
    QuerySpec,
    dialect_of,
    dialects,
    generate,
    gob,
    kinds_of,
    mixed,
    translate,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "tsbs_queries.json").read_text())
START = 1_451_606_400_000_000_000
DAY = 86_400_000_000_000
LAYOUTS = [Layout(j, t, b) for j in (False, True) for t in (True, False) for b in (True, False)]


def spec(kind: str, **more: object) -> QuerySpec:
    use_case = "iot" if KINDS[kind].family == "iot" else "devops"
    usual = QuerySpec(use_case, kind, 100, START, START + 3 * DAY + 10**9, 123, 5)
    return replace(usual, **more)  # type: ignore[arg-type]


def written(asked: QuerySpec) -> bytes:
    out = io.BytesIO()
    gob.write(generate(asked), out)
    return out.getvalue()


def read(data: bytes) -> list[Query]:
    return list(gob.read(io.BytesIO(data), "file"))


def read_or_refused(data: bytes) -> str:
    try:
        read(data)
    except gob.GobError as error:
        return error.message
    return "at byte 0"


@pytest.mark.parametrize("kind", KINDS)
def test_files_are_the_same_bytes_as_tsbs_writes(kind: str) -> None:
    """The digests are of files that were compared with tsbs_generate_queries's, byte for byte."""
    for case in (case for case in GOLDEN if case["kind"] == kind):
        layout = Layout(*case["layout"])
        asked = spec(kind, **case["order"], layout=layout)
        assert hashlib.sha256(written(asked)).hexdigest() == case["sha256"], case


def test_every_kind_is_there_in_every_layout() -> None:
    assert len(kinds_of("devops")) == 16
    assert len(kinds_of("iot")) == 13
    assert kinds_of("cpu-only") == kinds_of("devops")
    assert kinds_of("cpu-single") == ()
    assert {(case["kind"], tuple(case["layout"])) for case in GOLDEN} >= {
        (kind, (layout.use_json, layout.use_tags, layout.use_time_bucket))
        for kind in KINDS
        for layout in LAYOUTS
    }


def test_one_text_is_written_out() -> None:
    (query,) = generate(spec("single-groupby-1-8-1", count=1))
    assert query.label == "TimescaleDB 1 cpu metric(s), random    8 hosts, random 1h0m0s by 1m"
    assert query.description == query.label + ": 2016-01-03T12:26:46Z"
    assert query.table == "cpu"
    assert query.sql == (
        "SELECT time_bucket('60 seconds', time) AS minute,\n"
        "        max(usage_user) as max_usage_user\n"
        "        FROM cpu\n"
        "        WHERE tags_id IN (SELECT id FROM tags WHERE hostname IN ('host_49','host_3','host_35',"
        "'host_39','host_75','host_15','host_21','host_11')) AND time >= '2016-01-03 12:26:46.646325 +0000' "
        "AND time < '2016-01-03 13:26:46.646325 +0000'\n"
        "        GROUP BY minute ORDER BY minute ASC"
    )


def test_groups_share_one_stream() -> None:
    whole = list(generate(spec("single-last-loc", count=20)))
    parts = [list(generate(spec("single-last-loc", count=20, group=g, groups=3))) for g in range(3)]
    assert whole[0::3] == parts[0]
    assert whole[1::3] == parts[1]
    assert whole[2::3] == parts[2]


def test_a_mix_takes_the_kinds_in_turn() -> None:
    found = [q.label for q in mixed([spec("last-loc", count=3), spec("avg-load", count=1)])]
    assert [label.removeprefix("TimescaleDB ") for label in found] == [
        "last location per truck",
        "average load per truck model per fleet",
        "last location per truck",
        "last location per truck",
    ]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (spec("single-groupby-1-8-1", scale=7), "8 hosts, but the data set has 7"),
        (spec("single-last-loc", scale=0), "1 trucks, but the data set has 0"),
        (spec("cpu-max-all-8", end_ns=START + 8 * 3600 * 10**9), "8 hours, but the data set has 8"),
        (spec("last-loc", use_case="devops"), "invalid query type for use case 'devops': 'last-loc'"),
        (spec("last-loc", use_case="cpu-single"), "no queries for the use case 'cpu-single'"),
        (spec("last-loc", end_ns=START - 1), "ends before it starts"),
    ],
)
def test_what_tsbs_panics_about_is_refused_in_words(asked: QuerySpec, words: str) -> None:
    with pytest.raises(LoadstoneError, match=re.escape(words)):
        generate(asked)


def test_the_random_stream_refuses_no_room() -> None:
    with pytest.raises(ValueError, match="above 0, not 0"):
        _core.GoRand(1).intn(0)
    with pytest.raises(ValueError, match="above 0, not -5"):
        _core.GoRand(1).int63n(-5)


# --- other dialects


@pytest.mark.parametrize("kind", KINDS)
def test_every_query_is_recognised_and_put_into_every_dialect(kind: str) -> None:
    for layout in LAYOUTS:
        for query in generate(spec(kind, layout=layout)):
            for dialect in dialects():
                found = translate(query, dialect)
                assert found.reason is None
                assert translate(found.query, dialect) == found
                if layout == Layout():
                    assert translate(found.query, TIMESCALEDB).query == query
                if not dialect.exact:
                    straight = generate(spec(kind, layout=layout, dialect=dialect))
                    assert found.query in list(straight)


def test_postgresql_gets_no_time_bucket() -> None:
    dialect = dialect_of(all_engines()["postgres"])
    for kind in KINDS:
        for query in generate(spec(kind)):
            assert "time_bucket" not in translate(query, dialect).query.sql


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"label": "TimescaleDB my own"}, "not a known kind of query"),
        ({"sql": "select 1"}, "not as TSBS writes it"),
    ],
)
def test_a_query_that_is_not_recognised_stays_as_it_is(change: dict[str, str], words: str) -> None:
    (query,) = generate(spec("avg-load", count=1))
    changed = msgspec.structs.replace(query, **change)
    found = translate(changed, dialect_of(all_engines()["postgres"]))
    assert found.query == changed
    assert words in (found.reason or "")


@given(st.integers(0, 400), st.characters())
@settings(max_examples=200, deadline=None)
def test_a_changed_text_is_never_taken_for_the_original(place: int, character: str) -> None:
    (query,) = generate(spec("single-groupby-5-8-1", count=1))
    sql = query.sql[:place] + character + query.sql[place + 1 :]
    found = translate(msgspec.structs.replace(query, sql=sql), TIMESCALEDB)
    assert found.query.sql == sql


# --- gob

texts = st.text(st.characters(codec="utf-8"), max_size=300)


@given(st.lists(st.builds(Query, texts, texts, texts, texts), max_size=5))
def test_what_is_written_is_read(queries: list[Query]) -> None:
    out = io.BytesIO()
    assert gob.write(queries, out) == len(queries)
    assert read(out.getvalue()) == queries


@given(st.lists(st.builds(Query, texts, texts, texts, texts), min_size=1, max_size=3), st.data())
@settings(max_examples=300)
def test_queries_read_at_once_are_those_that_are_read_step_by_step(
    queries: list[Query], drawn: st.DataObject
) -> None:
    """Also where a byte is another one: the same queries, or the same error with the same place."""
    out = io.BytesIO()
    gob.write(queries, out)
    data = bytearray(out.getvalue())
    data[drawn.draw(st.integers(0, len(data) - 1))] = drawn.draw(st.integers(0, 255))
    quickly = outcome(bytes(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gob, "_usual_query", lambda *_: None)
        assert outcome(bytes(data)) == quickly


def outcome(data: bytes) -> tuple[list[Query], str]:
    found: list[Query] = []
    try:
        found.extend(gob.read(io.BytesIO(data), "f"))
    except gob.GobError as error:
        return found, error.message
    return found, ""


@given(st.binary(max_size=200))
@settings(max_examples=500)
def test_arbitrary_bytes_are_queries_or_refused_in_words(data: bytes) -> None:
    assert "at byte" in read_or_refused(data)


@given(place=st.integers(0, 2000), byte=st.integers(0, 255), cut=st.booleans())
@settings(max_examples=500, deadline=None)
def test_a_damaged_file_is_queries_or_refused_in_words(place: int, byte: int, *, cut: bool) -> None:
    data = bytearray(written(spec("last-loc")))
    place %= len(data)
    data[place] = byte
    assert "at byte" in read_or_refused(bytes(data[:place] if cut else data))


def test_other_type_numbers_and_left_out_fields_are_read() -> None:
    """Which number Go gives to the type depends on its version, and what is empty is left out."""
    (query,) = generate(spec("lastpoint", count=1))
    data = written(spec("lastpoint", count=1))
    described, value = data[: data[0] + 1], data[data[0] + 1 :]
    # 64 becomes 65: -64 is 7f, -65 is ff 81; 64 is ff 80, 65 is ff 82.
    described = bytes([described[0] + 1]) + b"\xff\x81" + described[2:].replace(b"\xff\x80", b"\xff\x82")
    older = described + value.replace(b"\xff\x80", b"\xff\x82", 1)
    assert older != data
    assert read(older) == [query]
    empty = Query("", "", "", "select 1")
    out = io.BytesIO()
    gob.write([empty], out)
    assert read(out.getvalue()) == [empty]


def test_files_one_behind_the_other_are_read() -> None:
    one, two = spec("last-loc"), spec("avg-load")
    assert read(written(one) + written(two)) == [*generate(one), *generate(two)]


def test_a_file_is_read_as_it_comes() -> None:
    """A query is there before the next one has been looked at."""
    data = written(spec("last-loc", count=3))
    stream = io.BytesIO(data[:-1])
    assert len(list(islice(gob.read(stream, "f"), 2))) == 2
    with pytest.raises(gob.GobError, match=r"truncated\?\), at byte"):
        list(gob.read(io.BytesIO(data[:-1]), "f"))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xf8" + b"\xff" * 8, "a message of 18446744073709551615 bytes"),
        (b"\x01\x80", "a number of 128 bytes"),
        (b"\x01\xfe", "a message that ends too early"),
        (b"\x02\x7f", "a message of 2 bytes, of which only 1 are there"),
        (b"\x02\x04\x00", "a value of type 2, which was not described"),
        (b"hello, world", "is not a file of TSBS's queries"),
        (b"", ""),
    ],
)
def test_what_is_no_gob_says_where(data: bytes, words: str) -> None:
    if not words:
        assert read(data) == []
        return
    with pytest.raises(gob.GobError, match=re.escape(words)):
        read(data)

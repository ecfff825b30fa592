"""Vertica: what is sent and read, against a stand-in that speaks its driver's protocol.

No Vertica server can be had from a registry: that it understands the SQL is not proved here.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fake_vertica import FakeVertica, _fields, listening
from support.table_loads import UNION, load, opened_at

from loadstone.engines import engine
from loadstone.engines.vertica import MARK
from loadstone.engines.vertica.control import VerticaControl
from loadstone.engines.vertica.errors import VerticaError
from loadstone.engines.vertica.load import payload
from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.model import BulkLoad, PlainTable, Rows
from loadstone.target import open_target, parse_target

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadstone.target import OpenTarget

VERTICA = engine("vertica")
BULK = BulkLoad(rows=Rows(set="import", rows=2_000), table=PlainTable("test"), batch_rows=500, workers=2)


@pytest.fixture
def server() -> FakeVertica:
    return FakeVertica()


@pytest.fixture
def port(server: FakeVertica) -> Iterator[int]:
    with listening(server) as port:
        yield port


@pytest.fixture
def target(port: int) -> Iterator[OpenTarget]:
    with opened_at(f"vertica://127.0.0.1:{port}") as opened:
        yield opened


@pytest.fixture
def control(target: OpenTarget) -> Iterator[VerticaControl]:
    with contextlib.closing(target.connect("test")) as control:
        assert isinstance(control, VerticaControl)
        yield control


def test_a_target_has_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERTICA_PASSWORD", "from the variable")
    place = parse_target("vertica://example.org/base").place
    assert place is not None
    assert place.server is not None
    assert (place.server.port, place.server.user, place.server.password) == (
        5433,
        "dbadmin",
        "from the variable",
    )
    assert place.url == "vertica://dbadmin@example.org:5433/base"
    assert VERTICA.status == "not yet run"


def test_a_server_says_what_it_is_and_another_is_refused(port: int) -> None:
    with open_target(parse_target(f"vertica://127.0.0.1:{port}"), 2) as target:
        assert target.label == f"Vertica 12.0.4, 127.0.0.1:{port}"
    for version, words in (
        ("Vertica Analytic Database v9.3.1-0", r"the server is Vertica 9\.3\.1"),
        ("PostgreSQL 12.3", "the server is not Vertica"),
    ):
        with listening(FakeVertica(version)) as other, pytest.raises(LoadstoneError, match=words):
            open_target(parse_target(f"vertica://127.0.0.1:{other}"), 2).__enter__()
    with listening(FakeVertica()) as gone:
        pass
    with pytest.raises(LoadstoneError, match=f"no Vertica server accepts a connection at 127.0.0.1:{gone}"):
        open_target(parse_target(f"vertica://127.0.0.1:{gone}"), 2).__enter__()


def test_more_clients_than_the_server_takes_are_refused_before_anything_is_touched(port: int) -> None:
    refused = pytest.raises(LoadstoneError, match="10 clients need 11 sessions, and 10 of 50 are free")
    with refused as told, open_target(parse_target(f"vertica://127.0.0.1:{port}"), 10):
        pass
    assert "MaxClientSessions" in told.value.hint


def test_a_server_that_does_not_tell_its_limit_refuses_nobody(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loadstone.engines.vertica._ROOM", "select nothing from nowhere")
    with open_target(parse_target(f"vertica://127.0.0.1:{port}"), 10) as opened:
        assert opened.label.startswith("Vertica")


@pytest.mark.slow
def test_rows_go_in_by_copy_and_their_content_is_verified(
    server: FakeVertica, target: OpenTarget, tmp_path: Path
) -> None:
    account = load(target, BULK, tmp_path)
    assert (account["state"], account["reason"]) == ("complete", None)
    assert account["load"]["verified"] is True, account["load"]["checks"]
    assert account["load"]["checks"][0]["detail"] == "count and fingerprint"
    copies = [text for text in server.statements if text.startswith("copy ")]
    assert len(copies) == 4
    assert "loadstone load" in server.labels


@pytest.mark.slow
def test_every_type_goes_in_and_is_verified(target: OpenTarget, tmp_path: Path) -> None:
    account = load(target, replace(BULK, rows=replace(UNION, rows=600)), tmp_path)
    assert (account["state"], account["reason"]) == ("complete", None)
    assert account["load"]["verified"] is True, account["load"]["checks"]


def test_a_row_that_is_refused_ends_the_load(server: FakeVertica, target: OpenTarget, tmp_path: Path) -> None:
    del server
    with contextlib.closing(target.connect("before")) as control:
        control.execute("create table other (i int)")
    bulk = replace(BULK, table=PlainTable("test"), workers=1)
    original = VerticaControl.copy

    def spoil(self: VerticaControl, statement: str, rows: bytes) -> None:
        original(self, statement, b"a field more\t" + rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(VerticaControl, "copy", spoil)
        account = load(target, bulk, tmp_path)
    assert account["state"] == "aborted"
    assert "has been rejected" in account["reason"]
    assert account["errors"][0]["sqlstate"] == "22V04"


@given(
    st.lists(
        st.tuples(
            st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
            st.none() | st.integers(-(2**31), 2**31 - 1),
            st.none() | st.booleans(),
        ),
        min_size=1,
    )
)
def test_copy_reads_back_what_was_written(rows: list[tuple[str | None, int | None, bool | None]]) -> None:
    texts, numbers, truths = (list(values) for values in zip(*rows, strict=True))
    batch = pa.RecordBatch.from_arrays(
        [pa.array(texts, pa.string()), pa.array(numbers, pa.int64()), pa.array(truths, pa.bool_())],
        names=["t", "n", "b"],
    )
    wanted = [
        [t, None if n is None else str(n), None if b is None else str(b).lower()]
        for t, n, b in zip(texts, numbers, truths, strict=True)
    ]
    assert list(_fields(payload(batch).decode())) == wanted


def test_a_single_float_is_written_as_the_double_that_it_is() -> None:
    tenth = pa.RecordBatch.from_arrays([pa.array([0.1, None], pa.float32())], names=["f"])
    assert payload(tenth) == b"0.10000000149011612\n\x01\n"


def test_our_schema_is_made_marked_and_dropped_and_another_stays(
    server: FakeVertica, control: VerticaControl
) -> None:
    assert server.comment == MARK
    assert VERTICA.has_workspace(control)
    VERTICA.drop_workspace(control)
    assert not VERTICA.has_workspace(control)
    server.database.execute("create schema loadstone; create table loadstone.precious (i integer)")
    server.comment = None
    with pytest.raises(LoadstoneError, match="'loadstone' contains 1 objects that Loadstone did not create"):
        VERTICA.create_workspace(control)
    with pytest.raises(LoadstoneError, match="is not marked"):
        VERTICA.drop_workspace(control)


def test_answers_values_and_plans(control: VerticaControl) -> None:
    found = VERTICA.answer(control, "select 1 as n, 2.5::double as d, 'x' as t, null::varchar as v")
    assert found.to_pylist() == [{"n": 1, "d": 2.5, "t": "x", "v": None}]
    assert VERTICA.text_value(control, "select 7") == "7"
    with pytest.raises(RunFailedError, match="returned 2 rows"):
        VERTICA.text_value(control, "select * from (values (1), (2)) as v(i)")
    plan = VERTICA.explain(control, "select 1")
    assert plan == "Access Path:\n+-GROUPBY NOTHING"
    assert VERTICA.used_gpu(plan) is None
    with pytest.raises(VerticaError) as refused:
        control.execute("select nothing from nowhere")
    assert refused.value.sqlstate == "42601"
    assert "SQL:" not in str(refused.value)


def test_a_query_that_takes_too_long_is_cancelled(control: VerticaControl) -> None:
    with pytest.raises(VerticaError) as ended, VERTICA.at_most(control, 0.2):
        VERTICA.answer(control, "select hang()")
    assert ended.value.sqlstate == "57014"
    assert VERTICA.text_value(control, "select 1") == "1"


def test_room_sizes_and_durability(control: VerticaControl) -> None:
    VERTICA.refuse_too_many_clients(control, 9)
    with pytest.raises(LoadstoneError, match="10 clients need 11 sessions, and 10 of 50 are free"):
        VERTICA.refuse_too_many_clients(control, 10)
    assert VERTICA.sizes(control)["database_bytes"] == 12345
    assert VERTICA.storage(control, ["t"]).tables[0]["heap_bytes"] == 12345
    (safety,) = VERTICA.durability(control)
    assert (safety["setting"], safety["durable"]) == ("K-safety", False)
    assert VERTICA.flush_caches(control)["emptied"] is False

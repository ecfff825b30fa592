"""Rows into a real MariaDB by LOAD DATA and by INSERT: every value arrives as it was, NULL is not empty."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadstone.engine import SCHEMA
from loadstone.model import Drive
from loadstone.target import open_target, parse_target
from loadstone.workload.drive import perform
from loadstone.workload.load.rows import load_document

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.mariadb import MariaDB

    from loadstone.engines.mariadb.control import MariaControl
    from loadstone.target import OpenTarget

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
AWKWARD = st.sampled_from(
    [
        "",
        "\\N",
        "NULL",
        "\\",
        "\\\\",
        "\t",
        "\n",
        "\r\n",
        "a\\tb",
        "'",
        '"',
        "é",
        "😀",
        "\U0010ffff",
        " a ",
        "\x1a",
    ]
)
ROWS = st.lists(st.tuples(st.none() | AWKWARD | TEXT, st.none() | AWKWARD), min_size=1, max_size=30)


@pytest.fixture(scope="module")
def opened(mariadb_server: MariaDB) -> Iterator[OpenTarget]:
    mariadb_server.sql("drop database if exists loadstone")
    url = f"mariadb://root@/test?socket={mariadb_server.socket}"
    with open_target(parse_target(url), 4) as found:
        yield found
    mariadb_server.sql("drop database if exists loadstone")


@pytest.fixture(scope="module")
def control(opened: OpenTarget) -> Iterator[MariaControl]:
    with closing(opened.connect("loadstone")) as found:
        opened.engine.create_workspace(found)
        yield found  # type: ignore[misc]


def load(opened: OpenTarget, file: Path, table: str, columns: list[str], method: str) -> dict[str, Any]:
    there = opened.client_connection(SCHEMA)
    assert there is not None
    drive = Drive(scripts=(), clients=1, timeout_s=30.0)
    document = load_document(drive, there, file.parent, "auto", 1.0)
    document["load"] = {
        "data": {"kind": "parquet", "paths": [str(file)]},
        "method": method,
        "batch_rows": 7,
        "tables": {"rows": {"name": f'"loadstone"."{table}"', "columns": [f'"{name}"' for name in columns]}},
    }
    return perform(document, None)


@pytest.mark.parametrize("method", ["copy_text", "insert"])
def test_every_text_arrives_as_it_was(
    opened: OpenTarget, control: MariaControl, tmp_path: Path, method: str
) -> None:
    control.execute("drop table if exists texts")
    control.execute("create table texts (n int, a longtext, b longtext)")

    @settings(max_examples=40)
    @given(ROWS)
    def arrives(rows: list[tuple[str | None, str | None]]) -> None:
        table = pa.table(
            {
                "n": pa.array(range(len(rows)), pa.int32()),
                "a": pa.array([a for a, _ in rows], pa.string()),
                "b": pa.array([b for _, b in rows], pa.string()),
            }
        )
        pq.write_table(table, tmp_path / "rows.parquet")
        control.execute("truncate table texts")
        account = load(opened, tmp_path / "rows.parquet", "texts", ["n", "a", "b"], method)
        assert account["state"] == "complete", account
        found = control.texts("select a is null, hex(a), b is null, hex(b) from texts order by n")
        assert found == [[*_hex(a), *_hex(b)] for a, b in rows]

    arrives()


def _hex(text: str | None) -> tuple[str, str | None]:
    return ("1", None) if text is None else ("0", text.encode().hex().upper())


TYPED = {
    "flag": (pa.array([True, False, None], pa.bool_()), ["1", "0", None]),
    "small": (pa.array([-32768, 32767, None], pa.int16()), ["-32768", "32767", None]),
    "big": (pa.array([-(2**63), 2**63 - 1, None], pa.int64()), [str(-(2**63)), str(2**63 - 1), None]),
    "x": (pa.array([0.1, -1.5e300, None], pa.float64()), ["0.1", "-1.5e300", None]),
    "day": (pa.array([0, -25567, None], pa.date32()), ["1970-01-01", "1900-01-01", None]),
    "at": (
        pa.array([951_782_399_250_000, 1, None], pa.timestamp("us")),
        ["2000-02-28 23:59:59.250000", "1970-01-01 00:00:00.000001", None],
    ),
    "zoned": (
        pa.array([951_782_399_250_000, 0, None], pa.timestamp("us", tz="Asia/Tokyo")),
        ["2000-02-28 23:59:59.250000", "1970-01-01 00:00:00.000000", None],
    ),
}
"""Values, and what the server says of them: times are in UTC, whatever zone they were written in."""


@pytest.mark.parametrize("method", ["copy_text", "insert"])
def test_every_type_arrives_as_it_was(
    opened: OpenTarget, control: MariaControl, tmp_path: Path, method: str
) -> None:
    control.execute("drop table if exists typed")
    control.execute(
        "create table typed (flag boolean, small smallint, big bigint, x double, day date, at datetime(6), "
        "zoned datetime(6))"
    )
    pq.write_table(pa.table({name: values for name, (values, _) in TYPED.items()}), tmp_path / "t.parquet")
    account = load(opened, tmp_path / "t.parquet", "typed", list(TYPED), method)
    assert account["state"] == "complete", account
    found = control.texts("select * from typed order by flag desc")
    assert found == [list(row) for row in zip(*(texts for _, texts in TYPED.values()), strict=True)]


def test_the_fingerprint_tells_null_from_text(opened: OpenTarget, control: MariaControl) -> None:
    table = opened.engine.tables
    control.execute("drop table if exists narrow")
    control.execute("create table narrow (a varchar(3))")
    control.execute("insert into narrow values ('abc')")
    described: Any = {"columns": [{"name": "a", "type": "text"}]}
    before = dict(table.read_fingerprint(control, described, "narrow"))
    assert (before["rows"], before["bytes"], before["nulls"]) == ("1", "3", [0])
    control.execute("update narrow set a = null")
    after = dict(table.read_fingerprint(control, described, "narrow"))
    assert after["nulls"] == [1]
    assert after["content"] != before["content"]

"""Bulk loads of files: as text, CSV and COPY's binary format, into tables made for them or of texts."""

from __future__ import annotations

import csv
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from support.table_loads import BULK, UNION, USUAL, check_whole, load, opened_at, value

from loadstone.errors import LoadstoneError
from loadstone.model import PlainTable, Rows
from loadstone.workload.load import look, needed_bytes, perform_bulk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.sandbox import Database

    from loadstone.target import OpenTarget


@pytest.fixture
def server(database: Database) -> Iterator[OpenTarget]:
    with opened_at(database.socket_url) as opened:
        yield opened


def write_files(folder: Path, form: str, header: bool = False) -> tuple[str, ...]:  # noqa: FBT001, FBT002
    """Write 2,000 rows as PostgreSQL's own COPY would, in two files."""
    rows = [
        (f"{number}", "a\tb" if number % 7 else "ü", None if number % 5 else 'x,"y"')
        for number in range(2000)
    ]
    names = []
    for part in range(2):
        path = folder / f"rows-{part}.{form}"
        with path.open("w", newline="") as file:
            if form == "csv":
                writer = csv.writer(file, lineterminator="\n")
                writer.writerows([("id", "Word", "odd name")] if header else [])
                writer.writerows(["" if v is None else v for v in row] for row in rows[part::2])
            else:
                escaped = str.maketrans({"\t": "\\t", "\\": "\\\\"})
                for row in rows[part::2]:
                    texts = ["\\N" if v is None else v.translate(escaped) for v in row]
                    file.write("\t".join(texts) + "\n")
        names.append(str(path))
    return tuple(names)


@pytest.mark.parametrize(
    ("form", "header", "columns"),
    [("text", False, "c1,c2,c3"), ("csv", False, "c1,c2,c3"), ("csv", True, "id,Word,odd name")],
)
def test_files_fill_a_table_of_texts(
    server: OpenTarget, tmp_path: Path, form: Any, header: Any, columns: str
) -> None:
    files = write_files(tmp_path, form, header)
    rows = Rows(files=files, format=form, header=header)
    bulk = replace(BULK, rows=rows, batch_rows=300, step_rows=700, table=PlainTable("test", indexes="1"))
    seen: list[int] = []
    loaded = check_whole(
        load(server, bulk, tmp_path, replace(USUAL, on_step=lambda s: seen.append(s["rows"])))
    )
    assert seen == [700, 700, 600]
    listed = "select string_agg(column_name, ',' order by ordinal_position) from information_schema.columns "
    assert value(server, listed + "where table_name = 'test'") == columns
    assert any("only numbers of rows are compared" in note for note in loaded["notes"])
    assert value(server, f'select count(*) from test where "{columns.split(",")[2]}" is null') == "1600"
    limited = load(
        server, replace(bulk, rows=replace(rows, rows=1_234)), tmp_path, replace(USUAL, replace=True)
    )
    assert check_whole(limited)["rows"] == 1_234


def test_files_fill_a_table_that_was_made_for_them(server: OpenTarget, tmp_path: Path) -> None:
    rows = Rows(files=write_files(tmp_path, "csv", header=True), format="csv", header=True)
    with closing(server.connect("test")) as control:
        control.execute("create table test (id integer, word text, odd text)")
    bulk = replace(BULK, rows=rows, table=PlainTable("test", indexes="id, word:hash"))
    loaded = check_whole(load(server, bulk, tmp_path))
    assert value(server, "select sum(id) from test") == str(sum(range(2000)))
    assert [column["type"] for column in loaded["table"]["columns"]] == ["int32", "text", "text"]


@pytest.mark.parametrize("packed", ["gzip", "zstd"])
def test_binary_files_need_a_table_that_is_there(
    server: OpenTarget, database: Database, tmp_path: Path, packed: str
) -> None:
    check_whole(load(server, replace(BULK, rows=UNION, step_rows=0), tmp_path))
    path = tmp_path / "rows.bin"
    copy = "copy loadstone.test to stdout (format binary)"
    with (
        database.connect() as connection,
        connection.cursor().copy(copy) as rows,
        pa.output_stream(path, compression=packed) as file,
    ):
        for part in rows:
            file.write(part)
    files = Rows(files=(str(path),), format="binary")
    bulk = replace(BULK, rows=files, table=PlainTable("again", indexes="id"), step_rows=0)
    with pytest.raises(LoadstoneError, match="there is no empty table 'again'"):
        perform_bulk(bulk, server, tmp_path)
    with closing(server.connect("test")) as control:
        control.execute("create table again (like test)")
    need = needed_bytes(bulk, look(bulk), server.engine)
    check_whole(load(server, bulk, tmp_path))
    assert (
        value(
            server,
            "select count(*) from (select t::text from test t except all select a::text from again a) as q",
        )
        == "0"
    )
    with closing(server.connect("test")) as control:
        size = server.engine.tables.size(control, "again")
    heap = size.table_bytes + size.toast_bytes
    assert heap / 1.5 <= need.heap_bytes <= heap * 1.5


@pytest.mark.parametrize(
    ("content", "form", "words"),
    [
        (b"", "csv", "is empty"),
        (b"a,b,a\n1,2,3\n", "csv", "'a' is not the name of one column"),
        (b"\xff\xfe\n", "text", "is not UTF-8: byte 0"),
        (b"1\t2\n", "binary", "does not begin like a file in COPY's binary format"),
    ],
)
def test_files_that_cannot_be_are_refused_in_words(
    tmp_path: Path, content: bytes, form: Any, words: str
) -> None:
    path = tmp_path / "rows"
    path.write_bytes(content)
    rows = Rows(files=(str(path),), format=form, header=form == "csv")
    with pytest.raises(LoadstoneError, match=words):
        look(replace(BULK, rows=rows))

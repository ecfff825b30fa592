"""Hashes of all tables: what changes them, and how much of large tables they read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.crash import content
from loadstone.crash.content import Extract, differences, digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.sandbox import Database

KB = 1024


@pytest.fixture
def control(database: Database) -> Iterator[psycopg.Connection]:
    with database.connect() as connection:
        connection.execute("create schema loadstone")
        connection.execute('create table loadstone."a table" (t int, loadstone text)')
        connection.execute("""insert into loadstone."a table" select 1, repeat('x', 900) || i::text
                              from generate_series(1, 1000) i""")
        connection.execute("create table public.small as select 1 as t")
        connection.execute("create table parts (n int) partition by range (n)")
        connection.execute("create table part partition of parts for values from (0) to (10)")
        yield connection


@pytest.mark.parametrize("since", [content._HASHES_SINCE, 10**9])
def test_any_change_of_a_row_changes_the_hash(
    control: psycopg.Connection, since: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content, "_HASHES_SINCE", since)
    extract = Extract.of(control)
    assert extract.hashed_bytes == extract.bytes > 900 * KB
    before = extract.hashes(control)
    assert {name: one.rows for name, one in before.items()} == {
        'loadstone."a table"': 1000, "loadstone.part": 0, "public.small": 1,
    }  # fmt: skip
    # Every row in another place, none of them changed.
    control.execute("""create table copied as select * from loadstone."a table" order by loadstone desc""")
    control.execute("""truncate loadstone."a table" """)
    control.execute("""insert into loadstone."a table" select * from copied""")
    control.execute("drop table copied")
    assert digest(extract.hashes(control)) == digest(before)
    control.execute("update public.small set t = null")
    control.execute("insert into parts values (3)")
    changed = list(differences(before, extract.hashes(control)))
    assert [one.partition(":")[0] for one in changed] == ["loadstone.part", "public.small"]
    assert changed[0].startswith("loadstone.part: 0 rows, hash 0000000000000000; then 1 rows, hash ")
    control.execute("drop table public.small")
    assert any(one.endswith("; then not there") for one in differences(before, extract.hashes(control)))


def test_of_large_tables_the_same_blocks_are_read(control: psycopg.Connection) -> None:
    extract = Extract.of(control, most_bytes=300 * KB)
    assert extract.shares["public.small"] == extract.shares["loadstone.part"] == 100
    assert 200 * KB < extract.hashed_bytes <= 300 * KB
    before = extract.hashes(control)
    assert 0 < before['loadstone."a table"'].rows < 1000
    assert extract.hashes(control) == before
    control.execute("""update loadstone."a table" set t = 2""")
    assert extract.hashes(control) != before


def test_a_hash_that_takes_too_long_ends(control: psycopg.Connection) -> None:
    control.execute("""insert into loadstone."a table" select 2, 'y' from generate_series(1, 300000)""")
    with pytest.raises(psycopg.errors.QueryCanceled):
        Extract.of(control).hashes(control, limit_s=0.0)


@given(st.lists(st.integers(0, 1 << 40)), st.integers(0, 1 << 30))
def test_bytes_are_shared_out_and_none_is_left_over(sizes: list[int], most: int) -> None:
    sizes.sort()
    parts = content._parts(sizes, most)
    assert all(0 <= part <= size for part, size in zip(parts, sizes, strict=True))
    assert sum(parts) <= most
    assert sum(parts) >= min(sum(sizes), most - len(sizes)), "rounded down"

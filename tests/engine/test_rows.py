"""Answers of a server that are not what was requested."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import psycopg
import pytest
from psycopg.adapt import Loader

from loadstone.engines.postgres import ENGINE
from loadstone.target import open_target, parse_target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.sandbox import Database

    from loadstone.engine.postgres.connections import PostgresControl


@pytest.fixture
def control(database: Database) -> Iterator[PostgresControl]:
    with open_target(parse_target(database.socket_url), 1) as opened:
        assert opened.connection is not None
        with ENGINE.connect(opened.connection) as connection:
            yield connection


def test_a_column_that_is_not_there_is_an_error_of_the_servers(control: PostgresControl) -> None:
    row = control.execute("select 1 as one").fetchone()
    assert row == {"one": 1}
    with pytest.raises(psycopg.DataError, match="no column 'two'"):
        row["two"]


class Unreadable(Loader):
    def load(self, data: object) -> NoReturn:
        raise ValueError(f"invalid literal: {bytes(data)!r}")  # type: ignore[call-overload]


def test_a_value_that_cannot_be_read_is_an_error_of_the_servers(control: PostgresControl) -> None:
    control.adapters.register_loader("int4", Unreadable)
    for read in ("fetchone", "fetchall", "__next__"):
        with pytest.raises(psycopg.DataError, match="cannot be read: invalid literal: b'1'"):
            getattr(control.execute("select 1 as one"), read)()


def test_a_type_that_nobody_knows_is_an_error_of_the_servers(control: PostgresControl) -> None:
    control.execute("create type mood as enum ('sad')")
    asked = control.execute("select 'sad'::mood as mood")
    with pytest.raises(psycopg.DataError, match="unknown type"):
        asked.fetchone()
    assert ENGINE.text_value(control, "select 'sad'::mood") == "sad", (
        "a user's own check may ask for any type"
    )

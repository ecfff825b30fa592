"""A run's server whose control connection is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from test_claims import Runs, begin, lose

if TYPE_CHECKING:
    from pathlib import Path

    from desk import Database


def test_the_error_that_ended_the_connection_is_not_hidden_behind_missing_sizes(
    database: Database, tmp_path: Path
) -> None:
    runs = Runs(database, tmp_path)
    with runs.server(1) as server:
        begin(server)
        lose(server, runs)
        with pytest.raises(psycopg.Error, match="terminating connection"):
            server.sizes()


def test_the_schema_is_dropped_though_the_last_phase_lost_the_connection(
    database: Database, tmp_path: Path
) -> None:
    runs = Runs(database, tmp_path)
    with runs.server(1) as server:
        begin(server)
        lose(server, runs)
        with pytest.raises(psycopg.Error):
            server.count("select 1")
        assert server.drop_workspace() is None
    assert database.value("select to_regnamespace('loadstone') is null")

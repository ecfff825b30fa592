"""The claim of a schema: two runs never share it, and a run that was killed does not keep it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import psycopg
import pytest
from support.claim_runs import Runs, begin, lose

from loadstone.engine.postgres import workspace
from loadstone.errors import LoadstoneError, RunFailedError

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Database


@pytest.fixture
def runs(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    monkeypatch.setattr(workspace, "_ENDING_S", 0.3)
    monkeypatch.setattr(workspace, "_LOOK_S", 0.02)
    return Runs(database, tmp_path)


def test_a_run_whose_control_connection_is_lost_keeps_its_schema_while_its_clients_work(runs: Runs) -> None:
    with runs.server(1) as one, runs.server(2) as other:
        begin(one)
        with closing(runs.client(one)):
            lose(one, runs)
            with pytest.raises(LoadstoneError, match="clients are still connected"):
                other.claim()
        one.revive()
        with pytest.raises(
            LoadstoneError, match=r"the server's process \d+ \(application \"loadstone\""
        ) as caught:
            other.claim()
        assert "pg_terminate_backend" in caught.value.hint
        assert one.count("select count(*) from loadstone.t") == 1


def test_a_run_ends_whose_schema_another_has_taken_meanwhile(runs: Runs) -> None:
    with runs.server(1) as one, runs.server(2) as other:
        begin(one)
        lose(one, runs)
        begin(other)
        with pytest.raises(RunFailedError, match="by another run of Loadstone, while"):
            one.revive()
        assert one.gone is not None
        with pytest.raises(RunFailedError):
            one.revive()
        assert one.drop_workspace() is None
        assert other.count("select count(*) from loadstone.t") == 1, "what is there is not dropped"


def test_a_run_ends_whose_schema_is_gone(runs: Runs) -> None:
    with runs.server(1) as one, runs.server(2) as other:
        begin(one)
        lose(one, runs)
        begin(other)
        assert other.drop_workspace() is None
        with pytest.raises(RunFailedError, match="was dropped, or"):
            one.revive()


def test_a_killed_run_keeps_nobody_from_the_schema(runs: Runs) -> None:
    with runs.server(1) as one, runs.server(2) as other:
        begin(one)
        lose(one, runs)
        begin(other)
        assert other.count("select count(*) from loadstone.t") == 1


def test_the_clients_of_a_run_find_its_mark_and_no_others(runs: Runs) -> None:
    with runs.server(1) as one, runs.server(2) as other:
        begin(one)
        assert one.opened.connection is not None
        assert one.opened.connection.application_name == one.client_name
        one.engine.connect(one.clients_connection()).close()  # type: ignore[attr-defined]
        lose(one, runs)
        begin(other)
        with pytest.raises(LoadstoneError, match="replaced by another run"):
            one.engine.connect(one.clients_connection())  # type: ignore[attr-defined]


def test_nothing_of_the_claim_stays_on_a_session_that_outlives_the_run(runs: Runs) -> None:
    """As behind a pooler."""
    with runs.server(1) as one:
        begin(one)
        session, one.control.close = one.control, lambda: None  # type: ignore[method-assign]
    locks = "select count(*) as n from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
    assert session.execute(locks).fetchone() == {"n": 0}
    psycopg.Connection.close(session)  # type: ignore[arg-type]

"""Whatever a user has under the names of built-in scenarios is whole after every one of them."""

from __future__ import annotations

import signal
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from support import planted
from support.table_loads import opened_at

from loadstone.engines.questdb.server import QuestDatabase
from loadstone.scenario.builtin import builtin_scenarios

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from support.sandbox import Database, Ended, Running, Sandbox

LIMIT_S = 280.0
"""For dozens of phases: longer than for a run of few."""
# The smallest sizes, and no sweep wider than is needed to come to every statement.
SMALL = {
    "tsbs-devops.method": "best", "tsbs-devops.scene": "1", "tsbs-devops.indexes": "both",
    "tsbs-devops.workers": "2", "tsbs-devops.interval": "3600", "tsbs-devops.fewer_devices": "31",
    "tsbs-devops.queries": "1", "tsbs-devops.ingest_rows": "100000",
    "tsbs-iot.method": "insert", "tsbs-iot.scene": "1", "tsbs-iot.indexes": "both",
    "tsbs-iot.workers": "2", "tsbs-iot.interval": "600", "tsbs-iot.queries": "1",
    "tsbs-iot.ingest_rows": "100000",
    "index-import.rows": "2000", "index-import.step_rows": "200",
    "index-import.batch_rows": "200", "index-import.partition_rows": "1000", "index-import.indexes": "1",
    "flights.rows": "5000", "flights.seconds": "0.2", "flights.workers": "2", "flights.clients": "1",
    "storage-types.rows": "100", "storage-types.distribution": "random",
    "count-loop.rows": "500", "count-loop.counts": "10", "big-transaction.rows": "50",
    "big-transaction.transactions": "1", "iot-feed.duration": "0.2", "iot-feed.index": "brin",
    "session-oltp.users": "100", "session-oltp.duration": "0.2", "pgbench-grid.scale": "1",
    "pgbench-grid.clients": "1", "pgbench-grid.mode": "prepared",
    "pgbench-grid.threads": "1", "pgbench-grid.transactions": "20", "recovery-time.rows": "100",
    "recovery-time.duration": "0.2",
}  # fmt: skip


def given(scenarios: Iterable[str]) -> list[str]:
    return [
        word
        for name, value in SMALL.items()
        if name.partition(".")[0] in scenarios
        for word in ("--set", f"{name}={value}")
    ]


@pytest.fixture(scope="module")
def quest() -> Iterator[str]:
    """A QuestDB of somebody's own, as far as a run can tell."""
    with opened_at("questdb:") as opened:
        assert isinstance(opened.database, QuestDatabase)
        server = opened.database.server
        with closing(opened.connect("test")) as control:
            opened.engine.drop_workspace(control)
        yield f"questdb://{server.user}:{server.password}@{server.host}:{server.port}"


def whole(ended: Ended) -> None:
    assert ended.code == 0, ended.err
    states = {phase["key"]: phase["state"] for phase in ended.summary["phases"]}
    assert set(states.values()) <= {"complete", "skipped"}, states


def target_of(engine: str, sandbox: Sandbox, database: Database) -> str:
    return database.socket_url if engine == "postgres" else f"{engine}:{sandbox.work / 'own'}"


def plant(engine: str, target: str, database: Database) -> None:
    if engine == "postgres":
        planted.plant_postgres(database)
    else:
        planted.plant(engine, target)


def state(engine: str, target: str, database: Database) -> list[Any]:
    return planted.state_of_postgres(database) if engine == "postgres" else planted.state(engine, target)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["postgres", "duckdb", "chdb"])
def test_no_scenario_touches_what_it_did_not_make(sandbox: Sandbox, database: Database, engine: str) -> None:
    target, scenarios = target_of(engine, sandbox, database), list(builtin_scenarios())
    plant(engine, target, database)
    before = state(engine, target, database)
    whole(sandbox.begin(*scenarios, "--target", target, *given(scenarios)).finish(LIMIT_S))
    assert state(engine, target, database) == before
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0


@pytest.mark.slow
def test_questdb_without_schemas_refuses_names_that_are_taken(sandbox: Sandbox, quest: str) -> None:
    planted.plant("questdb", quest)
    before = planted.state("questdb", quest)
    columns = ["flights", "index-import"]
    ended = sandbox.measure(*columns, "--target", quest, *given(columns))
    assert "that Loadstone did not create" in str(ended.summary)
    assert planted.state("questdb", quest) == before


IMPORT = ("--set", "rows=60000", "--set", "step_rows=2000", "--set", "indexes=1", "--set", "batch_rows=500")


def stopped(running: Running, signum: int) -> None:
    """Stop a run, by a signal, once a step of its import is in the table."""
    begun_s = psutil.Process(running.process.pid).create_time()
    steps = "targets/*/phases/*-import-*/steps.jsonl"

    def has_step() -> bool:
        return any(
            path.stat().st_size and path.stat().st_mtime > begun_s for path in running.folder.glob(steps)
        )

    running.wait_for(has_step, "a step")
    running.send(signum)
    assert running.finish().code in (128 + signum, -signum)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["postgres", "duckdb"])
def test_runs_that_are_stopped_and_gone_on_with_touch_nothing(
    sandbox: Sandbox, database: Database, engine: str
) -> None:
    target = target_of(engine, sandbox, database)

    def now() -> list[Any]:
        return state(engine, target, database)

    plant(engine, target, database)
    before = now()
    begun = sandbox.begin("index-import", "--target", target, *IMPORT)
    stopped(begun, signal.SIGINT)
    assert now() == before
    # Its schema is gone, and made again; after a kill it is there, with the ledger of what is loaded.
    stopped(sandbox.start("run", "--resume", begun.folder), signal.SIGKILL)
    assert now() == before
    whole(sandbox.run("run", "--resume", begun.folder))
    assert now() == before

"""The plan of a sysbench command line with `--report`: one scenario with one phase."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.personalities.pgbench.reporting.folder import Reported
from loadstone.personalities.pgbench.server import Address
from loadstone.personalities.sysbench.complaint import PROGRAM, ComplaintError
from loadstone.personalities.sysbench.connection import connection_of, servers_of
from loadstone.personalities.sysbench.texts import VERSION
from loadstone.plan.model import Plan, PlannedPhase, PlannedScenario, PlannedTarget, ScriptWorkload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.engine.control import Control
    from loadstone.engine.wire import WireEngine
    from loadstone.model import Connection, Drive, Value
    from loadstone.personalities.pgbench.reporting.server import Address as AnyAddress
    from loadstone.personalities.sysbench.running import Job
    from loadstone.target import Target
    from loadstone.watch.watchers import Watcher

_KEY = "001-sysbench"
_GENERAL = ("threads", "events", "time", "rate", "rand_type", "db_driver")


def reported(job: Job, watchers_of: Callable[[str], Sequence[Watcher]]) -> Reported:
    """Return what a run folder needs of a command line; raises ComplaintError where there can be none."""
    return Reported(
        PROGRAM, job.line.arguments, partial(plan_of, job), address_of(job, "--report"), watchers_of
    )


def address_of(job: Job, option: str) -> AnyAddress:
    """Return where the server is; raises ComplaintError, naming the option, where there is none."""
    if job.driver == "mysql" and job.settings.flag("mysql-dry-run"):
        raise ComplaintError(
            f"{option} needs a server, which --mysql-dry-run has none of", "Leave out one of both."
        )
    connection = connection_of(job.settings, job.driver)
    if (count := len(servers_of(job.settings, job.driver))) > 1:
        raise ComplaintError(f"{option} observes one server, and {count} are named", "Name one server.")
    return MysqlAddress(connection) if job.driver == "mysql" else Address(connection)


@dataclass(frozen=True, slots=True)
class MysqlAddress:
    """Where a server of MySQL's family is."""

    connection: Connection

    def engine(self) -> WireEngine:
        """Return the engine for both servers."""
        from loadstone.engines.mariadb import ENGINE  # noqa: PLC0415 - for --report only

        return ENGINE

    def dial(self, name: str) -> Control:
        """Open a connection of our own; MySQL's have no names."""
        del name
        return self.engine().connect(self.connection)

    def schema(self, control: Control) -> str:
        """Return the database in which tables are made."""
        return self.engine().text_value(control, "select database()") or self.connection.database


def plan_of(job: Job, drive: Drive, target: Target) -> Plan:
    """Return the plan; its only phase is the drive."""
    title = job.script.found.name
    phase = PlannedPhase(key=_KEY, id=PROGRAM, scenario=PROGRAM, title=title, workload=ScriptWorkload(drive))
    scenario = PlannedScenario(
        id=PROGRAM,
        version=VERSION,
        title=f"{PROGRAM}: {title}",
        why="A sysbench command line, run with --report.",
        source=None,
        parameters=_parameters(job),
        folder=Path.cwd(),
    )
    planned = PlannedTarget(target.id, target.engine, target.url, (phase,), target.label)
    return Plan(size="", seed=drive.seed, repeats=1, scenarios=(scenario,), targets=(planned,))


def _parameters(job: Job) -> dict[str, Value]:
    """Return what the command line chose: the options of a run, and all of the script's."""
    own = (option.name for option in job.script.options)
    values = {name: job.settings.value(name) for name in (*_GENERAL, *own)}
    texts = {name: ",".join(value) if isinstance(value, list) else value for name, value in values.items()}
    return {name: value for name, value in texts.items() if value is not None}

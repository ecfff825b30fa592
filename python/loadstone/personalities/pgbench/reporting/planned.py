"""The plan of a pgbench command line, as `loadstone run` would write it: one scenario with one phase."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.personalities.pgbench.scripts import title
from loadstone.plan.model import Plan, PlannedPhase, PlannedScenario, PlannedTarget, ScriptWorkload

if TYPE_CHECKING:
    from loadstone.model import Drive, Value
    from loadstone.personalities.pgbench.options import Options
    from loadstone.target import Target

SCENARIO = "pgbench"
_KEY = "001-pgbench"


def plan_of(options: Options, drive: Drive, target: Target) -> Plan:
    """Return the plan; its only phase is the drive."""
    phase = PlannedPhase(
        key=_KEY,
        id="pgbench",
        scenario=SCENARIO,
        title=title(options.scripts),
        workload=ScriptWorkload(drive),
    )
    scenario = PlannedScenario(
        id=SCENARIO,
        version=str(options.emulate),
        title=f"pgbench: {title(options.scripts)}",
        why="A pgbench command line, run with --report.",
        source=None,
        parameters=parameters(options, drive),
        folder=Path.cwd(),
    )
    planned = PlannedTarget(target.id, target.engine, target.url, (phase,), target.label)
    return Plan(size="", seed=options.seed, repeats=1, scenarios=(scenario,), targets=(planned,))


def parameters(options: Options, drive: Drive) -> dict[str, Value]:
    """Return what the command line chose, by the long names of pgbench's options."""
    found: dict[str, Value | None] = {
        "client": drive.clients,
        "jobs": drive.threads,
        "protocol": drive.mode,
        "time": options.duration_s,
        "transactions": options.transactions,
        "rate": options.rate_per_s,
        "latency-limit": options.latency_limit_ms,
        "scale": drive.variables["scale"],
        "connect": options.connect or None,
        "max-tries": options.max_tries if options.max_tries != 1 else None,
    }
    return {name: value for name, value in found.items() if value is not None}

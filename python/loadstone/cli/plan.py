"""`loadstone plan`: what a run would do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from loadstone.cli.planning import planning_options, request_of, with_consent

if TYPE_CHECKING:
    from loadstone.plan.model import Plan
    from loadstone.run import Request


@click.command("plan")
@planning_options
def command(**given: Any) -> None:
    """Print what a run would do, without touching a server.

    The output is plan.json.
    """
    from loadstone.plan.plan import estimated_seconds, plan_to_json
    from loadstone.results.json_files import redact_json
    from loadstone.run import plan_of
    from loadstone.target import parse_targets

    def planned(request: Request) -> Plan:
        return plan_of(request, parse_targets(request.targets))

    made = with_consent(request_of(given), planned)
    click.echo(redact_json(plan_to_json(made)), nl=False)
    click.echo(f"about {estimated_seconds(made):.0f} s of measuring", err=True)

"""`loadstone calibrate`: our own ceiling on this machine."""

from __future__ import annotations

import json
import sys

import click

from loadstone.cli.group import Seconds


@click.command("calibrate")
@click.option(
    "--clients",
    "-c",
    "clients",
    multiple=True,
    type=click.IntRange(1, 100_000),
    help="Number of clients; may be given several times.",
)
@click.option(
    "--seconds",
    type=Seconds(0.1, 3600),
    default=1.0,
    show_default=True,
    help="Time of each measurement.",
)
@click.option("--json", "as_json", is_flag=True, help="Print calibration.json on standard output.")
def command(clients: tuple[int, ...], seconds: float, *, as_json: bool) -> None:
    """Measure Loadstone's own ceiling on this machine.

    The driver sends statements to a built-in server that answers at once.
    """
    from loadstone.cli import terminal
    from loadstone.signals import InterruptedRun, Signals
    from loadstone.workload import calibrate

    wanted = [(mode, number) for mode in calibrate.MODES for number in clients or calibrate.CLIENTS]
    terminal.say(f"{len(wanted)} measurements of {seconds:g} s …")
    try:
        with Signals() as signals:
            found = calibrate.calibrate_for(wanted, signals, seconds)
    except InterruptedRun as signalled:
        terminal.say(str(signalled))
        sys.exit(int(signalled.exit_code))
    if as_json:
        click.echo(json.dumps(found, indent=1))
    else:
        terminal.show_calibration(found)

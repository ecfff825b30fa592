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
@click.option(
    "--truth",
    is_flag=True,
    help="Compare measured percentiles with true ones, on a server whose service times are known.",
)
@click.option(
    "--peers", is_flag=True, help="With --truth: measure with pgbench and sysbench too, where installed."
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON on standard output.")
def command(clients: tuple[int, ...], seconds: float, *, truth: bool, peers: bool, as_json: bool) -> None:
    """Measure Loadstone's own ceiling on this machine, or how true its percentiles are.

    The driver sends statements to a built-in server that answers at once, or with --truth after times
    drawn from known distributions.
    """
    if peers and not truth:
        raise click.UsageError("--peers is allowed only with --truth.")
    if truth and clients:
        raise click.UsageError("--clients is not allowed with --truth, whose loads are fixed.")
    if truth:
        _show_truth(peers=peers, as_json=as_json)
    else:
        _show_ceiling(clients, seconds, as_json=as_json)


def _show_truth(*, peers: bool, as_json: bool) -> None:
    from loadstone.cli import terminal
    from loadstone.signals import InterruptedRun, Signals
    from loadstone.truth import table

    try:
        with Signals() as signals:
            rows = table.measure_truth(peers=peers, signals=signals, tell=terminal.say)
    except InterruptedRun as signalled:
        terminal.say(str(signalled))
        sys.exit(int(signalled.exit_code))
    if as_json:
        click.echo(json.dumps(table.document(rows), indent=1))
    else:
        terminal.show_truth(table.cells(rows))


def _show_ceiling(clients: tuple[int, ...], seconds: float, *, as_json: bool) -> None:
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

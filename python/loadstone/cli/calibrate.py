"""`loadstone calibrate`: our own ceiling on this machine."""

from __future__ import annotations

import json
import sys
from typing import Any

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
@click.option(
    "--rate",
    type=Seconds(0.001, 1e9),
    metavar="TPS",
    help="Say how many load hosts this rate needs, with a fifth of each ceiling to spare.",
)
@click.option(
    "--hosts",
    metavar="HOSTS",
    help="Measure on load hosts, all at once: local:N, or the scheduler of a Dask cluster (tcp://HOST:8786).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON on standard output.")
def command(clients: tuple[int, ...], seconds: float, *, truth: bool, peers: bool, **more: Any) -> None:
    """Measure Loadstone's own ceiling on this machine, or how true its percentiles are.

    The driver sends statements to a built-in server that answers at once, or with --truth after times
    drawn from known distributions.
    """
    if peers and not truth:
        raise click.UsageError("--peers is allowed only with --truth.")
    if truth and clients:
        raise click.UsageError("--clients is not allowed with --truth, whose loads are fixed.")
    if truth and (more["hosts"] or more["rate"]):
        raise click.UsageError("--hosts and --rate are not allowed with --truth.")
    if truth:
        _show_truth(peers=peers, as_json=more["as_json"])
    else:
        _show_ceiling(clients, seconds, **more)


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
        terminal.say(table.summary(rows))


def _show_ceiling(
    clients: tuple[int, ...], seconds: float, *, hosts: str | None, rate: float | None, as_json: bool
) -> None:
    from loadstone.cli import terminal
    from loadstone.signals import InterruptedRun, Signals
    from loadstone.workload import calibrate

    wanted = [(mode, number) for mode in calibrate.MODES for number in clients or calibrate.CLIENTS]
    terminal.say(f"{len(wanted)} measurements of {seconds:g} s …")
    try:
        with Signals() as signals:
            if hosts is not None:
                found = _on_hosts(hosts, wanted, seconds)
            else:
                found = calibrate.calibrate_for(wanted, signals, seconds)
    except InterruptedRun as signalled:
        terminal.say(str(signalled))
        sys.exit(int(signalled.exit_code))
    by_host = found.get("hosts") or {"this host": found["results"]}
    if rate is not None:
        found["needed"] = calibrate.needed_document(rate, by_host)
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    for name, results in by_host.items():
        terminal.show_calibration(found | {"results": results}, name if hosts else "")
    if rate is not None:
        terminal.show_needed(found["needed"])


def _on_hosts(hosts: str, wanted: list[tuple[Any, int]], seconds: float) -> dict[str, Any]:
    from loadstone import _core
    from loadstone.hosts.fleet import open_fleet
    from loadstone.hosts.places import parse_hosts

    with open_fleet(parse_hosts(hosts)) as fleet:
        return {
            "format": 1,
            "clock_ns": round(_core.clock_cost_ns(), 1),
            "record_ns": round(_core.record_cost_ns(), 1),
            "hosts": fleet.calibrate(wanted, seconds),
        }

"""One run as pgbench does it: server looked at, load driven, results printed."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from loadstone.errors import ExitCode, RunFailedError
from loadstone.host.open_files import make_room_for
from loadstone.hosts.driving import driver
from loadstone.model import Drive, Pace
from loadstone.model import Script as DriveScript
from loadstone.personalities.observation.observer import observing
from loadstone.personalities.pgbench.complaint import PROGRAM, ComplaintError
from loadstone.personalities.pgbench.messages import message_writer
from loadstone.personalities.pgbench.progress import ProgressLines
from loadstone.personalities.pgbench.results import aborting_errors, beyond, results
from loadstone.personalities.pgbench.results_folder import driver_folder
from loadstone.personalities.pgbench.scripts import commands_of, title
from loadstone.personalities.pgbench.server import address_of, prepare
from loadstone.signals import InterruptedRun, Signals
from loadstone.workload.drive import drive_document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from loadstone.hosts.driving import Driver
    from loadstone.model import Connection, Value
    from loadstone.personalities.observation.observer import Observer
    from loadstone.personalities.pgbench.options import Options
    from loadstone.personalities.pgbench.results_folder import ResultsFolder
    from loadstone.personalities.pgbench.server import Address, ServerFacts
    from loadstone.target import Target

    Write = Callable[[str], object]
    OnMessages = Callable[[Sequence[Mapping[str, str]]], None]

LONGEST_S = 3600.0
"""Longest wait for one answer: no longer latency is recorded. pgbench itself waits without limit."""

_FILES = 128
"""Open files that the driver asks for beside its clients': who has no more is not refused sooner."""

_UNLIMITED = 2**32 - 1


def run(options: Options, signals: Signals, out: Write, err: Write) -> int:
    """Do what the options say and return the exit status."""
    variables = ["scale", "client_id", "default_seed", "random_seed", *options.variables]
    commands = [commands_of(script, options.mode, variables) for script in options.scripts]
    address = address_of(options, os.environ, err)
    if options.hosts is None:
        make_room_for(options.clients, _FILES)
    if options.slo.limits:
        from loadstone.personalities.pgbench.slo.search import search  # noqa: PLC0415 - few runs need it

        with _observing(options, address, err) as observer:
            code = search(options, address, observer, out, err)
            observer.ended(code)
            return code
    with (
        _observing(options, address, err) as observer,
        _results_folder(options, address, observer, err) as folder,
        _driver(options, signals, err) as drive_it,
    ):
        found = prepare(address, options, err)
        drive = drive_of(options, found)
        lines = ProgressLines(options, err, LONGEST_S)
        with folder.measuring(drive) as measurement:
            document = document_of(options, drive, address.connection, measurement.path)
            show = observer.showing(lines.show)
            account = measurement.account = _perform(drive_it, document, show, message_writer(err))
        if options.exit_on_abort and aborting_errors(options, account):
            return folder.end(ExitCode.FAILED)
        out(results(options, found, account, commands))
        out(beyond(account, observer.lines()))
        return folder.end(_conclude(options, account, signals, err))


def _driver(options: Options, signals: Signals, err: Write) -> AbstractContextManager[Driver]:
    def say(level: str, text: str) -> None:
        err(f"{PROGRAM}: {'warning: ' if level == 'warning' else ''}{text}\n")

    return driver(options.hosts, signals, say)


def _perform(
    drive_it: Driver,
    document: dict[str, Any],
    show: Callable[[dict[str, Any]], None],
    on_messages: OnMessages,
) -> dict[str, Any]:
    try:
        return drive_it(document, show, on_messages)
    except RunFailedError as error:
        # There is no account: nothing was run, as a rule because a client could not connect.
        raise ComplaintError(error.message, error.hint) from error


def _conclude(options: Options, account: dict[str, Any], signals: Signals, err: Write) -> ExitCode:
    if account.get("output_error"):
        err(f"{PROGRAM}: warning: not everything was recorded: {account['output_error']}\n")
    if signals.received is not None:
        err(f"{PROGRAM}: error: Run was stopped by a signal; the above results are incomplete.\n")
        return InterruptedRun(signals.received).exit_code
    if account.get("lost_hosts"):
        err(f"{PROGRAM}: error: {account['reason']}\n")
    if account["state"] == "aborted" or aborting_errors(options, account):
        err(f"{PROGRAM}: error: Run was aborted; the above results are incomplete.\n")
        return ExitCode.FAILED
    return ExitCode.OK


def _observing(options: Options, address: Address, err: Write) -> AbstractContextManager[Observer]:
    def targets() -> list[tuple[str, Target]]:
        from loadstone.personalities.observation.addresses import target_at  # noqa: PLC0415 - for --watch only

        return [("", target_at(address))]

    return observing(options.seen, PROGRAM, targets, lambda text: err(f"{PROGRAM}: {text}\n"))


@contextmanager
def _results_folder(
    options: Options, address: Address, observer: Observer, err: Write
) -> Iterator[ResultsFolder]:
    with _kept_in(options, address, observer, err) as folder:
        if not options.seen.given:
            yield folder
            return
        # What few runs need.
        from loadstone.personalities.observation.addresses import served_at  # noqa: PLC0415
        from loadstone.personalities.observation.folder import ObservedFolder  # noqa: PLC0415

        server, name = partial(served_at, address), title(options.scripts)
        yield ObservedFolder(folder, observer, server, name, reported=options.report is not None)


@contextmanager
def _kept_in(options: Options, address: Address, observer: Observer, err: Write) -> Iterator[ResultsFolder]:
    if options.report is None:
        with driver_folder(options.out) as folder:
            yield folder
        return
    # The libraries of reports.
    from loadstone.personalities.pgbench.reporting.folder import Reported, report_folder  # noqa: PLC0415
    from loadstone.personalities.pgbench.reporting.planned import SCENARIO, plan_of  # noqa: PLC0415

    reported = Reported(SCENARIO, options.arguments, partial(plan_of, options), address, observer.watchers_of)
    with report_folder(options.report, reported, err) as report:
        yield report


def drive_of(options: Options, found: ServerFacts) -> Drive:
    """Return what the options and the server make the driver do."""
    variables: dict[str, Value] = {"scale": found.scale, **options.variables}
    return Drive(
        scripts=tuple(DriveScript(script.name, script.text, script.weight) for script in options.scripts),
        mode=options.mode,
        clients=options.clients,
        threads=min(options.threads, options.clients),
        duration_s=options.duration_s,
        transactions_per_client=options.transactions,
        warmup_s=options.warmup_s,
        ramp_up_s=options.ramp_up_s,
        connect_rate_per_s=options.connect_rate_per_s,
        reconnect=options.reconnect,
        pace=options.varying or (Pace("poisson", options.rate_per_s) if options.rate_per_s else Pace()),
        latency_limit_ms=options.latency_limit_ms,
        timeout_s=LONGEST_S,
        seed=options.seed,
        variables=variables,
    )


def document_of(
    options: Options, drive: Drive, connection: Connection, folder: Path | None
) -> dict[str, Any]:
    """Return the drive as the core reads it; its files go to `folder`."""
    return drive_document(drive, connection, folder) | {
        "on_error": "abort_unless_server" if options.continue_on_error else "abort_client",
        "exit_on_abort": options.exit_on_abort,
        "tries_max": options.max_tries or _UNLIMITED,
        "messages": {
            "errors": options.verbose_errors,
            "steps": options.debug,
            "counts": True,
            "times": options.per_command,
        },
        "log": _log(options),
        "connect_per_transaction": options.connect,
        "interval_s": float(options.progress_s or 1),
    }


def _log(options: Options) -> dict[str, Any] | None:
    if not options.log:
        return None
    return {
        "prefix": options.log_prefix if options.log_prefix is not None else "pgbench_log",
        "sampling_rate": options.sampling_rate or 1.0,
        "interval_s": options.aggregate_s,
        "detailed": options.failures_detailed,
    }

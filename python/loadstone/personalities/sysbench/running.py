"""Commands of a script on the driver: runs, with their figures, and all others."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.errors import ExitCode, RunFailedError
from loadstone.hosts.driving import driver
from loadstone.model import Drive, Pace
from loadstone.personalities.pgbench.results_folder import driver_folder
from loadstone.personalities.sysbench.banner import banner
from loadstone.personalities.sysbench.complaint import ComplaintError, EndedError
from loadstone.personalities.sysbench.connection import connection_of, servers_of
from loadstone.personalities.sysbench.definitions import DRIVERS
from loadstone.personalities.sysbench.hooks import Hooks
from loadstone.personalities.sysbench.load_hosts import (
    driven,
    hosts_of,
    note_alone,
    refuse_impossible,
    sent_of,
)
from loadstone.personalities.sysbench.log import explains
from loadstone.personalities.sysbench.messages import Messages
from loadstone.personalities.sysbench.observed import observation_of, observed, observing_of
from loadstone.personalities.sysbench.progress import Progress, driver_interval_s
from loadstone.personalities.sysbench.results import print_beyond, print_results
from loadstone.personalities.sysbench.scripts import script_document
from loadstone.signals import InterruptedRun
from loadstone.temporary import temporary_folder
from loadstone.workload.drive import drive_document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from loadstone.hosts.driving import Driver
    from loadstone.model import Connection
    from loadstone.personalities.observation.observer import Observer
    from loadstone.personalities.pgbench.results_folder import ResultsFolder
    from loadstone.personalities.sysbench.limits import Limits
    from loadstone.personalities.sysbench.log import Log
    from loadstone.personalities.sysbench.options import CommandLine
    from loadstone.personalities.sysbench.scripts import Script
    from loadstone.personalities.sysbench.settings import Settings
    from loadstone.signals import Signals

    Write = Callable[[str], object]

LONGEST_S = 3600.0
"""Longest wait for one answer: no longer latency is recorded. sysbench itself waits without limit."""
_SOONEST_S = 0.001
"""Without any time for events in flight."""
_ABORTED = "aborted"
_SEED_MASK = 2**63 - 1
_PS_MODES = ("auto", "disable")


@dataclass(frozen=True, slots=True)
class Job:
    """All that a command needs."""

    line: CommandLine
    script: Script
    limits: Limits
    log: Log
    signals: Signals
    err: Write

    @property
    def settings(self) -> Settings:
        """The options."""
        return self.line.settings

    @property
    def driver(self) -> str:
        """The name of the database driver."""
        return self.settings.string("db-driver") or "mysql"

    @property
    def ps_mode(self) -> str:
        """Whether statements are prepared."""
        return self.settings.string("db-ps-mode") or "auto"


def call(job: Job, command: str, *, is_parallel: bool) -> int:
    """Run a command that is not `run`, by one client or by all; returns the exit status."""
    if is_parallel and job.limits.threads > 1:
        job.log.text("Initializing worker threads...\n")
    clients = job.limits.threads if is_parallel else 1
    drive = Drive(scripts=(), clients=clients, timeout_s=LONGEST_S, seed=_seed(job.limits))
    document = _document(job, drive, None, command)
    messages = Messages(job.log, job.err, job.limits.verbosity)
    note_alone(job, command)
    with driver(None, job.signals, lambda _level, _text: None) as drive_it:
        account = _performed(job, drive_it, document, None, messages)
    _note_copied(job, account)
    return _status(job, account)


def _note_copied(job: Job, account: dict[str, Any]) -> None:
    """Say which rows went to the server in another way than the script says."""
    if (rows := account["copied_rows"]) and explains(job.limits.verbosity):
        job.err(f"sysbench: {rows} rows were sent by COPY instead of INSERT (--bulk-copy=off sends INSERT)\n")


def run(job: Job) -> int:
    """Run the script's events and print what was measured; returns the exit status."""
    refuse_impossible(job)
    with (
        observing_of(job) as observer,
        _results_folder(job, observer) as folder,
        driven(job) as drive_it,
    ):
        drive = _drive(job)
        with folder.measuring(drive) as measurement:
            document = _document(job, drive, measurement.path, "run")
            if hosts_of(job) is not None:
                document["lua"] |= sent_of(job.script)
            messages = Messages(job.log, job.err, job.limits.verbosity, banner(job.limits))
            hooks = Hooks(job.script.functions, script_document(job.script.found, job.line), job.log)
            progress = Progress(job.limits, job.log, hooks, measurement.path)
            shown = _showing(drive_it, observer)
            account = measurement.account = _performed(job, shown, document, progress, messages)
        code = _status(job, account)
        hooks.end("report_intermediate")
        if account["state"] != _ABORTED or account.get("lost_hosts"):
            code = _print(job, account, progress, hooks, measurement.path) or code
        for line in observer.lines():
            job.log.text(line)
        return folder.end(ExitCode(code))


def _print(job: Job, account: dict[str, Any], progress: Progress, hooks: Hooks, path: Path | None) -> int:
    """Print the results; returns an exit status, 0 where the drive's own counts."""
    totals, limits = progress.totals(account), job.limits
    unfinished = account["counts"]["failed"] + account["warmup_counts"]["failed"]
    is_forced = limits.grace_s is not None and unfinished > 0 and job.signals.received is None
    if is_forced:
        job.log.text("The --max-time limit has expired, forcing shutdown...", "fatal")
        totals = replace(totals, unfinished=unfinished)
    else:
        job.log.text("Done.\n", "info")
    if not hooks.totals(totals, 0):
        print_results(limits, totals, job.log, path)
    hooks.end("report_cumulative")
    print_beyond(limits, account, job.log, job.err, path)
    return ExitCode.FAILED if is_forced or account["lost_clients"]["count"] else ExitCode.OK


@contextmanager
def _results_folder(job: Job, observer: Observer) -> Iterator[ResultsFolder]:
    with _kept_in(job, observer) as folder:
        yield observed(job, observer, folder) if observation_of(job).given else folder


def _kept_in(job: Job, observer: Observer) -> AbstractContextManager[ResultsFolder]:
    wanted = job.settings.string("report")
    if wanted is None:
        limits = job.limits
        needs_files = limits.histogram or limits.percentiles or limits.checkpoints_s
        return _passing_folder() if needs_files else driver_folder(None)
    # The libraries of reports.
    from loadstone.personalities.pgbench.reporting.folder import report_folder  # noqa: PLC0415
    from loadstone.personalities.sysbench.planned import reported  # noqa: PLC0415

    return report_folder(Path(wanted), reported(job, observer.watchers_of), job.err)


@contextmanager
def _passing_folder() -> Iterator[ResultsFolder]:
    """Keep the driver's files until the results are printed."""
    with temporary_folder("loadstone-") as path, driver_folder(path) as folder:
        yield folder


def _showing(drive_it: Driver, observer: Observer) -> Driver:
    return lambda document, show, tell: drive_it(document, observer.showing(show), tell)


def _performed(
    job: Job, drive_it: Driver, document: dict[str, Any], progress: Progress | None, messages: Messages
) -> dict[str, Any]:
    """Run the drive; what the script prints and what the driver says comes in between, in order."""

    def show(seen: dict[str, Any]) -> None:
        if progress is not None:
            progress.show(seen, messages)

    try:
        return drive_it(document, show, messages.write)
    except RunFailedError as error:
        if not messages.has_fatal:
            job.log.text(messages.without_client(error.message), "fatal")
        if error.hint:
            job.err(f"sysbench: hint: {error.hint}\n")
        raise EndedError(ExitCode.BAD_INPUT) from error


def _status(job: Job, account: dict[str, Any]) -> int:
    if account.get("output_error"):
        job.err(f"sysbench: not everything was recorded: {account['output_error']}\n")
    if job.signals.received is not None:
        return InterruptedRun(job.signals.received).exit_code
    if account.get("lost_hosts"):
        job.err(f"sysbench: {account['reason']}: the results are incomplete\n")
        return ExitCode.FAILED
    return ExitCode.BAD_INPUT if account["state"] == _ABORTED else ExitCode.OK


def _seed(limits: Limits) -> int:
    return limits.seed or time.monotonic_ns() & _SEED_MASK


def _drive(job: Job) -> Drive:
    limits = job.limits
    return Drive(
        scripts=(),
        clients=limits.threads,
        threads=min(limits.load_threads, limits.threads) or None,
        duration_s=float(limits.time_s) if limits.time_s else None,
        warmup_s=limits.warmup_s,
        pace=Pace("poisson", limits.rate_per_s) if limits.rate_per_s else Pace(),
        timeout_s=LONGEST_S,
        seed=_seed(limits),
    )


def _document(job: Job, drive: Drive, folder: Path | None, command: str) -> dict[str, Any]:
    connection = _connection(job, command)
    _, *others = servers_of(job.settings, job.driver)
    document = drive_document(drive, connection, folder) | {
        "lua": _lua(job, command, drive.seed),
        "interval_s": driver_interval_s(job.limits),
        "drain_s": _drain_s(job.limits),
        "messages": {"errors": True, "steps": False, "counts": True, "times": False},
    }
    document["connection"]["also"] = [(server.host, server.port) for server in others]
    del document["scripts"]
    return document


def _drain_s(limits: Limits) -> float | None:
    """Return how long events in flight may take after the end; None: as long as one answer may."""
    return None if limits.grace_s is None else max(float(limits.grace_s), _SOONEST_S)


def _connection(job: Job, command: str) -> Connection:
    """Return where to connect; raises ComplaintError as a script would that asks for the driver."""
    if job.driver not in DRIVERS:
        raise _no_driver(job, f"invalid database driver name: '{job.driver}'", command)
    if job.ps_mode not in _PS_MODES:
        raise _no_driver(job, f"Invalid value for db-ps-mode: {job.ps_mode}", command)
    return connection_of(job.settings, job.driver)


def _no_driver(job: Job, why: str, command: str) -> ComplaintError:
    function, name = "thread_init" if command == "run" else command, job.script.found.name
    return ComplaintError(
        f"{why}\nFATAL: `{function}' function failed: {name}: failed to initialize the DB driver", fatal=True
    )


def _lua(job: Job, command: str, seed: int) -> dict[str, Any]:
    settings = job.settings
    ignored = {"ignore_errors": settings.listed("mysql-ignore-errors")} if job.driver == "mysql" else {}
    return (
        script_document(job.script.found, job.line)
        | ignored
        | {
            "servers": [{"host": s.named, "place": s.place} for s in servers_of(settings, job.driver)],
            "command": command,
            "driver": job.driver,
            "dry_run": job.driver == "mysql" and settings.flag("mysql-dry-run"),
            "events": job.limits.events,
            "init_s": job.limits.init_s or None,
            "percentile": float(job.limits.percentile) or None,
            "seed": seed,
            "ps_mode": job.ps_mode,
            "bulk_copy": settings.flag("bulk-copy"),
            "rand": {
                "type": job.limits.distribution,
                "spec_iter": settings.integer("rand-spec-iter"),
                "spec_pct": settings.integer("rand-spec-pct"),
                "spec_res": settings.integer("rand-spec-res"),
                "pareto_h": settings.double("rand-pareto-h"),
            },
        }
    )

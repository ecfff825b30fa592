"""One drive: the plan's values turned into the core's document, watched until it ends."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone import _core
from loadstone.engine.postgres.session_checks import check_statement
from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.results.json_files import to_json, write_atomic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone import model
    from loadstone.engine.library.client import Clients
    from loadstone.signals import Signals

    OnMessages = Callable[[Sequence[Mapping[str, str]]], None]

_POLL_S = 0.1
_END_S = 5.0
"""Longest wait for the end of a drive that nobody waits for any more: it cuts off after two seconds."""
Progress = dict[str, Any]
Step = dict[str, Any]
"""One entry of `load.steps` of drive.json."""


def connection_document(connection: model.Connection) -> dict[str, Any]:
    """Return how the core is told where to connect."""
    return connection.document() | {"session_check": _session_check(connection)}


def _session_check(connection: model.Connection) -> str | None:
    """Return the query that finds a session that is not as requested; None where nothing was."""
    if connection.protocol != "postgres" or connection.session_check is not None:
        return connection.session_check
    return check_statement(connection)


def drive_document(
    drive: model.Drive, connection: model.Connection | None, out_dir: Path | None, io: model.InOut = "auto"
) -> dict[str, Any]:
    """Return the core's specification of a drive; `io` is the kernel's interface to use.

    Without `connection`, the clients are behind a library.
    """
    return {
        "connection": None if connection is None else connection_document(connection),
        "scripts": [{"name": s.name, "text": s.text, "weight": s.weight} for s in drive.scripts],
        "mode": drive.mode,
        "clients": drive.clients,
        "threads": drive.threads,
        "duration_s": drive.duration_s,
        "transactions_per_client": drive.transactions_per_client,
        "warmup_s": drive.warmup_s,
        "pace": _pace_document(drive.pace),
        "latency_limit_ms": drive.latency_limit_ms,
        "timeout_s": drive.timeout_s,
        "reconnect": drive.reconnect,
        "seed": drive.seed,
        "variables": dict(drive.variables),
        "io": io,
        "out_dir": str(out_dir) if out_dir is not None else None,
    } | _start_document(drive)


def _start_document(drive: model.Drive) -> dict[str, Any]:
    """Return the limits at the start of a drive that there are."""
    limits = {"ramp_up_s": drive.ramp_up_s, "connect_rate_per_s": drive.connect_rate_per_s}
    return {name: limit for name, limit in limits.items() if limit}


def _pace_document(pace: model.Pace) -> dict[str, Any]:
    if pace.kind == "varying":
        return {"kind": pace.kind, "pieces": [asdict(piece) for piece in pace.pieces]}
    rate = {} if pace.rate_per_s is None else {"rate_per_s": pace.rate_per_s}
    return {"kind": pace.kind} | rate


def perform(
    document: dict[str, Any],
    signals: Signals | None,
    show: Callable[[Progress], None] | None = None,
    on_step: Callable[[Step], None] | None = None,
    library: Clients | None = None,
    on_messages: OnMessages | None = None,
) -> dict[str, Any]:
    """Run a drive to its end and return its account (drive.json).

    `library` connects the clients where `document` has no `connection`.

    The first signal asks it to stop in order; whatever ends the waiting for it ends its threads as well, so
    that nothing is written into its folder later. `on_messages` takes the drive's messages (`messages`
    in the document), all before the end. `show` has the last look too, with `over`: its `recent` has the
    intervals since the look before, and the cut-off last one. `on_step` is called with
    each complete step of a load in order while the drive holds (`hold` in the document); what it raises
    stops the drive, and is raised.
    Raises LoadstoneError when the drive cannot begin.
    """
    try:
        drive = _core.Drive(json.dumps(document), library)
    except _core.ScriptError as error:
        raise _script_trouble(error) from error
    except _core.DriveError as error:
        raise LoadstoneError(*error.args) from error
    if signals is not None:
        signals.during(drive.stop)
    try:
        drive.start()
        return _await(drive, document.get("out_dir"), show, on_step, on_messages)
    except _core.DriveError as error:
        raise RunFailedError(*error.args) from error
    except BaseException:
        drive.stop()
        with contextlib.suppress(_core.DriveError):  # what ended the waiting says more
            _account(drive.wait(_END_S), document.get("out_dir"))
        raise
    finally:
        if signals is not None:
            signals.during(None)


def _await(
    drive: _core.Drive,
    out_dir: str | None,
    show: Callable[[Progress], None] | None,
    on_step: Callable[[Step], None] | None,
    on_messages: OnMessages | None,
) -> dict[str, Any]:
    seen = 0
    while True:
        try:
            account = _account(drive.wait(_POLL_S), out_dir)
        except _core.DriveError:
            if on_messages is not None:  # what was said of it
                on_messages(json.loads(drive.progress()).get("messages") or [])
            raise
        progress: Progress = json.loads(drive.progress())
        if on_step is not None:
            steps = progress.get("steps", [])[seen:]
            seen += len(steps)
            _tell(drive, steps, on_step, account, out_dir)
        if on_messages is not None:
            on_messages(progress.get("messages") or [])
        if show is not None:
            show(progress if account is None else progress | {"over": True})
        if account is not None:
            return account
        _go_on(drive, progress)


def _go_on(drive: _core.Drive, progress: Progress) -> None:
    if progress["output_error"]:
        drive.stop()  # what is measured from here on would be lost
    elif progress.get("holding"):
        drive.proceed()


def _account(text: str | None, out_dir: str | None) -> dict[str, Any] | None:
    """Read the account of a drive that has ended and write drive.json; it says where that fails."""
    if text is None:
        return None
    account: dict[str, Any] = json.loads(text)
    if out_dir is not None:
        try:
            write_atomic(Path(out_dir) / "drive.json", to_json(account, indent=1) + "\n")
        except RunFailedError as error:
            account["output_error"] = account["output_error"] or error.message
    return account


def _tell(
    drive: _core.Drive,
    steps: list[Step],
    on_step: Callable[[Step], None],
    account: dict[str, Any] | None,
    out_dir: str | None,
) -> None:
    """Tell of steps; where that fails, the drive ends in order first, and its files are whole."""
    try:
        for step in steps:
            on_step(step)
    except BaseException:
        drive.stop()
        while account is None:
            account = _account(drive.wait(_POLL_S), out_dir)
        raise


def _script_trouble(error: _core.ScriptError) -> LoadstoneError:
    message, file, line, column, hint = error.args
    return LoadstoneError(f"{file}:{line}:{column}: {message}", hint)

"""How a run begins and ends in its folder: the keys of run.json."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone import __version__
from loadstone.errors import ExitCode
from loadstone.host import environment
from loadstone.results.redact import redact_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.results.folder import RunFolder

_STATES = {
    ExitCode.OK: "complete",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.TERMINATED: "interrupted",
}


def begin_run(folder: RunFolder, origin: environment.Origin, command: Sequence[str], **what: object) -> None:
    """Write run.json of a run that begins; `what` are the keys that say what was requested."""
    folder.write_run(
        loadstone=__version__,
        id=folder.path.absolute().name,
        state="running",
        started_at=origin.started_at,
        origin_ns=origin.origin_ns,
        ended_at=None,
        duration_s=None,
        exit_code=None,
        reason=None,
        command=redact_command(list(command)),
        **what,
    )


def end_run(folder: RunFolder, code: ExitCode, reason: str | None) -> None:
    """Write into run.json how the run ended, and when."""
    now = environment.read_clocks()
    folder.write_run(
        state=_STATES.get(code, "failed"),
        ended_at=now.started_at,
        duration_s=round((now.origin_ns - folder.run["origin_ns"]) / 1e9, 3),
        exit_code=int(code),
        reason=reason,
    )

"""The load of a cycle: clients that go on while the server is down, and book every commit."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from loadstone import _core
from loadstone.crash.ledger import INSERT
from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.model import Pace
from loadstone.results.json_files import to_json, write_atomic
from loadstone.workload.drive import drive_document

if TYPE_CHECKING:
    from types import TracebackType

    from loadstone.model import Connection, Drive

LONGEST_S = 24 * 3600.0
"""A load is stopped, it does not end by itself."""
_RETRY_S = 0.1
"""Longest pause before clients connect again: it is in the times of recovery."""
_END_S = 30.0
_INTERVAL_S = 0.1


def ledgered(
    drive: Drive, connection: Connection, ledgers: Path, run: int, out: Path | None
) -> dict[str, Any]:
    """Return the document of a drive whose commits are booked in `ledgers`."""
    endless = replace(
        drive, duration_s=LONGEST_S, transactions_per_client=None, warmup_s=0.0, ramp_up_s=0.0,
        reconnect=True, latency_limit_ms=None, pace=drive.pace if drive.pace.kind != "varying" else Pace(),
    )  # fmt: skip
    return drive_document(endless, connection, out) | {
        "ledger": {"folder": str(ledgers), "run": run, "insert": INSERT},
        "reconnect_pause_s": _RETRY_S,
        "interval_s": _INTERVAL_S,
    }


@dataclass(slots=True)
class Load:
    """A drive that goes on until the context ends, as `account` then tells."""

    document: dict[str, Any]
    account: dict[str, Any] | None = field(default=None, init=False)
    _drive: _core.Drive = field(init=False)

    def __enter__(self) -> Self:
        """Connect all clients and begin. Raises LoadstoneError for scripts and options that cannot be."""
        try:
            self._drive = _core.Drive(json.dumps(self.document))
        except _core.ScriptError as error:
            message, file, line, column, hint = error.args
            raise LoadstoneError(f"{file}:{line}:{column}: {message}", hint) from error
        except _core.DriveError as error:
            raise LoadstoneError(*error.args) from error
        try:
            self._drive.start()
        except _core.DriveError as error:
            raise RunFailedError(*error.args) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it; what ended the context before says more than an error of the end."""
        if self.account is None:
            with contextlib.suppress(LoadstoneError):
                self.stop()

    @property
    def begin_ns(self) -> int | None:
        """When transactions began, by the monotonic clock; None before."""
        found: int | None = json.loads(self._drive.progress())["start_ns"]
        return found

    def check(self) -> None:
        """Raise RunFailedError where the load has ended by itself."""
        account = self._wait(0.0)
        if account is not None:
            self.account = account
            reason = account.get("failure") or account.get("reason") or account["state"]
            raise RunFailedError(f"the load ended by itself: {reason}", "Look at drive.json of the cycle.")

    def stop(self) -> dict[str, Any]:
        """End all clients, and return the account. Raises RunFailedError where that is not possible."""
        if self.account is None:
            self._drive.stop()
            self.account = self._wait(_END_S)
        if self.account is None:
            raise RunFailedError("the load does not end", "This is a bug of Loadstone: please report it.")
        return self.account

    def _wait(self, seconds: float) -> dict[str, Any] | None:
        try:
            text = self._drive.wait(seconds)
        except _core.DriveError as error:
            raise RunFailedError(*error.args) from error
        if text is None:
            return None
        account: dict[str, Any] = json.loads(text)
        if self.document["out_dir"]:
            write_atomic(Path(self.document["out_dir"]) / "drive.json", to_json(account, indent=1) + "\n")
        return account

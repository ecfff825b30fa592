"""The trials of `--slo`: pgbench's drive at a Poisson rate, all on the server that the user named."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from loadstone.errors import RunFailedError
from loadstone.model import Pace
from loadstone.personalities.pgbench.complaint import PROGRAM, ComplaintError
from loadstone.personalities.pgbench.messages import message_writer
from loadstone.personalities.pgbench.progress import ProgressLines
from loadstone.personalities.pgbench.results import aborting_errors
from loadstone.personalities.pgbench.run import LONGEST_S, document_of
from loadstone.personalities.pgbench.scripts import title
from loadstone.results.document_reader import read_document
from loadstone.results.documents import Drive as DriveResult
from loadstone.slo.ceiling import own_ceiling
from loadstone.slo.counting import counted
from loadstone.temporary import temporary_folder
from loadstone.workload.drive import perform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from loadstone.model import Drive
    from loadstone.personalities.observation.machine import MachineWatch
    from loadstone.personalities.observation.observer import Observer
    from loadstone.personalities.pgbench.options import Options
    from loadstone.personalities.pgbench.server import Address
    from loadstone.signals import Signals
    from loadstone.slo.counting import TrialPlan
    from loadstone.slo.documents import Trial
    from loadstone.slo.experiment import MakeTrial
    from loadstone.slo.limits import Limit

FOLDER = "trials"


@dataclass(frozen=True, slots=True)
class PgbenchTrials:
    """All that the trials of a search have in common; `folder` keeps their files."""

    options: Options
    drive: Drive
    address: Address
    folder: Path | None
    observer: Observer
    err: Callable[[str], object]

    @property
    def limits(self) -> tuple[Limit, ...]:
        """What must be kept."""
        return self.options.slo.limits

    @contextmanager
    def prepared(self, signals: Signals) -> Iterator[MakeTrial]:
        """Yield what makes trials: the server is there, and nothing is to be prepared."""
        with temporary_folder("loadstone-pgbench-") as temporary:
            yield partial(self._trial, self.folder or temporary, signals)

    def _trial(self, place: Path, signals: Signals, planned: TrialPlan) -> Trial:
        """Drive the scripts. Raises LoadstoneError, or InterruptedRun for a signal."""
        name = f"{FOLDER}/{planned.number:03d}"
        path = place / name
        path.mkdir(parents=True)
        drive = self._paced(planned)
        with self._observed(planned, path) as machine:
            account = self._perform(drive, path, signals, first=planned.number == 1)
            self.observer.over(account["state"])
        signals.check()
        self._refuse_losses(account, planned)
        trial = counted(path / "drive.json", planned, self.limits, self.options.slo.errors)
        trial.cpu_client = _cpu_client(account)
        trial.cpu_server = machine.mean("machine_server_cpu") if machine is not None else None
        if planned.rate is None:
            trial.ceiling_per_s = own_ceiling(drive, read_document(path / "drive.json", DriveResult), signals)
        if self.folder is None:
            shutil.rmtree(path)
        else:
            trial.folder = name
        return trial

    @contextmanager
    def _observed(self, planned: TrialPlan, path: Path) -> Iterator[MachineWatch | None]:
        """Follow a trial; the samples of a machine that is watched are kept beside its other files."""
        if not self.options.seen.given:
            yield None
            return
        from loadstone.personalities.observation.addresses import served_at  # noqa: PLC0415 - few runs need it

        self.observer.try_out(planned.number, planned.kind, planned.rate)
        name = title(self.options.scripts)
        with self.observer.measuring([served_at(self.address)], name, keep=path) as machine:
            yield machine
        for line in self.observer.lines():
            self.err(f"{PROGRAM}: {line}\n")

    def _paced(self, planned: TrialPlan) -> Drive:
        pace = Pace() if planned.rate is None else Pace("poisson", planned.rate)
        return replace(
            self.drive, pace=pace, duration_s=planned.seconds, seed=self.options.seed + planned.number
        )

    def _perform(self, drive: Drive, path: Path, signals: Signals, *, first: bool) -> dict[str, Any]:
        lines = ProgressLines(self.options, self.err, LONGEST_S)
        document = document_of(self.options, drive, self.address.connection, path)
        try:
            show = self.observer.showing(lines.show)
            return perform(document, signals, show, on_messages=message_writer(self.err))
        except RunFailedError as error:
            if not first:
                raise
            # As a rule a client could not connect: nothing was run.
            raise ComplaintError(error.message, error.hint) from error

    def _refuse_losses(self, account: dict[str, Any], planned: TrialPlan) -> None:
        """Raise RunFailedError where the load was not what it should be, or not all of it is on disk."""
        where = f"in trial {planned.number}"
        if account.get("output_error"):
            raise RunFailedError(f"not everything was recorded {where}: {account['output_error']}")
        ended = aborting_errors(self.options, account)
        if ended:
            first = ended[0]
            message = first["message"].split("\n", 1)[0].rstrip()
            raise RunFailedError(
                f"clients were aborted {where}: {first['sqlstate']} {message}",
                "--continue-on-error counts errors of the server as failed transactions, and --reconnect "
                "replaces lost connections.",
            )
        if account["state"] == "aborted":
            raise RunFailedError(f"the run was aborted {where}", str(account.get("reason") or ""))


def _cpu_client(account: dict[str, Any]) -> float:
    """Return the driver's share of all cores of this machine."""
    used_ns = account["client_cpu"]["user_ns"] + account["client_cpu"]["system_ns"]
    lasted_ns = max(1, account["end_ns"] - account["measure_ns"])
    return float(used_ns / lasted_ns / (os.cpu_count() or 1))

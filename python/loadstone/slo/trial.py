"""One trial of the search: a run at a load, and what became of the transactions that should have begun."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from loadstone.errors import ExitCode, RunFailedError
from loadstone.experiment.runs import refuse_failed
from loadstone.live.figures import LiveTrial, announce
from loadstone.private_server import PrivateFolder, Provision
from loadstone.results.document_reader import exists, read_document
from loadstone.results.documents import Drive as DriveResult
from loadstone.run import execute
from loadstone.slo.ceiling import own_ceiling
from loadstone.slo.counting import TrialPlan, counted
from loadstone.slo.paced import Paced
from loadstone.summary.document import write_summary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from loadstone.experiment.parts import Parts
    from loadstone.model import Drive
    from loadstone.results.documents.summary import PhaseFigures
    from loadstone.run import Listener, Request
    from loadstone.signals import Signals
    from loadstone.slo.documents import Trial
    from loadstone.slo.experiment import MakeTrial
    from loadstone.slo.limits import Limit


@dataclass(frozen=True, slots=True)
class Bench:
    """All that the trials of a search have in common."""

    request: Request
    parts: Parts
    folder: Path
    port: int
    sized: Mapping[str, str]
    limits: tuple[Limit, ...]
    errors: float | None
    listener: Listener
    drive: Drive
    """That of the measured phase."""

    @contextmanager
    def prepared(self, signals: Signals) -> Iterator[MakeTrial]:
        """Load the data, and yield what makes trials on copies of them. Raises LoadstoneError."""
        with PrivateFolder(self.request.storage) as place:
            template = place.path / "data"
            self.make_template(template)
            yield partial(self.trial, template, signals)

    def make_template(self, place: Path) -> None:
        """Load the data into `place`. Raises LoadstoneError."""
        provision = Provision(save_to=place, port=self.port, sized=self.sized)
        request = replace(
            self.request, out=self.folder / "template", provision=provision, part=self.parts.loading
        )
        refuse_failed("loading the data", execute(request, self.listener))
        if not place.is_dir():
            raise RunFailedError(
                "the server did not stop in order after the load, so its data cannot be used",
                f"Look at {request.out}/report.html and the server's settings.",
            )

    def trial(self, template: Path, signals: Signals, planned: TrialPlan) -> Trial:
        """Drive a load on a fresh copy of the data. Raises LoadstoneError, or InterruptedRun for a signal.

        A server that could not follow is an answer: its run may have failed, but its counts are there.
        """
        announce(self.listener, LiveTrial(planned.number, planned.kind, offered_per_s=planned.rate))
        name = f"trials/{planned.number:03d}"
        out = self.folder / name
        paced = Paced(self.parts, planned.rate, planned.seconds, self.request.seed + planned.number)
        provision = Provision(copy_of=template, port=self.port, sized=self.sized)
        request = replace(self.request, out=out, provision=provision, part=paced)
        outcome = execute(request, self.listener)
        drives = sorted(out.glob("targets/*/phases/*/drive.json"))
        complete = [path for path in drives if exists(path.with_name("latency.hlog"))]
        if outcome.exit_code is not ExitCode.FAILED or not complete:
            refuse_failed(f"trial {planned.number}", outcome)
        trial = counted(complete[-1], planned, self.limits, self.errors)
        trial.folder = name
        trial.note = outcome.trouble.message if outcome.trouble else None
        if planned.rate is None:
            result = read_document(complete[-1], DriveResult)
            trial.ceiling_per_s = own_ceiling(self.drive, result, signals)
        phase = _phase(out)
        if phase and phase.usage:
            trial.cpu_server, trial.cpu_client = phase.usage.cpu_server, phase.usage.cpu_client
        return trial


def _phase(folder: Path) -> PhaseFigures | None:
    phases = [one for one in write_summary(folder).phases if one.drive and one.kind == "script"]
    return phases[-1] if phases else None

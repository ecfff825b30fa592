"""`--watch`, `--live` and `--openmetrics` of a run; other commands take them and do nothing with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.personalities.observation.observer import observing
from loadstone.personalities.observation.options import ObservationOptions
from loadstone.personalities.sysbench.complaint import PROGRAM

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from loadstone.personalities.observation.observer import Observer
    from loadstone.personalities.pgbench.results_folder import ResultsFolder
    from loadstone.personalities.sysbench.running import Job
    from loadstone.target import Target


def observation_of(job: Job) -> ObservationOptions:
    """Return what the command line asks for."""
    settings = job.settings
    token_file, ca = (settings.string(name) for name in ("watch-token-file", "watch-ca"))
    return ObservationOptions(
        list(settings.listed("watch")),
        Path(token_file) if token_file else None,
        Path(ca) if ca else None,
        settings.flag("live"),
        settings.integer("live-port") or None,
        settings.string("openmetrics"),
    )


def observing_of(job: Job) -> AbstractContextManager[Observer]:
    """Prepare it; raises LoadstoneError before anything is touched."""

    def targets() -> list[tuple[str, Target]]:
        # What few runs need.
        from loadstone.personalities.observation.addresses import target_at  # noqa: PLC0415
        from loadstone.personalities.sysbench.planned import address_of  # noqa: PLC0415

        return [("", target_at(address_of(job, "--watch")))]

    return observing(observation_of(job), PROGRAM, targets, lambda text: job.err(f"{PROGRAM}: {text}\n"))


def observed(job: Job, observer: Observer, folder: ResultsFolder) -> ResultsFolder:
    """Return the folder, whose drive is observed. Raises ComplaintError without a server."""
    # What few runs need.
    from loadstone.personalities.observation.addresses import served_at  # noqa: PLC0415
    from loadstone.personalities.observation.folder import ObservedFolder  # noqa: PLC0415
    from loadstone.personalities.sysbench.planned import address_of  # noqa: PLC0415

    address = address_of(job, observation_of(job).given[0])
    return ObservedFolder(
        folder,
        observer,
        lambda: served_at(address),
        job.script.found.name,
        reported=job.settings.string("report") is not None,
    )

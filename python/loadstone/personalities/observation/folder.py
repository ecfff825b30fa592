"""The place of a run's files, and what observes the drive that fills it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.errors import ExitCode
    from loadstone.model import Drive
    from loadstone.personalities.observation.observer import Observer, Served
    from loadstone.personalities.pgbench.results_folder import Measurement, ResultsFolder


class ObservedFolder:
    """A folder whose drive is observed; `reported`: it has a monitor of its own."""

    def __init__(
        self,
        folder: ResultsFolder,
        observer: Observer,
        server: Callable[[], Served],
        title: str,
        *,
        reported: bool,
    ) -> None:
        """Ask for the server as soon as there is a drive."""
        self._folder = folder
        self._observer = observer
        self._server = server
        self._title = title
        self._reported = reported

    @contextmanager
    def measuring(self, drive: Drive) -> Iterator[Measurement]:
        """Prepare for the drive, and observe it."""
        with (
            self._folder.measuring(drive) as measurement,
            self._observer.measuring([self._server()], self._title, monitored=self._reported),
        ):
            yield measurement
            self._observer.over((measurement.account or {}).get("state", "failed"))

    def end(self, code: ExitCode) -> ExitCode:
        """Finish once the results are printed."""
        ended = self._folder.end(code)
        self._observer.ended(int(ended))
        return ended

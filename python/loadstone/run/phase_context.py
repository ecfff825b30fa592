"""Where a phase is performed, and who sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.engine.control import Control
    from loadstone.hosts.fleet import Fleet
    from loadstone.model import InOut
    from loadstone.results.json_files import Document
    from loadstone.results.phase_folder import PhaseFolder
    from loadstone.run.server import Server
    from loadstone.signals import Signals
    from loadstone.workload.drive import Progress
    from loadstone.workload.load.rows import Perform


@dataclass(frozen=True, slots=True)
class PhaseOptions:
    """How phases are run, and what an earlier run has left of one."""

    io: InOut = "auto"
    ignore_space: bool = False
    begun: Document | None = None
    """phase.json of the same phase in the run that goes on; None when it was not begun."""
    fleet: Fleet | None = None
    """The load hosts; None: the load comes from this process."""


@dataclass(frozen=True, slots=True)
class PhaseContext:
    """What a phase that loads or queries needs of its surroundings."""

    server: Server
    folder: PhaseFolder
    signals: Signals
    show: Callable[[Progress], None]
    io: InOut
    log: Callable[[str], None]
    """Appends a note to the run's events."""
    drive: Callable[[Document, Callable[[Progress], None] | None], Document] | None = None
    """Drives what can be split from the load hosts; None: there are none."""
    elsewhere: Perform | None = None
    """Sends the rows of loads from several hosts; None: they come from this process."""

    def control(self, *, lost: bool = False) -> Control:
        """Return the server's control connection, made again where it was lost.

        `lost`: a client's connection was lost, so the server may be about to end all sessions.
        """
        self.server.revive(lost=lost)
        return self.server.control

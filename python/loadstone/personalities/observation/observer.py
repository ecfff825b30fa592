"""What watches the server's machine during a drive, and shows the drive while it goes on."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadstone.errors import UNREADABLE
from loadstone.live.endpoints import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from loadstone.engine import Engine
    from loadstone.engine.control import Control
    from loadstone.live.figures import LiveFigures
    from loadstone.personalities.observation.machine import MachineWatch
    from loadstone.personalities.observation.options import ObservationOptions
    from loadstone.target import Target
    from loadstone.watch.watchers import Watcher, Watchers

    Say = Callable[[str], None]
    Show = Callable[[dict[str, Any]], None]

_STATES = {"aborted": "failed"}
"""Of drives, as those of phases where they differ."""


@dataclass(frozen=True, slots=True)
class Served:
    """A server that a drive uses."""

    id: str
    """The target's."""
    label: str
    backend: Callable[[], AbstractContextManager[int | None]]
    """Asks it for the number of a process that serves us, which lasts as long as the context."""


@contextmanager
def serving_process(engine: Engine, connect: Callable[[], Control]) -> Iterator[int | None]:
    """Yield the number of the process that serves a connection of ours, and close it after that.

    None where there is none: whoever looks for the server's processes then knows their names only.
    """
    troubles = engine.troubles + UNREADABLE
    control = backend = None
    with suppress(*troubles):
        control = connect()
        backend = engine.backend_pid(control)
    try:
        yield backend
    finally:
        if control is not None:
            with suppress(*troubles):
                control.close()


class Observer:
    """Follows one drive after the other; without figures and watchers it does nothing."""

    def __init__(
        self,
        program: str,
        say: Say,
        figures: LiveFigures | None = None,
        watchers: Watchers | None = None,
    ) -> None:
        """Show drives in `figures`; `say` gets what is to be known of the watching."""
        self.figures = figures
        self._program = program
        self._say = say
        self._watchers = watchers
        self._machine: MachineWatch | None = None
        self._entered = False
        self._last_word = False

    def watchers_of(self, target: str) -> list[Watcher]:
        """Return what watches the machine of a target, by its id."""
        return self._watchers.of(target) if self._watchers is not None else []

    @contextmanager
    def measuring(
        self, servers: Sequence[Served], title: str, *, monitored: bool = False, keep: Path | None = None
    ) -> Iterator[MachineWatch | None]:
        """Follow a drive inside the context, or until `over`.

        `monitored`: the run folder has a monitor; `keep`: the folder in which samples are kept.
        """
        self._machine = None if monitored else self._machine_of(servers, keep)
        if self.figures is not None:
            self._enter(self.figures, servers[0], title)
        try:
            yield self._machine
        finally:
            self.over("failed")

    def try_out(self, number: int, kind: str, rate_per_s: float | None) -> None:
        """Note that a trial of a search begins."""
        if self.figures is not None:
            from loadstone.live.figures import LiveTrial  # noqa: PLC0415 - few runs need it

            self.figures.try_out(LiveTrial(number, kind, offered_per_s=rate_per_s))

    def showing(self, show: Show) -> Show:
        """Return what shows a drive's progress: `show`, and what was requested here."""
        if self.figures is None and self._watchers is None:
            return show

        def show_all(progress: dict[str, Any]) -> None:
            self._take(progress)
            show(progress)

        return show_all

    def over(self, state: str) -> None:
        """Note that the drive has ended, in a state of drive.json; does nothing a second time."""
        if self._machine is not None:
            self._machine.stop()
        if self.figures is not None and self._entered:
            self.figures.leave(_STATES.get(state, state))
        self._entered = False

    def lines(self) -> list[str]:
        """Return what the server's machine did during the last drive, where no run folder has it."""
        return self._machine.lines() if self._machine is not None else []

    def ended(self, code: int) -> None:
        """Say on the live page how all ended, by the exit status."""
        self.end(f"{'complete' if code == 0 else 'not complete'} (exit code {code})")

    def end(self, words: str) -> None:
        """Say on the live page how all ended; only the first words count."""
        if self.figures is not None and not self._last_word:
            self._last_word = True
            self.figures.end(words)

    def _machine_of(self, servers: Sequence[Served], keep: Path | None) -> MachineWatch | None:
        watchers = {server.label: self.watchers_of(server.id) for server in servers}
        if not any(watchers.values()):
            return None
        from loadstone.personalities.observation.machine import MachineWatch  # noqa: PLC0415 - few runs need it

        for server in servers:
            if found := watchers[server.label]:
                with server.backend() as backend:  # the server is found by the parents of this process
                    for watcher in found:
                        watcher.served_by(backend)
        return MachineWatch(watchers, self._say, keep).start()

    def _enter(self, figures: LiveFigures, server: Served, title: str) -> None:
        from loadstone.live.figures import Place  # noqa: PLC0415 - as above

        self._entered = True
        if not figures.now().phases:
            figures.expect(1)
        figures.enter(Place(server.id, self._program, title, ""), f"{server.label}: {title}")

    def _take(self, progress: Mapping[str, Any]) -> None:
        if self.figures is not None:
            self.figures.take(progress)
        if self._machine is not None:
            self._machine.since_ns = progress.get("measure_ns") or progress.get("start_ns")


@contextmanager
def observing(
    options: ObservationOptions,
    program: str,
    targets: Callable[[], Sequence[tuple[str, Target]]],
    write: Callable[[str], object],
) -> Iterator[Observer]:
    """Prepare what was requested, before anything is touched; it ends with the context.

    `targets`: each as it was given and as it was understood. Raises LoadstoneError for a port that is taken
    and a machine that cannot be watched.
    """

    def say(text: str) -> None:
        write(text)

    with ExitStack() as stack:
        figures = stack.enter_context(serving(options.live_options, say))
        watchers = _watchers(options, targets(), say, stack) if options.watch else None
        observer = Observer(program, say, figures, watchers)
        try:
            yield observer
        except BaseException as error:
            observer.end(str(error) or "it was stopped")
            raise
        observer.end("complete")


def _watchers(
    options: ObservationOptions, targets: Sequence[tuple[str, Target]], say: Say, stack: ExitStack
) -> Watchers:
    from loadstone.engines import engine as engine_named  # noqa: PLC0415 - few runs need them
    from loadstone.watch.watchers import WatchOptions, watchers_of  # noqa: PLC0415

    wanted = WatchOptions(options.watch, options.watch_token_file, options.watch_ca)
    names = {target.id: engine_named(target.engine).process_names for _, target in targets}
    watchers = watchers_of(
        wanted, [text for text, _ in targets], [target for _, target in targets], names, os.environ
    )
    stack.callback(watchers.close)
    watchers.check(say)
    return watchers

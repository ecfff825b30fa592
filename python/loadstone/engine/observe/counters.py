"""What a server says about itself while it works, on a connection that serves nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.engine import Engine
    from loadstone.engine.control import Control
    from loadstone.engine.observe.remote import RemoteMachine


class CounterReader:
    """Reads a server's counters; its connection is opened when it is needed, and again after an error."""

    def __init__(
        self,
        engine: Engine,
        connect: Callable[[], Control],
        schema: str,
        say: Callable[[str], None],
        *,
        is_watched: bool,
    ) -> None:
        """Connect later. `say` gets each reason why something is not read, once.

        `is_watched`: `--watch` shows the machine, and says itself what it lacks.
        """
        self._engine = engine
        self._connect = connect
        self._schema = schema
        self._say = say
        self._is_watched = is_watched
        self._said: set[str] = set()
        self._control: Control | None = None
        self._machine: RemoteMachine | None = None

    def read(self) -> dict[str, Any]:
        """Return the server's part of a line of the monitor. Raises the engine's errors."""
        if self._control is None or self._control.closed:
            self._control = self._connect()
            self._machine = self._engine.remote_machine(self._control)
        try:
            seen = self._engine.observe(self._control, self._schema)
            if self._machine is not None:
                seen.part["machine"] = self._machine.sample(self._control)
                seen.reasons += [] if self._is_watched else self._machine.notes
        except self._engine.errors:
            self._control.close()
            raise
        for reason in seen.reasons:
            if reason not in self._said:
                self._said.add(reason)
                self._say(reason)
        return dict(seen.part)

    def close(self) -> None:
        """Disconnect, until the next reading."""
        if self._control is not None:
            self._control.close()

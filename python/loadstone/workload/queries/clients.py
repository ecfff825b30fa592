"""Queries through a client library: how the core's clients connect, ask and are interrupted."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from loadstone.engine.library.client import Client, Library

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone._core import NativeLibrary
    from loadstone.engine import Engine
    from loadstone.engine.control import Control
    from loadstone.target import OpenTarget

CHANGED = "answer"
"""What an error is called when a query's answer is another than the first time."""
_NAME = "loadstone-query-{}"


class Asker(Protocol):
    """Whoever carries queries to a database."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What a failing query raises."""

    @property
    def arrow(self) -> bool:
        """Whether answers are Arrow, which can be digested."""

    def connect(self, name: str) -> Control:
        """Open one client's connection."""

    def answer(self, connection: Control, sql: str) -> Any:
        """Run a query and return its whole answer."""

    def cut_off(self, connection: Control, name: str) -> None:
        """Make what the connection of this name does fail now; called by another thread."""


@dataclass(frozen=True, slots=True)
class EngineAsker:
    """A target behind a client library."""

    opened: OpenTarget
    arrow: bool = True

    @property
    def engine(self) -> Engine:
        """The target's engine."""
        return self.opened.engine

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What a failing query raises."""
        return self.engine.errors

    def connect(self, name: str) -> Control:
        """Open one client's connection."""
        return self.opened.connect(name)

    def answer(self, connection: Control, sql: str) -> Any:
        """Run a query and return its answer as Arrow."""
        return self.engine.answer(connection, sql)

    def cut_off(self, connection: Control, name: str) -> None:
        """Interrupt a query."""
        self.engine.cancel(connection, name)


class QueryingLibrary(Library):
    """What the core's clients ask through an asker."""

    def __init__(
        self,
        asker: Asker,
        on_answer: Callable[[str, Any], None] | None = None,
        on_query: Callable[[int, int], None] | None = None,
        name: str = _NAME,
    ) -> None:
        """Call `on_answer` with each query's text and answer, `on_query` with its times; one at a time.

        `name` is what connections are called, with a place for the client's number.
        """
        self.errors = asker.errors
        self._asker, self._on_answer, self._on_query, self._name = asker, on_answer, on_query, name
        self._calling = threading.Lock()

    def connect(self, number: int) -> Client:
        """Open the connection of client `number`."""
        name = self._name.format(number)
        return _QueryingClient(self._asker, name, self._on_answer, self._on_query, self._calling)

    def describe(self, error: BaseException) -> tuple[str, str]:
        """Return an error's class and the first line of its message."""
        state, message = super().describe(error)
        return state, message.split("\n", 1)[0]


def native_clients(opened: OpenTarget) -> NativeLibrary | None:
    """Return the core's own clients of a target, which need no lock of Python; None where it has none."""
    with closing(opened.connect("loadstone")) as control:
        return opened.engine.query_clients(control)


class _QueryingClient(Client):
    """One client."""

    def __init__(
        self,
        asker: Asker,
        name: str,
        on_answer: Callable[[str, Any], None] | None,
        on_query: Callable[[int, int], None] | None,
        calling: threading.Lock,
    ) -> None:
        self._asker, self._name, self._on_answer, self._on_query = asker, name, on_answer, on_query
        self._calling = calling
        self._control = asker.connect(name)
        self.answered = None if on_answer is None else self._answered

    def query(self, sql: str) -> Any:
        """Run a query."""
        if self._on_query is None:
            return self._asker.answer(self._control, sql)
        start_ns = time.monotonic_ns()
        try:
            return self._asker.answer(self._control, sql)
        finally:
            with self._calling:
                self._on_query(start_ns, time.monotonic_ns())

    def _answered(self, sql: str, answer: Any) -> None:
        assert self._on_answer is not None, "else this is None"  # noqa: S101
        with self._calling:
            self._on_answer(sql, answer)

    def interrupt(self) -> None:
        """End the query that another thread is in."""
        self._asker.cut_off(self._control, self._name)

    def close(self) -> None:
        """Close the connection."""
        self._control.close()

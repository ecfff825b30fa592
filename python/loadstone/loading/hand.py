"""The control connection of a load, which lives on when the server was lost in between."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from loadstone.engine.connecting import Patience
from loadstone.engine.family import PostgresFamily
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.engine.control import Control
    from loadstone.model import Connection
    from loadstone.target import OpenTarget

_AWAY_S = 10.0
"""How long a server that was lost may be away without a word that it is on its way."""


class Hand(contextlib.AbstractContextManager["Hand"]):
    """The control connection, opened anew when the server was lost."""

    def __init__(
        self, opened: OpenTarget, schema: str | None, borrow: Callable[[], Control] | None = None
    ) -> None:
        """Take where unqualified names lead (None: where the user's own connection has them).

        `borrow` gives a control connection that works, in place of one of our own.
        """
        self._opened = opened
        self._schema = schema
        self._borrow = borrow
        self._own: Control | None = None
        self._met = False

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            self._own.close()

    def control(self) -> Control:
        """Return a connection that works; raises LoadstoneError when there is none to be had."""
        if self._borrow is not None:
            return self._borrow()
        if self._own is not None:
            try:
                self._own.execute("select 1")
            except self._opened.engine.errors:
                self._own.close()
                self._own = None
        if self._own is None:
            self._own = self._patiently() if self._met else self._connect()
            self._met = True
        return self._own

    def clients(self) -> Connection | None:
        """Return how the driver's clients connect; None where they are behind a Python driver."""
        connection, engine = self._opened.connection, self._opened.engine
        if connection is None or not isinstance(engine, PostgresFamily):
            return None
        return connection if self._schema is None else engine.with_schema(connection, self._schema)

    def _patiently(self) -> Control:
        """Wait for a server that recovers from a crash."""
        patience = Patience(_AWAY_S)
        while True:
            try:
                return self._connect()
            except LoadstoneError as error:
                if not patience.pause(error):
                    raise

    def _connect(self) -> Control:
        connection, engine = self._opened.connection, self._opened.engine
        if self._schema is None and connection is not None and isinstance(engine, PostgresFamily):
            return engine.connect(connection)
        return self._opened.connect("loadstone")

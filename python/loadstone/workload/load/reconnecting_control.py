"""The control connection of a load, which lives on when the server was lost in between."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from loadstone.engine.patience import Patience

if TYPE_CHECKING:
    from loadstone.engine.control import Control, GetControl
    from loadstone.model import Connection
    from loadstone.target import OpenTarget

_AWAY_S = 10.0
"""How long a server that was lost may be away silently that it is on its way."""


class ReconnectingControl(contextlib.AbstractContextManager["ReconnectingControl"]):
    """The control connection, opened again when the server was lost."""

    def __init__(self, opened: OpenTarget, schema: str | None, borrow: GetControl | None = None) -> None:
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

    def control(self, *, lost: bool = False) -> Control:
        """Return a connection that works; raises LoadstoneError when there is none to be had.

        `lost`: a client's connection was lost, so the server may be about to end all sessions.
        """
        if self._borrow is not None:
            return self._borrow(lost=lost)
        if self._own is None:
            self._own = self._connect()
        elif not self._is_alive(self._own, lost=lost):
            self._own.close()
            self._own = self._patiently(self._own)
        return self._own

    def clients(self) -> Connection | None:
        """Return how the driver's clients connect; None where they are behind a library."""
        return self._opened.client_connection(self._schema)

    def _is_alive(self, connection: Control, *, lost: bool) -> bool:
        try:
            connection.execute("select 1")
            if lost:
                self._await_reset(connection)
        except self._opened.engine.errors:
            return False
        return True

    def _await_reset(self, connection: Control, lost: Control | None = None) -> None:
        clients = self.clients()
        self._opened.engine.await_reset(connection, clients.application_name if clients else "", lost)

    def _patiently(self, lost: Control) -> Control:
        """Wait for a server that recovers from a crash."""
        patience = Patience(_AWAY_S)
        troubles = self._opened.engine.troubles
        while True:
            try:
                connection = self._connect()
                self._await_reset(connection, lost)
            except troubles as error:
                if not patience.pause(error):
                    raise
            else:
                return connection

    def _connect(self) -> Control:
        opened = self._opened
        return opened.connect_as_user() if self._schema is None else opened.connect("loadstone")

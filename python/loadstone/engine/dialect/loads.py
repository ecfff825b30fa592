"""What every engine says of loading rows, into plain tables or time series. PostgreSQL's answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.engine.dialect.names import NamedTables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loadstone.engine.control import Control
    from loadstone.engine.library.client import Clients
    from loadstone.model import LoadMethod


class LoadDialect(NamedTables):
    """How rows get into tables."""

    title = "PostgreSQL"
    methods: tuple[LoadMethod, ...] = ("copy_binary", "copy_text", "insert")
    """How rows can be loaded, the best way first."""

    def refuse_method(self, control: Control, method: LoadMethod) -> None:
        """Raise LoadstoneError when the server is set so that rows cannot be sent like this."""
        del control, method

    def library(self, document: Mapping[str, Any], connect: Callable[[str], Control]) -> Clients | None:
        """Return what clients behind a library load with; None where rows go by the wire protocol.

        `document` is the core's specification of a drive with a `load`; `connect` opens a control connection
        of a name.
        """
        del document, connect
        return None

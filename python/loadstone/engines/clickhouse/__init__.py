"""ClickHouse: a server of the user's own, reached over HTTP by its Python driver."""

from __future__ import annotations

import importlib.util
from types import MappingProxyType
from typing import TYPE_CHECKING

from loadstone.engine.library.packages import install
from loadstone.engine.library.places import server_place
from loadstone.engines.clickhouse.family import ClickFamily, drop_caches
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from loadstone.engine.answers import Caches
    from loadstone.engine.control import Control
    from loadstone.engine.library.engine import Place
    from loadstone.engines.clickhouse.server import ClickServer

_PORT = 8123
_PASSWORD = "CLICKHOUSE_PASSWORD"  # noqa: S105 - the name of a variable


class ClickHouse(ClickFamily):
    """A ClickHouse server."""

    name = "clickhouse"
    title = "ClickHouse"
    schemes = ("clickhouse",)
    limits = MappingProxyType({**ClickFamily.limits, "max_connections": "connections"})
    status = "not yet run against a server; tested: its driver, HTTP and the engine of chDB 4.4.0 together"
    needs = f"a server 23.8 or later, and the Python package clickhouse-connect: {install('clickhouse')}"

    @property
    def target_forms(self) -> tuple[str, ...]:
        """Its HTTP interface; with `?sslmode=require` by TLS."""
        return ("clickhouse://",)

    def place(self, text: str) -> Place:
        """Understand what follows `clickhouse:`; the password may also be in CLICKHOUSE_PASSWORD."""
        return server_place(
            "clickhouse", text, port=_PORT, user="default", database="default", variable=_PASSWORD
        )

    def open(self, place: Place, folder: Path | None, settings: Mapping[str, str]) -> ClickServer:
        """Connect. Raises LoadstoneError when that is not possible."""
        del folder, settings
        if importlib.util.find_spec("clickhouse_connect") is None:
            raise LoadstoneError(
                "ClickHouse's driver is not installed: the Python package clickhouse-connect is missing",
                f"Install it: {install('clickhouse')}",
            )
        from loadstone.engines.clickhouse.server import ClickServer  # noqa: PLC0415 - only where it is there

        if place.server is None:
            raise TypeError("a place of ClickHouse's has a server")
        return ClickServer(place.server)

    def flush_caches(self, connection: Control) -> Caches:
        """Empty the server's own caches; those of its operating system stay."""
        emptied = drop_caches(connection)
        note = (
            f"the server's own caches were emptied ({', '.join(emptied)}); its operating system still "
            "caches the files that were read"
        )
        return {"emptied": False, "note": note}


ENGINE = ClickHouse()

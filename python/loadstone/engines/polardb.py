"""PolarDB for PostgreSQL: PostgreSQL 11 or 15 whose files may lie on storage that several servers share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loadstone.engine.extension import postgres_number
from loadstone.engine.family import PostgresFamily
from loadstone.engine.series import SeriesAnswers
from loadstone.engine.tables import TableAnswers
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.engine import Identity
    from loadstone.engine.control import Control

_SIGN = "polardb"
_LOOK = """
select current_setting('polar_version', true) as version,
       (select count(*) from pg_settings where name like 'polar\\_%') as settings
"""
_VERSION = re.compile(r"polardb(?: for postgresql)? v?(\d[\w.]*)", re.IGNORECASE)


class PolarSeries(SeriesAnswers):
    """As PostgreSQL's."""

    title = "PolarDB"


class PolarTables(TableAnswers):
    """As PostgreSQL's."""

    title = "PolarDB"


class PolarDB(PostgresFamily):
    """The primary of a PolarDB: replicas take no writes and are refused."""

    name = "polardb"
    title = "PolarDB"
    schemes = ("polardb",)
    embedded_prefix = None
    relatives: Mapping[str, str] = {
        sign: name for sign, name in PostgresFamily.relatives.items() if _SIGN not in sign.lower()
    }
    needs = "PolarDB for PostgreSQL 11 or 15 (polardb/PolarDB-for-PostgreSQL); the URL names its primary"
    series = PolarSeries()
    tables = PolarTables()

    def identify(self, connection: Control) -> Identity:
        """Ask the server what it is, and refuse what is not PolarDB."""
        found = super().identify(connection)
        text, row = found["version_text"], connection.execute(_LOOK).fetchone() or {}
        if _SIGN not in text.lower() and not row.get("settings"):
            raise LoadstoneError(
                f"the server is not PolarDB: {text}",
                "Name the engine in the URL's scheme; `loadstone engines` lists them.",
            )
        own = _VERSION.search(text)
        version = row.get("version") or (own[1] if own else None)
        return {
            **found,
            "version": f"{version} on PostgreSQL {found['version']}" if version else found["version"],
        }

    def postgres_version(self, identity: Identity) -> str | None:
        """Return the version of the PostgreSQL that it is built on."""
        return postgres_number(identity)


ENGINE = PolarDB()

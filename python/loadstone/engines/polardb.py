"""PolarDB for PostgreSQL: PostgreSQL 11 or 15 whose files may be on storage that several servers share."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg

from loadstone.engine.dialect.tables import TableDialect
from loadstone.engine.dialect.timeseries import TimeSeriesDialect
from loadstone.engine.observe.storage import DataFiles
from loadstone.engine.postgres.extension import postgres_number
from loadstone.engine.postgres.family import PostgresFamily
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from loadstone.engine import Identity
    from loadstone.engine.control import Control

_SIGN = "polardb"
_LOOK = """
select current_setting('polardb_version', true) as version,
       (select count(*) from pg_settings where name like 'polar\\_%') as settings
"""
_OWN = re.compile(r"polardb(?: for postgresql)? v?(\d[\w.]*)", re.IGNORECASE)
"""Its version in `version()`: `PostgreSQL 15.8 (PolarDB 15.8.2.0 build …)`."""
_NUMBER = re.compile(r"\d+(?:\.\d+)+")
"""Its version in `polardb_version`, which has words beside it: `PolarDB V15.8.2.0 (open)`."""

_CATALOG = "select pg_relation_filepath('pg_catalog.pg_database'::regclass) as file"
"""A catalog of the whole server: `global/1262`, in shared-storage mode `file-dio:///shared/global/1262`.

What is before `global` is the setting polar_datadir as the server understands it. The setting itself is
shown to few users, and is there also where shared-storage mode is off.
"""
_SHARED = re.compile(r"(?P<prefix>(?:(?P<way>[\w-]+)://)?(?P<path>.+?)/+)global/\d+")
_DIRECT = {"file": False, "file-dio": True}
"""Ways to storage that is a folder of the machine -> whether it is read past the system's cache.

Any other way, and none, is PolarFS, a file system that the server alone sees.
"""

_PARTIAL = "select current_setting('polar_has_partial_write', true) as value"


class PolarSeries(TimeSeriesDialect):
    """As PostgreSQL's."""

    title = "PolarDB"


class PolarTables(TableDialect):
    """As PostgreSQL's, but for tablespaces."""

    title = "PolarDB"

    def offers(self, control: Control) -> frozenset[str]:
        """Return what scenarios may require: no tablespaces where the storage is shared."""
        found = super().offers(control)
        return found if _shared(control) is None else found - {"tablespace"}

    def refuse_tablespace(self, control: Control, name: str) -> None:
        """Raise LoadstoneError when no table can be put there."""
        if _shared(control) is not None:
            raise LoadstoneError(
                f"PolarDB in shared-storage mode has no tablespaces: it cannot create a table in '{name}'",
                "Remove the tablespace.",
            )
        super().refuse_tablespace(control, name)


class PolarDB(PostgresFamily):
    """The primary of a PolarDB: replicas take no writes and are refused."""

    name = "polardb"
    title = "PolarDB"
    schemes = ("polardb",)
    embedded_prefix = None
    build_sign = _SIGN
    relatives: Mapping[str, str] = {
        sign: name for sign, name in PostgresFamily.relatives.items() if _SIGN not in sign.lower()
    }
    status = "verified against PolarDB 15.8.2.0, built from its source, on shared storage and plain, on Linux"
    needs = "PolarDB for PostgreSQL 11 or 15 (polardb/PolarDB-for-PostgreSQL); the URL is that of its primary"
    series = PolarSeries()
    tables = PolarTables()

    def identify(self, connection: Control) -> Identity:
        """Ask the server what it is, and refuse what is not PolarDB."""
        found = super().identify(connection)
        text, row = found["version_text"], connection.execute(_LOOK).fetchone() or {}
        if _SIGN not in text.lower() and not row.get("settings"):
            raise LoadstoneError(
                f"the server is not PolarDB: {text}",
                "Put the right engine into the URL's scheme; `loadstone engines` lists them.",
            )
        shown, own = _NUMBER.search(row.get("version") or ""), _OWN.search(text)
        version = shown[0] if shown else own[1] if own else None
        return {
            **found,
            "version": f"{version} on PostgreSQL {found['version']}" if version else found["version"],
        }

    def postgres_version(self, identity: Identity) -> str | None:
        """Return the version of the PostgreSQL that it is built on."""
        return postgres_number(identity)

    def data_files(self, connection: Control, ours: Path | None = None) -> DataFiles:
        """Return where the files really are: in shared-storage mode not in the server's own folder."""
        own, shared = super().data_files(connection, ours), _shared(connection)
        if shared is None:
            return own
        prefix, way, path = shared["prefix"], shared["way"], shared["path"]
        if way not in _DIRECT:
            why = f"they are in {prefix} of PolarDB's shared storage, which is not a folder of this machine"
            return DataFiles(None, why, prefix, direct=True)
        found = replace(own, prefix=prefix, direct=_DIRECT[way])
        if own.folder is None:
            return found
        folder = own.folder / path  # a path that is not absolute begins in the server's own folder
        try:
            (folder / "global").stat()
        except OSError as error:
            why = f"the server's shared storage {folder} cannot be read from here: {error.strerror}"
            return replace(found, folder=None, why=why)
        return replace(found, folder=folder)

    def writes_whole_pages(self, connection: Control) -> bool:
        """Return whether its shared storage writes pages whole: so it says, unless it has partial writes."""
        if _shared(connection) is None:
            return False
        try:
            row = connection.execute(_PARTIAL).fetchone() or {}
        except psycopg.errors.InsufficientPrivilege:
            return False
        return row.get("value") != "on"


def _shared(connection: Control) -> re.Match[str] | None:
    """Return where the server's shared storage is; None where it works on files of its own."""
    row = connection.execute(_CATALOG).fetchone() or {}
    return _SHARED.fullmatch(row.get("file") or "")


ENGINE = PolarDB()

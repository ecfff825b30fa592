"""The base of engines that are an extension within PostgreSQL: found, of a version, or refused in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.engine.postgres.family import PostgresFamily
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from loadstone.engine import Identity
    from loadstone.engine.control import Control

_LOOK = """
select a.default_version as available, e.extversion as installed
from pg_available_extensions a left join pg_extension e on e.extname = a.name where a.name = %(name)s
"""
_MAJOR = 10_000
"""`server_version_num` of one major version of PostgreSQL."""


class ExtensionFamily(PostgresFamily):
    """PostgreSQL with an extension that somebody has created in the database: we leave nothing behind."""

    embedded_prefix = None
    extension: str
    oldest: tuple[int, ...] = ()
    """First version of the extension that will do; empty: any."""
    servers: tuple[int, int] = (10, 99)
    """First and last major version of PostgreSQL that it is made for."""

    def identify(self, connection: Control) -> Identity:
        """Ask the server what it is; one without the extension, or with one that is too old, is refused."""
        found = super().identify(connection)
        self._refuse_server(found)
        installed = self.installed(connection)
        return {**found, "version": f"{installed} on PostgreSQL {found['version']}"}

    def postgres_version(self, identity: Identity) -> str | None:
        """Return the version of PostgreSQL itself."""
        return postgres_number(identity)

    def installed(self, connection: Control) -> str:
        """Return the version of the extension in this database. Raises LoadstoneError when there is none."""
        row = connection.execute(_LOOK, {"name": self.extension}).fetchone()
        if row is None:
            raise LoadstoneError(
                f"the server does not have {self.title}: the files of the extension {self.extension} "
                "are not installed",
                f"It needs {self.needs}.",
            )
        if row["installed"] is None:
            raise LoadstoneError(
                f"the extension {self.extension} {row['available']} is installed on the server, but not "
                "created in this database",
                f"As a superuser, run there: create extension {self.extension}.",
            )
        version = str(row["installed"])
        if number_of(version) < self.oldest:
            oldest = ".".join(map(str, self.oldest))
            raise LoadstoneError(
                f"the database has {self.title} {version}",
                f"Loadstone needs {oldest} or later. Install it, then run: alter extension "
                f"{self.extension} update.",
            )
        return version

    def _refuse_server(self, found: Identity) -> None:
        first, last = self.servers
        if not first <= found["version_number"] // _MAJOR <= last:
            span = f"{first} or later" if last == ExtensionFamily.servers[1] else f"{first} to {last}"
            raise LoadstoneError(
                f"the server is PostgreSQL {found['version']}, but {self.title} needs {span}",
                f"It needs {self.needs}.",
            )


def number_of(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version (`13.2-1`, `6.2`) for comparing."""
    digits = version.partition("-")[0].split(".")[:2]
    return tuple(int(part) for part in digits if part.isdecimal())


def postgres_number(identity: Identity) -> str:
    """Return the version of the PostgreSQL that an engine with another number of its own is on."""
    number = identity["version_number"]
    return f"{number // _MAJOR}.{number % _MAJOR}"

"""One file of a Maven repository: its coordinates, and where a repository keeps it.

Layout: https://maven.apache.org/repository/layout.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from loadstone.fetch.errors import CoordinatesError

_PART = re.compile(r"(?!\.)[A-Za-z0-9._-]+", re.ASCII)
_PARTS = 3


@dataclass(frozen=True, slots=True)
class Artifact:
    """A jar by group, name and version."""

    group: str
    name: str
    version: str

    @classmethod
    def at(cls, coordinates: str) -> Artifact:
        """Return the file of coordinates such as `org.questdb:questdb:9.3.4`.

        Parts that would lead out of the repository's folder raise `CoordinatesError`.
        """
        parts = coordinates.split(":")
        if len(parts) != _PARTS or not all(_PART.fullmatch(part) for part in parts):
            raise CoordinatesError(
                f"'{coordinates}' does not name a file of a Maven repository", "Write group:name:version."
            )
        return cls(*parts)

    @property
    def jar(self) -> str:
        """The file's name."""
        return f"{self.name}-{self.version}.jar"

    @property
    def path(self) -> str:
        """The file's path in a repository."""
        return f"{self.group.replace('.', '/')}/{self.name}/{self.version}/{self.jar}"

"""manifest.jsonl."""

from pathlib import PurePosixPath
from typing import Literal

from loadstone.results.documents.base import Count, Struct


class ManifestFile(Struct, frozen=True):
    """A file as it was entered; without `bytes` it was not there."""

    path: str
    bytes: Count | None
    lines: Count | None
    sha256: str | None


class ManifestLine(Struct, frozen=True):
    """A line of manifest.jsonl."""

    what: Literal["written", "begun", "ended", "closed"]
    after: str | None
    files: list[ManifestFile]
    phase: str | None = None

    def check(self) -> None:
        """Raise ValueError for a path that leaves the folder, or a phase without its name."""
        for path in (*(file.path for file in self.files), *([self.phase] if self.phase else [])):
            parts = PurePosixPath(path).parts
            if not parts or parts[0] == "/" or ".." in parts or "\0" in path:
                message = f"'{path}' is no path in the folder"
                raise ValueError(message)
        if (self.what in ("begun", "ended")) != bool(self.phase):
            message = f"'{self.what}' needs a phase, and others have none - at `$.phase`"
            raise ValueError(message)

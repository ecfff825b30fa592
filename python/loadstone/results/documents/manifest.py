"""manifest.jsonl."""

from pathlib import PurePosixPath
from typing import Annotated, Literal

from msgspec import Meta

from loadstone.results.documents.base import Count, Struct


class ManifestFile(Struct, frozen=True):
    """A file as it was entered; without `bytes` it was not there."""

    path: Annotated[str, Meta(description="relative to the run folder")]
    bytes: Annotated[Count | None, Meta(description="null: the file did not exist")]
    lines: Annotated[Count | None, Meta(description="of `.jsonl` and `.hlog` files")]
    sha256: str | None


class ManifestLine(Struct, frozen=True):
    """A line of manifest.jsonl."""

    what: Literal["written", "begun", "ended", "closed"]
    after: Annotated[
        str | None, Meta(description="first 16 digits of the SHA-256 of the line before, as compact JSON")
    ]
    files: list[ManifestFile]
    phase: Annotated[
        str | None,
        Meta(description="such as targets/pg18/phases/003-one-table-single; of `begun` and `ended`"),
    ] = None

    def check(self) -> None:
        """Raise ValueError for a path that leaves the folder, or a phase without its name."""
        for path in (*(file.path for file in self.files), *([self.phase] if self.phase else [])):
            parts = PurePosixPath(path).parts
            if not parts or parts[0] == "/" or ".." in parts or "\0" in path:
                message = f"'{path}' is not a path in the folder"
                raise ValueError(message)
        if (self.what in ("begun", "ended")) != bool(self.phase):
            message = f"'{self.what}' needs a phase, and others have none - at `$.phase`"
            raise ValueError(message)

"""Why a file could not be had, and what to do about it."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from pathlib import Path

MIRROR_VARIABLE = "LOADSTONE_MAVEN_MIRROR"


class FetchError(LoadstoneError):
    """A file of a repository that could not be had."""


class CoordinatesError(FetchError):
    """The coordinates or the version are not complete."""


class UnreachableError(FetchError):
    """The repository does not answer, or not in time."""

    def __init__(self, jar: str, reason: str) -> None:
        """`reason` is what the network said, without credentials."""
        super().__init__(f"{jar} could not be downloaded: {reason}", _by_hand(jar))


class MissingError(FetchError):
    """The repository answers, and does not have the file."""

    def __init__(self, jar: str, reason: str) -> None:
        """`reason` is what the repository said, without credentials."""
        super().__init__(
            f"{jar} is not in the repository: {reason}",
            "Check that the mirror is the base address of a Maven repository that has this file. "
            + _by_hand(jar),
        )


class NoLocalJarError(FetchError):
    """The local mirror is neither the file nor a folder that has it."""

    def __init__(self, jar: str, place: Path) -> None:
        """`place` is the mirror."""
        super().__init__(
            f"{place} has no {jar}",
            f"Put {jar} there, or set {MIRROR_VARIABLE} to the file itself or to its folder.",
        )


class DamagedError(FetchError):
    """What came is not what the repository says it is."""

    def __init__(self, jar: str, reason: str) -> None:
        """`reason` says how it differs."""
        super().__init__(
            f"{jar} is damaged: {reason}",
            "Try again. If it happens again, the mirror has a damaged copy: use another one.",
        )


class DiskFullError(FetchError):
    """No space is left in the cache."""

    def __init__(self, jar: str, place: Path) -> None:
        """`place` is the folder that is full."""
        super().__init__(
            f"there is no space left at {place} for {jar}",
            "Free about 100 MB there, or set XDG_CACHE_HOME to a folder with more space.",
        )


class UnwritableError(FetchError):
    """The cache refuses us."""

    def __init__(self, place: Path, reason: str) -> None:
        """`place` is the file or folder, `reason` what the system said."""
        super().__init__(
            f"{place} cannot be written: {reason}",
            "Make it writable, or set XDG_CACHE_HOME to a folder that is.",
        )


def cache_error(jar: str, place: Path, error: OSError) -> FetchError:
    """Return what an error of our own file operations at `place` means to the user."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return DiskFullError(jar, place)
    return UnwritableError(place, error.strerror or str(error))


def _by_hand(jar: str) -> str:
    return (
        f"Without network: copy {jar} to this machine and set {MIRROR_VARIABLE} to its path or to its "
        "folder; or use an installed server (--target pg:/path/to/bin), or one that is already running."
    )

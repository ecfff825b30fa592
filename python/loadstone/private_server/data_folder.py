"""The folders of a private server: where they may be, whether there is room, whose they are."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.private_server.sizing import SPACE_MIN_BYTES

if TYPE_CHECKING:
    from loadstone.private_server.os_user import OsUser

PREFIX = "loadstone-"
_SOCKET_PATH_MAX = 107
_SOCKET_NAME_MAX = len("/.s.PGSQL.65535.lock")
# /var/tmp first: it is on a disk, where /tmp often is in memory.
_USUAL = (Path("/var/tmp"), Path("/tmp"))  # noqa: S108 - the folders made in there are private


@dataclass(frozen=True, slots=True)
class DataFolder:
    """Three folders, each made by us: log and secrets, data, socket (some may be the same)."""

    home: Path
    storage: Path
    socket: Path

    @property
    def data(self) -> Path:
        """The data directory itself, made by initdb."""
        return self.storage / "data"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.home / "server.log"

    @property
    def folders(self) -> list[Path]:
        """All folders, each once."""
        return list(dict.fromkeys((self.home, self.storage, self.socket)))

    def remove(self) -> None:
        """Remove all folders, and what tablespaces hold elsewhere."""
        remove_tablespaces(self.data)
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)


def remove_tablespaces(data: Path) -> None:
    """Remove what this cluster keeps in its tablespaces; the folders that hold it are the user's and stay.

    A folder can be the tablespace of one cluster of a version only: what bears the version's name is ours.
    """
    version = _version_of(data)
    links = data / "pg_tblspc"
    if version is None or not links.is_dir():
        return
    for link in links.iterdir():
        if link.is_symlink():
            for folder in link.resolve().glob(f"PG_{version}_*"):
                shutil.rmtree(folder, ignore_errors=True)


def _version_of(data: Path) -> str | None:
    try:
        version = (data / "PG_VERSION").read_text().strip()
    except OSError:
        return None
    return version if version.isdecimal() else None


def make_place(account: OsUser, storage: Path | None) -> DataFolder:
    """Make the folders of one server, readable to its user alone; refuse a storage that cannot serve."""
    made: list[Path] = []
    try:
        home = _make_in(_usual_folder(account), account, made)
        data_home = home
        if storage is not None:
            check_storage(storage, account)
            data_home = _make_in(storage, account, made)
        _check_space(data_home, storage or home.parent)
        fits = len(os.fsencode(home)) + _SOCKET_NAME_MAX <= _SOCKET_PATH_MAX
        socket = home if fits else _make_in(_USUAL[1], account, made)
    except BaseException:
        for folder in made:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return DataFolder(home, data_home, socket)


def make_folder(account: OsUser, storage: Path | None) -> Path:
    """Make one folder for a private database; refuse a storage that cannot serve."""
    made: list[Path] = []
    parent = storage or _usual_folder(account)
    if storage is not None:
        check_storage(storage, account)
    try:
        folder = _make_in(parent, account, made)
        _check_space(folder, parent)
    except BaseException:
        for made_folder in made:
            shutil.rmtree(made_folder, ignore_errors=True)
        raise
    return folder


def check_storage(storage: Path, account: OsUser) -> None:
    """Refuse a storage folder that is missing, holds somebody's files, or that the server cannot write."""
    try:
        held = sorted(entry.name for entry in storage.iterdir())
    except NotADirectoryError:
        raise LoadstoneError(
            f"the storage '{storage}' is not a folder", "Name an empty folder with --storage."
        ) from None
    except FileNotFoundError:
        raise LoadstoneError(
            f"the storage '{storage}' does not exist", f"Create it first: mkdir -p {storage}"
        ) from None
    except OSError as error:
        raise LoadstoneError(
            f"the storage '{storage}' cannot be read: {error.strerror}",
            "Change its permissions, or use another folder.",
        ) from error
    strangers = [name for name in held if name != "lost+found" and not name.startswith(PREFIX)]
    if strangers:
        raise LoadstoneError(
            f"the storage '{storage}' is not empty: it contains {', '.join(strangers[:3])}",
            "Use an empty folder, so that none of your files can be damaged.",
        )
    if not account.may("x", storage.resolve()):
        raise LoadstoneError(
            f"the server's user '{account.name}' cannot enter the storage '{storage}'",
            "Allow that user to enter all of its parent folders (chmod o+x), or use another folder.",
        )
    if not os.access(storage, os.W_OK | os.X_OK):
        raise LoadstoneError(
            f"the storage '{storage}' cannot be written", "Change its permissions, or use another folder."
        )


def space_words(folder: Path) -> str:
    """Say how much room a folder has and how much a server needs at the least."""
    free = shutil.disk_usage(folder).free
    return f"{free:,} bytes are free at '{folder}', but at least {SPACE_MIN_BYTES:,} are needed"


def _check_space(folder: Path, shown: Path) -> None:
    if shutil.disk_usage(folder).free < SPACE_MIN_BYTES:
        raise LoadstoneError(
            f"there is too little space for a private server: {space_words(shown)}",
            "Free some space, or use a folder with more space with --storage.",
        )


def _usual_folder(account: OsUser) -> Path:
    given = os.environ.get("TMPDIR")
    candidates = [Path(given).resolve()] if given else []
    for folder in [*candidates, *_USUAL]:
        if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK) and account.may("x", folder):
            return folder
    raise LoadstoneError(
        "there is no folder for a private server's files: neither TMPDIR nor /var/tmp nor /tmp can be used",
        f"Set TMPDIR to a folder that the user '{account.name}' can enter.",
    )


def _make_in(parent: Path, account: OsUser, made: list[Path]) -> Path:
    try:
        # Absolute: the server works in a folder of its own, and the registry outlives this process.
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent.absolute()))
    except OSError as error:
        raise LoadstoneError(
            f"a folder in '{parent}' cannot be created: {error.strerror}", "Check its permissions."
        ) from error
    made.append(folder)
    with contextlib.suppress(OSError):
        account.own(folder)
    return folder

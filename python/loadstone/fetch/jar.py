"""Jars that are used as they are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from loadstone.fetch import source
from loadstone.fetch.artifact import Artifact
from loadstone.fetch.place import Place, readable_by_all

if TYPE_CHECKING:
    from pathlib import Path


def fetch_jar(coordinates: str, destination: Path, mirror: str | None = None) -> Path:
    """Download and verify a jar into the file `destination`.

    `coordinates` are Maven's, such as `org.questdb:questdb:9.3.4`. A file that exists is returned without any
    network. `mirror` is the base address of a Maven repository, a folder of jars, or a jar; `None` is that of
    the environment (`LOADSTONE_MAVEN_MIRROR`), or else the public repository. Raises `FetchError`.
    """
    artifact = Artifact.at(coordinates)
    if destination.is_file():
        return destination
    place = Place(artifact.jar, destination)
    with place.locked():
        if not destination.is_file():
            _keep(source.read(artifact, mirror), place)
    return destination


def _keep(content: bytes, place: Place) -> None:
    with place.room() as room, place.errors():
        partial = room / place.jar
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        readable_by_all(partial)
        partial.rename(place.destination)

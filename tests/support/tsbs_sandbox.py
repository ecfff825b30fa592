"""A folder of a test's own, and `loadstone tsbs generate-data` in it."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from support.sandbox import COMMAND

if TYPE_CHECKING:
    from pathlib import Path

HOUR = "--timestamp-end=2016-01-01T01:00:00Z"
IOT = ("--use-case=iot", "--seed=123", "--scale=10", HOUR)
IOT_DIGEST = "0fbde6c14938fb4619e27bcbbdbd3438"
"""Of IOT in TSBS's format for TimescaleDB."""


@dataclass
class Made:
    """A generation that has ended."""

    code: int
    out: bytes
    err: str
    peak_bytes: int = 0

    @property
    def digest(self) -> str:
        return hashlib.md5(self.out).hexdigest()


class Place:
    """A folder of a test's own, and the command in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, *arguments: str, out: Any = subprocess.PIPE) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [COMMAND, "tsbs", "generate-data", *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.PIPE,
        )

    def make(self, *arguments: str, out: Any = subprocess.PIPE) -> Made:
        process = self.start(*arguments, out=out)
        data, err = process.communicate(timeout=120)
        return Made(process.returncode, data, err.decode())

    def made(self, *arguments: str) -> bytes:
        """Make it silently."""
        made = self.make(*arguments)
        assert (made.code, made.err) == (0, "")
        return made.out

    def names(self) -> list[str]:
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())

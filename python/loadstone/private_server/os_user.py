"""Which user of the system runs a private server: PostgreSQL refuses root."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Sequence

_KILL_WAIT_S = 5.0
_POLL_S = 0.01
_WHEN_ROOT = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class OsUser:
    """A user of the system; `switched` when it is not the one that we run as."""

    name: str
    uid: int
    gid: int
    switched: bool

    def own(self, path: Path) -> None:
        """Give the file or folder to this user."""
        if self.switched:
            os.chown(path, self.uid, self.gid)

    def run(self, arguments: Sequence[str], cwd: Path, timeout_s: float) -> subprocess.CompletedProcess[str]:
        """Run a program as this user, without our environment's PG* variables; out and err in one text.

        However it ends, Ctrl-C and the time limit included, nothing that the program started goes on.
        """
        with subprocess.Popen(
            arguments,
            cwd=cwd,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            user=self.uid if self.switched else None,
            group=self.gid if self.switched else None,
            extra_groups=[] if self.switched else None,
        ) as process:
            try:
                said, _ = process.communicate(timeout=timeout_s)
            except BaseException:
                _end_group(process)
                raise
        return subprocess.CompletedProcess(arguments, process.returncode, said)

    def may(self, access: str, path: Path) -> bool:
        """Return whether this user has access `x`, `r` or `w` to a path that exists."""
        if not self.switched:
            return os.access(path, {"x": os.X_OK, "r": os.R_OK, "w": os.W_OK}[access])
        return self.run(["test", f"-{access}", str(path)], cwd=Path("/"), timeout_s=10).returncode == 0


def _end_group(process: subprocess.Popen[str]) -> None:
    """Kill the program with all that it started, and wait until the last of them is gone."""
    end_s = time.monotonic() + _KILL_WAIT_S
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < end_s:
            os.killpg(process.pid, signal.SIGKILL)
            process.poll()  # collected, it no longer counts as a member of its group
            time.sleep(_POLL_S)


def environment() -> dict[str, str]:
    """Return the environment that servers run in: nothing of the user's can change what they do."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def server_account() -> OsUser:
    """Return the user that private servers run as."""
    uid = os.geteuid()
    if uid != 0:
        return _own_account(uid)
    for name in _WHEN_ROOT:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return OsUser(name, entry.pw_uid, entry.pw_gid, switched=True)
    raise LoadstoneError(
        "PostgreSQL refuses to run as root, and there is no user 'postgres' or 'nobody' here",
        "Create one (useradd --system postgres), or run Loadstone as an ordinary user.",
    )


def _own_account(uid: int) -> OsUser:
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        raise LoadstoneError(
            f"PostgreSQL needs a named user, and the user id {uid} has no entry in the user database",
            "Run as a user that is in /etc/passwd, or use a running server as the --target.",
        ) from None
    return OsUser(name, uid, os.getegid(), switched=False)

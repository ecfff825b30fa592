"""A power disk, as those who use it see it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

import msgspec

from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.power_disk.mounts import available, detach, mounts, reap, users

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

MOST_UNSYNCED_BYTES = 1 << 30
_END_WAIT_S = 60.0


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """What a loss took."""

    bytes: int
    """Bytes in pages of 4 kB that were not synced, without those that survived."""
    survived_bytes: int
    """Bytes in unsynced pages that survived by `keep`."""
    files: int
    """Files of which pages or the size were lost, without those that no longer exist."""
    names: int
    """Names that were not durable: new ones, renamed ones, and removed ones, which are back."""
    examples: tuple[str, ...]
    """Paths of the first of these names, from the mount on."""


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """What has happened since the disk was mounted, and what is unsynced now."""

    reads: int
    """Calls that reached the file system: the kernel answers some itself."""
    read_bytes: int
    writes: int
    written_bytes: int
    fsyncs: int
    """Syncs of files and directories, and writes with O_SYNC or O_DSYNC."""
    unsynced_bytes: int
    """Bytes in pages of 4 kB that a loss would take now."""
    unsynced_names: int
    """Names that a loss would change now."""
    written_back_bytes: int
    """Bytes that became durable without a sync, because there was too much unsynced."""
    losses: int
    open_files: int
    """Files and directories that processes have open now."""
    broken: str
    """Why the backing directory is no longer what it should be; empty while all is well."""


class PowerDisk:
    """A directory on a disk without power protection, as a context manager; `mount` is an empty directory.

    The files of `backing` are what is durable, at any moment. Leaving the context writes everything back and
    unmounts, also while processes still use the mount (`used_by` names them). If Loadstone is killed, the
    mount goes, and what was not synced is lost. Raises LoadstoneError where it cannot be mounted.
    """

    def __init__(
        self,
        backing: Path,
        mount: Path,
        *,
        strict: bool = False,
        most_unsynced_bytes: int = MOST_UNSYNCED_BYTES,
    ) -> None:
        """Touch nothing yet.

        `strict`: only a sync of the directory makes a name durable, as POSIX has it. Else a sync of the file
        does it too, as with ext4, XFS and btrfs, on which PostgreSQL relies. Above `most_unsynced_bytes` the
        oldest bytes are written back, as a kernel does.
        """
        self.backing, self.mount = backing, mount
        self._strict, self._most_bytes = strict, most_unsynced_bytes
        self._process: subprocess.Popen[str] | None = None
        self._lock = Lock()
        self._cut_off = False
        """Whether a signal has ended the wait for an answer, which then comes to the next request."""
        self.reaped: list[str] = []
        """What earlier runs had left and this start removed, in words."""
        self.used_by: list[str] = []
        """The processes that still used the mount at its end, as name and number."""

    def __enter__(self) -> Self:
        """Mount it."""
        self._check()
        self.reaped = reap()
        command = [
            *(sys.executable, "-P", "-m", "loadstone.power_disk.server"),
            *(str(self.backing.resolve()), str(self.mount.resolve())),
            *(str(self._strict), str(self._most_bytes)),
        ]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=environment,
        )
        try:
            self._read(self._line(self._process))
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write everything back and unmount."""
        self.close()

    def _check(self) -> None:
        reason = available()
        if reason is not None:
            raise LoadstoneError(f"no power disk can be mounted: {reason}", "Use --level process.")
        for folder in (self.backing, self.mount):
            if not folder.is_dir():
                raise LoadstoneError(f"'{folder}' is not a directory", "Create it, or name another one.")
        backing, mount = self.backing.resolve(), self.mount.resolve()
        if backing == mount or backing in mount.parents or mount in backing.parents:
            raise LoadstoneError(
                f"'{backing}' and '{mount}' are in each other", "Use two directories side by side."
            )
        if os.path.ismount(mount) or any(mount.iterdir()):
            raise LoadstoneError(f"'{mount}' is not empty", "Use an empty directory to mount on.")

    def lose(self, *, seed: int = 0, keep: float = 0.0, force: bool = False) -> Lost:
        """Forget all that was not synced, as a loss of power does.

        `keep`: the share of unsynced pages of 4 kB that survive; `seed` decides which. A page is whole or
        lost, and names never survive. Raises RunFailedError while a process has files open, unless forced; it
        waits up to 2 s for processes that are about to end.
        """
        if not 0 <= keep <= 1:
            raise ValueError(f"keep is a share from 0 to 1, not {keep}")
        return msgspec.convert(self._ask(do="lose", seed=seed, keep=keep, force=force), Lost)

    def counters(self) -> Counters:
        """Return what has happened up to now. Raises RunFailedError when the disk has ended."""
        return msgspec.convert(self._ask(do="counters"), Counters)

    def sync(self) -> None:
        """Make everything durable, as a kernel does within half a minute. Raises RunFailedError."""
        self._ask(do="sync")

    def close(self, *, write_back: bool = True) -> None:
        """Unmount; without `write_back`, what was not synced is lost. May be called again.

        Raises RunFailedError when not everything could be written back; the mount is gone then, too. After a
        request that a signal has cut off, nothing is written back.
        """
        process = self._process
        if process is None:
            return
        self.used_by = users(self.mount.resolve())
        try:
            if not self._cut_off:
                self._ask(do="close", write_back=write_back)
        finally:
            self._process = None
            self._end(process)

    def _ask(self, **request: Any) -> Any:
        with self._lock:
            process = self._process
            if process is None or process.stdin is None:
                raise RunFailedError("the power disk is not mounted")
            try:
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.flush()
                answer = self._line(process)
            except OSError:
                raise self._ended(process) from None
            except KeyboardInterrupt:
                self._cut_off = True
                raise
        return self._read(answer)

    def _line(self, process: subprocess.Popen[str]) -> str:
        line = process.stdout.readline() if process.stdout else ""
        if not line:
            raise self._ended(process)
        return line

    def _read(self, line: str) -> Any:
        answer = json.loads(line)
        if "ok" in answer:
            return answer["ok"]
        if "open" in answer:
            raise RunFailedError(
                f"{answer['open']} files are open on the power disk: {', '.join(answer['paths'][:5])}",
                "Stop the processes that use them before the loss.",
            )
        raise RunFailedError(f"the power disk over '{self.backing}' failed: {answer['error']}")

    def _ended(self, process: subprocess.Popen[str]) -> RunFailedError:
        status = process.wait(_END_WAIT_S)
        return RunFailedError(f"the process that serves the power disk ended with status {status}")

    def _end(self, process: subprocess.Popen[str]) -> None:
        """Wait for the process, and make sure that the mount is gone."""
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # a request that nobody reads any more
                    stream.close()
        try:
            process.wait(_END_WAIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for mount in mounts():
            if mount.pid == process.pid and mount.path == self.mount.resolve():
                detach(mount)

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            self._end(process)

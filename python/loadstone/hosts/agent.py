"""The process that drives one host's share: `python -m loadstone.hosts.agent FOLDER LEASE_S`.

It takes one JSON object a line on standard input and answers each by one on standard output. It ends, and
with it its load, when standard input ends (its parent is gone) or when nobody has said anything for the
lease: no load is left on a server that nobody watches. A calibration ends with the parent, too. Temporary
files are in FOLDER, which whoever ends the agent removes.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from loadstone import _core
from loadstone.errors import LoadstoneError
from loadstone.hosts.own_cost import OwnCost
from loadstone.signals import InterruptedRun, Signals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Message = dict[str, Any]
_LOOK_S = 0.005
_CHUNK = 1 << 16
_WATCH_MS = 100


class Agent:
    """One host's share of a drive."""

    def __init__(self, folder: str) -> None:
        """Leave records in `folder`."""
        self._folder = folder
        self._drive: _core.Drive | None = None
        self._account: Message | None = None
        self._messages: list[Any] = []
        self.cost = OwnCost()
        self._steps = 0
        """So many steps of a load were told of."""
        self._do: dict[str, Callable[..., Message]] = {
            "calibrate": _calibrate,
            "prepare": self._prepare,
            "rest": dict,
            "go": self._go,
            "poll": self._poll,
            "proceed": self._proceed,
            "stop": self.stop,
        }

    def answer(self, message: Message) -> Message:
        """Do what a message says; what goes wrong is in the answer."""
        rest = dict(message)
        try:
            return self._do[rest.pop("do")](**rest)
        except _core.ScriptError as error:
            text, file, line, column, hint = error.args
            return {"failed": [f"{file}:{line}:{column}: {text}", hint], "input": True}
        except _core.DriveError as error:
            return {"failed": list(error.args)}
        except LoadstoneError as error:
            return {"failed": [error.message, error.hint]}

    def stop(self) -> Message:
        """End the drive in order, if there is one."""
        if self._drive is not None:
            self._drive.stop()
        return {}

    def _prepare(self, document: Message) -> Message:
        self._drive = _core.Drive(json.dumps(document | {"out_dir": self._folder}))
        self._drive.start()
        return {}

    def _go(self, at_ns: int) -> Message:
        self._of_drive().go(at_ns)
        self.cost.begin()
        return {"late": time.monotonic_ns() > at_ns}

    def _poll(self, wait_s: float, until: str) -> Message:
        """Wait for the drive's end, or until it is ready, but not for longer than `wait_s`."""
        until_ready = until == "ready"
        drive, end = self._of_drive(), time.monotonic() + wait_s
        while True:
            left = end - time.monotonic()
            self._look(drive, max(0.0, min(left, _LOOK_S) if until_ready else left))
            progress: Message = json.loads(drive.progress())
            self._messages += progress.pop("messages", None) or []
            if self._account is not None or left <= 0 or not until_ready or progress["ready"]:
                messages, self._messages = self._messages, []
                progress["latest"] = None  # it is in `recent`, where each interval is told once
                self._leave_new_steps(progress)
                return {"progress": progress, "messages": messages, "account": self._account}

    def _leave_new_steps(self, progress: Message) -> None:
        if steps := progress.get("steps"):
            progress["steps"] = steps[self._steps :]
            self._steps = len(steps)

    def _proceed(self) -> Message:
        """Let the next step of a load begin."""
        self._of_drive().proceed()
        return {}

    def _look(self, drive: _core.Drive, wait_s: float) -> None:
        text = None if self._account is not None else drive.wait(wait_s)
        if text is not None:
            account = json.loads(text)
            kept = ("state", "reason", "output_error")  # all figures are in the records
            self._account = {name: account[name] for name in kept} | {"own": self.cost.document()}

    def _of_drive(self) -> _core.Drive:
        if self._drive is None:
            raise _core.DriveError("nothing is prepared", "")
        return self._drive


def _calibrate(mode: Any, clients: int, seconds: float) -> Message:
    """Measure what this host could drive against a server that answers at once."""
    from loadstone.workload.calibrate import calibrate_for  # noqa: PLC0415 - only where it is asked for

    with _until_parent_ends() as signals:
        return {"ceiling": calibrate_for([(mode, clients)], signals, seconds)["results"][0]}


@contextmanager
def _until_parent_ends() -> Iterator[Signals]:
    """While entered, the end of standard input is a signal: nobody reads it meanwhile."""
    over = threading.Event()

    def watch() -> None:
        parent = select.poll()
        parent.register(0, select.POLLHUP)
        while not over.is_set():
            if parent.poll(_WATCH_MS):
                os.kill(os.getpid(), signal.SIGTERM)
                return

    with Signals() as signals:
        watching = threading.Thread(target=watch, daemon=True)
        watching.start()
        try:
            yield signals
        finally:
            over.set()
            watching.join()


def lines(descriptor: int, lease_s: float) -> Iterator[bytes]:
    """Yield the lines that come; end with the last one, or when none came for `lease_s` seconds."""
    left = b""
    while select.select([descriptor], [], [], lease_s)[0]:
        chunk = os.read(descriptor, _CHUNK)
        if not chunk:
            return
        *whole, left = (left + chunk).split(b"\n")
        yield from whole


def main(arguments: list[str]) -> int:
    """Serve until the parent or the lease is gone."""
    folder, lease_s = arguments[0], float(arguments[1])
    tempfile.tempdir = folder
    agent = Agent(folder)
    try:
        for line in lines(0, lease_s):
            answer = json.dumps(agent.answer(json.loads(line))).encode()
            os.write(1, answer + b"\n")
            agent.cost.count(line, answer)
    except (BrokenPipeError, InterruptedRun):
        pass  # nobody listens any more
    finally:
        agent.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

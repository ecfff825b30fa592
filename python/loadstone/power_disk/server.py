"""Serves one power disk: `python -m loadstone.power_disk.server BACKING MOUNT STRICT MOST_BYTES`.

A process of its own, so that Loadstone can be killed in any way: when its end of the pipe closes, this
process unmounts and ends. Requests come as lines of JSON on standard input, answers go to standard output.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from loadstone._core import PowerDiskMount
from loadstone.power_disk.mounts import source

if TYPE_CHECKING:
    from types import FrameType


def main(arguments: list[str]) -> int:
    """Mount, answer requests until there are no more, unmount."""
    backing, at, strict, most_bytes = arguments
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is Loadstone's; it ends us
    signal.signal(signal.SIGTERM, _end)
    try:
        disk = PowerDiskMount(backing, at, source(os.getpid()), strict == "True", int(most_bytes))
    except OSError as error:
        _answer({"error": _words(error)})
        return 1
    write_back = False
    try:
        _answer({"ok": None})
        write_back = _serve(disk)
    finally:
        try:
            busy = disk.unmount(write_back)
            _answer({"ok": busy})
        except OSError as error:
            _answer({"error": _words(error)})
    return 0


def _serve(disk: PowerDiskMount) -> bool:
    """Answer requests; returns whether all is to be written back at the end."""
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "close":
            return bool(request["write_back"])
        try:
            _answer({"ok": _perform(disk, request)})
        except BlockingIOError as refusal:
            count, paths = refusal.args
            _answer({"open": count, "paths": paths})
        except OSError as error:
            _answer({"error": _words(error)})
    return False


def _perform(disk: PowerDiskMount, request: dict[str, Any]) -> Any:
    match request["do"]:
        case "lose":
            return json.loads(disk.lose(request["seed"], request["keep"], request["force"]))
        case "counters":
            return json.loads(disk.counters())
        case _:
            return disk.sync()


def _answer(document: dict[str, Any]) -> None:
    try:
        sys.stdout.write(json.dumps(document) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:  # Loadstone is gone, and Python would complain at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _words(error: OSError) -> str:
    return error.strerror or str(error)


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Runs on the server's machine, sent over ssh: answers each line of its input with counters of /proc.

Only the standard library, `loadstone.host.machine` and `loadstone.host.procfs` are there. Needs Python 3.10.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.host.procfs import Host, ProcessTree

if TYPE_CHECKING:
    from collections.abc import Collection

_IDLE_S = 300
"""Without a question for so long it ends: the connection may be gone without a word."""


def parents_named(names: Collection[str]) -> dict[int, tuple[int, str]]:
    """Return parent and name of each process that has one of the names, by its id."""
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - names are enough
        if name.isdecimal():
            try:
                text = Path("/proc", name, "stat").read_text(errors="replace")
            except OSError:
                continue
            comm, _, rest = text.partition("(")[2].rpartition(")")
            if comm in names:
                found[int(name)] = (int(rest.split()[1]), comm)
    return found


def server_root(known: dict[int, int], backend: int | None) -> tuple[int | None, str]:
    """Return the server's first process, or why it is not known; `known` are processes and their parents.

    `backend` is a process that serves us, as the server says, which may count its processes differently.
    """
    if backend in known:
        at = backend
        while known[at] in known:
            at = known[at]
        return at, ""
    roots = [pid for pid, parent in known.items() if parent not in known]
    if len(roots) == 1:
        return roots[0], ""
    return None, f"{len(roots) or 'no'} servers with such processes run there"


class Sampler:
    """Answers questions."""

    def __init__(self) -> None:
        """Look for nothing yet."""
        self._host = Host()
        self._tree: ProcessTree | None = None
        self._backend: int | None = None

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return clocks, and for `sample` counters as well."""
        clocks = {"monotonic_ns": time.monotonic_ns(), "wall_ns": time.clock_gettime_ns(time.CLOCK_REALTIME)}
        if not question.get("sample"):
            return clocks
        server, reason = self._server(question)
        return {**clocks, "host": self._host.sample(), "server": server, "reason": reason}

    def _server(self, question: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
        if not question["names"]:
            return None, ""
        sample = self._tree.sample() if self._tree is not None else None
        if sample is not None and question.get("backend") == self._backend:
            return sample, ""
        self._backend = question.get("backend")
        known = {pid: parent for pid, (parent, _) in parents_named(question["names"]).items()}
        root, reason = server_root(known, question.get("backend"))
        if root is None:
            return None, reason
        if self._tree is None:
            self._tree = ProcessTree(root)
        else:
            self._tree.watch(root)
        return self._tree.sample(), ""


def main() -> None:
    """Answer until the input ends."""
    sampler = Sampler()
    signal.alarm(_IDLE_S)
    for line in sys.stdin.buffer:
        signal.alarm(_IDLE_S)
        sys.stdout.write(json.dumps(sampler.answer(json.loads(line))) + "\n")
        sys.stdout.flush()

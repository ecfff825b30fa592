"""The steps of a bulk load, written down as they end: what each took, and what it cost on both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from loadstone.errors import words_of
from loadstone.host.procfs import ProcessTree, own_process

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.model import BulkLoad
    from loadstone.run.phase_context import PhaseContext

Document = dict[str, Any]

_NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class _Reading:
    """What counters said between two steps; None where they could not be read."""

    sizes: Document | None
    counters: Mapping[str, Any] | None
    server: Mapping[str, Any] | None
    client: Mapping[str, Any] | None


class Steps:
    """Appends to steps.jsonl. The driver holds while a step is written down: its reading disturbs none."""

    def __init__(self, context: PhaseContext, bulk: BulkLoad, *, resume: bool) -> None:
        """Begin, or go on after the whole steps that an earlier run has left."""
        self._context = context
        self._bulk = bulk
        self._resumed = resume
        engine, control = context.server.engine, context.server.control
        pid = None if engine.in_process else engine.server_pids(control).pid
        self._tree = ProcessTree(pid) if pid is not None else None
        self._logged: set[str] = set()
        self._before = _Reading(None, None, None, own_process())
        self.lines = [line for line in context.folder.written_steps() if line["state"] == "complete"]
        if resume:
            context.folder.write_steps(self.lines)
        self._file = context.folder.steps()

    def __enter__(self) -> Self:
        """Nothing is to be done."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()

    def begin(self) -> None:
        """Count from here: the table is there, the first row is about to be sent."""
        self._before = self._read()

    def end(self, step: Document, reason: str | None = None) -> None:
        """Write down a step that the driver says has ended; `reason` why it is not complete."""
        now, before = self._read(), self._before
        number = int(step["step"])
        line = {
            "step": number,
            "rows_before": number * self._bulk.step_rows,
            "rows": step["rows"],
            "start_ns": step["start_ns"],
            "end_ns": step["end_ns"],
            "seconds": _seconds(step),
            "state": self._state(step),
            "reason": reason,
            "sizes": now.sizes,
            "counters": _grown(before.counters, now.counters),
            "server_cpu_s": _cpu_s(before.server, now.server),
            "client_cpu_s": _cpu_s(before.client, now.client),
            "server_write_bytes": _difference(before.server, now.server, "write_bytes"),
        }
        self._file.write(line)
        self.lines.append(line)
        self._before = now

    def _state(self, step: Document) -> str:
        """Return the driver's word, or `resumed`: an earlier run has sent a part, whose time is lost."""
        first, self._resumed = self._resumed, False
        rows, step_rows = self._bulk.rows.rows, self._bulk.step_rows
        whole = min(step_rows, rows - step["step"] * step_rows) if rows else step_rows
        partly = first and step["state"] == "complete" and step["rows"] < whole
        return "resumed" if partly else str(step["state"])

    def _read(self) -> _Reading:
        server = self._context.server
        sizes = counters = None
        troubles = server.engine.troubles
        try:
            size = server.engine.tables.size(server.control, self._bulk.table.name)
            sizes = {name: getattr(size, name) for name in ("table_bytes", "index_bytes", "toast_bytes")}
            counters = self._counters()
        except troubles as error:
            self._tell(
                f"the resources that the steps used on the server could not be read: {words_of(error)}"
            )
        tree = self._tree.sample() if self._tree else None
        ours = None if self._context.elsewhere else own_process()
        return _Reading(sizes, counters, tree, ours)

    def _counters(self) -> Mapping[str, Any] | None:
        server = self._context.server
        seen = server.engine.counters(server.control)
        if seen.values is None:
            self._tell(f"the server's counters are unknown: {seen.reason}")
            return None
        # The WAL's end is exact at once; sessions add to the server's statistics of it with delay.
        position = server.engine.sizes(server.control, server.schema)["wal_lsn_bytes"]
        return seen.values if position is None else {**seen.values, "wal_bytes": position}

    def _tell(self, message: str) -> None:
        if message not in self._logged:
            self._logged.add(message)
            self._context.log(message)


def _seconds(step: Document) -> float | None:
    """Return how long a step took; None when nothing of it was committed."""
    start_ns, end_ns = step["start_ns"], step["end_ns"]
    return None if start_ns is None or end_ns is None else (end_ns - start_ns) / _NS_PER_S


def _grown(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> Document | None:
    """Return how much each counter has grown; one that was reset in between is left out."""
    if before is None or after is None:
        return None
    grown = {
        name: after[name] - before[name]
        for name in after
        if isinstance(after[name], int | float) and isinstance(before.get(name), int | float)
    }
    return {name: value for name, value in grown.items() if value >= 0}


def _cpu_s(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> float | None:
    parts = [_difference(before, after, name) for name in ("cpu_user_s", "cpu_system_s")]
    return None if None in parts else sum(part for part in parts if part is not None)


def _difference(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, name: str) -> float | None:
    if before is None or after is None or before.get(name) is None or after.get(name) is None:
        return None
    return float(after[name] - before[name]) if name.endswith("_s") else after[name] - before[name]

"""A probe: one question of one value, asked in a steady rhythm, with the time of each answer."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from loadstone.results.json_files import JsonLines
from loadstone.workload.drive import connection_document, perform

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.signals import Signals
    from loadstone.target import OpenTarget

PER_S = 97.0
"""Not a round number: a load that begins batches at a round rate must not stay in step with it."""
_UNTIL_STOPPED_S = 1e6


def perform_probe(sql: str, opened: OpenTarget, out_dir: Path, signals: Signals) -> None:
    """Ask until `signals` end it; `out_dir` gets probe.jsonl: start_ns, end_ns, value (whole number or null).

    The question's first column of its first row is the value. Raises LoadstoneError when it cannot be asked.
    """
    connection = opened.client_connection()
    if connection is None:
        _ask(sql, opened, out_dir, signals)
        return
    document: dict[str, Any] = {
        "connection": connection_document(connection),
        "queries": {"probe": {"sql": sql}},
        "clients": 1,
        "threads": 1,
        "duration_s": _UNTIL_STOPPED_S,
        "pace": {"kind": "fixed", "rate_per_s": PER_S},
        "reconnect": True,
        "seed": 1,
        "out_dir": str(out_dir),
    }
    perform(document, signals)


def _ask(sql: str, opened: OpenTarget, out_dir: Path, signals: Signals) -> None:
    """Ask an engine behind a client library."""
    ended = threading.Event()
    signals.during(ended.set)
    control = opened.connect("loadstone probe")
    lines = JsonLines(out_dir / "probe.jsonl")
    try:
        while not ended.is_set():
            start_ns = time.monotonic_ns()
            row = control.execute(sql).fetchone()
            value = next(iter(row.values())) if row else None
            end_ns = time.monotonic_ns()
            seen = None if value is None else int(value)
            lines.write({"start_ns": start_ns, "end_ns": end_ns, "value": seen})
            ended.wait(max(0.0, 1 / PER_S - (end_ns - start_ns) / 1e9))
    finally:
        lines.close()
        control.close()
        signals.during(None)

"""A probe: one query of one value, asked in a steady rhythm, with the time of each answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.workload.drive import connection_document, perform
from loadstone.workload.queries.clients import EngineAsker, QueryingLibrary, native_clients

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.engine.library.client import Clients
    from loadstone.signals import Signals
    from loadstone.target import OpenTarget

PER_S = 97.0
"""Not a round number: a load that begins batches at a round rate must not stay in step with it."""
_UNTIL_STOPPED_S = 1e6
_NAME = "loadstone-probe-{}"


def perform_probe(sql: str, opened: OpenTarget, out_dir: Path, signals: Signals) -> None:
    """Ask until `signals` end it; `out_dir` gets probe.jsonl: start_ns, end_ns, value (whole number or null).

    The query's first column of its first row is the value. Raises LoadstoneError when it cannot be asked.
    """
    document: dict[str, Any] = {
        "queries": {"probe": {"sql": sql}},
        "clients": 1,
        "duration_s": _UNTIL_STOPPED_S,
        "pace": {"kind": "fixed", "rate_per_s": PER_S},
        "seed": 1,
        "out_dir": str(out_dir),
    }
    connection = opened.client_connection()
    library: Clients | None = None
    if connection is None:
        library = native_clients(opened) or QueryingLibrary(EngineAsker(opened), name=_NAME)
    else:
        document["connection"] = connection_document(connection)
        document |= {"threads": 1, "reconnect": True}
    perform(document, signals, library=library)

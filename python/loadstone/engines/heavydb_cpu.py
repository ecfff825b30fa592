"""HeavyDB on CPU cores only: the same server, whose sessions are told not to use a GPU."""

from __future__ import annotations

from loadstone.engine.library.packages import install
from loadstone.engines.heavydb.engine import HeavyDB


class HeavyCpu(HeavyDB):
    """HeavyDB with EXECUTOR_DEVICE set to CPU in every session."""

    name = "heavydb_cpu"
    title = "HeavyDB (CPU only)"
    schemes = ("heavydb-cpu",)
    needs = (
        "a HeavyDB server 6.1 or later, with a GPU or without, and the Python package pyheavydb: "
        f"{install('heavydb')}"
    )
    device = "CPU"
    needs_gpu = False
    workspace_suffix = "_cpu"


ENGINE = HeavyCpu()

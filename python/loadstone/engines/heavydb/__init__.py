"""HeavyDB (MapD, OmniSci) on its GPUs."""

from __future__ import annotations

from loadstone.engines.heavydb.engine import HeavyDB

ENGINE = HeavyDB()

"""TSBS's queries: which kinds there are, how their parameters are drawn, their texts, their file format.

`generate` makes them for any dialect; `translate` turns one that was made for another; `gob` reads and
writes TSBS's files. The texts are in `texts/` and are TSBS's own, under its licence.
"""

from __future__ import annotations

from loadstone.workload.tsbs.queries.dialects import TIMESCALEDB, Dialect, dialect_of, dialects
from loadstone.workload.tsbs.queries.draws import Parameters
from loadstone.workload.tsbs.queries.generator import Query, QuerySpec, generate, mixed
from loadstone.workload.tsbs.queries.kinds import KINDS, Kind, kind_named, kinds_of
from loadstone.workload.tsbs.queries.texts import Layout
from loadstone.workload.tsbs.queries.translation import Translated, translate

__all__ = [
    "KINDS",
    "TIMESCALEDB",
    "Dialect",
    "Kind",
    "Layout",
    "Parameters",
    "Query",
    "QuerySpec",
    "Translated",
    "dialect_of",
    "dialects",
    "generate",
    "kind_named",
    "kinds_of",
    "mixed",
    "translate",
]

"""Queries of TSBS's kinds on a target: made or read, put into its dialect, asked.

`perform_queries` serves command lines and scenarios alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError
from loadstone.model import QueryMix
from loadstone.workload.queries.execution import QueryOptions, perform_all
from loadstone.workload.tsbs.dataset import parse_time
from loadstone.workload.tsbs.queries import Query, QuerySpec, dialect_of, mixed, translate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from loadstone.signals import Signals
    from loadstone.target import OpenTarget
    from loadstone.workload.drive import Progress
    from loadstone.workload.tsbs.queries import Dialect

Account = dict[str, Any]
"""drive.json of docs/run-folder.md, with `queries`."""


@dataclass(slots=True)
class _Translation:
    """What became of queries on their way into a dialect."""

    translated: int = 0
    """How many have another text than they came with."""
    reasons: dict[str, int] = field(default_factory=dict)
    """Why so many queries are as they were, though another dialect was wanted."""


def specs_of(mix: QueryMix) -> list[QuerySpec]:
    """Return what a mix asks for: `count` queries of each kind."""
    start_ns, end_ns = parse_time(mix.series.start), parse_time(mix.series.end)
    return [
        QuerySpec(mix.series.use_case, kind, mix.series.scale, start_ns, end_ns, mix.seed, mix.count)
        for kind in mix.kinds
    ]


def options_of(mix: QueryMix) -> QueryOptions:
    """Return how a mix asks to be run."""
    return QueryOptions(
        workers=mix.workers,
        pace=mix.pace,
        duration_s=mix.duration_s,
        timeout_s=mix.timeout_s,
        seed=mix.seed,
    )


def perform_queries(
    queries: QueryMix | Iterable[Query],
    opened: OpenTarget,
    out_dir: Path,
    signals: Signals | None = None,
    show: Callable[[Progress], None] | None = None,
    options: QueryOptions | None = None,
) -> Account:
    """Run queries on a target and return the account, which says of each query what its answer was.

    A mix brings its own options; `options` replaces it. Queries that were made for another database are put
    into the target's dialect. `out_dir` takes `queries.jsonl`, `series.jsonl` and `latency.hlog`. Raises
    LoadstoneError when nothing can be run; queries that fail are counted in the account.
    """
    if isinstance(queries, QueryMix):
        options = options or options_of(queries)
        queries = mixed(specs_of(queries))
    options = options or QueryOptions()
    found = _Translation()
    texts = _translated(queries, dialect_of(opened.engine), found, strict=options.strict)
    account = perform_all(texts, opened, out_dir, signals, show, options)
    account["queries"]["translation"] = {"translated": found.translated, "as_they_are": found.reasons}
    return account


def _translated(
    queries: Iterable[Query], dialect: Dialect, found: _Translation, *, strict: bool
) -> Iterator[tuple[str, str]]:
    """Yield label and text of each query in a dialect; raise LoadstoneError where `strict` and one fails."""
    for number, query in enumerate(queries, 1):
        made = translate(query, dialect)
        if made.reason is not None and not dialect.exact:
            if strict:
                raise LoadstoneError(
                    f"query {number} cannot be translated into the target's SQL: {made.reason}",
                    "Remove --strict-dialect to send it untranslated.",
                )
            found.reasons[made.reason] = found.reasons.get(made.reason, 0) + 1
        found.translated += made.query.sql != query.sql
        yield query.label, made.query.sql

"""Whether a plain table holds what was loaded: its count, and the fingerprint of what was generated."""

# ruff: noqa: S608 - identifiers are written by `quoted`
from __future__ import annotations

import json
import threading
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any

from loadstone import _core
from loadstone.errors import LoadstoneError
from loadstone.workload.load.fingerprints import compared, plain
from loadstone.workload.load.sums import check_sums

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.engine.control import Control
    from loadstone.engine.dialect.tables import TableDialect
    from loadstone.model import BulkLoad
    from loadstone.workload.load.content import Content
    from loadstone.workload.load.fingerprints import Check

_POLL_S = 0.1
_NUMBERS = ("rows", "bytes", "content", "numbers")


def checks(
    control: Control, answers: TableDialect, bulk: BulkLoad, content: Content, committed: int
) -> Iterator[Check]:
    """Compare the table with what was committed, and with what was generated where that is wished."""
    name = bulk.table.name
    if bulk.verify == "content" and content.generated:
        sums = answers.sums(content.table, name)
        if sums is not None:
            yield check_sums(name, content, control.execute(sums).fetchone() or {"row_count": 0})
            return
        yield _content(control, answers, name, content)
        return
    table = answers.qualified(name)
    row = control.execute(f'select count(*) as "rows" from {table}').fetchone() or {}
    wanted = content.rows if content.generated else committed
    yield {
        "name": f"{name} contains the rows that were loaded",
        "expected": f"{wanted:,} rows",
        "actual": f"{int(row['rows']):,} rows",
        "passed": int(row["rows"]) == wanted,
        "detail": "count",
    }


def _content(control: Control, answers: TableDialect, name: str, content: Content) -> Check:
    return compared(name, _expected(content), fingerprint(control, answers, name, content))


def fingerprint(control: Control, answers: TableDialect, name: str, content: Content) -> dict[str, Any]:
    """Read a table's fingerprint in the form of the core's."""
    return plain(answers.read_fingerprint(control, content.table, name), _NUMBERS)


def _expected(content: Content) -> dict[str, Any]:
    """Make all rows once more, by all cores, for what the table must hold."""
    made: Future[str] = Future()

    def work() -> None:
        try:
            made.set_result(_core.fingerprint_rows(json.dumps(content.data)))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            made.set_exception(error)

    # Signals are met between the waits: the core itself does not stop.
    threading.Thread(target=work, name="loadstone-fingerprint", daemon=True).start()
    while not wait([made], _POLL_S).done:
        pass
    try:
        return plain(json.loads(made.result()), _NUMBERS)
    except _core.DriveError as error:
        raise LoadstoneError(*error.args) from error

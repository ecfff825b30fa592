"""`loadstone crash --verify DIR`: what the ledgers and tables of an old run say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from loadstone.crash.documents import LEDGER, NAME, Crash
from loadstone.crash.ledger import EMPTY, Rows, read_ledgers
from loadstone.crash.session import found_in
from loadstone.crash.verdict import verdict_of
from loadstone.errors import LoadstoneError
from loadstone.results.reading import exists, read_json

if TYPE_CHECKING:
    from pathlib import Path


def judged_again(folder: Path) -> Crash:
    """Return the document of a run with its cycles judged again; nothing is written.

    Raises LoadstoneError where the folder is no run of `loadstone crash`, or was changed.
    """
    if not exists(folder / NAME):
        raise LoadstoneError(f"'{folder}' has no {NAME}", "Use a folder that `loadstone crash` has made.")
    document = _document(folder / NAME)
    records = read_ledgers(folder / LEDGER)
    settled, upto = EMPTY, [0] * document.clients
    for cycle in document.cycles:
        if cycle.found is None:
            continue
        rows = Rows.load(folder / cycle.folder / "table.npz")
        cycle.found = found_in(records.upto(cycle.upto), rows, settled, upto, cycle)
        settled, upto = rows, cycle.upto
    document.verdict = verdict_of(document)
    return document


def _document(path: Path) -> Crash:
    try:
        return msgspec.convert(read_json(path), Crash)
    except msgspec.ValidationError as error:
        raise LoadstoneError(f"{path}: {error}", "The file was changed: use an untouched copy.") from error

"""`loadstone crash --verify DIR`: what the ledgers and tables of an old run say."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from loadstone.crash.documents import JOINT_NAME, LEDGER, NAME, Crash, Crashes
from loadstone.crash.ledger import EMPTY, Rows, read_ledgers
from loadstone.crash.session import found_in
from loadstone.crash.sweep import join
from loadstone.crash.verdict import verdict_of
from loadstone.errors import LoadstoneError
from loadstone.results.document_reader import exists, read_json

_CHANGED = "The file was changed: use an untouched copy."
T = TypeVar("T", bound=msgspec.Struct)


def judged_again(folder: Path) -> Crash:
    """Return the document of a run with its cycles judged again; nothing is written.

    Raises LoadstoneError where the folder is no run of `loadstone crash`, or was changed.
    """
    if not exists(folder / NAME):
        raise LoadstoneError(f"'{folder}' has no {NAME}", "Use a folder that `loadstone crash` has made.")
    document = _document(folder / NAME, Crash)
    verified = [cycle for cycle in document.cycles if cycle.found is not None]
    if not verified:  # it may have ended before there were ledgers
        return document
    records = read_ledgers(folder / LEDGER)
    settled, upto = EMPTY, [0] * document.clients
    for cycle in verified:
        rows = Rows.load(folder / cycle.folder / "table.npz")
        if cycle.content is not None and cycle.content.after not in (None, cycle.content.before):
            cycle.restarted = False
        cycle.found = found_in(records.upto(cycle.upto), rows, settled, upto, cycle)
        settled, upto = rows, cycle.upto
    document.verdict = verdict_of(document)
    return document


def sweep_judged_again(folder: Path) -> tuple[Crashes, list[Crash]]:
    """Return the same of several values of a parameter: the joint document, and those of values begun."""
    document = _document(folder / JOINT_NAME, Crashes)
    begun = []
    for entry in document.values:
        if entry.state == "not begun":
            break
        if Path(entry.folder).name != entry.folder:
            raise LoadstoneError(
                f"'{folder / JOINT_NAME}' names the folder {entry.folder!r}, which is not in it", _CHANGED
            )
        begun.append(judged_again(folder / entry.folder))
    join(document, begun)
    return document, begun


def is_sweep(folder: Path) -> bool:
    """Return whether a folder has the results of several values."""
    return exists(folder / JOINT_NAME)


def _document(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.convert(read_json(path), kind)
    except msgspec.ValidationError as error:
        raise LoadstoneError(f"{path}: {error}", _CHANGED) from error

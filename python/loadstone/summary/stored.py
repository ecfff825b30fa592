"""The summary of a run folder for reading: as it was written beside the report, else computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from loadstone.errors import LoadstoneError
from loadstone.results.document_reader import exists, read_bytes
from loadstone.results.documents import Run
from loadstone.results.documents.summary import Summary
from loadstone.results.documents.summary.run import FORMAT
from loadstone.results.folder import RunFolder, state_of
from loadstone.results.redact import redact_document

if TYPE_CHECKING:
    from pathlib import Path


def read_summary(folder: Path) -> Summary:
    """Return the summary of a run folder; nothing is written.

    A damaged folder's is computed again: its warnings then name the damage. Raises LoadstoneError when the
    folder is none, cannot be read, is too new, or its run is still running.
    """
    run = RunFolder.open(folder)
    state = state_of(run)
    if state == "running":
        raise LoadstoneError(f"the run in {folder} is still running", "Wait until it ends.")
    stored = _stored(folder) if state != "killed" else None
    same_end = stored and stored.run.ended_at == msgspec.convert(run.run, Run).ended_at
    if stored and same_end and not run.verify().problems:
        return stored
    from loadstone.summary.document import summarise  # noqa: PLC0415 - slow to load, and seldom needed

    # The folder of an earlier version may hold secrets.
    return msgspec.convert(redact_document(msgspec.to_builtins(summarise(folder))), Summary)


def _stored(folder: Path) -> Summary | None:
    """Return summary.json; None for one that is missing, of another format, or was changed into none."""
    path = folder / "summary.json"
    if not exists(path):
        return None
    try:
        found = msgspec.json.decode(read_bytes(path), type=Summary)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    return found if found.format == FORMAT else None

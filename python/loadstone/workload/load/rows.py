"""Rows sent: one load as the core is told of it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Protocol

from loadstone.errors import LoadstoneError, words_of
from loadstone.results.json_files import to_json, write_atomic
from loadstone.workload.drive import drive_document, perform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from loadstone.engine import Engine
    from loadstone.engine.dialect.loads import LoadDialect
    from loadstone.model import Connection, Drive, InOut, LoadMethod
    from loadstone.signals import Signals
    from loadstone.target import OpenTarget
    from loadstone.workload.drive import Progress, Step
    from loadstone.workload.load.tables import Committed

Account = dict[str, Any]
"""drive.json of docs/run-folder.md, with `load`."""


def chosen_method(wanted: LoadMethod, dialect: LoadDialect) -> LoadMethod:
    """Return how rows are sent. Raises LoadstoneError when the engine cannot be loaded so."""
    if wanted == "best":
        return dialect.methods[0]
    if wanted not in dialect.methods:
        raise LoadstoneError(
            f"{dialect.title} does not support the load method {wanted}",
            f"It supports {', '.join(dialect.methods)}.",
        )
    return wanted


def load_document(
    drive: Drive, connection: Connection | None, out_dir: Path, io: InOut, interval_s: float
) -> dict[str, Any]:
    """Return the core's specification of a drive that loads, to be given its `load`.

    Its `connection` is None where the clients are behind a library.
    """
    document = drive_document(drive, connection, out_dir, io) | {"interval_s": interval_s}
    del document["scripts"], document["mode"]
    return document


class Perform(Protocol):
    """Sends the rows of a load from elsewhere: from several hosts."""

    def __call__(
        self,
        document: dict[str, Any],
        signals: Signals | None,
        show: Callable[[Progress], None] | None,
        on_step: Callable[[Step], None] | None,
    ) -> Account:
        """Do as `workload.drive.perform` does."""


def send(  # noqa: PLR0913 - as `workload.drive.perform`, and from where
    document: dict[str, Any],
    dialect: LoadDialect,
    opened: OpenTarget,
    signals: Signals | None,
    show: Callable[[Progress], None] | None,
    on_step: Callable[[Step], None] | None = None,
    *,
    elsewhere: Perform | None = None,
) -> Account:
    """Send the rows; the first signal asks to stop in order.

    `on_step` is called for each step that is committed whole. `elsewhere` sends them in place of this
    process. Raises LoadstoneError when it cannot begin.
    """
    if elsewhere is not None:
        return elsewhere(document, signals, show, on_step)
    library = None
    if document["connection"] is None:
        library = dialect.library(document, opened.connect)
        if library is None:
            raise LoadstoneError(f"Loadstone cannot load into {opened.engine.title}", "Use another target.")
    return perform(document, signals, show, on_step, library)


@contextlib.contextmanager
def keep_account(account: Account, engine: Engine) -> Iterator[None]:
    """Keep the account of what was loaded when the server is no longer there to be asked."""
    troubles = engine.troubles
    try:
        yield
    except troubles as error:
        said = words_of(error)
        if account["state"] == "complete":
            account |= {
                "state": "failed",
                "reason": f"the sizes of the loaded tables could not be read: {said}",
            }
        account["load"]["notes"].append(f"the server's counters could not be read after the load: {said}")


def settle(account: Account, booked: Committed | None) -> bool:
    """Note what the ledger books (None: there is none), and say whether every row is committed.

    A drive that came to its end without that has failed.
    """
    loaded, complete = account["load"], account["state"] == "complete"
    whole = complete and not account["in_doubt"]
    if booked is not None:
        loaded["committed"] = {"batches": booked.batches, "rows": booked.rows}
        whole = complete and booked.batches == loaded["batches"] + loaded["skipped_batches"]
    if complete and not whole:
        account |= {"state": "failed", "reason": "not every batch was committed"}
    return whole


def write_account(account: Account, out_dir: Path) -> None:
    """Write drive.json again, with what was found out after the drive."""
    write_atomic(out_dir / "drive.json", to_json(account, indent=1))

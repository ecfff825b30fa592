"""The connection that asks the server before a run, through libpq: where the core's will not do."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg

from loadstone.engine.postgres import connections
from loadstone.errors import LoadstoneError
from loadstone.personalities.pgbench.complaint import LOST, NO_SETUP, ComplaintError
from loadstone.personalities.pgbench.plain_control import StatementError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from psycopg.pq.abc import PGresult

    from loadstone.engine.postgres.sessions import Needs
    from loadstone.personalities.pgbench.plain_control import Rows
    from loadstone.personalities.pgbench.server import Address


class LibpqControl:
    """One connection of libpq, for the checks before a run."""

    def __init__(self, control: connections.PostgresControl) -> None:
        """Ask by this connection."""
        self.version = control.info.parameter_status("server_version") or "unknown"
        self._control = control

    def ask(self, sql: str) -> Rows:
        """Run a statement and return its rows as texts; raises StatementError."""
        try:
            result = self._control.execute(sql).pgresult
        except psycopg.OperationalError:
            raise
        except psycopg.Error as error:
            words = f"{error.diag.severity or 'ERROR'}:  {str(error).strip()}"
            is_undefined_table = isinstance(error, psycopg.errors.UndefinedTable)
            raise StatementError(words, is_undefined_table=is_undefined_table) from error
        return _texts(result) if result else []


def _texts(result: PGresult) -> Rows:
    """Return all values by their places: a server may give two columns one name."""
    columns = range(result.nfields)
    return [[_text(result.get_value(row, column)) for column in columns] for row in range(result.ntuples)]


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


@contextmanager
def connected_control(address: Address, needs: Needs, err: Callable[[str], object]) -> Iterator[LibpqControl]:
    """Open a connection for the checks, which shows the server's remarks by `err`."""
    with connected(address, needs) as control:
        control.add_notice_handler(_shown(err))
        yield LibpqControl(control)


@contextmanager
def connected(
    address: Address, needs: Needs, complaint: str = NO_SETUP
) -> Iterator[connections.PostgresControl]:
    """Open a control connection; raises ComplaintError in libpq's words, which `complaint` ends."""
    try:
        control = dial(address, needs)
    except LoadstoneError as error:
        # libpq's own words, for those who look for them.
        said = re.sub(r"^connection (failed|is bad): ", "", str(error.__cause__ or error.message).strip())
        raise ComplaintError(said, error.hint, further=complaint) from error
    try:
        with control:
            yield control
    except psycopg.OperationalError as error:
        raise ComplaintError(f"{LOST}: {str(error).strip()}") from error


def dial(address: Address, needs: Needs) -> connections.PostgresControl:
    """Open a control connection, in the engine's own way where it has one; raises LoadstoneError."""
    if address.scheme:
        return address.engine().connect(address.connection, needs=needs)
    return connections.connect(address.connection, needs=needs)


def _shown(err: Callable[[str], object]) -> Callable[[psycopg.errors.Diagnostic], None]:
    """Return what shows a notice as libpq does."""

    def show(notice: psycopg.errors.Diagnostic) -> None:
        err(f"{notice.severity}:  {notice.message_primary}\n")

    return show

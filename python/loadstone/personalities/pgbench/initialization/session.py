"""The session that makes the tables: pgbench's words for what fails."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
from psycopg.waiting import Ready, Wait

from loadstone.personalities.pgbench.complaint import ComplaintError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from psycopg.abc import PQGen
    from psycopg.errors import Diagnostic
    from psycopg.pq.abc import PGconn

    from loadstone.engine.postgres.connections import PostgresControl

    Write = Callable[[str], object]

_DOING = re.compile(r"^(?:consuming input|flushing|sending copy data|sending query) failed: ")
"""What psycopg says of its own work, before the words of libpq."""
_RELATION = "select relkind::text as kind from pg_catalog.pg_class where oid = {}::pg_catalog.regclass"


class Session:
    """A connection that shows the server's notices as libpq does."""

    def __init__(self, control: PostgresControl, write: Write) -> None:
        """Take a connection in autocommit mode."""
        self.control = control
        self._write = write
        control.add_notice_handler(self._notice)

    @property
    def server_version(self) -> int:
        """The server's version as a number: 180006."""
        return self.control.info.server_version

    def execute(self, statement: str) -> None:
        """Execute a statement; raises ComplaintError with the server's words and the statement."""
        try:
            self.control.execute(statement)
        except psycopg.Error as error:
            raise ComplaintError(f"query failed: {words(error)}", detail=f"Query was: {statement}") from error

    def execute_all(self, statements: Iterable[str]) -> None:
        """Execute statements one by one."""
        for statement in statements:
            self.execute(statement)

    def is_ordinary(self, table: str) -> bool:
        """Return whether a table is no partitioned one, nor of another kind."""
        try:
            row = self.control.execute(_RELATION.format(f"'{table}'")).fetchone()
            return row is not None and row["kind"] == "r"
        except psycopg.Error as error:
            raise ComplaintError(f"query failed: {words(error)}") from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin and commit; after an error the end of the connection rolls back."""
        self.execute("begin")
        yield
        self.execute("commit")

    def copy(self, statement: str, chunks: Iterable[bytes]) -> None:
        """Send lines of COPY; raises ComplaintError with the server's words."""
        doing = "unexpected copy in result"
        try:
            with self.control.cursor() as cursor, cursor.copy(statement.encode()) as stream:
                doing = "PQputline failed"
                for chunk in chunks:
                    stream.write(chunk)
                    self.control.wait(_flush(self.control.pgconn))
                doing = "PQendcopy failed"
        except psycopg.Error as error:
            raise ComplaintError(f"{doing}: {words(error)}", detail=f"Query was: {statement}") from error

    def _notice(self, notice: Diagnostic) -> None:
        lines = [f"{notice.severity}:  {notice.message_primary}"]
        lines += [f"DETAIL:  {notice.message_detail}"] if notice.message_detail else []
        lines += [f"HINT:  {notice.message_hint}"] if notice.message_hint else []
        self._write("".join(f"{line}\n" for line in lines))


def _flush(pgconn: PGconn) -> PQGen[None]:
    """Hand to the system what libpq holds: psycopg alone would gather all rows in memory."""
    while pgconn.flush():
        ready = yield Wait.RW
        if ready & Ready.R:
            pgconn.consume_input()


def words(error: psycopg.Error) -> str:
    """Return an error as libpq words it: with its severity where the server itself reported it."""
    said = _DOING.sub("", str(error).strip())
    return f"{error.diag.severity}:  {said}" if error.diag.severity else said

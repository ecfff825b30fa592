"""The steps of `pgbench -i`, in the order that was requested."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from loadstone.errors import ExitCode
from loadstone.personalities.pgbench.complaint import PROGRAM
from loadstone.personalities.pgbench.emulation import progress_names_tables
from loadstone.personalities.pgbench.initialization import schema
from loadstone.personalities.pgbench.initialization.progress import CopyProgress
from loadstone.personalities.pgbench.initialization.rows import Chunks, Shared, fill_in_parallel
from loadstone.personalities.pgbench.initialization.session import Session
from loadstone.personalities.pgbench.libpq_control import connected
from loadstone.personalities.pgbench.server import address_of
from loadstone.signals import InterruptedRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.personalities.pgbench.options import Options

    Write = Callable[[str], object]
    Fill = Callable[[Session], object]

NO_CONNECTION = "could not create connection for initialization"


def initialize(options: Options, write: Write) -> int:
    """Make and fill pgbench's tables; messages go to `write`. Returns the exit status.

    Raises ComplaintError for what cannot be done, and InterruptedRun for a signal.
    """
    # What psycopg would log of a lost connection is in our own error.
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)
    steps = options.init.steps_to_do(vacuum=options.vacuum)
    address = address_of(options, os.environ, write, NO_CONNECTION)
    with ExitStack() as stack:
        # All connections are made before anything is touched.
        number = options.threads if "g" in steps and options.threads > 1 else 0
        sessions = [
            Session(stack.enter_context(connected(address, "nothing", NO_CONNECTION)), write)
            for _ in range(1 + number)
        ]
        try:
            Initialization(options, sessions[0], sessions[1:], write).run(steps)
        except InterruptedRun:
            write(f"{PROGRAM}: error: initialization was stopped by a signal\n")
            raise
    return ExitCode.OK


class Initialization:
    """One initialization: `session` does everything, but for rows that `parallel` sessions send."""

    def __init__(self, options: Options, session: Session, parallel: list[Session], write: Write) -> None:
        """Take connections that are open."""
        self._settings = options.init
        self._scale = options.scale or 1
        self._names_tables = progress_names_tables(options.emulate)
        self._session = session
        self._parallel = parallel
        self._stopped = threading.Event()
        self._done = ""
        self._write = write
        self._steps: dict[str, tuple[str, Callable[[], None]]] = {
            "d": ("drop tables", self._drop),
            "t": ("create tables", self._create),
            "g": ("client-side generate", self._fill_from_client),
            "G": ("server-side generate", self._fill_on_server),
            "v": ("vacuum", self._vacuum),
            "p": ("primary keys", self._add_primary_keys),
            "f": ("foreign keys", self._add_foreign_keys),
        }

    def run(self, steps: str) -> None:
        """Do the steps, and say how long each took."""
        spent = []
        for step in steps:
            title, act = self._steps[step]
            begun_s = time.monotonic()
            act()
            self._done += step
            spent.append((title, time.monotonic() - begun_s))
        total_s = sum(seconds for _, seconds in spent)
        shown = ", ".join(f"{title} {seconds:.2f} s" for title, seconds in spent)
        self._write(f"done in {total_s:.2f} s ({shown}).\n")

    def _drop(self) -> None:
        self._write("dropping old tables...\n")
        self._session.execute(schema.DROP)

    def _create(self) -> None:
        self._write("creating tables...\n")
        version = self._session.server_version
        self._session.execute_all(schema.create_tables(self._settings, self._scale, version))
        if self._settings.partitions:
            self._write(f"creating {self._settings.partitions} partitions...\n")
            self._session.execute_all(schema.create_partitions(self._settings, self._scale))

    def _fill_from_client(self) -> None:
        self._write("generating data (client-side)...\n")
        # In one transaction: the server need not log rows of a table that is truncated in it.
        with self._session.transaction():
            self._session.execute(schema.TRUNCATE)
            for table in schema.ROWS_PER_BRANCH:
                if table != schema.ACCOUNTS or not self._parallel:
                    self._send(table)
        if self._parallel:
            self._send_in_parallel()

    def _send(self, table: str) -> None:
        freeze = self._can_freeze() and self._session.is_ordinary(table)
        with self._progress(table) as progress:
            self._session.copy(schema.copy(table, freeze=freeze), self._chunks(table, progress))

    def _send_in_parallel(self) -> None:
        with self._progress(schema.ACCOUNTS) as progress:
            fill = self._by_partition(progress) if self._knows_partitions() else self._by_rows(progress)
            fill_in_parallel(self._parallel, fill, self._stopped)

    def _by_rows(self, progress: CopyProgress) -> Fill:
        """Any connection sends any rows. Only the transaction that truncated a table can freeze them."""
        statement = schema.copy(schema.ACCOUNTS, freeze=False)
        chunks = self._chunks(schema.ACCOUNTS, progress)
        return lambda session: session.copy(statement, chunks)

    def _by_partition(self, progress: CopyProgress) -> Fill:
        """Each connection fills whole partitions, whose rows it can freeze as it truncates them itself."""
        partitions = Shared(schema.range_partitions(self._settings, self._scale), self._stopped)

        def fill(session: Session) -> None:
            for name, rows in partitions:
                session.execute(schema.truncate(name))
                chunks = Chunks(schema.ACCOUNTS, rows, progress.advance, self._stopped)
                session.copy(schema.copy(name, freeze=True), chunks)

        return fill

    def _knows_partitions(self) -> bool:
        """Return whether the partitions are by range, our own, and not referenced by foreign keys yet."""
        made = "t" in self._done and "f" not in self._done
        return made and self._settings.method == "range" and self._can_freeze()

    def _can_freeze(self) -> bool:
        return self._session.server_version >= schema.FREEZE_VERSION

    def _chunks(self, table: str, progress: CopyProgress) -> Chunks:
        rows = range(schema.ROWS_PER_BRANCH[table] * self._scale)
        return Chunks(table, rows, progress.advance, self._stopped)

    def _progress(self, table: str) -> CopyProgress:
        return CopyProgress(
            schema.ROWS_PER_BRANCH[table] * self._scale,
            self._write if self._names_tables or table == schema.ACCOUNTS else _nothing,
            quiet=self._settings.quiet,
            terminal=sys.stderr.isatty(),
            table=table if self._names_tables else None,
        )

    def _fill_on_server(self) -> None:
        self._write("generating data (server-side)...\n")
        with self._session.transaction():
            self._session.execute(schema.TRUNCATE)
            self._session.execute_all(schema.fill_on_server(self._scale))

    def _vacuum(self) -> None:
        self._write("vacuuming...\n")
        self._session.execute_all(schema.VACUUM)

    def _add_primary_keys(self) -> None:
        self._write("creating primary keys...\n")
        self._session.execute_all(schema.primary_keys(self._settings))

    def _add_foreign_keys(self) -> None:
        self._write("creating foreign keys...\n")
        self._session.execute_all(schema.FOREIGN_KEYS)


def _nothing(_: str) -> None:
    """Show no progress: up to 16 pgbench shows none of the small tables."""

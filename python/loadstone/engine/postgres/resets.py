"""A server that lost one of its processes: a moment later it ends all sessions and recovers.

Until then a control connection answers as if nothing had happened, and fails in a later statement. The server
shows what is to come: the entry of a crashed process stays in `pg_stat_activity`, unchanged, until the reset.
A process that ends in order removes its entry before its client sees the end of the connection.
"""

from __future__ import annotations

import logging
import select
import time
from typing import TYPE_CHECKING

from loadstone.engine import waits
from loadstone.engine.postgres import statements

if TYPE_CHECKING:
    from loadstone.engine.control import Row
    from loadstone.engine.postgres.connections import PostgresControl

LIMIT_S = 10.0
"""Longest wait: a session that stays as it was so long has lost its client, not its process."""
_LOOK_S = 0.1
_LOG = logging.getLogger("loadstone.waits")


def await_reset(connection: PostgresControl, name: str, pid: int | None) -> None:
    """Wait until each session of this name, and that of this process, has ended or done something.

    Raises psycopg.Error when the reset ends `connection`: connect again, which the server refuses until it
    has recovered. Returns at once where no such session is left, after LIMIT_S at the latest.
    """
    wanted = {"name": name, "pid": pid}
    left = connection.execute(statements.LOST_SESSIONS, wanted).fetchall()
    begun, told = time.monotonic(), False
    while left and time.monotonic() - begun < LIMIT_S:
        if not told and time.monotonic() - begun > waits.SAY_S:
            told = True
            _LOG.warning("waiting for %.0f s: %s", time.monotonic() - begun, _words(left))
        _pause(connection)
        now = connection.execute(statements.LOST_SESSIONS, wanted).fetchall()
        left = [session for session in left if session in now]


def _words(left: list[Row]) -> str:
    pids = ", ".join(str(session["pid"]) for session in left)
    return (
        f"the server still shows sessions whose connections were lost (processes {pids}); if they "
        "crash, the server also ends all other sessions"
    )


def _pause(connection: PostgresControl) -> None:
    """Wait for a moment, or until the server says something: that it ends the session."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    poll.poll(_LOOK_S * 1000)

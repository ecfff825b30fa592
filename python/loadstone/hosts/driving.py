"""One drive of a command line: from this process, or from the load hosts of `--hosts`."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError
from loadstone.workload.drive import perform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from loadstone.engine import Engine
    from loadstone.hosts.fleet import Fleet
    from loadstone.signals import Signals

    OnMessages = Callable[[Sequence[Mapping[str, str]]], None]
    Show = Callable[[dict[str, Any]], None]
    Say = Callable[[str, str], None]
    Driver = Callable[[dict[str, Any], Show, OnMessages], dict[str, Any]]


@contextlib.contextmanager
def driver(hosts: str | None, signals: Signals, say: Say) -> Iterator[Driver]:
    """Return what drives a document, shows its progress and passes its messages on.

    `say` is told (level, text) of what concerns the hosts. Raises LoadstoneError.
    """
    if hosts is None:
        yield lambda document, show, on_messages: perform(document, signals, show, on_messages=on_messages)
        return
    with found(hosts, say) as fleet:
        yield partial(_performed, fleet, signals, say)


def _performed(
    fleet: Fleet, signals: Signals, say: Say, document: dict[str, Any], show: Show, tell: OnMessages
) -> dict[str, Any]:
    return fleet.perform(document, signals, show, tell, say)


@contextlib.contextmanager
def found(hosts: str, say: Say) -> Iterator[Fleet]:
    """Find the load hosts that `--hosts` names. Raises LoadstoneError."""
    from loadstone.hosts.fleet import open_fleet  # noqa: PLC0415 - imports Dask
    from loadstone.hosts.places import parse_hosts  # noqa: PLC0415

    with open_fleet(parse_hosts(hosts)) as fleet:
        for note in fleet.notes:
            say("info", note)
        yield fleet


def refuse_library(engine: Engine) -> None:
    """Raise LoadstoneError for an engine whose clients only one process can have."""
    if engine.wire is None:
        raise LoadstoneError(
            f"--hosts: the clients of {engine.title} go through a library of one process, which alone opens "
            "its database: other hosts cannot share it",
            "Leave out --hosts, or use a server that speaks PostgreSQL's or MySQL's protocol.",
        )

"""`loadstone tsbs load --hosts`: rows that several hosts generate and send."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from loadstone.engines import engine as engine_named
from loadstone.errors import LoadstoneError
from loadstone.hosts.driving import found, refuse_library
from loadstone.hosts.loads import performer
from loadstone.hosts.places import parse_hosts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.model import Load
    from loadstone.personalities.tsbs.flags import Values
    from loadstone.target import OpenTarget, Target
    from loadstone.workload.load.rows import Perform

    Write = Callable[[str], object]
    Reach = Callable[[OpenTarget], Perform | None]

_PROGRAM = "loadstone tsbs load"


def refuse_hosts(load: Load, target: Target, values: Values) -> None:
    """Refuse what several hosts cannot share, before anything is touched. Raises LoadstoneError."""
    if not values.text("hosts"):
        return
    from loadstone.run.split_loads import refuse_load  # noqa: PLC0415 - a second of imports

    parse_hosts(values.text("hosts"))
    refuse_library(engine_named(target.engine))
    refuse_load(load)
    if not values.on("do-load"):
        raise LoadstoneError("--hosts and --do-load=false exclude each other", "Use only one of them.")


@contextmanager
def load_hosts(values: Values, load: Load, err: Write) -> Iterator[Reach]:
    """Find the load hosts; yields what makes them send the rows to an open target, None without `--hosts`.

    That raises LoadstoneError for a target that they cannot reach.
    """
    text = values.text("hosts")
    if not text:
        yield lambda _: None
        return

    def say(level: str, said: str) -> None:
        err(f"{_PROGRAM}: {'warning: ' if level == 'warning' else ''}{said}\n")

    with found(text, say) as fleet:
        fleet.refuse_too_few(load.workers, "--workers")
        say("info", f"load hosts: {', '.join(fleet.names)}")

        def reach(opened: OpenTarget) -> Perform:
            clients = opened.client_connection(None)
            if clients is not None:
                fleet.refuse_unreachable(clients.host)
            return performer(fleet, say)

        yield reach

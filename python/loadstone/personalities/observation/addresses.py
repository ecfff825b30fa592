"""A server that is known by its address: as a target of `--watch`, and as what a drive uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.personalities.observation.observer import Served, serving_process
from loadstone.target import server_target

if TYPE_CHECKING:
    from loadstone.personalities.pgbench.reporting.server import Address
    from loadstone.target import Target


def target_at(address: Address) -> Target:
    """Return the target that a run folder would have for it."""
    return server_target(address.engine().name, address.connection)


def served_at(address: Address) -> Served:
    """Return the server; it is asked nothing yet."""
    target = target_at(address)
    return Served(
        target.id,
        target.label,
        lambda: serving_process(address.engine(), lambda: address.dial("loadstone")),
    )

"""Caches emptied before a query is asked: a private server's by a restart, any other's as it can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.private_server.page_cache import drop_all, evict

if TYPE_CHECKING:
    from loadstone.engine import Caches
    from loadstone.private_server import EmbeddedServer

_HELD_SHARE = 0.01
"""Of the files' bytes, what may stay in memory: pages that the start itself reads, and mapped ones."""


def restart_cold(server: EmbeddedServer) -> Caches:
    """Stop a private server, have the kernel forget its files, and start it again on the same data."""
    server.stop()
    folder = server.data_directory
    held, size = evict(folder)
    means = "the server was restarted, and its files were removed from the page cache"
    if held > _HELD_SHARE * size and drop_all():
        held, size = evict(folder)
        means += ", together with all other files, because its own could not be removed alone"
    server.restart()
    if held > _HELD_SHARE * size:
        note = (
            "the server was restarted, and its own buffers are empty, but the system still caches "
            f"{held:,} of the {size:,} bytes of its files (is the folder in memory?)"
        )
        return {"emptied": False, "note": note}
    return {"emptied": True, "note": means}

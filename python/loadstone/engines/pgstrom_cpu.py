"""A server with PG-Strom whose GPU rests: the other side of the comparison, with all else alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.engines.pgstrom import PgStrom

if TYPE_CHECKING:
    from typing import Literal


class PgStromCpu(PgStrom):
    """The same server, loaded in the same way; each connection switches the extension off."""

    name = "pgstrom_cpu"
    title = "PG-Strom (CPU only)"
    schemes = ("pgstrom-cpu",)
    enabled: Literal["on", "off"] = "off"


ENGINE = PgStromCpu()

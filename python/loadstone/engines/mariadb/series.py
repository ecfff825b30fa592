"""How MariaDB keeps time series: not yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.engine.dialect.timeseries import TimeSeriesDialect
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from loadstone.engine.control import Control


class MariaSeries(TimeSeriesDialect):
    """Says no."""

    title = "MariaDB"
    methods = ("copy_text", "insert")

    def refuse(self, control: Control) -> None:
        """Raise LoadstoneError: tables of this shape were not made for MariaDB."""
        del control
        raise LoadstoneError(
            "Loadstone supports only plain tables in MariaDB, not data of TSBS",
            "Load a plain data set, or use another target.",
        )

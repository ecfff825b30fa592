"""Time series in ClickHouse: not loaded yet, and refused before anything is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.engine.dialect.timeseries import TimeSeriesDialect
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from loadstone.engine.control import Control
    from loadstone.model import LoadMethod


class ClickSeries(TimeSeriesDialect):
    """Says no."""

    title = "ClickHouse"
    methods: tuple[LoadMethod, ...] = ("arrow",)

    def refuse(self, control: Control) -> None:
        """Raise LoadstoneError: tables of this shape were not made for ClickHouse."""
        del control
        raise LoadstoneError(
            "Loadstone supports only plain tables in ClickHouse, not time series",
            "Load a plain data set, or use another target.",
        )

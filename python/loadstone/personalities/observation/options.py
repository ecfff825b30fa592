"""The options, as given. Nothing here is slow to import: every command line has them, few use them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone.live.endpoints import LiveOptions

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(slots=True)
class ObservationOptions:
    """`--watch` with its helpers, `--live` with its port, `--openmetrics`."""

    watch: list[str] = field(default_factory=list)
    watch_token_file: Path | None = None
    watch_ca: Path | None = None
    live: bool = False
    live_port: int | None = None
    openmetrics: str | None = None

    @property
    def live_options(self) -> LiveOptions:
        """What is to be served."""
        return LiveOptions(self.live, self.live_port, self.openmetrics)

    @property
    def given(self) -> list[str]:
        """The options that were given, as they are written; helpers left out."""
        named = {"--watch": self.watch, "--live": self.live, "--openmetrics": self.openmetrics is not None}
        return [name for name, value in named.items() if value]

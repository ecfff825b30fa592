"""What Vertica's driver raises, in a class of ours that is there without the driver."""

from __future__ import annotations


class VerticaError(Exception):
    """What Vertica said when it refused a statement, or that it is gone."""

    def __init__(self, message: str, *, sqlstate: str | None = None, lost: bool = False) -> None:
        super().__init__(message)
        self.lost = lost
        self.sqlstate = sqlstate or ("lost" if lost else "refused")
        """Vertica's own, where it gave one."""

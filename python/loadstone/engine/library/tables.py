"""What plain tables have in common in engines behind a client library that keep columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from loadstone.engine.dialect.tables import TableDialect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loadstone.engine.control import Control
    from loadstone.engine.dialect.indexes import Index
    from loadstone.engine.dialect.tables import RowTable
    from loadstone.engine.library.client import Library
    from loadstone.model import PlainTable, TableForm


class LibraryTables(TableDialect, ABC):
    """Tables of columns, loaded through a library; what cannot be is known without asking."""

    takes_files = False
    ledger = False
    forms: tuple[TableForm, ...] = ("default", "columnar")
    offered: tuple[str, ...] = ()
    """What scenarios may require of its tables, beside its forms."""

    @abstractmethod
    def library(self, document: Mapping[str, Any], connect: Callable[[str], Control]) -> Library:
        """Return what clients load with, of a drive's document with its `load`."""

    def offers(self, control: Control) -> frozenset[str]:
        """Return what scenarios may require of plain tables: its column store is the only form."""
        del control
        return frozenset({*self.offered, *(f"form:{form}" for form in self.forms)})

    def refuse(self, control: Control, table: RowTable, options: PlainTable) -> None:
        """Refuse nothing more: what the engine does not have is known without asking."""

    def using(self, index: Index) -> str:
        """Say nothing: kinds of index, where there are any, are named elsewhere."""
        del index
        return ""

    def settle(self, options: PlainTable) -> tuple[str, ...]:
        """Return nothing: rows that were only appended leave nothing to put in order."""
        del options
        return ()

"""What a bulk load takes on disk, looked at more than once: STORAGE of docs/run-folder.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.engine.observe.written import WriteAccount

if TYPE_CHECKING:
    from loadstone.engine.control import Control
    from loadstone.target import OpenTarget

Document = dict[str, Any]


class StorageAccount:
    """Begins before the load; looks at the table whenever told to."""

    def __init__(self, opened: OpenTarget, control: Control, schema: str | None, table: str) -> None:
        """Begin now; `schema` None: the connection's own."""
        self._opened = opened
        self._table = table
        if schema is None:
            row = control.execute("select current_schema() as schema").fetchone() or {}
            schema = str(row["schema"])
        self._schema = schema
        self._written = WriteAccount(opened.engine, control, opened.data_directory)
        self._looks: list[Document] = []
        self._notes: list[str] = []

    def look(self, control: Control, when: str, rows: int, logical_bytes: int | None) -> None:
        """Look at the table, which holds so many rows."""
        opened = self._opened
        found = opened.engine.storage(control, [self._table], opened.data_directory, self._schema)
        known = {"rows": rows, "logical_bytes": logical_bytes}
        self._looks.append({"when": when, "tables": [{**table, **known} for table in found.tables]})
        self._notes += found.notes

    def document(self, control: Control, logical_bytes: int | None) -> Document:
        """Return all looks, and what was written up to now."""
        written = self._written.written(control, logical_bytes)
        notes = dict.fromkeys([*self._notes, *self._written.notes])
        return {"looks": self._looks, "written": written, "notes": list(notes)}

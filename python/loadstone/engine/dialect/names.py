"""How statements name tables: always with their schema, so that no search path decides which table is meant.

A session's search path can be another one than we asked for (a pooler may have opened it), and DuckDB always
looks into `main` as well. `qualified` is the only place where a table's name for a statement is made.
"""

# ruff: noqa: S608 - identifiers and values are written by `quoted` and `literal`
from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Self

from loadstone.errors import LoadstoneError
from loadstone.sqltext import Qualified, literal, qualified

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.engine.control import Control

SCHEMA = "loadstone"
"""All that a scenario makes lives in this schema, unless the caller names another."""


class NamedTables:
    """What is asked of tables by their names, and of their times, whatever else they hold."""

    relation = "table"
    """What CREATE and DROP call that which holds the rows."""
    keeping = ""
    """What CREATE TABLE says behind the columns of how rows are kept, in a table and in each partition."""
    ledger = True
    """Whether a broken load can be resumed: batches are booked in the transaction that holds their rows."""
    schema: str | None = SCHEMA
    """Where the tables are; None: the engine has no schemas."""

    def within(self, schema: str) -> Self:
        """Return the same answers for the tables of another schema, where the engine has schemas."""
        if self.schema is None:
            return self
        found = copy.copy(self)
        found.schema = schema
        return found

    def where_made(self, control: Control) -> Self:
        """Return the same answers for the schema where the connection makes its tables."""
        if self.schema is None:
            return self
        row = control.execute("select current_schema() as schema").fetchone() or {}
        if row.get("schema") is None:
            raise LoadstoneError(
                "none of the schemas in the user's search path exists, so the server cannot create tables",
                "Create one, or name one in the URL: ?options=-csearch_path%3DNAME",
            )
        return self.within(str(row["schema"]))

    def unqualified(self) -> Self:
        """Return the same answers with bare names: for DDL that is printed, and not run by us."""
        found = copy.copy(self)
        found.schema = None
        return found

    def qualified(self, name: str) -> Qualified:
        """Return a table's name as every statement must write it."""
        return qualified(self.schema, name)

    def existing(self, control: Control, wanted: Sequence[str]) -> list[str]:
        """Return which of these tables (or views) there are already."""
        listed = ", ".join(literal(name) for name in wanted)
        rows = control.execute(
            "select table_name as name from information_schema.tables "
            f"where table_schema = {self.schema_text} and table_name in ({listed}) order by 1"
        )
        return [str(row["name"]) for row in rows]

    @property
    def schema_text(self) -> str:
        """The schema's name as a text in SQL, for the catalog."""
        return literal(self.schema or "")

    def drop(self, name: str) -> str:
        """Return the statement that drops a table with all that belongs to it, if it is there."""
        return f"drop {self.relation} if exists {self.qualified(name)} cascade"

    def microseconds(self, column: str) -> str:
        """Return an expression for a time as whole microseconds since 1970."""
        # Exact until 2106: the error of date_part's double is below half a microsecond.
        return f"(date_part('epoch', {column}) * 1000000)::bigint"

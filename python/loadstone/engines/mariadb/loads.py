"""What holds for tables of every kind in MariaDB: where they are, how rows come in, how times are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from loadstone.engine.dialect.loads import LoadDialect
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from loadstone.engine.control import Control
    from loadstone.model import LoadMethod

KEEPING = " engine=InnoDB default charset=utf8mb4 collate=utf8mb4_bin"
EPOCH = "timestamp'1970-01-01 00:00:00'"


class MariaLoads(LoadDialect):
    """What MariaDB says of loading rows."""

    title = "MariaDB"
    methods: tuple[LoadMethod, ...] = ("copy_text", "insert")

    def where_made(self, control: Control) -> Self:
        """Return the same answers for the database where the connection makes its tables."""
        row = control.execute("select database() as name").fetchone() or {}
        if row.get("name") is None:
            raise LoadstoneError("the target's URL names no database", "Write mariadb://host/database.")
        return self.within(str(row["name"]))

    def refuse_method(self, control: Control, method: LoadMethod) -> None:
        """Raise LoadstoneError where the server refuses LOAD DATA LOCAL."""
        row = control.execute("select @@global.local_infile as value").fetchone() or {}
        if method == "copy_text" and not row.get("value"):
            raise LoadstoneError(
                "the server refuses LOAD DATA LOCAL (local_infile is off)",
                "Turn it on (set global local_infile = on), or load with the method insert.",
            )

    def drop(self, name: str) -> str:
        """Return the statement that drops a table, if it is there."""
        return f"drop table if exists {self.qualified(name)}"

    def microseconds(self, column: str) -> str:
        """Return an expression for a time as whole microseconds since 1970."""
        return f"timestampdiff(microsecond, {EPOCH}, {column})"

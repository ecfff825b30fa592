"""SQL of a scenario: written in scenario.toml or in a file beside it, filled in and split into statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.scenario.scenario import file_named
from loadstone.scenario.sql import split_statements
from loadstone.scenario.template import render

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from loadstone.model import Value
    from loadstone.scenario.scenario import Scenario


def statements(scenario: Scenario, texts: Iterable[str], values: Mapping[str, Value]) -> tuple[str, ...]:
    """Return all statements of SQL texts, or of the files that they name. Raises LoadstoneError."""
    return tuple(statement for text in texts for statement in split_statements(*_sql(scenario, text, values)))


def one_statement(scenario: Scenario, text: str, values: Mapping[str, Value]) -> str:
    """Return the statement of an SQL text, or of the file that it names. Raises LoadstoneError."""
    sql, where = _sql(scenario, text, values)
    found = split_statements(sql, where)
    if len(found) != 1:
        raise LoadstoneError(
            f"{where} has {len(found)} statements", "Write one query that returns one value."
        )
    return found[0]


def _sql(scenario: Scenario, text: str, values: Mapping[str, Value]) -> tuple[str, str]:
    """Return SQL and its name for errors: the text of a file, filled in, or `text` itself."""
    name = file_named(text, ".sql")
    if name is None:
        return text, f"SQL `{text[:30]}`"
    where = str(scenario.folder / name)
    return render(scenario.files[name], values, where), where

"""SQL text → single statements, and the names in it that values are put in place of, by the core's scanner.

The libraries for this (sqlparse, sqlglot's tokenizer) do not nest comments or do not keep the bodies of
`begin atomic` and `create rule … (…; …)` together; both split a statement in the middle without a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone import _core
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Places = list[tuple[int, int]]


def split_statements(text: str, name: str = "SQL") -> tuple[str, ...]:
    """Split at the semicolons that end a statement, in psql's understanding of quotes and comments.

    Semicolons, surrounding blanks and leading comments are dropped; text of comments alone is no statement.
    `name` stands for the text in errors. Raises LoadstoneError with the line where a quote or comment was
    opened and never closed, and for psql's backslash commands.
    """
    found = (text[begin:end].strip() for begin, end in _scan(text, name)[0])
    return tuple(statement for statement in found if statement)


def placeholders(text: str, name: str = "SQL") -> Iterator[tuple[int, int, str]]:
    """Yield start, end and name of each `:name` that stands outside of quotes and comments; `::` is a cast.

    `name` stands for the text in errors.
    """
    for begin, end in _scan(text, name)[1]:
        yield begin - 1, end, text[begin:end]


def filled(text: str, values: Mapping[str, object]) -> str:
    """Put values in the place of each `:name`; negative ones in parentheses, for `--` begins a comment."""
    parts, last = [], 0
    for start, end, name in placeholders(text):
        value = str(values[name])
        parts += [text[last:start], f"({value})" if value.startswith("-") else value]
        last = end
    return "".join([*parts, text[last:]])


def _scan(text: str, name: str) -> tuple[Places, Places]:
    try:
        return _core.scan_sql(name, text)
    except _core.ScriptError as error:
        message, file, line, _, hint = error.args
        raise LoadstoneError(f"{file}, line {line}: {message}", hint) from None

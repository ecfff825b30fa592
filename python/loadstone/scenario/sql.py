"""SQL text → single statements, as psql's lexer sees them.

The libraries for this (sqlparse, sqlglot's tokenizer) do not nest comments or do not keep the bodies of
`begin atomic` and `create rule … (…; …)` together; both split a statement in the middle without a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_WORD = r"[A-Za-z_\x80-\U0010ffff]"
_TOKEN = re.compile(
    rf"""
      (?P<space>\s+)
    | (?P<comment>--[^\r\n]*)
    | (?P<block>/\*)
    | (?P<escape>[eE]'(?:[^'\\]|\\.|'')*'(?:[ \t\f]*[\r\n]\s*'(?:[^'\\]|\\.|'')*')*)
    | (?P<unclosed_escape>[eE]')
    | (?P<string>'(?:[^']|'')*')
    | (?P<name>"(?:[^"]|"")*")
    | (?P<dollar>(?P<tag>\$(?:{_WORD}[\w\x80-\U0010ffff]*)?\$).*?(?P=tag))
    | (?P<word>{_WORD}[\w$\x80-\U0010ffff]*)
    | (?P<number>\$?[0-9]+)
    | (?P<open>\()
    | (?P<close>\))
    | (?P<semicolon>;)
    | (?P<unclosed>'|"|\$(?:{_WORD}[\w\x80-\U0010ffff]*)?\$)
    | (?P<backslash>\\)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_BLOCK_EDGE = re.compile(r"/\*|\*/")
_ROUTINE = re.compile(r"create (or replace )?(function|procedure)\b")
_UNCLOSED = {"'": "string", '"': "quoted name", "$": "dollar-quoted text", "/": "comment"}


@dataclass(slots=True)
class _Depth:
    """How deep we are inside parentheses and `begin atomic` bodies of the current statement."""

    parentheses: int = 0
    bodies: int = 0
    words: str = ""
    """The first words of the statement, which tell whether `begin` opens a body."""

    def see_word(self, word: str) -> None:
        """Follow psql: only in `create function|procedure` do begin, case and end nest."""
        if self.parentheses:
            return
        if len(self.words) < len("create or replace procedure"):
            self.words = f"{self.words} {word}".strip()
        if not _ROUTINE.match(self.words):
            return
        if word == "begin" or (word == "case" and self.bodies):
            self.bodies += 1
        elif word == "end" and self.bodies:
            self.bodies -= 1

    def see(self, kind: str | None, text: str) -> None:
        """Take one token into account."""
        if kind == "word":
            self.see_word(text.lower())
        elif kind == "open":
            self.parentheses += 1
        elif kind == "close":
            self.parentheses = max(0, self.parentheses - 1)


def split_statements(text: str, name: str = "SQL") -> tuple[str, ...]:
    """Split at the semicolons that end a statement, in psql's understanding of quotes and comments.

    Semicolons, surrounding blanks and leading comments are dropped; text of comments alone is no statement.
    `name` stands for the text in errors. Raises LoadstoneError with the line where a quote or comment was
    opened and never closed, and for psql's backslash commands.
    """
    statements: list[str] = []
    start: int | None = None
    depth = _Depth()
    position = 0
    while position < len(text):
        kind, end = _next_token(text, position, name)
        ends_statement = kind == "semicolon" and not depth.parentheses and not depth.bodies
        if ends_statement:
            if start is not None:
                statements.append(text[start:position].rstrip())
            start, depth = None, _Depth()
        elif kind not in ("space", "comment", "block"):
            start = position if start is None else start
            depth.see(kind, text[position:end])
        position = end
    if start is not None:
        statements.append(text[start:].rstrip())
    return tuple(statements)


def placeholders(text: str, name: str = "SQL") -> Iterator[tuple[int, int, str]]:
    """Yield start, end and name of each `:name` that stands outside of quotes and comments; `::` is a cast.

    `name` stands for the text in errors.
    """
    position, before = 0, ""
    while position < len(text):
        kind, end = _next_token(text, position, name)
        found = text[position:end]
        if kind == "word" and before == ":":
            yield position - 1, end, found
        before = "::" if (before, found) == (":", ":") else found
        position = end


def filled(text: str, values: Mapping[str, object]) -> str:
    """Put values in the place of each `:name`; negative ones in parentheses, for `--` begins a comment."""
    parts, last = [], 0
    for start, end, name in placeholders(text):
        value = str(values[name])
        parts += [text[last:start], f"({value})" if value.startswith("-") else value]
        last = end
    return "".join([*parts, text[last:]])


def _next_token(text: str, position: int, name: str) -> tuple[str | None, int]:
    """Kind and end of the token at `position`."""
    match = _TOKEN.match(text, position)
    if match is None:  # pragma: no cover - `other` matches any character
        raise AssertionError(position)
    kind = match.lastgroup
    if kind == "block":
        return kind, _end_of_block_comment(text, position, name)
    if kind in ("unclosed", "unclosed_escape"):
        raise _unclosed(text, position, name, match.group().lstrip("eE")[:1])
    if kind == "backslash":
        raise LoadstoneError(
            f"{name}, line {_line(text, position)}: `\\` begins a command of psql, not SQL.",
            "Write SQL statements only; pgbench's commands belong in a .pgbench script.",
        )
    return kind, match.end()


def _end_of_block_comment(text: str, position: int, name: str) -> int:
    """Where a comment ends; comments nest in PostgreSQL."""
    depth = 0
    for edge in _BLOCK_EDGE.finditer(text, position):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    raise _unclosed(text, position, name, "/")


def _unclosed(text: str, position: int, name: str, mark: str) -> LoadstoneError:
    """Say which quote or comment never ends."""
    return LoadstoneError(
        f"{name}, line {_line(text, position)}: the {_UNCLOSED[mark]} that begins here never ends.",
        f"Close it: `{text[position : position + 20].splitlines()[0]}…`.",
    )


def _line(text: str, position: int) -> int:
    """Return the number of the line that holds `position`, from 1."""
    return text.count("\n", 0, position) + 1

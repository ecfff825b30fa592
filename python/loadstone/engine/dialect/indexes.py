"""Which indexes a plain table gets: so many of the usual ones, or a list (`a, b:brin, (f,l), l:hash`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.sqltext import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NAME_BYTES = 63
"""PostgreSQL cuts longer names off."""
_WORD = r"[^\W\d]\w*"
_ONE = re.compile(
    rf"(?:(?P<column>{_WORD})|\((?P<columns>{_WORD}(?:\s*,\s*{_WORD})*)\))"
    rf"(?:\s*:\s*(?P<method>{_WORD})(?:\s*\(\s*(?P<operators>{_WORD}(?:\.{_WORD})?)\s*\))?)?"
)
_GRAMMAR = "Write a number, or a list: a, b:brin, (f,l), l:hash, j:gin(gin_trgm_ops)."


@dataclass(frozen=True, slots=True)
class Index:
    """One index: its columns, the access method (empty: the engine's usual one) and operator class."""

    columns: tuple[str, ...]
    method: str = ""
    operators: str = ""

    def __str__(self) -> str:
        """Write it as the list does."""
        text = self.columns[0] if len(self.columns) == 1 else f"({','.join(self.columns)})"
        text += f":{self.method}" if self.method else ""
        return text + (f"({self.operators})" if self.operators else "")

    def name(self, table: str) -> str:
        """Return a name that tells the table's indexes apart, no longer than names may be."""
        words = [table, *self.columns, self.method, self.operators, "idx"]
        return cut("_".join(word for word in words if word), str(self))

    @property
    def keys(self) -> str:
        """Columns with their operator class, as SQL writes them."""
        end = f" {self.operators}" if self.operators else ""
        return f"({', '.join(quoted(column) + end for column in self.columns)})"


def index_list(text: str, columns: Sequence[str] | None, usual: Sequence[str]) -> tuple[Index, ...]:
    """Read which indexes are wished: so many of the `usual` columns, or a list over the `columns`.

    With `columns` None any name will do. Raises LoadstoneError for what cannot be: too many, unknown columns,
    one index twice.
    """
    text = text.strip()
    if not text or text.lower() == "none":
        return ()
    if text.isdecimal():
        if int(text) > len(usual):
            raise LoadstoneError(
                f"{int(text)} indexes are requested, but the table has only {len(usual)} columns to index",
                f"Request at most {len(usual)}, or list them: {', '.join(usual[:3])}, …",
            )
        return tuple(Index((column,)) for column in usual[: int(text)])
    found = tuple(_read(text))
    for index in found:
        _refuse_unknown(index, columns if columns is not None else index.columns)
        if found.count(index) > 1:
            raise LoadstoneError(f"the index list '{text}' contains {index} twice", "List each index once.")
    return found


def _read(text: str) -> Iterator[Index]:
    at = 0
    while True:
        found = _ONE.match(text, at + len(text[at:]) - len(text[at:].lstrip()))
        if found is None:
            raise _unreadable(text, at)
        listed = found["column"] or found["columns"]
        columns = tuple(column.strip() for column in listed.split(","))
        yield Index(columns, (found["method"] or "").lower(), (found["operators"] or "").lower())
        rest = text[found.end() :].lstrip()
        if not rest:
            return
        if rest[0] != ",":
            raise _unreadable(text, found.end())
        at = len(text) - len(rest) + 1


def _unreadable(text: str, at: int) -> LoadstoneError:
    rest = text[at:].strip()
    where = f"at '{rest}'" if rest else "at its end"
    return LoadstoneError(f"the index list '{text}' cannot be read {where}", _GRAMMAR)


def _refuse_unknown(index: Index, columns: Sequence[str]) -> None:
    for column in index.columns:
        if column not in columns:
            raise LoadstoneError(
                f"the index {index} needs a column '{column}', which the table does not have",
                f"Its columns are {', '.join(columns)}.",
            )
        if index.columns.count(column) > 1:
            raise LoadstoneError(
                f"the index {index} contains the column '{column}' twice", "List each column once."
            )


def cut(name: str, whole: str) -> str:
    """Cut a name to what PostgreSQL keeps of it, the end made of `whole` so that it stays the only one."""
    if len(name.encode()) <= _NAME_BYTES:
        return name
    end = f"_{_digest(whole)}"
    return name.encode()[: _NAME_BYTES - len(end)].decode(errors="ignore") + end


def _digest(text: str) -> str:
    """Return 8 hexadecimal digits of a text (FNV-1a, 32 bits): names only, nothing is secured by it."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{value:08x}"

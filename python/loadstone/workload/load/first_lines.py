"""The first lines of files that are sent as they are: whether their values can be those of a table."""

from __future__ import annotations

import io
import json
import math
import re
from csv import reader
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import csv

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

Columns = list[list[str | None]]

_ROWS = 1000
_SHOWN = 40
_MARK = "\ufeff"
"""What some programs write first, to say that UTF-8 follows."""
_LARGEST_FLOAT32 = 3.4028235677973366e38
_BOOLEANS = ("true", "false", "yes", "no", "on", "off", "1", "0")
# Servers read dates in many ways: whatever has three parts or six digits may be one.
_DATE = re.compile(r"\d{6}|\w+[-/., :]+\w+[-/., :]+\w+")
_DATE_WORDS = ("epoch", "infinity", "-infinity", "+infinity", "now", "today", "tomorrow", "yesterday")
_NO_VALUES = ("na", "n/a", "nan", "nat", "null", "none", "nil", "\\n")
_WORDS = {
    "int16": "a whole number of 16 bits",
    "int32": "a whole number of 32 bits",
    "int64": "a whole number of 64 bits",
    "float32": "a number that fits into single precision",
    "float64": "a number",
    "bool": "true or false",
    "date": "a date",
    "timestamp": "a time",
    "json": "JSON",
    "text": "text",
}


@dataclass(frozen=True, slots=True)
class Lines:
    """The beginning of a file of CSV or of COPY's text format, unpacked."""

    path: Path
    text: bytes
    format: str
    header: bool
    """Whether the first line holds the names of the columns."""
    whole: bool
    """Whether this is all of the file."""


def fields_of(line: str) -> list[str]:
    """Return the fields of a line of CSV."""
    return next(reader([line.rstrip("\r").removeprefix(_MARK)]), [""])


def refuse_header(lines: Lines, columns: Sequence[Mapping[str, Any]]) -> None:
    """Raise LoadstoneError for a line of names that is there and should not be, or the other way round."""
    if lines.format != "csv":
        return
    first = fields_of(lines.text.partition(b"\n")[0].decode())
    names = {column["name"].lower() for column in columns}
    named = sum(field.lower() in names for field in first)
    if not lines.header and 2 * named >= max(2, len(first)):
        raise LoadstoneError(
            f"the first line of '{lines.path}' contains the names of the columns, but values are expected",
            "Set header=true.",
        )
    typed = [column["type"] for column in columns]
    if lines.header and named == 0 and len(typed) == len(first) and set(typed) != {"text"}:
        fields = [field or None for field in first]
        pairs = zip(typed, fields, strict=True)
        if any(fields) and all(field is None or _CHECKS[kind](field) for kind, field in pairs):
            raise LoadstoneError(
                f"the first line of '{lines.path}' contains values, but the names of the columns are "
                "expected",
                "Set header=false, or add a line of names to the file.",
            )


def refuse_values(lines: Lines, columns: Sequence[Mapping[str, Any]]) -> None:
    """Raise LoadstoneError when a value in the first lines cannot be one of its column; names the first."""
    text = _whole_rows(lines)
    if not text:
        return
    _refuse_bytes(lines, text)
    names = [column["name"] for column in columns]
    values = _csv(lines, text, names) if lines.format == "csv" else _tabbed(text, len(names))
    wrong = [
        (row, number)
        for number, column in enumerate(columns)
        if (row := _first_wrong(values[number], _CHECKS[column["type"]])) is not None
    ]
    if wrong:
        row, number = min(wrong)
        value, kind = values[number][row] or "", columns[number]["type"]
        shown = repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
        where = f"{lines.path}, line {_line(lines, values, row)}"
        raise LoadstoneError(
            f"{where}: {names[number]} is {shown}, but {_WORDS[kind]} is needed", _mend(kind, value)
        )


def _first_wrong(values: list[str | None], check: Callable[[str], bool]) -> int | None:
    return next((row for row, value in enumerate(values) if value is not None and not check(value)), None)


def _whole_rows(lines: Lines) -> bytes:
    """Return the rows of which all is there: those before the last line end that no quotes enclose."""
    text = lines.text
    if lines.whole:
        return text
    end = text.rfind(b"\n") + 1
    quotes = text.count(b'"', 0, end) if lines.format == "csv" else 0
    while quotes % 2:
        start = text.rfind(b"\n", 0, end - 1) + 1
        quotes -= text.count(b'"', start, end)
        end = start
    return text[:end]


def _refuse_bytes(lines: Lines, text: bytes) -> None:
    if text.startswith(_MARK.encode()) and not lines.header:
        raise LoadstoneError(
            f"'{lines.path}' begins with a byte order mark, which servers read as a part of the first value",
            "Write the file again as UTF-8 without it.",
        )
    try:
        text.decode()
        wrong = text.find(b"\0")
        why = "a zero byte, which text cannot contain"
    except UnicodeDecodeError as error:
        wrong, why = error.start, "a byte that is not UTF-8"
    if wrong >= 0:
        line = text.count(b"\n", 0, wrong) + 1
        raise LoadstoneError(f"{lines.path}, line {line}: there is {why}", "Write the file again as UTF-8.")


def _csv(lines: Lines, text: bytes, names: list[str]) -> Columns:
    """Return the values of the first rows by column; None: nothing between two commas, and no quotes."""
    ill: list[csv.InvalidRow] = []

    def note(row: csv.InvalidRow) -> str:
        ill.append(row)
        return "skip"

    # Not the table's names: pyarrow wants each of them once.
    numbers = [str(number) for number in range(len(names))]
    try:
        table = csv.read_csv(
            io.BytesIO(text),
            read_options=csv.ReadOptions(
                use_threads=False,
                skip_rows=int(lines.header),
                column_names=numbers,
                block_size=len(text) + 1,
            ),
            parse_options=csv.ParseOptions(
                newlines_in_values=True, ignore_empty_lines=False, invalid_row_handler=note
            ),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(numbers, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise LoadstoneError(
            f"'{lines.path}' is not CSV: {error}", "Use CSV as PostgreSQL writes it."
        ) from error
    row = ill[0].number - 1 - lines.header if ill else _ROWS
    values: Columns = [column.to_pylist() for column in table.slice(0, min(row, _ROWS)).columns]
    if ill and row < _ROWS:
        raise LoadstoneError(
            f"{lines.path}, line {_line(lines, values, row)}: it has {ill[0].actual_columns} fields, "
            f"but {len(names)} are needed",
            "Correct that line; put a value with a comma or a line end in double quotes.",
        )
    return values


def _tabbed(text: bytes, count: int) -> Columns:
    r"""Return the values of the first rows by column; None: \N, or one with escapes, which servers read."""
    rows = [line.split("\t") for line in text.decode().removesuffix("\n").split("\n")[:_ROWS]]
    # A row of another length has an escaped tab or line end in it, or is wrong: the core tells its number.
    columns = [[row[number] if len(row) == count else None for row in rows] for number in range(count)]
    return [[None if value is None or "\\" in value else value for value in column] for column in columns]


def _line(lines: Lines, values: Columns, row: int) -> int:
    """Return in which line of its file a row begins."""
    within = sum((value or "").count("\n") for column in values for value in column[:row])
    return row + 1 + lines.header + within


def _mend(kind: str, value: str) -> str:
    if not value:
        return "Remove the quotes if a value is missing: in quotes it is an empty text."
    if value.strip().lower() in _NO_VALUES:
        return "Write nothing between the commas if a value is missing."
    if kind.startswith("int") and "." in value and _is_float(value) and float(value).is_integer():
        return "Write whole numbers without a fraction, or use Parquet, which allows one."
    return "Correct that value, or remove its line; the columns are those of the table, in its order."


def _is_whole(bits: int) -> Callable[[str], bool]:
    bound = 1 << (bits - 1)

    def check(value: str) -> bool:
        try:
            number = int(value)
        except ValueError:
            try:
                # Newer servers read 0x1F as well.
                number = int(value, 0)
            except ValueError:
                return False
        return -bound <= number < bound

    return check


def _is_float(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _is_float32(value: str) -> bool:
    return _is_float(value) and (abs(number := float(value)) < _LARGEST_FLOAT32 or not math.isfinite(number))


def _is_bool(value: str) -> bool:
    asked = value.strip().lower()
    return bool(asked) and any(word.startswith(asked) for word in _BOOLEANS)


def _is_date(value: str) -> bool:
    if value.strip().lower() in _DATE_WORDS:
        return True
    return any(letter.isdigit() for letter in value) and _DATE.search(value) is not None


def _is_json(value: str) -> bool:
    try:
        json.loads(value)
    except ValueError:
        return False
    return True


def _is_text(_: str) -> bool:
    return True


_CHECKS: dict[str, Callable[[str], bool]] = {
    "int16": _is_whole(16),
    "int32": _is_whole(32),
    "int64": _is_whole(64),
    "float32": _is_float32,
    "float64": _is_float,
    "bool": _is_bool,
    "date": _is_date,
    "timestamp": _is_date,
    "json": _is_json,
    "text": _is_text,
}

"""Arrow tables made of rows of plain values, with columns that are the same in every run."""

from __future__ import annotations

import json
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import msgspec

Columns = dict[str, pa.DataType]

TEXT, WHOLE, REAL, TRUTH = pa.string(), pa.int64(), pa.float64(), pa.bool_()
PHASE: Columns = {"target": TEXT, "phase": TEXT}
"""What tells the phase of a row: the target's id and the name of the phase's folder."""
_TYPES = ((float, REAL), (int, WHOLE), (bool, TRUTH), (str, TEXT))


def table(columns: Columns, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return a table; a key that a row lacks is null, one that is no column is left out."""
    held = list(rows)
    arrays = [
        pa.array([_as(row.get(name), kind) for row in held], type=kind) for name, kind in columns.items()
    ]
    return pa.table(arrays, schema=pa.schema(list(columns.items())))


def _as(value: Any, kind: pa.DataType) -> Any:
    """Return a value as its column holds it: a whole number among real ones, any value as text."""
    if value is None:
        return None
    if kind == REAL:
        return float(value)
    if kind == WHOLE:
        return int(value)
    return value


def columns_of(kind: type[msgspec.Struct], leave_out: Sequence[str] = ()) -> Columns:
    """Return the columns for the plain fields of a document's type."""
    hints = get_type_hints(kind)
    found = {name: _type(hint) for name, hint in hints.items() if name not in leave_out}
    return {name: type_ for name, type_ in found.items() if type_ is not None}


def _type(hint: Any) -> pa.DataType | None:
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    flat = {piece for part in parts for piece in (get_args(part) or (part,))}
    return next((type_ for python, type_ in _TYPES if python in flat), None)


def as_json(value: Any) -> str:
    """Return a nested value as the text of one cell."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)

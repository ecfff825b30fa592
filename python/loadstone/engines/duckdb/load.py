"""What clients of DuckDB do with the rows of a load: where they go, and by which statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.sqltext import Qualified


def load_spec(load: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `load` of the core's clients, from a drive's.

    In-table tags come before the other columns under names of their own, and tags for JSON without theirs.
    """
    tables = dict(load["tables"])
    tags = tables.pop("tags", None)
    ledger: Qualified | None = load["ledger"]
    by_place = bool(load["in_table_tag"])
    return {
        "method": "insert" if load["method"] == "insert" else "arrow",
        "tags": _table(tags, as_json=bool(load["jsonb_tags"])) if tags else None,
        "tables": {name: _table(table, by_place=by_place) for name, table in tables.items()},
        "ledger": f"insert into {ledger} (batch, rows)" if ledger else None,
        "mark_rows": (load.get("transaction") or {}).get("mark_rows", 0),
        "finish": ["checkpoint"],
    }


def _table(table: Mapping[str, Any], **how: bool) -> dict[str, Any]:
    columns: Sequence[str] = table["columns"]
    name: Qualified = table["name"]
    into = f"insert into {name} ({', '.join(columns)})"
    return {"into": into, "columns": [_unquoted(column) for column in columns], **how}


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name

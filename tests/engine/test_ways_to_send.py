"""How rows go into engines behind Python drivers, and what they take there: as it is."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from support.table_loads import USUAL, load, opened_at

from loadstone.model import BulkLoad, LoadMethod, PlainTable, Rows

if TYPE_CHECKING:
    from pathlib import Path

BULK = BulkLoad(rows=Rows(set="import", rows=2_000), table=PlainTable("test"), batch_rows=1_000)
WAYS: dict[str, dict[LoadMethod, str]] = {
    "duckdb:": {"best": "arrow", "insert": "insert"},
    "chdb:": {"best": "arrow"},
    "questdb:": {"best": "file", "insert": "insert"},
}


@pytest.mark.parametrize("target", WAYS)
def test_the_account_says_how_rows_went(target: str, tmp_path: Path) -> None:
    with opened_at(target) as opened:
        for method, way in WAYS[target].items():
            account = load(opened, replace(BULK, method=method), tmp_path, replace(USUAL, replace=True))
            assert (account["mode"], account["load"]["rows"]) == (way, 2_000)


def test_a_table_of_questdb_takes_what_its_rows_take(tmp_path: Path) -> None:
    """Its files are 16 MiB a column long while they are written."""
    with opened_at("questdb:") as opened, closing(opened.connect("looking")) as control:
        load(opened, BULK, tmp_path)
        storage = opened.engine.storage(control, ["test"])
        assert storage.notes == []
        (table,) = storage.tables
        columns = len(opened.engine.tables.existing_columns(control, "test"))
        assert columns * 2_000 <= table["heap_bytes"] < columns * (1 << 20)
        size = opened.engine.tables.size(control, "test").table_bytes
        load(opened, BULK, tmp_path, replace(USUAL, replace=True))
        assert opened.engine.checkpoint(control) is None
        assert opened.engine.tables.size(control, "test").table_bytes == size

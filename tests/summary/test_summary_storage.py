"""What a table takes in summary.json, where it has files of its own and where it shares one with others."""

from __future__ import annotations

from typing import Any

import pytest
from support.summaries import part, plain

from loadstone.results.documents import Phase
from loadstone.summary.storage import summarise_storage

MEBI = 2**20
BEFORE_TABLES_SAID_SO = "free and allocated bytes are the whole file's, indexes and WAL included"


def look(*, notes: tuple[str, ...] = (), **figures: Any) -> dict[str, Any]:
    table = {
        "name": "flights",
        "rows": 1000,
        "logical_bytes": 100 * MEBI,
        "heap_bytes": 40 * MEBI,
        "toast_bytes": 0,
        "index_bytes": 0,
        "map_bytes": 0,
        "free_bytes": 30 * MEBI,
        "allocated_bytes": 80 * MEBI,
        **figures,
    }
    found = {"looks": [{"when": "after the load", "tables": [table]}], "notes": list(notes)}
    summary = summarise_storage(part(Phase, {"storage": found}), None)
    assert summary
    last: dict[str, Any] = plain(summary.looks[-1])
    return last


@pytest.mark.parametrize("told", [{"shared_file": True}, {"notes": (BEFORE_TABLES_SAID_SO,)}])
def test_a_table_in_a_shared_file_takes_its_own_blocks(told: dict[str, Any]) -> None:
    found = look(**told)
    for entry in (found["tables"][0], found["sum"]):
        assert entry["kinds"]["heap"] == 40 * MEBI, "free space of the file is not within it"
        assert entry["kinds"]["free"] == 0
        assert (entry["free_bytes"], entry["allocated_bytes"]) == (None, None)
        assert (entry["file_bytes"], entry["file_free_bytes"]) == (80 * MEBI, 30 * MEBI)
        assert entry["total_bytes"] == 40 * MEBI
        assert entry["ratio"] == pytest.approx(0.4)
        assert entry["per_row"]["allocated"] is None


def test_indexes_of_unknown_size_are_what_the_shared_file_uses() -> None:
    found = look(shared_file=True, index_bytes=None)["sum"]
    assert found["allocated_bytes"] == 50 * MEBI
    assert found["ratio"] == pytest.approx(0.5)
    assert found["kinds"]["heap"] == 40 * MEBI


def test_free_space_of_a_table_with_files_of_its_own_is_within_it() -> None:
    found = look()["sum"]
    assert found["kinds"]["heap"] == 10 * MEBI
    assert found["kinds"]["free"] == 30 * MEBI
    assert found["ratio"] == pytest.approx(0.8)
    assert (found["file_bytes"], found["file_free_bytes"]) == (None, None)

"""What is kept of a broken run whose tables are gone from the server, and what runs again."""

from __future__ import annotations

import pytest

from loadstone.model import BulkLoad, Drive, PlainTable, Rows, Script
from loadstone.plan.model import PlannedPhase, ScriptWorkload, SqlWorkload, TableLoadWorkload
from loadstone.run.resume import ResumeState

SQL = SqlWorkload()
BULK = TableLoadWorkload(BulkLoad(Rows("import", 1000), PlainTable("test")))
DRIVE = ScriptWorkload(Drive((Script("s", "select 1"),)))
PREPARE = PlannedPhase("001-prepare", "prepare", "own", "prepare", SQL)
IMPORT = PlannedPhase("002-import", "import", "own", "import", BULK)
SECOND = PlannedPhase("003-import", "import", "own", "import", BULK)
MEASURE = PlannedPhase("004-drive", "drive", "own", "drive", DRIVE)
END = PlannedPhase("005-clean-up", "clean-up", "own", "clean up", SQL)


@pytest.mark.parametrize(
    ("phases", "done", "kept"),
    [
        ((PREPARE, IMPORT, SECOND), 2, {PREPARE.key, IMPORT.key}),
        # What cleans up may need what was prepared, and no rows.
        ((PREPARE, IMPORT, SECOND, END), 2, {IMPORT.key}),
        ((PREPARE, IMPORT, MEASURE), 2, set()),
        ((PREPARE, MEASURE, IMPORT, END), 2, {MEASURE.key}),
    ],
)
def test_what_is_gone_is_made_again_only_for_those_that_need_it(
    phases: tuple[PlannedPhase, ...], done: int, kept: set[str]
) -> None:
    left = object.__new__(ResumeState)
    left._phases = {("pg", phase.key): {"state": "complete"} for phase in phases[:done]}
    assert left.kept("pg", phases, there=False) == kept
    assert left.kept("pg", phases, there=True) == {phase.key for phase in phases[:done]}

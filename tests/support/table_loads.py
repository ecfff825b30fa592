"""What tests of bulk loads share: small loads, targets to load into, a look at what came of it."""

from __future__ import annotations

import json
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from loadstone.model import BulkLoad, PlainTable, Rows
from loadstone.target import open_target, parse_target
from loadstone.workload.load import TableLoadOptions, perform_bulk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadstone.target import OpenTarget

IMPORT = Rows(set="import", rows=20_000)
UNION = Rows(set="types", rows=3_000, first=500, seed=7, options={"table": "union", "distribution": "random"})
BULK = BulkLoad(
    rows=IMPORT, table=PlainTable("test", indexes="2"), step_rows=5_000, batch_rows=1_000, workers=2
)
USUAL = TableLoadOptions()


@contextmanager
def opened_at(name: str) -> Iterator[OpenTarget]:
    with open_target(parse_target(name), 8) as opened:
        with closing(opened.connect("test")) as control:
            opened.engine.create_workspace(control)
        yield opened


def value(target: OpenTarget, sql: str) -> str | None:
    with closing(target.connect("looking")) as control:
        return target.engine.text_value(control, sql)


def load(
    target: OpenTarget, bulk: BulkLoad, out: Path, options: TableLoadOptions = USUAL, **more: Any
) -> dict[str, Any]:
    account = perform_bulk(bulk, target, out, options=options, **more)
    assert json.loads((out / "drive.json").read_text())["load"] == account["load"]
    return account


def check_whole(account: dict[str, Any]) -> dict[str, Any]:
    loaded: dict[str, Any] = account["load"]
    assert (account["state"], account["reason"]) == ("complete", None)
    assert loaded["verified"] is True, loaded["checks"]
    assert loaded["committed"]["rows"] == loaded["rows"] + loaded["resumed"]["rows"]
    return loaded

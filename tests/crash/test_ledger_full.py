"""The ledger of commits on a disk that is full."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support.sandbox import small_disk

from loadstone.crash.ledger import ACKNOWLEDGED, read_ledgers
from loadstone.crash.load import Load, ledgered
from loadstone.crash.moments import Watch, until
from loadstone.errors import RunFailedError
from loadstone.model import Drive, Script
from loadstone.workload.calibrate import null_server

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_full_disk_ends_the_load_in_words(tmp_path: Path) -> None:
    drive = Drive((Script("s", "select 1;"),), mode="simple", clients=3)
    with small_disk(tmp_path / "small", 1) as folder, null_server(3) as (_, connection):
        load = Load(ledgered(drive, connection, folder, 1, None))
        with load, pytest.raises(RunFailedError, match="cannot grow: No space left on device"):
            until(lambda: False, Watch(None, tmp_path, 0.0, load.check), np.inf)  # type: ignore[arg-type]
        found = read_ledgers(folder)
    assert len(found) >= 3 * 16_000, "each client has the room of one chunk at least"
    assert (found.state == ACKNOWLEDGED).all()

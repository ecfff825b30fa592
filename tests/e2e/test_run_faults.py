"""Runs through a proxy that mistreats the bytes: each ends in time, counts right and says why.

A few seeds for every day; `python tests/support/fault_runs.py 0-499` performs many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.fault_runs import all_judged

if TYPE_CHECKING:
    from loadstone.private_server import EmbeddedServer

SEEDS = (1003, 1004, 1006, 1036, 1041, 1043, 1045)


@pytest.mark.slow
def test_every_plan_ends_counts_right_and_is_explained(postgres: EmbeddedServer) -> None:
    judged = list(all_judged(SEEDS, 2, postgres.tcp_connection))
    assert [str(one) for one in judged if one.faults] == []

"""What a user is told to install for an engine."""

from __future__ import annotations

import re

import pytest

from loadstone.engine.library.packages import install


@pytest.mark.parametrize("extra", ["chdb", "clickhouse", "gpu", "heavydb", "hosts", "questdb", "vertica"])
def test_an_extra_is_told_by_its_packages_with_their_versions(extra: str) -> None:
    assert re.fullmatch(r"pip install( [\w-]+==[\w.]+)+", install(extra))
    assert "loadstone" not in install(extra)


def test_an_extra_that_is_not_there_has_no_command() -> None:
    with pytest.raises(LookupError):
        install("nothing")

"""Files of a scenario in another dialect of SQL: in a folder of its name, they replace those outside.

`fill.sql` is what every engine runs, but for those whose dialect is `mysql` where there is `mysql/fill.sql`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from loadstone.scenario.scenario import Scenario

DIALECTS = ("mysql",)
"""Those that engines name (`Engine.sql_dialect`), beside PostgreSQL's, which has no name."""


def dialect_files(folder: Path, names: Mapping[str, str]) -> dict[str, Path]:
    """Return the files of all dialects by `dialect/name`; `names` are the files that phases name.

    Raises LoadstoneError for one that replaces none.
    """
    found = {}
    for path in (path for dialect in DIALECTS for path in sorted((folder / dialect).glob("*"))):
        if path.name not in names:
            raise LoadstoneError(
                f"{path} replaces no file of the scenario", f"Its files are {', '.join(sorted(names))}."
            )
        found[f"{path.parent.name}/{path.name}"] = path
    return found


def in_dialect(scenario: Scenario, dialect: str) -> Scenario:
    """Return the scenario as engines of a dialect run it."""
    begin = f"{dialect}/"
    own = {name.removeprefix(begin): text for name, text in scenario.files.items() if name.startswith(begin)}
    return replace(scenario, files={**scenario.files, **own}) if dialect and own else scenario

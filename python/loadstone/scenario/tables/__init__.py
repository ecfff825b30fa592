"""The tables of scenario.toml: each key with its type, its range and its meaning.

Where a template may stand for a value, its type has `Template` as well: it is checked as written, and again
when the templates are filled in. What several keys mean together is checked in `scenario.py`, `load.py` and
`queries.py`.
"""

from loadstone.scenario.tables.base import Forms, Table
from loadstone.scenario.tables.phase import Data, Phase, Queries
from loadstone.scenario.tables.scenario import Scenario

FORMS: tuple[type[Forms], ...] = (Data, Queries)

__all__ = ["FORMS", "Forms", "Phase", "Scenario", "Table"]

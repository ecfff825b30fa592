"""What a scenario wants of a private server: [private_server] → PrivateServer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.model import PrivateServer
from loadstone.scenario.builtin import SCENARIO_FILE
from loadstone.scenario.template import render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.model import Value
    from loadstone.scenario.scenario import Scenario

_UNITS = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_BYTES = re.compile(r"(\d+)\s*([kmgt]?b)", re.IGNORECASE)


def private_server_of(scenario: Scenario, size: str, values: Mapping[str, Value]) -> PrivateServer:
    """Return what the scenario wants at this size; keys of the size beat those for every size.

    A text that comes out empty counts as left out. Raises LoadstoneError that names the key.
    """
    table = scenario.private_server
    memory, settings = "", {}
    for inside, demands in (("", table), (f".{size}", table.get(size, {}))):
        where = f"{scenario.folder / SCENARIO_FILE}: private_server{inside}"
        memory = render(demands.get("memory", ""), values, f"{where}.memory").strip() or memory
        for name, text in demands.get("settings", {}).items():
            settings[name] = render(text, values, f"{where}.settings.{name}").strip()
    limit = _bytes(memory, f"{scenario.folder / SCENARIO_FILE}: private_server.memory") if memory else None
    return PrivateServer(limit, {name: text for name, text in settings.items() if text})


def common_private_server(demands: Mapping[str, PrivateServer]) -> PrivateServer:
    """Return what the scenarios of a run, by name, wish alike: one server serves them all.

    Raises LoadstoneError when they differ, for the one's limits would change the other's figures.
    """
    names = list(demands)
    for name in names[1:]:
        if demands[name] != demands[names[0]]:
            raise LoadstoneError(
                f"the scenarios {names[0]} and {name} need different private servers",
                "Run them one at a time, or use your own server as the --target.",
            )
    return demands[names[0]]


def _bytes(text: str, where: str) -> int:
    """Read `96MB` as PostgreSQL does: a unit is 1024 of the one before."""
    found = _BYTES.fullmatch(text)
    if found is None or not int(found[1]):
        raise LoadstoneError(f"{where}: {text!r} is not an amount of memory", 'Write it as "96MB" or "2GB".')
    return int(found[1]) * _UNITS[found[2].lower()]

"""The engines, found by their place: every module of this package that names an `ENGINE`."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

from loadstone.engine import Engine
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Mapping


@cache
def all_engines() -> Mapping[str, Engine]:
    """Return every engine by its name."""
    found: dict[str, Engine] = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda entry: entry.name):
        engine = getattr(importlib.import_module(f"{__name__}.{module.name}"), "ENGINE", None)
        if isinstance(engine, Engine):
            found[engine.name] = engine
    return found


def engine(name: str) -> Engine:
    """Return the engine of that name."""
    try:
        return all_engines()[name]
    except KeyError:
        raise LoadstoneError(
            f"there is no engine '{name}'", f"The engines are: {', '.join(all_engines())}."
        ) from None


def engine_of_scheme(scheme: str) -> Engine | None:
    """Return the engine whose URLs begin with that scheme, if there is one."""
    return next((found for found in all_engines().values() if scheme.lower() in found.schemes), None)


def engine_of_short_name(name: str) -> Engine | None:
    """Return the engine whose private server has this name, if there is one that is found so."""
    return next((found for found in all_engines().values() if name in found.short_names), None)


def known_schemes() -> list[str]:
    """Return the URL schemes of all engines."""
    return sorted(scheme for found in all_engines().values() for scheme in found.schemes)

"""The engines, found by their place: every module of this package that names an `ENGINE`, which has its name.

An engine that is asked for by its name is imported alone: all together bring every client library.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import re
from functools import cache
from typing import TYPE_CHECKING

from loadstone.engine import Engine
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Mapping


_SHORT_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_USUAL = "postgres"


@cache
def all_engines() -> Mapping[str, Engine]:
    """Return every engine by its name."""
    found: dict[str, Engine] = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda entry: entry.name):
        engine = _engine_in(module.name)
        if engine is not None:
            found[engine.name] = engine
    return found


def _engine_in(module: str) -> Engine | None:
    found = getattr(importlib.import_module(f"{__name__}.{module}"), "ENGINE", None)
    return found if isinstance(found, Engine) else None


@cache
def _by_module(name: str) -> Engine | None:
    """Return the engine of a module of this name, without importing the others."""
    is_there = name.isidentifier() and importlib.util.find_spec(f"{__name__}.{name}") is not None
    return _engine_in(name) if is_there else None


def engine(name: str) -> Engine:
    """Return the engine of that name."""
    found = _by_module(name) or all_engines().get(name)
    if found is None:
        raise LoadstoneError(f"there is no engine '{name}'", f"The engines are: {', '.join(all_engines())}.")
    return found


def engine_of_scheme(scheme: str) -> Engine | None:
    """Return the engine whose URLs begin with that scheme, if there is one."""
    scheme = scheme.lower()
    for likely in (scheme.replace("-", "_"), _USUAL):
        found = _by_module(likely)
        if found is not None and scheme in found.schemes:
            return found
    return next((found for found in all_engines().values() if scheme in found.schemes), None)


def engine_of_short_name(name: str) -> Engine | None:
    """Return the engine whose private server has this name, if there is one that is found so."""
    if not _SHORT_NAME.fullmatch(name):
        return None
    return next((found for found in all_engines().values() if name in found.short_names), None)


def known_schemes() -> list[str]:
    """Return the URL schemes of all engines."""
    return sorted(scheme for found in all_engines().values() for scheme in found.schemes)

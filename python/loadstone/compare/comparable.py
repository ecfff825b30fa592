"""Whether two sides can be compared: what differs in plan, data, machine, server, settings and Loadstone."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from loadstone.compare.documents import Difference
from loadstone.compare.plans import data_differences, plan_differences
from loadstone.summary.damage import damage_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loadstone.compare.sides import Pair
    from loadstone.results.documents.summary import TargetFigures

MOST = 40
"""More differences of one kind are counted, not listed."""
_MACHINE = (
    ("CPU", ("cpu", "model")),
    ("CPU cores", ("cpu", "cores_usable")),
    ("memory", ("memory", "total_bytes")),
    ("kernel", ("system", "kernel")),
    ("distribution", ("system", "distribution")),
    ("virtualisation", ("system", "virtualisation")),
    ("host", ("system", "hostname")),
    ("CPU governor", ("cpu", "governors")),
)
_OURS = (
    ("version", ("loadstone", "version")),
    ("build of the core", ("loadstone", "core", "sha256")),
    ("debug build", ("loadstone", "core", "debug_build")),
)
_STORAGE = ("filesystem", "options", "disk_model", "rotational", "scheduler")
_PLACES = frozenset(
    {
        "cluster_name",
        "config_file",
        "data_directory",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "listen_addresses",
        "log_directory",
        "port",
        "unix_socket_directories",
    }
)
"""Settings that say where a server is, which differs between any two."""


def differences(pair: Pair) -> list[Difference]:
    """Return everything in which the sides differ, what blocks first."""
    one_run = pair.a.folder.resolve() == pair.b.folder.resolve()
    found = list(_damaged(pair))
    if not one_run:
        found += islice(plan_differences(pair.a, pair.b), MOST)
    found += islice(data_differences(pair.a, pair.b), MOST)
    if not one_run:
        found += _machine(pair)
    found += [*_server(pair.a.target, pair.b.target), *islice(_settings(pair), MOST)]
    return sorted(found, key=lambda one: not one.blocks)


def _damaged(pair: Pair) -> Iterator[Difference]:
    """Yield what blocks where one of the folders, or both, are not as their runs have left them."""
    a, b = ("damaged" if damage_in(side.summary) else "undamaged" for side in (pair.a, pair.b))
    if "damaged" in (a, b):
        yield Difference(kind="run", what="folder", a=a, b=b, blocks=True)


def _machine(pair: Pair) -> Iterator[Difference]:
    a, b = (side.summary.environment for side in (pair.a, pair.b))
    for kind, facts in (("machine", _MACHINE), ("loadstone", _OURS)):
        for what, path in facts:
            ours, others = (fact(document, path) for document in (a, b))
            if ours != others:
                yield Difference(kind=kind, what=what, a=_shown(what, ours), b=_shown(what, others))
    stores = [
        fact(side.summary.environment, ("storage", f"data of {side.target.id}")) for side in (pair.a, pair.b)
    ]
    for name in _STORAGE:
        ours, others = (store.get(name) if isinstance(store, dict) else None for store in stores)
        if ours != others:
            what = f"{name.replace('_', ' ')} of the data"
            yield Difference(kind="machine", what=what, a=_shown(what, ours), b=_shown(what, others))


def fact(document: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """Return what environment.json says at a path of keys; None where it says nothing."""
    found: Any = document
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _shown(what: str, value: Any) -> str | int | float | bool | None:
    if isinstance(value, str) and what.startswith("build"):
        return value[:12]
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def _server(a: TargetFigures, b: TargetFigures) -> Iterator[Difference]:
    # What a server says of its version names compilers, too: read only where that alone differs.
    version = "version" if a.version != b.version else "version_text"
    for what in ("engine", version, "build", "local", "encrypted", "memory_limit_bytes"):
        ours, others = getattr(a, what), getattr(b, what)
        if ours != others and isinstance(ours, str | int | None) and isinstance(others, str | int | None):
            name = what.replace("version_text", "version").replace("_", " ")
            yield Difference(kind="server", what=name, a=ours, b=others)


def _settings(pair: Pair) -> Iterator[Difference]:
    """Yield settings with another value; one that is not listed is at its default.

    Those of different engines have little in common but names.
    """
    if pair.a.target.engine != pair.b.target.engine:
        return
    a, b = (settings_of(side.target) for side in (pair.a, pair.b))
    for name in sorted({*a, *b}):
        if a.get(name) != b.get(name):
            ours, others = (side.get(name, "default") for side in (a, b))
            yield Difference(kind="setting", what=name, a=ours, b=others)


def settings_of(target: TargetFigures) -> dict[str, str | int | float | bool | None]:
    """Return settings that are not at their defaults, without those that say where the server is."""
    listed = {str(setting.name): setting.value for setting in target.settings or []}
    listed |= {entry.setting: entry.value for entry in target.durability or []}
    return {name: value for name, value in listed.items() if name not in _PLACES}

"""How to install the Python packages that only some engines need: the extras of this package's metadata."""

from __future__ import annotations

from functools import cache
from importlib import metadata


def install(extra: str) -> str:
    """Return the command that installs an extra's packages, each by its own name and exact version.

    Never `pip install loadstone[…]`: that asks an index for Loadstone itself, which need not come from one.
    """
    marker = f"extra == '{extra}'"
    required = [entry.partition(";") for entry in _required()]
    wanted = [name.strip() for name, _, when in required if marker in when.replace('"', "'")]
    if not wanted:
        raise LookupError(extra)
    return f"pip install {' '.join(wanted)}"


@cache
def _required() -> tuple[str, ...]:
    """Return what this package requires, read once: every engine asks when it is loaded."""
    return tuple(metadata.requires("loadstone") or ())

"""The user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path:
    """Return XDG_CACHE_HOME, or ~/.cache if it is unset or not absolute, which is to be ignored."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    return Path(given) if given.startswith("/") else Path.home() / ".cache"

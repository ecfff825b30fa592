"""Settings of one target, written at the end of its text: `pg18?setting.shared_buffers=1GB`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from loadstone.errors import LoadstoneError
from loadstone.results.redact import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "setting."
_UNQUOTED = "/:,.+ "
"""Beside letters and digits: what may stay as it is in a value."""


def split_settings(text: str) -> tuple[str, dict[str, str]]:
    """Return a target's text without its settings, and these by name.

    A value may be percent-encoded, as in any URL; `&` separates settings, and other parameters of a URL.
    Raises LoadstoneError for a setting without a value, or given twice.
    """
    place, _, query = text.partition("?")
    parts = query.split("&") if query else []
    ours = [part for part in parts if part.startswith(PREFIX)]
    if not ours:
        return text, {}
    settings: dict[str, str] = {}
    for name, value in map(_setting, ours):
        if name in settings:
            raise LoadstoneError(f"the setting '{name}' of a target is given twice", "Set it once.")
        settings[name] = value
    others = "&".join(part for part in parts if part not in ours)
    return f"{place}?{others}" if others else place, settings


def _setting(part: str) -> tuple[str, str]:
    name, equals, value = part.removeprefix(PREFIX).partition("=")
    if not name or not equals:
        raise LoadstoneError(
            f"'{PREFIX}{name}' of a target has no {'value' if name else 'name'}",
            "Write TARGET?setting.NAME=VALUE, such as 'pg18?setting.shared_buffers=1GB'.",
        )
    return unquote(name), unquote(value)


def shown_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings without secrets."""
    return {name: redact(f"{name}={value}").partition("=")[2] for name, value in settings.items()}


def with_settings(url: str, settings: Mapping[str, str]) -> str:
    """Return the text of a target with its settings, secrets hidden: the reverse of `split_settings`."""
    if not settings:
        return url
    parts = (f"{PREFIX}{name}={quote(value, safe=_UNQUOTED)}" for name, value in settings.items())
    return url + ("&" if "?" in url else "?") + "&".join(parts)


def settings_text(settings: Mapping[str, str]) -> str:
    """Return `shared_buffers=1GB, wal_compression=lz4`, secrets hidden; empty for no settings."""
    return ", ".join(f"{name}={value}" for name, value in shown_settings(settings).items())

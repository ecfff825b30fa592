"""`--watch [TARGET=]URL`: what watches the machine of which target."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

from loadstone.errors import LoadstoneError
from loadstone.results.redact import redact, remember

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from loadstone.target import Target

PASSWORD_VARIABLE = "LOADSTONE_WATCH_PASSWORD"  # noqa: S105 - a name
TOKEN_VARIABLE = "LOADSTONE_WATCH_TOKEN"  # noqa: S105 - a name
_URL = re.compile(r"(?:(?P<target>.+?)=)?(?P<url>(?:https?|ssh)://.+)", re.DOTALL | re.IGNORECASE)
_FORM = (
    "Write --watch URL or --watch TARGET=URL: http://… or https://… of a node_exporter or postgres_exporter, "
    "or ssh://[USER@]HOST[:PORT]."
)


@dataclass(frozen=True, slots=True)
class Spec:
    """One `--watch`, understood; nothing is opened."""

    target: str
    """The target's id."""
    scheme: str
    """`http`, `https` or `ssh`."""
    host: str
    port: int | None
    user: str | None
    password: str | None
    url: str
    """For HTTP: with path, without user and password."""
    shown: str
    """Without password."""
    database: str | None = None
    """The target's database, as far as it is known."""


def specs_of(
    texts: Iterable[str], asked: Sequence[str], targets: Sequence[Target], variables: Mapping[str, str]
) -> list[Spec]:
    """Understand every `--watch`; `asked` are the targets' texts, in their order.

    Raises LoadstoneError for what is no such URL, is given twice, or names no target of the run.
    """
    found: list[Spec] = []
    for text in texts:
        spec = _spec(text, asked, targets, variables)
        if any((other.target, other.shown) == (spec.target, spec.shown) for other in found):
            raise LoadstoneError(f"--watch {spec.shown} is given twice", "Give it once.")
        found.append(spec)
    return found


def _spec(text: str, asked: Sequence[str], targets: Sequence[Target], variables: Mapping[str, str]) -> Spec:
    matched = _URL.fullmatch(text.strip())
    try:
        parts = urlsplit(matched["url"]) if matched else None
        port = parts.port if parts else None
    except ValueError:
        parts, port = None, None
    if matched is None or parts is None or not parts.hostname or parts.hostname.startswith("-"):
        raise LoadstoneError(f"--watch {redact(text)} cannot be understood", _FORM)
    user = unquote(parts.username) if parts.username else None
    password = unquote(parts.password) if parts.password else None
    remember(password)
    scheme = parts.scheme.lower()
    if scheme == "ssh":
        _refuse_more_than_a_host(text, parts.path, password, user)
    elif user is not None and password is None:
        password = variables.get(PASSWORD_VARIABLE, "")
    target = _target(matched["target"], text, asked, targets)
    place = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    address = place if port is None else f"{place}:{port}"
    path = (parts.path or "/metrics") if scheme != "ssh" else ""
    url = urlunsplit((scheme, address, path, parts.query, ""))
    shown = redact(urlunsplit((scheme, f"{user}@{address}" if user else address, path, parts.query, "")))
    database = target.connection.database if target.connection is not None else None
    return Spec(target.id, scheme, parts.hostname, port, user, password, url, shown, database)


def _refuse_more_than_a_host(text: str, path: str, password: str | None, user: str | None) -> None:
    if password is not None:
        raise LoadstoneError(
            f"--watch {redact(text)}: ssh takes no password here",
            "Log in by key or agent, as ssh does with BatchMode=yes; ~/.ssh/config is used.",
        )
    if path not in ("", "/") or (user or "").startswith("-"):
        raise LoadstoneError(f"--watch {redact(text)} cannot be understood", _FORM)


def _target(named: str | None, text: str, asked: Sequence[str], targets: Sequence[Target]) -> Target:
    if named is None:
        if len(targets) == 1:
            return targets[0]
        raise LoadstoneError(
            f"--watch {redact(text)} does not say which target's machine it is",
            f"Write --watch TARGET=URL. Targets, by their ids: {_ids(targets)}.",
        )
    for target, given in zip(targets, asked, strict=True):
        if named.strip() in (target.id, given.strip()):
            return target
    raise LoadstoneError(
        f"--watch {redact(text)} is not for a target of this run", f"Targets, by their ids: {_ids(targets)}."
    )


def _ids(targets: Sequence[Target]) -> str:
    return ", ".join(target.id for target in targets)

"""The arms of an experiment: which server, with which settings and parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.private_server.builds import find_build
from loadstone.private_server.os_user import server_account
from loadstone.results.redact import redact
from loadstone.target import parse_target
from loadstone.target.settings import settings_text, split_settings, with_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

A, B, SAME = "A", "B", "A'"
"""`SAME` is set up like A, from its own template, and must not differ from it."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of an experiment."""

    name: str
    target: str
    """As `--target` takes it, with the arm's own settings."""
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        """Return the name as folders have it; all are of the same length."""
        return {A: "a", B: "b", SAME: "c"}[self.name]

    @property
    def label(self) -> str:
        """Return what people read."""
        target = parse_target(self.target)
        words = (target.label.removeprefix("private server "), target.settings_text)
        return ", ".join(filter(None, (*words, redact(settings_text(self.parameters)))))

    def twin(self) -> Arm:
        """Return the arm that is set up alike."""
        return Arm(SAME, self.target, self.parameters)


def arm(name: str, target: str, settings: Mapping[str, str], parameters: Mapping[str, str]) -> Arm:
    """Return an arm. Raises LoadstoneError where it is not a private PostgreSQL server of this machine."""
    place, own = split_settings(target.strip())
    twice = sorted({*own} & {*settings})
    if twice:
        raise LoadstoneError(f"the setting '{twice[0]}' of arm {name} is given twice", "Set it once.")
    text = with_settings(place, {**own, **settings})
    instead = "compare other servers by `loadstone run --repeat` and `loadstone compare`"
    _refuse_others(text, f"arm {name}: ", instead)
    return Arm(name, text, dict(parameters))


def alone(target: str) -> Arm:
    """Return the only server of an experiment. Raises LoadstoneError as `arm` does."""
    text = with_settings(*split_settings(target.strip()))
    _refuse_others(text, "", "search on another server with `loadstone pgbench --slo`")
    return Arm(A, text)


def _refuse_others(target: str, whose: str, instead: str) -> None:
    name = parse_target(target).embedded
    if name is None:
        raise LoadstoneError(
            f"{whose}{parse_target(target).url} is not a private server: trials need a fresh server on a "
            "fresh copy of its data each time",
            f"Use pg, pg10 to pg18 or pg:/path/to/bin, or {instead}.",
        )
    if ":" not in name:
        return
    try:
        find_build(name, server_account())
    except LoadstoneError as error:
        error.message = f"{whose}{error.message}"
        raise
